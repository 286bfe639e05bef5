"""Words that are written as one ("du" = "de" + "le") taken as one word of the tree."""

from collections.abc import Sequence
from itertools import groupby

from headscope.text.sentence import ROOT, Mention, Word


def merge_fused(
    text: str, words: tuple[Word, ...], mentions: tuple[Mention, ...]
) -> tuple[tuple[Word, ...], tuple[Mention, ...]]:
    """One word for every run of words with the same span, with the analysis of its top word.

    The top word is the one nearest the root: taking it, the heads still form a tree. Words that
    hung on any word of the run hang on the new one; a mention of one of them is a mention of it.
    """
    runs = [list(run) for _, run in groupby(range(len(words)), key=lambda i: words[i].start)]
    if len(runs) == len(words):
        return words, mentions
    place = {old: new for new, run in enumerate(runs) for old in run}
    merged = tuple(_merge(text, words, run, place) for run in runs)
    moved = tuple(
        Mention(mention.entity, tuple((place[a], place[b - 1] + 1) for a, b in mention.spans))
        for mention in mentions
    )
    return merged, moved


def _merge(text: str, words: Sequence[Word], run: list[int], place: dict[int, int]) -> Word:
    top = words[min(run, key=lambda index: _depth(words, index))]
    head = top.head if top.head is None or top.head == ROOT else place[top.head]
    form = text[top.start : top.end]
    return Word(form, top.start, top.end, top.upos, top.xpos, top.feats, head, top.deprel)


def _depth(words: Sequence[Word], index: int) -> int:
    """Arcs from the word up to the root."""
    depth = 0
    head = words[index].head
    while head is not None and head != ROOT:
        depth += 1
        head = words[head].head
    return depth
