"""The inputs of vig2019: sentences or documents, and for exemplars possibly more sentences."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Any

from headscope.engine.question import Inputs
from headscope.engine.setup import Setup
from headscope.errors import RunError
from headscope.studies.draw import draw_sentences
from headscope.studies.shared.sentences import document_inputs, make_inputs, sentence_inputs
from headscope.text.corpus import Corpus
from headscope.text.sentence import Sentence
from headscope.wording import counted


def draw_corpus(
    corpus: Corpus, sentences: int | None, seed: int, options: Mapping[str, Any]
) -> Corpus:
    """The sentences that exemplars are sought in: those of the numbers, or more."""
    more = options["exemplar_sentences"]
    if more is None:
        return draw_sentences(corpus, sentences, seed, options)
    if options["context"] is not None:
        raise RunError(
            "exemplar_sentences counts sentences, but with a context documents are the inputs; "
            "leave one of the two out."
        )
    if sentences is None or more <= sentences:
        of_numbers = "all of the corpus" if sentences is None else counted(sentences, "sentences")
        raise RunError(
            f"exemplar_sentences is {more:,}, but the numbers are from {of_numbers}; "
            "give fewer --sentences for the numbers."
        )
    return draw_sentences(corpus, more, seed, options)


def sentences_of_numbers(setup: Setup) -> frozenset[int] | None:
    """The sentences that the numbers are from; None: from all of them."""
    count, total = setup.sentences, len(setup.corpus)
    if setup.options["exemplar_sentences"] is None or count is None or count >= total:
        return None
    return _sample(total, count, setup.seed)


@lru_cache(maxsize=2)  # asked for again by every shard
def _sample(total: int, count: int, seed: int) -> frozenset[int]:
    return frozenset(Random(f"{seed} numbers").sample(range(total), count))


def number_inputs(setup: Setup, sentences: Sequence[Sentence], first: int) -> Inputs:
    """One example for every sentence that the numbers are from, or inputs from documents."""
    if setup.context is not None:
        return document_inputs(setup, sentences, first)
    sample = sentences_of_numbers(setup)
    numbered = enumerate(sentences, start=first)
    read = [(number, one) for number, one in numbered if sample is None or number in sample]
    return make_inputs(setup, read, Counter())


def exemplar_inputs(setup: Setup, sentences: Sequence[Sentence], first: int) -> Inputs:
    """One example for every sentence, where the numbers are from a sample of them."""
    made = sentence_inputs(setup, sentences, first)
    return Inputs(made.examples, {f"exemplars: {why}": n for why, n in made.skipped.items()})
