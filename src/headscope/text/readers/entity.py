"""The `Entity=` notation of CoNLL-U files, as GUM and as CorefUD write it.

    GUM       (44-object-giv:inact-cf2-3-coref(47-person-…   47)   44)
    CorefUD   (e1-person-1-)   (e2[1/2]-place-1-   e2[1/2])   (e2[2/2]-place-1-   e2[2/2])

`# global.Entity` names the fields between the hyphens; `GRP` or `eid` is the entity's id.
"""

import re
from dataclasses import dataclass

from headscope.text.readers.mentions import WHOLE, BracketError, MentionBuilder

_BRACKET = re.compile(r"\((?P<open>[^()]+)(?P<single>\))?|(?P<close>[^()]+)\)")
_PART = re.compile(r"(?P<entity>.+)\[(?P<number>\d+)/(?P<count>\d+)\]")
_ID_NAMES = ("GRP", "eid")


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
                line, f"Entity={value} is not a row of brackets; correct it at {value[place:]!r}."
            )

    def _id(self, fields: str, line: int) -> tuple[str, tuple[int, int]]:
        parts = fields.split("-")
        entity = parts[self.position] if len(parts) > self.position else parts[0]
        if not entity:
            raise BracketError(line, f"the bracket {fields!r} names no entity; add its id.")
        if "[" not in entity:
            return entity, WHOLE
        part = _PART.fullmatch(entity)
        if part is None or not 1 <= int(part["number"]) <= int(part["count"]):
            raise BracketError(line, f"{entity!r} is not an entity part; write it as e1[1/2].")
        return part["entity"], (int(part["number"]), int(part["count"]))
