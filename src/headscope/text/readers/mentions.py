"""Coreference brackets of one sentence, collected into mentions.

The `Entity=` notation of CoNLL-U files, as GUM and as CorefUD write it:

    GUM       (44-object-giv:inact-cf2-3-coref(47-person-…   47)   44)
    CorefUD   (e1-person-1-)   (e2[1/2]-place-1-   e2[1/2])   (e2[2/2]-place-1-   e2[2/2])

`# global.Entity` names the fields between the hyphens; `GRP` or `eid` is the entity's id.
"""

import re
from dataclasses import dataclass, field

from headscope.text.readers.lines import LineError, whole_number
from headscope.text.sentence import Mention, quoted
from headscope.wording import shorten

Part = tuple[int, int]  # number and count: the k-th of the n pieces of a discontinuous mention
UNDIVIDED: Part = (1, 1)
_BRACKET = re.compile(r"\((?P<open>[^()]+)(?P<single>\))?|(?P<close>[^()]+)\)")
_PART = re.compile(r"(?P<entity>.+)\[(?P<number>\d+)/(?P<count>\d+)\]")
_ID_NAMES = ("GRP", "eid")


@dataclass
class MentionBuilder:
    """Takes opening and closing brackets in word order; spans may nest and cross freely.

    A closing bracket ends the span of its entity that was opened last.
    """

    # Where the spans that are still open began, by entity and part: word and line of the file.
    _open: dict[tuple[str, Part], list[tuple[int, int]]] = field(default_factory=dict)
    # The parts of unfinished mentions, by entity and count: number to start, end and line.
    _parts: dict[tuple[str, int], dict[int, tuple[int, int, int]]] = field(default_factory=dict)
    _done: list[Mention] = field(default_factory=list)

    def open(self, entity: str, word: int, line: int, part: Part = UNDIVIDED) -> None:
        """A span of the entity starts before this word."""
        self._open.setdefault((entity, part), []).append((word, line))

    def close(self, entity: str, end: int, line: int, part: Part = UNDIVIDED) -> None:
        """The latest open span of the entity stops before word `end`."""
        starts = self._open.get((entity, part))
        if not starts:
            raise LineError(
                f"entity {entity} is closed but not open in this sentence; mentions may not cross "
                "sentences: add the opening bracket or remove the closing one.",
                line,
            )
        start, opening_line = starts.pop()
        if part == UNDIVIDED:
            self._add(entity, [(start, end)])
            return
        number, count = part
        parts = self._parts.setdefault((entity, count), {})
        if number in parts:
            raise LineError(
                f"part {number}/{count} of entity {entity} comes twice; number the parts.",
                opening_line,
            )
        parts[number] = (start, end, opening_line)
        if len(parts) == count:
            self._add(entity, [parts[key][:2] for key in sorted(parts)])
            parts.clear()

    def finish(self) -> tuple[Mention, ...]:
        """All mentions, by their first word, longer ones first."""
        for (entity, _), starts in self._open.items():
            if starts:
                raise LineError(
                    f"the mention of entity {entity} that opens here is never closed in its "
                    "sentence; add the closing bracket.",
                    starts[-1][1],
                )
        for (entity, count), parts in self._parts.items():
            if parts:
                raise LineError(
                    f"the mention of entity {entity} has {len(parts)} of its {count} parts in this "
                    "sentence; add the others.",
                    min(line for _, _, line in parts.values()),
                )
        return tuple(sorted(self._done, key=_reading_order))

    def _add(self, entity: str, spans: list[tuple[int, int]]) -> None:
        """Keep the spans that hold a word: one over empty nodes alone has no surface."""
        with_words = tuple((start, end) for start, end in spans if start < end)
        if with_words:
            self._done.append(Mention(entity, with_words))


def _reading_order(mention: Mention) -> tuple[int, int, str, tuple[tuple[int, int], ...]]:
    return mention.spans[0][0], -mention.spans[-1][1], mention.entity, mention.spans


def position_of_id(header: str, line: int) -> int:
    """Where the id stands among the hyphenated fields that `# global.Entity` declares."""
    fields = header.strip().split("-")
    for name in _ID_NAMES:
        if name in fields:
            return fields.index(name)
    raise LineError(
        f"global.Entity = {header.strip()} names no entity id; one field must be GRP or eid.", line
    )


def read_brackets(
    value: str, position: int, start: int, end: int, line: int, into: MentionBuilder
) -> None:
    """Take the brackets at the word that fills start to end (start = end: an empty node).

    The entity's id is the field at `position`.
    """
    place = 0
    for bracket in _BRACKET.finditer(value):
        if bracket.start() != place:
            break
        place = bracket.end()
        entity, part = _entity(bracket["open"] or bracket["close"], position, line)
        if bracket["open"]:
            into.open(entity, start, line, part)
        if bracket["close"] or bracket["single"]:
            into.close(entity, end, line, part)
    if place != len(value):
        raise LineError(
            f"Entity={shorten(value, 80)} is not a row of brackets; correct it at "
            f"{quoted(value[place:])}.",
            line,
        )


def _entity(text: str, position: int, line: int) -> tuple[str, Part]:
    """The id between brackets, and which part of a mention they bound."""
    fields = text.split("-")
    entity = fields[position] if len(fields) > position else fields[0]
    if not entity:
        raise LineError(f"the bracket {quoted(text)} names no entity; add its id.", line)
    if "[" not in entity:
        return entity, UNDIVIDED
    match = _PART.fullmatch(entity)
    if match is not None:
        number, count = whole_number(match["number"]), whole_number(match["count"])
        if number is not None and count is not None and 1 <= number <= count:
            return match["entity"], (number, count)
    raise LineError(f"{quoted(entity)} is not an entity part; write it as e1[1/2].", line)
