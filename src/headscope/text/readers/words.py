"""Words as a file gives them: where they stand in the text, and whether their heads form a tree.

Coreference brackets of one sentence, collected into mentions.

The `Entity=` notation of CoNLL-U files, as GUM and as CorefUD write it:

    GUM       (44-object-giv:inact-cf2-3-coref(47-person-…   47)   44)
    CorefUD   (e1-person-1-)   (e2[1/2]-place-1-   e2[1/2])   (e2[2/2]-place-1-   e2[2/2])

`# global.Entity` names the fields between the hyphens; `GRP` or `eid` is the entity's id.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from headscope.text.readers.lines import quoted, whole_number
from headscope.text.sentence import ROOT, Mention, Word
from headscope.text.sharing import merge_runs
from headscope.wording import shorten

_SHOWN = 40  # characters of a text that does not hold the words
WHOLE = (1, 1)
_BRACKET = re.compile(r"\((?P<open>[^()]+)(?P<single>\))?|(?P<close>[^()]+)\)")
_PART = re.compile(r"(?P<entity>.+)\[(?P<number>\d+)/(?P<count>\d+)\]")
_ID_NAMES = ("GRP", "eid")
_BRACKETS_SHOWN = 80  # characters of what is wrong


class SurfaceError(Exception):
    """A text that does not hold the tokens, with the index of the first that does not fit."""

    def __init__(self, index: int, found: str) -> None:
        super().__init__(f"token {index} is not at {found!r}")
        self.index = index
        self.found = found


def join(forms: Sequence[str], glued: Sequence[bool]) -> str:
    """The text of tokens with one space after each that is not glued to the next."""
    parts = [form if tight else f"{form} " for form, tight in zip(forms, glued, strict=True)]
    return "".join(parts).rstrip(" ")


def locate(forms: Sequence[str], text: str) -> list[tuple[int, int]]:
    """Character spans of the tokens, which follow each other with nothing but space between."""
    spans: list[tuple[int, int]] = []
    place = 0
    for index, form in enumerate(forms):
        if not text.startswith(form, place):
            place = _skip_space(text, place)
            if not text.startswith(form, place):
                raise SurfaceError(index, shorten(text[place:], _SHOWN))
        spans.append((place, place + len(form)))
        place += len(form)
    place = _skip_space(text, place)
    if place != len(text):
        raise SurfaceError(len(forms), shorten(text[place:], _SHOWN))
    return spans


def _skip_space(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def find_cycle(heads: Sequence[int | None]) -> int | None:
    """A word that is its own ancestor, or None; several roots and missing heads are allowed."""
    done = bytearray(len(heads))
    for word in range(len(heads)):
        trail: list[int] = []
        current: int | None = word
        while current is not None and current != ROOT and not done[current]:
            done[current] = 1
            trail.append(current)
            current = heads[current]
        if current in trail:
            return current
    return None


def merge_fused(
    text: str, words: tuple[Word, ...], mentions: tuple[Mention, ...]
) -> tuple[tuple[Word, ...], tuple[Mention, ...]]:
    """One word for every run of words with the same span; see `merge_runs`."""
    runs = [list(run) for _, run in groupby(range(len(words)), key=lambda i: words[i].start)]
    if len(runs) == len(words):
        return words, mentions
    merged = merge_runs(text, words, mentions, runs)
    return merged.words, merged.mentions


class BracketError(Exception):
    """A bracket that does not fit the others, with the line it is on."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line


@dataclass
class MentionBuilder:
    """Takes opening and closing brackets in word order; spans may nest and cross freely.

    A closing bracket ends the span of its entity that was opened last. A part (k, n) is the
    k-th of the n pieces of a discontinuous mention.
    """

    _open: dict[tuple[str, int, int], list[tuple[int, int]]] = field(default_factory=dict)
    _parts: dict[tuple[str, int], dict[int, tuple[int, int, int]]] = field(default_factory=dict)
    _done: list[Mention] = field(default_factory=list)

    def open(self, entity: str, word: int, line: int, part: tuple[int, int] = WHOLE) -> None:
        """A span of the entity starts before this word."""
        self._open.setdefault((entity, *part), []).append((word, line))

    def close(self, entity: str, end: int, line: int, part: tuple[int, int] = WHOLE) -> None:
        """The latest open span of the entity stops before word `end`."""
        starts = self._open.get((entity, *part))
        if not starts:
            raise BracketError(
                line,
                f"entity {entity} is closed but not open in this sentence; mentions may not cross "
                "sentences: add the opening bracket or remove the closing one.",
            )
        start, opened = starts.pop()
        if part == WHOLE:
            self._add(entity, [(start, end)])
        else:
            self._add_part(entity, part, (start, end, opened))

    def finish(self) -> tuple[Mention, ...]:
        """All mentions, by their first word, longer ones first."""
        for (entity, *_), starts in self._open.items():
            if starts:
                raise BracketError(
                    starts[-1][1],
                    f"the mention of entity {entity} that opens here is never closed in its "
                    "sentence; add the closing bracket.",
                )
        for (entity, count), parts in self._parts.items():
            if parts:
                raise BracketError(
                    min(line for *_, line in parts.values()),
                    f"the mention of entity {entity} has {len(parts)} of its {count} parts in this "
                    "sentence; add the others.",
                )
        return tuple(sorted(self._done, key=_reading_order))

    def _add_part(self, entity: str, part: tuple[int, int], span: tuple[int, int, int]) -> None:
        number, count = part
        parts = self._parts.setdefault((entity, count), {})
        if number in parts:
            raise BracketError(
                span[2], f"part {number}/{count} of entity {entity} comes twice; number the parts."
            )
        parts[number] = span
        if len(parts) == count:
            self._add(entity, [parts[key][:2] for key in sorted(parts)])
            parts.clear()

    def _add(self, entity: str, spans: list[tuple[int, int]]) -> None:
        """Keep the spans that hold a word: one over empty nodes alone has no surface."""
        held = tuple(span for span in spans if span[0] < span[1])
        if held:
            self._done.append(Mention(entity, held))


def _reading_order(mention: Mention) -> tuple[int, int, str, tuple[tuple[int, int], ...]]:
    return mention.spans[0][0], -mention.spans[-1][1], mention.entity, mention.spans


@dataclass(frozen=True)
class EntityNotation:
    """How a document writes entities: where the id stands among the hyphenated fields."""

    position: int = 0

    @classmethod
    def declared(cls, header: str, line: int) -> "EntityNotation":
        """The notation that a `# global.Entity` comment declares."""
        fields = header.strip().split("-")
        for name in _ID_NAMES:
            if name in fields:
                return cls(fields.index(name))
        raise BracketError(
            line,
            f"global.Entity = {header.strip()} names no entity id; one field must be GRP or eid.",
        )

    def read(self, value: str, start: int, end: int, line: int, into: MentionBuilder) -> None:
        """Take the brackets at the word that fills start to end (start = end: an empty node)."""
        place = 0
        for bracket in _BRACKET.finditer(value):
            if bracket.start() != place:
                break
            place = bracket.end()
            if bracket["close"]:
                entity, part = self._id(bracket["close"], line)
                into.close(entity, end, line, part)
                continue
            entity, part = self._id(bracket["open"], line)
            into.open(entity, start, line, part)
            if bracket["single"]:
                into.close(entity, end, line, part)
        if place != len(value):
            raise BracketError(
                line,
                f"Entity={shorten(value, _BRACKETS_SHOWN)} is not a row of brackets; "
                f"correct it at {quoted(value[place:])}.",
            )

    def _id(self, fields: str, line: int) -> tuple[str, tuple[int, int]]:
        parts = fields.split("-")
        entity = parts[self.position] if len(parts) > self.position else parts[0]
        if not entity:
            raise BracketError(line, f"the bracket {quoted(fields)} names no entity; add its id.")
        if "[" not in entity:
            return entity, WHOLE
        part = _PART.fullmatch(entity)
        number = 0 if part is None else whole_number(part["number"]) or 0
        count = 0 if part is None else whole_number(part["count"]) or 0
        if part is None or not 1 <= number <= count:
            raise BracketError(
                line, f"{quoted(entity)} is not an entity part; write it as e1[1/2]."
            )
        return part["entity"], (number, count)
