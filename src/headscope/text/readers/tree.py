"""Checks that the heads of a sentence form trees."""

from collections.abc import Sequence

from headscope.text.sentence import ROOT


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
