"""Small corpora for the study: short paragraphs of different lengths."""

import random

from headscope.text.corpus import Corpus
from headscope.text.sentence import Sentence

WORDS = ("the", "a", "cat", "dog", "sat", "ran", "tree", ",", "red", ".", "and", "saw", "by")


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
