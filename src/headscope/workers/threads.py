"""How many threads torch uses: the same for a whole run, since it decides the last bits of sums."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def use_threads(count: int) -> Iterator[None]:
    """Exactly this many threads within the block."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
