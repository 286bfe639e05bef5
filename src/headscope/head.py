"""A head and its name: L4H11 is head 11 of layer 4, both counted from 0."""

import re
from typing import NamedTuple

from headscope.errors import RunError

_NAME = re.compile(r"\s*[Ll]?\s*\(?(\d{1,5})\s*[Hh.,-]\s*(\d{1,5})\)?\s*", re.ASCII)


class Head(NamedTuple):
    """A head by the number of its layer and its number within the layer."""

    layer: int
    head: int

    def __str__(self) -> str:
        return f"L{self.layer}H{self.head}"


def name_head(layer: int, head: int) -> str:
    """The name of a head."""
    return str(Head(layer, head))


def name_layer(layer: int) -> str:
    """The name of a layer, as in that of its heads."""
    return f"L{layer}"


def name_within_layer(head: int) -> str:
    """The name of a head where its layer is known."""
    return f"H{head}"


def name_in_paper(layer: int, head: int) -> str:
    """L7H9 (paper 8-10): Clark et al. count layers and heads from 1."""
    return f"{name_head(layer, head)} (paper {layer + 1}-{head + 1})"


def read_head(name: str) -> Head:
    """The head of a name written L4H11, 4.11, 4-11 or (4, 11)."""
    found = _NAME.fullmatch(name)
    if found is None:
        raise RunError(f"{name!r} names no head; write it as L4H11 or 4.11, counting from 0.")
    return Head(int(found[1]), int(found[2]))
