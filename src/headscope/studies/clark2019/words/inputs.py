"""The inputs of clark2019's second part: single sentences with trees, windows of documents."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby

from headscope.observe.example import Example
from headscope.probes.coreference.metric import make_queries
from headscope.probes.encoding import SkipError, WordTokens, encode_words, find_frame
from headscope.probes.gold import tree_fault
from headscope.probes.words import word_example
from headscope.studies.study import Inputs, Setup
from headscope.studies.vig2019.inputs import sentence_inputs
from headscope.text.corpus import Corpus, Shard
from headscope.text.sentence import Sentence
from headscope.text.windows import GAP, cut, join

NO_MENTION = "windows without a scored mention"


def tree_inputs(setup: Setup, sentences: Sequence[Sentence], first: int) -> Inputs:
    """One example for every sentence that is a tree and whose words match its tokens."""
    skipped: Counter[str] = Counter()
    numbers, trees = [], []
    for number, sentence in enumerate(sentences, start=first):
        fault = tree_fault(sentence.words)
        if fault is None:
            numbers.append(number)
            trees.append(sentence)
        else:
            skipped[f"trees: {fault}"] += 1
    examples: list[Example] = []
    for number, made in zip(numbers, encode_words(setup.model, trees), strict=True):
        if isinstance(made, WordTokens):
            examples.append(word_example(number, made, is_causal=setup.model.is_causal))
        else:
            skipped[f"trees: {made}"] += 1
    return Inputs(examples, skipped)


def plain_inputs(setup: Setup, sentences: Sequence[Sentence], first: int) -> Inputs:
    """One example for every sentence of a corpus without trees."""
    made = sentence_inputs(setup, sentences, first)
    return Inputs(made.examples, {f"sentences: {why}": n for why, n in made.skipped.items()})


def window_inputs(setup: Setup, sentences: Sequence[Sentence], first: int) -> Inputs:
    """One example for every window that begins among these sentences and has a scored mention."""
    skipped: Counter[str] = Counter()
    examples: list[Example] = []
    for start, stop in documents_of(setup.corpus):
        if start < first + len(sentences) and stop > first:
            for number, window in _windows(setup, start, stop, skipped, first, len(sentences)):
                if len(make_queries([window.sentence])):
                    examples.append(word_example(number, window, is_causal=setup.model.is_causal))
                else:
                    skipped[NO_MENTION] += 1
    return Inputs(examples, skipped)


@lru_cache(maxsize=4)
def documents_of(corpus: Corpus) -> tuple[tuple[int, int], ...]:
    """First and last sentence (exclusive) of every document; read once."""
    runs = groupby(enumerate(corpus), key=lambda item: item[1].document)
    numbers = [[number for number, _ in run] for _, run in runs]
    return tuple((run[0], run[-1] + 1) for run in numbers)


def window_size(setup: Setup) -> int:
    """The most tokens of a window without the special ones around it."""
    limit, asked = setup.model.max_length, setup.options["window"]
    whole = asked if limit is None else min(asked, limit)
    return whole - len(find_frame(setup.model.tokenizer))


def _windows(
    setup: Setup, start: int, stop: int, skipped: Counter[str], first: int, count: int
) -> Iterator[tuple[int, WordTokens]]:
    """Windows of one document that begin in the shard, with the number of their first sentence."""
    sentences = setup.corpus.read(Shard(0, start, stop))
    # A sentence inside a window has a space before it, which some tokenizers count to its token.
    lengths = _lengths(setup, [_indented(sentence) for sentence in sentences])
    windows, too_long = cut(lengths, window_size(setup))
    inside = range(first - start, first - start + count)
    skipped["windows: sentence cannot be used"] += sum(place in inside for place in too_long)
    for window in windows if setup.options["windows"] == "all" else windows[:1]:
        if window[0] in inside:
            (made,) = encode_words(setup.model, [join([sentences[place] for place in window])])
            if isinstance(made, SkipError):
                skipped[f"windows: {made}"] += 1
            else:
                yield start + window[0], made


def _lengths(setup: Setup, sentences: Sequence[Sentence]) -> list[int]:
    """Tokens of every sentence; one more than fits for those that cannot be used."""
    made, frame = encode_words(setup.model, sentences), len(find_frame(setup.model.tokenizer))
    unusable = window_size(setup) + 1
    return [
        len(each.encoded) - frame if isinstance(each, WordTokens) else unusable for each in made
    ]


def _indented(sentence: Sentence) -> Sentence:
    words = tuple(replace(word, start=word.start + 1, end=word.end + 1) for word in sentence.words)
    return replace(sentence, text=GAP + sentence.text, words=words)
