"""Small damages to bytes and text, drawn at random."""

import json
from random import Random
from typing import Any

NASTY = (
    "", " ", "\t", "\n", "\r", "\x00", "\x1b[31m", "\u202e", "\ufeff", "\u2028", "é", "\U0001f600",
    "-", "-1", "0", "1", "99999999999", "9" * 5000, "1e999", "NaN", "null", "true", "[", "{", "}",
    "((((", "(e1", "e1)", "(e1[1/2]", "_", "..", "../..", "/etc/passwd", "%00", "<script>", "'\"",
    "$\\unknown$", "=1+1", "SpaceAfter=No", "# text = x", "# newdoc", "#begin document (x)",
)  # fmt: skip


def mutate(content: bytes, chance: Random) -> bytes:
    """The content with one to four damages."""
    for _ in range(chance.randint(1, 4)):
        content = chance.choice((flip, cut, insert, repeat, swap_lines))(content, chance)
    return content


def flip(content: bytes, chance: Random) -> bytes:
    """One bit turned."""
    if not content:
        return content
    spoilt = bytearray(content)
    spoilt[chance.randrange(len(spoilt))] ^= 1 << chance.randrange(8)
    return bytes(spoilt)


def cut(content: bytes, chance: Random) -> bytes:
    """A piece left out."""
    start = chance.randrange(len(content) + 1)
    return content[:start] + content[start + chance.randrange(40) :]


def insert(content: bytes, chance: Random) -> bytes:
    """Something nasty put in."""
    start = chance.randrange(len(content) + 1)
    return content[:start] + chance.choice(NASTY).encode() + content[start:]


def repeat(content: bytes, chance: Random) -> bytes:
    """A piece that comes again, up to a hundred times."""
    start = chance.randrange(len(content) + 1)
    piece = content[start : start + chance.randrange(200)]
    return content[:start] + piece * chance.choice((2, 3, 100)) + content[start:]


def swap_lines(content: bytes, chance: Random) -> bytes:
    """Two lines, or two cells of lines, exchanged."""
    mark = chance.choice((b"\n", b"\t", b"\n\n", b","))
    parts = content.split(mark)
    first, second = chance.randrange(len(parts)), chance.randrange(len(parts))
    parts[first], parts[second] = parts[second], parts[first]
    return mark.join(parts)


def value(chance: Random, depth: int = 2) -> Any:
    """Any JSON value."""
    kinds = [
        lambda: chance.choice(NASTY),
        lambda: chance.randint(-5, 100),
        lambda: chance.choice((0.5, 55.0, 1e300, -0.0, True, False, None)),
        lambda: "word " * chance.choice((1, 10, 1000, 6000)),
    ]
    if depth:
        kinds.append(lambda: [value(chance, depth - 1) for _ in range(chance.randrange(4))])
        kinds.append(lambda: {chance.choice(NASTY)[:20]: value(chance, depth - 1)})
    return chance.choice(kinds)()


def as_json(thing: Any) -> bytes:
    """The value as bytes, half surrogates and all."""
    return json.dumps(thing).encode()
