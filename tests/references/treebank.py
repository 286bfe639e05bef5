"""Both studies read plainly from the words of a treebank: one sentence at a time, with loops.

Nothing is shared with the studies but the tokenizer and the network. Only the heads of all layers
are looked at together, as the first axis of every array.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from random import Random
from typing import Any

import numpy as np
import torch

from headscope.model.model import Model
from headscope.text.sentence import ROOT, Mention, Sentence, Word
from tests.references.clark2019 import cut_pair

Span = tuple[int, int]
CLITICS = ("'s", "’s", "'", "’")


@dataclass(frozen=True)
class Tokens:
    """The tokens of a text: ids, character spans, and which are special."""

    ids: list[int]
    spans: list[Span]
    special: list[bool]


@dataclass(frozen=True)
class Counts:
    """What became of words and tokens."""

    sentences: int = 0
    several: int = 0  # tokens with characters of several words
    words: int = 0
    split: int = 0  # words of several tokens
    merged: int = 0  # words that share a token, in word maps

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            *(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True))
        )


# Tokens.


def read_tokens(model: Model, sentence: Sentence, *, apart: bool, framed: bool) -> Tokens:
    """The tokens of a sentence, word by word if `apart`, between special ones if `framed`."""
    pieces = word_spans(sentence) if apart else [(0, len(sentence.text))]
    ids: list[int] = []
    spans: list[Span] = []
    for start, end in pieces:
        made: Any = model.tokenizer(
            sentence.text[start:end], add_special_tokens=False, return_offsets_mapping=True
        )
        ids += made["input_ids"]
        spans += [(start + a, start + b) for a, b in made["offset_mapping"]]
    before, after = frame(model) if framed else ([], [])
    return Tokens(
        [*before, *ids, *after],
        [*[(0, 0)] * len(before), *spans, *[(0, 0)] * len(after)],
        [*[True] * len(before), *[False] * len(ids), *[True] * len(after)],
    )


def word_spans(sentence: Sentence) -> list[Span]:
    """Every word with the space right before it."""
    spans, done = [], 0
    for word in sentence.words:
        start = word.start
        while start > done and sentence.text[start - 1].isspace():
            start -= 1
        spans.append((start, word.end))
        done = word.end
    return spans


def frame(model: Model) -> tuple[list[int], list[int]]:
    """The special tokens that the tokenizer puts before and after a text."""
    with_special: Any = model.tokenizer("a")["input_ids"]
    bare: Any = model.tokenizer("a", add_special_tokens=False)["input_ids"]
    at = next(p for p in range(len(with_special)) if with_special[p : p + len(bare)] == bare)
    return with_special[:at], with_special[at + len(bare) :]


def attention(model: Model, ids: Sequence[int], types: Sequence[int] | None = None) -> np.ndarray:
    """a[head, i, j], the heads of all layers one after the other."""
    given = {"input_ids": torch.tensor([list(ids)])}
    if types is not None:
        given["token_type_ids"] = torch.tensor([list(types)])
    model.network.set_attn_implementation("eager")  # others report no weights
    model.network.eval()
    with torch.no_grad():
        layers = model.network(**given, output_attentions=True).attentions
    return torch.cat([layer[0] for layer in layers]).double().numpy()


def held(words: Sequence[Word], tokens: Tokens) -> list[dict[int, int]]:
    """For every token how many characters it has of every word."""
    found = []
    for (start, end), is_special in zip(tokens.spans, tokens.special, strict=True):
        counts: dict[int, int] = {}
        for index, word in enumerate(words):
            count = 0 if is_special else min(end, word.end) - max(start, word.start)
            if count > 0:
                counts[index] = count
        found.append(counts)
    return found


def owner(counts: dict[int, int]) -> int | None:
    """The word with the most characters, the earlier one where equal."""
    best = None
    for index in sorted(counts):
        if best is None or counts[index] > counts[best]:
            best = index
    return best


# vig2019.


def read_vig(
    model: Model, sentences: Sequence[Sentence], alignment: str
) -> tuple[dict[str, Any], Counts]:
    """Values of every head by measure (and label), and what was counted."""
    over: dict[Any, Any] = defaultdict(float)
    under: dict[Any, Any] = defaultdict(float)
    counts = Counts()
    labels = {("tag", w.upos) for s in sentences for w in s.words}
    labels |= {("deprel", w.deprel) for s in sentences for w in s.words}
    for sentence in sentences:
        tokens = read_tokens(
            model, sentence, apart=alignment == "words", framed=not model.is_causal
        )
        if not tokens.ids or len(tokens.ids) > (model.max_length or math.inf):
            continue
        shares = held(sentence.words, tokens)
        several = sum(len(each) > 1 for each in shares)
        if alignment == "strict" and several:
            continue
        own = [owner(each) for each in shares]
        pieces = [own.count(word) for word in range(len(sentence.words))]
        counts += Counts(1, several, len(pieces), sum(count > 1 for count in pieces))
        a = attention(model, tokens.ids)
        null = [place == 0 for place in range(len(own))] if model.is_causal else tokens.special
        _add_vig(over, under, a, sentence.words, own, null, model.is_causal)
    total = under.pop("pairs")
    for key in {*over, *labels} - set(under):
        under[key] = total
    return {key: np.asarray(over[key]) / np.asarray(under[key]) for key in under}, counts


def _add_vig(
    over: dict[Any, Any],
    under: dict[Any, Any],
    a: np.ndarray,
    words: Sequence[Word],
    own: Sequence[int | None],
    null: Sequence[bool],
    is_causal: bool,
) -> None:
    size = len(own)
    for i in range(size):
        if null[i]:
            continue
        keys = [j for j in range(i + 1 if is_causal else size) if not null[j]]
        to_null = a[:, i, [j for j in range(size) if null[j]]].sum(1)
        over["null_share"] += to_null
        under["null_share"] += a[:, i].sum(1)
        row = a[:, i][:, keys]
        rest = row.sum(1)
        p = row / np.where(rest > 0, rest, 1)[:, None]
        nats = -(p * np.log(np.where(p > 0, p, 1))).sum(1)
        kept = ~(to_null.astype(np.float32) > 0.9) & (rest > 0)
        over["entropy"] += np.where(kept, nats, 0)
        under["entropy"] += kept
        for j in keys:
            weight = a[:, i, j]
            under["pairs"] += weight
            over["distance"] += weight * abs(i - j)
            _add_labels(over, weight, words, own[i], own[j])


def _add_labels(
    over: dict[Any, Any],
    weight: np.ndarray,
    words: Sequence[Word],
    query: int | None,
    key: int | None,
) -> None:
    if query is not None:
        over["from", words[query].upos] += weight
    if key is not None:
        over["tag", words[key].upos] += weight
        over["deprel", words[key].deprel] += weight
    if query is None or key is None or query == key:
        return
    if words[key].head == query:
        over["attender_is_parent"] += weight
        over["either"] += weight
    if words[query].head == key:
        over["receiver_is_parent"] += weight
        over["either"] += weight


# Words that share a token become one.


def make_units(sentence: Sentence, shares: Sequence[dict[int, int]]) -> tuple[Sentence, list[int]]:
    """The sentence with joined words, and the new word of every old one."""
    words = sentence.words
    sets = [{index} for index in range(len(words))]
    holders = [set(range(min(each), max(each) + 1)) for each in shares if each]
    for holder in holders:
        touched = [unit for unit in sets if unit & holder]
        sets = [unit for unit in sets if not unit & holder] + [set().union(*touched)]
    sets.sort(key=min)
    while bare := [n for n, unit in enumerate(sets) if not any(unit & h for h in holders)]:
        other = bare[0] - 1 if bare[0] else 1
        sets[min(bare[0], other)] |= sets.pop(max(bare[0], other))
    place = {old: new for new, unit in enumerate(sets) for old in unit}
    made = []
    for unit in sets:
        top = min(unit, key=lambda index: (depth(words, index), index))
        start, end = words[min(unit)].start, words[max(unit)].end
        head = words[top].head
        head = place[head] if head is not None and head >= 0 else head
        text = sentence.text[start:end]
        made.append(replace(words[top], text=text, start=start, end=end, head=head))
    mentions = tuple(
        Mention(m.entity, tuple((place[a], place[b - 1] + 1) for a, b in m.spans))
        for m in sentence.mentions
    )
    joined = replace(sentence, words=tuple(made), mentions=mentions)
    return joined, [place[old] for old in range(len(words))]


def depth(words: Sequence[Word], index: int) -> int:
    """Arcs up to the root."""
    head = words[index].head
    return 0 if head is None or head == ROOT else 1 + depth(words, head)


def word_map(a: np.ndarray, own: Sequence[int | None], words: int) -> np.ndarray:
    """To a word the sum over its tokens, from it the mean over them."""
    maps = np.zeros((len(a), words, words))
    pieces = [[t for t, word in enumerate(own) if word == index] for index in range(words)]
    for i in range(words):
        for j in range(words):
            for query in pieces[i]:
                for key in pieces[j]:
                    maps[:, i, j] += a[:, query, key] / len(pieces[i])
    return maps


def read_units(
    model: Model, sentence: Sentence, alignment: str
) -> tuple[Sentence, np.ndarray, Counts] | None:
    """The words of a sentence as units, attention between them, and what was counted."""
    tokens = read_tokens(model, sentence, apart=alignment != "overlap", framed=True)
    if model.is_causal and not frame(model)[0] and model.tokenizer.bos_token_id is not None:
        begin: Any = model.tokenizer.bos_token_id
        tokens = Tokens([begin, *tokens.ids], [(0, 0), *tokens.spans], [True, *tokens.special])
    if len(tokens.ids) > (model.max_length or math.inf):
        return None
    shares = held(sentence.words, tokens)
    several = sum(len(each) > 1 for each in shares)
    if alignment == "strict" and several:
        return None
    joined, place = make_units(sentence, shares)
    own = [place[min(each)] if each else None for each in shares]
    maps = word_map(attention(model, tokens.ids), own, len(joined.words))
    merged = sum(place.count(unit) > 1 for unit in place)
    pieces = [own.count(unit) for unit in range(len(joined.words))]
    split = sum(count > 1 for count in pieces)
    return joined, maps, Counts(1, several, len(place), split, merged)


def read_relations(
    model: Model, sentences: Sequence[Sentence], alignment: str
) -> tuple[dict[tuple[str, str], np.ndarray], dict[tuple[str, str], int], Counts]:
    """How often every head is right, and how often it is asked, by direction and relation."""
    right: dict[tuple[str, str], Any] = defaultdict(float)
    asked: dict[tuple[str, str], int] = defaultdict(int)
    counts = Counts()
    for sentence in sentences:
        if not is_tree(sentence.words):
            continue
        made = read_units(model, sentence, alignment)
        if made is None:
            continue
        joined, maps, found = made
        counts += found
        for i, word in enumerate(joined.words):
            for direction in ("dependent_to_head", "head_to_dependent"):
                if model.is_causal and not _can_see(word, i, direction):
                    continue
                hits = _predicted(maps, i, direction) == word.head
                for name in ("all", word.deprel or ""):
                    right[direction, name] += hits
                    asked[direction, name] += 1
    return right, asked, counts


def _predicted(maps: np.ndarray, i: int, direction: str) -> np.ndarray:
    """The word that every head points at; of equal ones the first."""
    row = (maps[:, i, :] if direction == "dependent_to_head" else maps[:, :, i]).copy()
    row[:, i] = 0
    return row.argmax(1)


def _can_see(word: Word, i: int, direction: str) -> bool:
    if word.head is None or word.head == ROOT:
        return False
    return word.head < i if direction == "dependent_to_head" else word.head > i


def is_tree(words: Sequence[Word]) -> bool:
    """One root and no circle; treebank files have no circles."""
    return bool(words) and [word.head for word in words].count(ROOT) == 1


# Segments.


def pack(
    sentences: Sequence[Sentence], most: int
) -> Iterator[tuple[int, str, list[tuple[list[str], int]]]]:
    """Paragraphs that go together: texts and number of words; with the first sentence's number."""
    for document, inside in groupby(enumerate(sentences), key=lambda item: item[1].document):
        chunk: list[tuple[list[str], int]] = []
        start = 0
        for _, own in groupby(inside, key=lambda item: item[1].paragraph):
            paragraph = list(own)
            size = sum(max(len(s.words), len(s.text.split())) for _, s in paragraph)
            if size == 0:
                continue
            if not chunk:
                start = paragraph[0][0]
            chunk.append(([sentence.text.strip() for _, sentence in paragraph], size))
            if len(chunk) > 1 and sum(size for _, size in chunk) >= most:
                yield start, document, chunk
                chunk = []
        if len(chunk) > 1:
            yield start, document, chunk


def read_segments(
    model: Model, sentences: Sequence[Sentence], most: int, seed: int
) -> tuple[dict[Any, np.ndarray], list[int]]:
    """Means over segments of what each segment has on average, and the lengths of the segments."""
    values: dict[Any, list[np.ndarray]] = defaultdict(list)
    lengths = []
    cls, sep = _delimiters(model)
    for number, document, chunk in pack(sentences, most):
        sizes = [size for _, size in chunk]
        middle = Random(f"{document} {sizes}").randint(1, len(chunk) - 1)
        halves = [" ".join(t for texts, _ in part for t in texts if t) for part in
                  (chunk[:middle], chunk[middle:])]  # fmt: skip
        a, b = (model.tokenizer(text, add_special_tokens=False)["input_ids"] for text in halves)
        room = min(most, model.max_length or most) - 3
        a, b = cut_pair(a, b, room, Random(f"{seed} {number}"))
        ids = [cls, *a, sep, *b, sep]
        types = [0] * (len(a) + 2) + [1] * (len(b) + 1)
        lengths.append(len(ids))
        weights = attention(model, ids, types if model.tokenizer.cls_token_id is not None else None)
        for name, value in _surface(model, ids, weights).items():
            values[name].append(value)
    return {name: np.mean(each, axis=0) for name, each in values.items()}, lengths


def _surface(model: Model, ids: Sequence[int], a: np.ndarray) -> dict[Any, np.ndarray]:
    size, (cls, sep) = len(ids), _delimiters(model)
    kinds = []
    for place, index in enumerate(ids):
        text = str(model.tokenizer.decode([index])).strip()
        is_cls = index == cls and (place == 0 or index != sep)
        kinds.append("cls" if is_cls else "sep" if index == sep else
                     "punct" if text in (".", ",") else "")  # fmt: skip
    found: dict[Any, Any] = defaultdict(lambda: np.zeros(len(a)))
    for i in range(size):
        p = 0.9999 * a[:, i] + 0.0001 / size
        found["entropy"] -= (p * np.log(p)).sum(1) / size
        for offset in (-1, 0, 1):
            if 0 <= i + offset < size:
                found["offset", offset] += a[:, i, i + offset] / size
        for j in range(size):
            if kinds[j]:
                found["special", kinds[j]] += a[:, i, j] / size
    for kind in ("cls", "sep", "punct"):
        found["special", kind] += 0
    return dict(found)


def _delimiters(model: Model) -> tuple[int, int]:
    tokenizer: Any = model.tokenizer
    if tokenizer.cls_token_id is not None:
        return tokenizer.cls_token_id, tokenizer.sep_token_id
    return tokenizer.bos_token_id, tokenizer.eos_token_id
