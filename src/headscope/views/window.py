"""Long inputs are shown a window at a time: two tiles of tokens on each axis, moved tile by tile.

tile  0 1 2 3        window (1, 0): queries of tiles 1 and 2, keys of tiles 0 and 1
  0   · · · ·
  1   x x · ·        Only the tiles of the window are decoded, or fetched from a server.
  2   x x · ·
  3   · · · ·
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headscope.model.trace import StackTrace

TILE = 512  # tokens
SPAN = 2  # tiles of a window


def is_long(stack: "StackTrace") -> bool:
    """Whether the stack has more tokens on an axis than a window shows."""
    return max(len(stack.queries), len(stack.keys)) > SPAN * TILE


def tiles(length: int) -> list[slice]:
    """The tokens of every tile of an axis."""
    return [slice(start, min(start + TILE, length)) for start in range(0, length, TILE)]


def last_window(length: int) -> int:
    """The number of the tile with which the last window of an axis begins."""
    return max(0, -(-length // TILE) - SPAN)


def window_of(stack: "StackTrace", token: int, axis: str) -> int:
    """The window that has a token in it, in its first half if it can."""
    side = stack.queries if axis == "q" else stack.keys
    return min(token // TILE, last_window(len(side)))


def spans(stack: "StackTrace", window: tuple[int, int]) -> tuple[slice, slice]:
    """The query and the key tokens of a window; all of them where the input is not long."""
    if not is_long(stack):
        return slice(0, len(stack.queries)), slice(0, len(stack.keys))
    queries, keys = (number * TILE for number in window)
    size = SPAN * TILE
    return (
        slice(queries, min(queries + size, len(stack.queries))),
        slice(keys, min(keys + size, len(stack.keys))),
    )
