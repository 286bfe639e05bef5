"""Facts: single things with a name that a head may look at, and how much each explains.

A fact is a set of entries: f(i, j) is 1 where the pair has one of them. It has one weight w per
head, p(j | i) ∝ exp(w f(i, j)), fitted on some texts. Its gain is the share of (CE_even − H) of the
rest that it explains on others.

With k of the n keys of a row marked, even attention gives them q = k/n, and the row's gain is
w·a − m·log(1 + q(exp(w) − 1)), a what the marked keys get, m what the row has left. So rows with
the same q are one, and all weights are found from a few sums.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.portrait.fit import bag_sums
from headscope.portrait.pairs import Attention, Pairs
from headscope.portrait.score import by_group, information_of_rest, ratio_error
from headscope.portrait.tables import KINDS_OF_CLASS, MARKS, Vocabulary, offset_labels
from headscope.results.describe import Gains
from headscope.results.fact_words import FactName

# Ranges of offsets that have words: first and last.
RANGES = ((-2, -1), (-4, -2), (-4, -1), (-8, -3), (-1, 0), (-3, 0))
RANGES_AHEAD = ((1, 2), (2, 4), (1, 4), (3, 8))
AROUND = (1, 2, 4)
SINGLE = (0, -1, -2, -3)
# Relations of Universal Dependencies and of the labels of spaCy's English models.
FAMILIES = {
    "MODIFIER": ("det", "amod", "compound", "poss", "nummod", "nn", "nmod:poss"),
    "OBJECT": ("obj", "dobj", "pobj", "iobj"),
    "AUXILIARY": ("aux", "auxpass", "aux:pass", "cop", "neg"),
    "SUBJECT": ("nsubj", "nsubjpass", "nsubj:pass", "nsubj:outer", "csubj"),
    "FUNCTION": ("det", "poss", "nmod:poss", "aux", "auxpass", "aux:pass"),
}
NO_RELATION = frozenset({"punct", "root", "ROOT", "dep", "meta", "other"})
NO_CLASS = frozenset({"PUNCT", "SYM", "X", "INTJ"})
TINY = 1e-12
STEPS, LONGEST_STEP, LARGEST = 25, 1.5, 8.0  # of Newton's method, and the largest weight
FEWEST = 5  # rows that a weight is fitted on


@dataclass(frozen=True)
class Fact:
    """A fact: its name, and which entries it has."""

    name: FactName
    entries: tuple[int, ...]


def all_facts(vocabulary: Vocabulary) -> list[Fact]:
    """Every fact that the tables of a run can tell."""
    facts: list[Fact] = []
    for name, entries in _named(vocabulary):
        if entries:
            facts.append(Fact(name, entries))
    return facts


def _named(vocabulary: Vocabulary) -> Iterator[tuple[FactName, tuple[int, ...]]]:
    of, is_causal = vocabulary.numbers, vocabulary.is_causal
    ahead = () if is_causal else (1, 2, 3)
    for offset in (*SINGLE, *ahead):
        yield (
            FactName("position", f"{offset:+d}" if offset else "0"),
            _offsets(vocabulary, [offset]),
        )
    for low, high in (*RANGES, *(() if is_causal else RANGES_AHEAD)):
        entries = _offsets(vocabulary, range(low, high + 1))
        yield FactName("position", f"{low:+d}..{high:+d}".replace("+0", "0")), entries
    if not is_causal:
        for reach in AROUND:
            around = [*range(-reach, 0), *range(1, reach + 1)]
            yield FactName("position", f"±{reach}"), _offsets(vocabulary, around)
        labels = list(offset_labels(is_causal))
        middle = labels.index("0")
        yield FactName("position", "before"), of("offset", *labels[:middle])
        yield FactName("position", "after"), of("offset", *labels[middle + 1 :])
    yield FactName("position", "first word"), of("start", "first")
    yield FactName("position", "first three words"), of("start")
    in_text = [mark for mark in MARKS if mark != "special token"]
    yield FactName("marks", "punctuation"), of("mark", *in_text)
    for mark in MARKS:
        yield FactName("marks", mark), of("mark", mark)
    for side, word in (("before", "last"), ("after", "next")):
        yield FactName("marks", f"{word} mark"), of("nearest mark", side)
    if bounds := of("tag", "CCONJ", "SCONJ"):
        yield FactName("marks", "clause bounds"), (*of("mark", *in_text), *bounds)
    for table in ("same token", "after the same", "before the same"):
        yield FactName("repetition", table, is_special=True), of(table)
    yield FactName("repetition", "own word", is_special=True), of("own word")
    if not is_causal:
        for side in ("before", "after"):
            name = FactName("repetition", f"own word {side}", is_special=True)
            yield name, of("own word", side)
    for table, label in (("frequency", "rare"), ("frequency", "very frequent"),
                         ("shape", "capital"), ("shape", "digit")):  # fmt: skip
        yield FactName("token", label), of(table, label)
    yield from _of_classes(vocabulary)
    yield from _of_relations(vocabulary)


def _offsets(vocabulary: Vocabulary, offsets: Sequence[int]) -> tuple[int, ...]:
    labels = [f"{offset:+d}" if offset else "0" for offset in offsets]
    return vocabulary.numbers("offset", *labels)


def _of_classes(vocabulary: Vocabulary) -> Iterator[tuple[FactName, tuple[int, ...]]]:
    of = vocabulary.numbers
    sides = (
        (("before", "last"),) if vocabulary.is_causal else (("before", "last"), ("after", "next"))
    )
    tags = [tag for tag in vocabulary.tags if tag not in NO_CLASS]
    for tag in tags:
        yield FactName("word_class", f"to {tag}"), of("tag", tag)
        for side, word in sides:
            yield FactName("word_class", f"{word} {tag}"), of(f"nearest tag {side}", tag)
    kinds: dict[str, tuple[str, ...]] = dict(KINDS_OF_CLASS)
    kinds["content"] = ("NOUN", "PROPN", "VERB", "ADJ", "ADV", "NUM")
    kinds["function"] = ("AUX", "ADP", "DET", "PRON", "CCONJ", "SCONJ", "PART")
    for kind, of_kind in kinds.items():
        yield FactName("word_class", f"to {kind}"), of("tag", *of_kind)
        for side, word in sides:
            yield FactName("word_class", f"{word} {kind}"), of(f"nearest {kind} {side}")


def _of_relations(vocabulary: Vocabulary) -> Iterator[tuple[FactName, tuple[int, ...]]]:
    of = vocabulary.numbers
    single = [name for name in vocabulary.relations if name not in NO_RELATION]
    groups: dict[str, tuple[str, ...]] = {name: (name,) for name in single}
    for family, members in FAMILIES.items():
        known = tuple(name for name in members if name in single)
        groups |= {family: known} if len(known) > 1 else {}
    groups["any"] = tuple(single)
    for name, members in groups.items():
        for way, table in (("up", "to head"), ("down", "to dependent")):
            yield FactName("syntax", f"{way} {name}", is_special=True), of(table, *members)
    yield FactName("syntax", "coreference", is_special=True), of("coreference")


@dataclass(frozen=True)
class Marked:
    """Where a fact marks keys: the pairs, and the rows that have any with how many."""

    pairs: Int[Tensor, "marked"]
    rows: Int[Tensor, "some"]
    keys: Int[Tensor, "some"]
    even: Float[Tensor, "some 1"]  # the share of the row's keys

    @classmethod
    def of(cls, pairs: Pairs, fact: Fact, only: np.ndarray | None = None) -> "Marked":
        """The marked pairs of some rows, or of all."""
        items, counts = pairs.design.by_entry
        stops = counts.cumsum(0)
        parts = [items[stops[entry] - counts[entry] : stops[entry]] for entry in fact.entries]
        marked = torch.cat(parts).unique() if len(parts) > 1 else parts[0]
        rows_of_pairs = pairs.design.row_of_pair
        if only is not None:
            is_chosen = torch.from_numpy(only).to(marked.device)
            marked = marked[is_chosen[rows_of_pairs[marked]]]
        rows, keys = rows_of_pairs[marked].unique_consecutive(return_counts=True)
        total = pairs.design.pairs_of_row[rows]
        return cls(marked, rows, keys, (keys / total)[:, None].double())

    def sum_by_row(self, values: Float[Tensor, "pair head"]) -> Tensor:
        """What the marked keys of every row get."""
        return bag_sums(self.pairs, values, self.keys).double()


def fit_weight(
    given: Float[Tensor, "row head"],
    mass: Float[Tensor, "row head"],
    even: Float[Tensor, "row 1"],
) -> Float[Tensor, "head"]:
    """The weight of every head with the largest gain, by Newton's method on rows of equal q."""
    shares, place = even[:, 0].unique(return_inverse=True)
    masses = mass.new_zeros(len(shares), mass.shape[1]).index_add_(0, place, mass)
    return newton(given.sum(0), masses, shares[:, None])


def newton(given: Tensor, mass: Tensor, even: Tensor) -> Tensor:
    """The weight that maximises w·given − Σ mass·log(1 + even(exp(w) − 1))."""
    weight = torch.zeros_like(given)
    for _ in range(STEPS):
        odds = weight.exp()
        likely = even * odds / (1 + even * (odds - 1))
        slope = given - (mass * likely).sum(0)
        curvature = (mass * likely * (1 - likely)).sum(0) + 1e-3
        step = (slope / curvature).clamp(-LONGEST_STEP, LONGEST_STEP)
        weight = (weight + step).clamp(-LARGEST, LARGEST)
    return weight


def gain_of_rows(given: Tensor, mass: Tensor, even: Tensor, weight: Tensor) -> Tensor:
    """What a weight gains over even attention, in nats × mass."""
    return given * weight - mass * torch.log1p(even * torch.expm1(weight))


def fit_facts(
    pairs: Pairs, attention: Attention, facts: Sequence[Fact]
) -> Float[Tensor, "fact head"]:
    """The weight of every fact for every head; 0 where it has too few rows."""
    mass = attention.rest.double()
    weights = torch.zeros(len(facts), mass.shape[1], dtype=torch.float64, device=mass.device)
    for place, fact in enumerate(facts):
        marked = Marked.of(pairs, fact)
        if len(marked.rows) >= FEWEST:
            given = marked.sum_by_row(attention.pairs)
            weights[place] = fit_weight(given, mass[marked.rows], marked.even)
    return weights


def score_facts(
    pairs: Pairs,
    attention: Attention,
    facts: Sequence[Fact],
    weights: Float[Tensor, "fact head"],
    position: Float[Tensor, "pair head"],
    only: np.ndarray | None = None,
) -> Gains:
    """What every fact explains on these texts, and how much weight it gets there.

    `position` is what the position portraits of the heads give to the pairs, as shares of the rest.
    """
    rows = np.ones(len(pairs), dtype=bool) if only is None else only
    groups = torch.from_numpy(pairs.row_groups).to(weights.device)
    mass = attention.rest.double()
    chosen = torch.from_numpy(rows).to(weights.device)
    total = by_group(information_of_rest(pairs, attention) * chosen[:, None], groups)
    all_mass = (mass * chosen[:, None]).sum(0)
    names = ("gain", "gain_error", "share", "even", "when", "when_error", "position", "cases")
    found: dict[str, Any] = {name: np.zeros(tuple(weights.shape)) for name in names}
    for place, fact in enumerate(facts):
        marked = Marked.of(pairs, fact, only)
        if len(marked.rows) < FEWEST:
            continue
        given, of_rows = marked.sum_by_row(attention.pairs), mass[marked.rows]
        of_groups = groups[marked.rows]
        gains = by_group(gain_of_rows(given, of_rows, marked.even, weights[place]), of_groups)
        likely = marked.sum_by_row(position) * of_rows
        values = {
            "gain": gains.sum(0) / total.sum(0).clamp(min=TINY),
            "gain_error": ratio_error(gains, total),
            "share": given.sum(0) / all_mass.clamp(min=TINY),
            "even": (of_rows * marked.even).sum(0) / all_mass.clamp(min=TINY),
            "when": given.sum(0) / of_rows.sum(0).clamp(min=TINY),
            "when_error": ratio_error(by_group(given, of_groups), by_group(of_rows, of_groups)),
            "position": likely.sum(0) / of_rows.sum(0).clamp(min=TINY),
            "cases": torch.full_like(mass[0], len(marked.rows)),
        }
        for name, value in values.items():
            found[name][place] = value.cpu().numpy()
    return Gains(weight=weights.cpu().numpy(), **found)


def column_share(
    pairs: Sequence[Pairs], attention: Sequence[Attention]
) -> tuple[Float[np.ndarray, "head"], Float[np.ndarray, "head"]]:
    """How much of the rest the other rows of a text explain, and its standard error.

    Weights are read relative to even attention; a row's prediction is the mean of the other rows
    that see the key, with one even row added. 1: all words look at the same words. Passages, of
    which not all rows are here, count only where there are no sentences.
    """
    has_sentences = any(not part.is_passage.all() for part in pairs)
    sums: list[tuple[Tensor, Tensor]] = []
    for part, looks in zip(pairs, attention, strict=True):
        device = looks.pairs.device
        is_counted = ~part.is_passage if has_sentences else part.is_passage
        counted = torch.from_numpy(is_counted).to(device)[:, None]
        groups = torch.from_numpy(part.row_groups).to(device)
        gains = by_group(gain_of_columns(part, looks) * counted, groups)
        sums.append((gains, by_group(information_of_rest(part, looks) * counted, groups)))
    explained, total = (torch.stack(values).sum(0) for values in zip(*sums, strict=True))
    share = explained.sum(0) / total.sum(0).clamp(min=TINY)
    return share.cpu().numpy(), ratio_error(explained, total).cpu().numpy()


def gain_of_columns(pairs: Pairs, attention: Attention) -> Float[Tensor, "row head"]:
    """What the other rows of a text gain over even attention in every row, in nats × mass."""
    design, device = pairs.design, attention.pairs.device
    row = design.row_of_pair
    size = max((len(text) for text in pairs.texts), default=1)
    text = torch.from_numpy(pairs.row_text).to(device)[row]
    column = text * size + torch.from_numpy(pairs.key).to(device)
    keys = design.pairs_of_row[row][:, None]
    relative = attention.pairs / attention.rest[row].clamp(min=1e-9) * keys
    places = len(pairs.texts) * size
    sums = relative.new_zeros(places, relative.shape[1]).index_add_(0, column, relative)
    seen = torch.bincount(column, minlength=places)[column][:, None]
    likely = (sums[column] - relative + 1) / seen
    likely = likely / design.row_sums(likely)[row]
    return design.row_sums(attention.pairs * (likely.clamp(min=1e-12) * keys).log()).double()
