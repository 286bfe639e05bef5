"""Trees and coreference of clark2019 read plainly: loops over sentences, windows and mentions."""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from headscope.model.model import Model
from headscope.studies.clark2019.probes.mentions import Phrase, phrases
from headscope.text.segments import indented, join
from headscope.text.sentence import ROOT, Sentence
from tests.references.treebank import is_tree, read_tokens, read_units

WINDOW = 128  # tokens, those of the frame included
KINDS = ("all", "pronoun", "proper", "nominal")
Counted = dict[str, Any]


def read_trees(
    model: Model, sentences: Sequence[Sentence], alignment: str
) -> tuple[np.ndarray, int, int]:
    """Arcs in the tree of every head, arcs between neighbours, and all arcs."""
    found, neighbours, arcs = np.zeros(model.layers * model.heads), 0, 0
    for sentence in sentences:
        made = read_units(model, sentence, alignment) if is_tree(sentence.words) else None
        if made is None:
            continue
        joined, maps, _ = made
        edges = [grow(np.maximum(head, head.T)) for head in maps]
        for i, word in enumerate(joined.words):
            is_mark = word.deprel in ("punct", "p", ".", ",") or word.upos == "PUNCT"
            if word.head is None or word.head == ROOT or is_mark:
                continue
            arcs += 1
            neighbours += abs(word.head - i) == 1
            found += [frozenset((i, word.head)) in tree for tree in edges]
    return found, neighbours, arcs


def grow(weights: np.ndarray) -> set[frozenset[int]]:
    """The maximum spanning tree, the heaviest edges first."""
    size = len(weights)
    pairs = [(i, j) for i in range(size) for j in range(i + 1, size)]
    part = list(range(size))
    tree: set[frozenset[int]] = set()
    for i, j in sorted(pairs, key=lambda pair: -weights[pair]):
        if part[i] != part[j]:
            tree.add(frozenset((i, j)))
            part = [part[i] if each == part[j] else each for each in part]
    return tree


def read_coreference(model: Model, sentences: Sequence[Sentence], alignment: str) -> Counted:
    """What every head resolves among words and among mentions, and how many mentions there are."""
    heads = model.layers * model.heads
    words, mentions = np.zeros((heads, len(KINDS))), np.zeros((heads, len(KINDS)))
    scored, unseen = np.zeros(len(KINDS)), np.zeros(len(KINDS))
    for window in windows_of(model, sentences, alignment):
        made = read_units(model, window, alignment)
        if made is None:
            continue
        joined, maps, _ = made
        found = phrases(joined)
        for index, mention in enumerate(found):
            targets = antecedents(found, index)
            kinds = np.array([kind in ("all", mention.kind) for kind in KINDS], dtype=float)
            if not targets:
                continue
            if model.is_causal and min(targets) > mention.head:
                unseen += kinds
                continue
            scored += kinds
            row = maps[:, mention.head].copy()
            row[:, mention.head] = 0
            words += np.isin(row.argmax(1), targets)[:, None] * kinds
            others = sorted({p.head for p in found[:index] if p.head != mention.head})
            chosen = np.asarray(others)[row[:, others].argmax(1)]
            mentions += np.isin(chosen, targets)[:, None] * kinds
    return {"words": words, "mentions": mentions, "scored": scored, "unseen": unseen}


def antecedents(found: Sequence[Phrase], index: int) -> list[int]:
    """Head words of earlier mentions of the entity that have another head word."""
    own = found[index]
    return [p.head for p in found[:index] if p.entity == own.entity and p.head != own.head]


def windows_of(model: Model, sentences: Sequence[Sentence], alignment: str) -> Iterator[Sentence]:
    """Whole sentences of a document, as many as have room, one window after the other."""
    frame = sum(read_tokens(model, sentences[0], apart=False, framed=True).special)
    begins = model.is_causal and not frame and model.tokenizer.bos_token_id is not None
    room = min(WINDOW, model.max_length or math.inf) - (1 if begins else frame)
    for _, document in groupby(sentences, key=lambda sentence: sentence.document):
        window: list[Sentence] = []
        used = 0
        for sentence in document:
            size = length(model, sentence, alignment)
            if window and used + size > room:
                yield join(window)
                window, used = [], 0
            if size <= room:
                window.append(sentence)
                used += size
        if window:
            yield join(window)


def length(model: Model, sentence: Sentence, alignment: str) -> float:
    """Tokens of a sentence within a text; infinite where it cannot be read."""
    inside = indented(sentence)
    tokens = read_tokens(model, inside, apart=alignment != "overlap", framed=False)
    if alignment == "strict" and read_units(model, inside, alignment) is None:
        return math.inf
    return len(tokens.ids)
