"""What the study is given to be tried: short paragraphs, a set-up, and options that are quick."""

import random
from typing import Any

from headscope.engine import Setup
from headscope.studies import find_study
from headscope.text.corpus import Corpus
from headscope.text.sentence import Sentence
from tests.references.tiny_models import MODELS

WORDS = ("the", "a", "cat", "dog", "sat", "ran", "tree", ",", "red", ".", "and", "saw", "by")
FAST: dict[str, Any] = {"gradients": False, "repeated_sequences": 2, "period": 8}
CHEAP: dict[str, Any] = {**FAST, "probe_seeds": 1}


def paragraphs(documents: int = 4, each: int = 5, longest: int = 9, seed: int = 0) -> Corpus:
    """Documents of random words; every paragraph has one or two sentences."""
    rng = random.Random(seed)
    return Corpus.from_sentences(
        Sentence(text=_sentence(rng, longest), document=f"d{d}", paragraph=p)
        for d in range(documents)
        for p in range(each)
        for _ in range(rng.choice((1, 2)))
    )


def _sentence(rng: random.Random, longest: int) -> str:
    words = rng.choices(WORDS, k=rng.randint(1, longest))
    return " ".join(["Ann", *words, "."])


def make_setup(corpus: Corpus, kind: str, **options: object) -> Setup:
    study = find_study("clark2019")
    return Setup(MODELS[kind](), corpus, study.with_options(options), study.labels(corpus), 256)
