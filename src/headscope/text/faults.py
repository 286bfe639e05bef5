"""What is wrong with the rows of a table that anybody may have written: heads, spans, lengths.

Everything is looked at in whole columns, so that checking costs little beside reading.
"""

from collections.abc import Iterator
from math import ceil, log2
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute

from headscope.text.sentence import ROOT
from headscope.text.table import MENTION_FIELDS, SENTENCE_FIELDS, SPAN_FIELDS, WORD_FIELDS

pc: Any = pyarrow.compute  # its functions are made at run time, so that no checker knows them

LONGEST_TEXT = 16_000_000  # characters of one sentence
_NEEDED = ("form", "start", "end", *MENTION_FIELDS, *SPAN_FIELDS)  # the others may be missing


class Fault(NamedTuple):
    """The row of the table, and what is wrong there with the remedy."""

    row: int
    problem: str


def find_fault(table: pa.Table) -> Fault | None:
    """The first thing that no corpus may have, or None."""
    columns = {name: table.column(name).combine_chunks() for name in table.column_names}
    return next(_faults(columns), None)


def _faults(columns: dict[str, pa.Array]) -> Iterator[Fault]:
    """Later checks rely on the earlier ones having found nothing."""
    for name in (*SENTENCE_FIELDS, *WORD_FIELDS, *MENTION_FIELDS, *SPAN_FIELDS):
        yield from _at(pc.is_null(columns[name]), f'"{name}" is missing; give it a value.')
    lengths = pc.utf8_length(columns["text"]).to_numpy()
    said = f"the text is longer than {LONGEST_TEXT:,} characters; cut it."
    yield from _at(lengths > LONGEST_TEXT, said)
    yield from _at(columns["paragraph"].to_numpy() < 0, "the paragraph is negative; count from 0.")
    yield from _unequal(columns)
    yield from _missing(columns)
    words = _lengths(columns["form"])
    yield from _outside_text(columns, words, lengths)
    yield from _heads(columns, words)
    yield from _mentions(columns, words)


def _unequal(columns: dict[str, pa.Array]) -> Iterator[Fault]:
    for names in (WORD_FIELDS, MENTION_FIELDS, SPAN_FIELDS):
        first = _lengths(columns[names[0]])
        for name in names[1:]:
            said = f'"{name}" and "{names[0]}" have different lengths; make them equal.'
            yield from _at(_lengths(columns[name]) != first, said)


def _missing(columns: dict[str, pa.Array]) -> Iterator[Fault]:
    for name in _NEEDED:
        flat = columns[name].flatten()
        if flat.null_count:
            rows = _rows(_lengths(columns[name]))
            said = f'"{name}" has no value for a word or mention; give every one.'
            yield from _at(pc.is_null(flat), said, rows)


def _outside_text(
    columns: dict[str, pa.Array], words: np.ndarray, lengths: np.ndarray
) -> Iterator[Fault]:
    start, end = (_numbers(columns[name]) for name in ("start", "end"))
    rows = _rows(words)
    outside = (start < 0) | (end < start) | (end > lengths[rows])
    yield from _at(outside, "a word does not lie in the text; correct its start and end.", rows)


def _heads(columns: dict[str, pa.Array], words: np.ndarray) -> Iterator[Fault]:
    flat = columns["head"].flatten()
    if flat.null_count == len(flat):
        return
    heads, rows = flat.fill_null(ROOT).to_numpy(), _rows(words)
    said = f"a head is not in the sentence; give word indices from 0, or {ROOT} for the root."
    yield from _at((heads < ROOT) | (heads >= words[rows]), said, rows)
    said = "the heads of a word lead back to it; correct them."
    yield from _at(_in_cycle(heads, words, rows), said, rows)


def _in_cycle(heads: np.ndarray, words: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Words that do not reach a root: every round follows twice as many arcs as the last."""
    top = len(heads)
    starts = np.cumsum(words) - words
    above = np.append(np.where(heads == ROOT, top, starts[rows] + heads), top)
    for _ in range(ceil(log2(max(2, words.max(initial=0)))) + 1):
        above = above[above]
    return above[:-1] != top


def _mentions(columns: dict[str, pa.Array], words: np.ndarray) -> Iterator[Fault]:
    parts, rows = _numbers(columns["parts"]), _rows(_lengths(columns["parts"]))
    yield from _at(parts < 1, "a mention has no words; remove it.", rows)
    owned = np.bincount(rows, weights=parts, minlength=len(words)).astype(np.int64)
    said = 'the "parts" of the mentions are not as many as the spans; correct them.'
    yield from _at(owned != _lengths(columns["span_start"]), said)
    start, end = (_numbers(columns[name]) for name in SPAN_FIELDS)
    rows = _rows(_lengths(columns["span_start"]))
    outside = (start < 0) | (end <= start) | (end > words[rows])
    yield from _at(outside, "a mention does not lie in the sentence; correct its spans.", rows)


def _at(
    wrong: pa.Array | np.ndarray, problem: str, rows: np.ndarray | None = None
) -> Iterator[Fault]:
    flags = wrong if isinstance(wrong, np.ndarray) else wrong.to_numpy(zero_copy_only=False)
    if flags.any():
        place = int(flags.argmax())
        yield Fault(place if rows is None else int(rows[place]), problem)


def _lengths(lists: pa.Array) -> np.ndarray:
    return pc.list_value_length(lists).to_numpy(zero_copy_only=False)


def _numbers(lists: pa.Array) -> np.ndarray:
    return lists.flatten().to_numpy(zero_copy_only=False)


def _rows(lengths: np.ndarray) -> np.ndarray:
    """The row of every item, of lists with these lengths."""
    return np.repeat(np.arange(len(lengths)), lengths)
