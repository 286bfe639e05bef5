"""Arrays in one file: npz archives that hold no code."""

import io
from collections.abc import Mapping

import numpy as np


def pack_arrays(arrays: Mapping[str, np.ndarray]) -> bytes:
    """The content of an archive."""
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    return content.getvalue()


def unpack_arrays(content: bytes) -> dict[str, np.ndarray]:
    """The arrays of an archive by name."""
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}
