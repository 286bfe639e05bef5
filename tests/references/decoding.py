"""Weights as the browser decodes them: what `headscope.views.payload` packed, in Python."""

import zlib

import numpy as np

from headscope.views.payload import STEPS, Quantised


def dequantise_tile(data: bytes, shape: tuple[int, ...]) -> np.ndarray:
    """The part as the browser sees it."""
    size = 4 * shape[0]
    scales = np.frombuffer(data[:size], "<f4").astype(np.float64)
    return dequantise(Quantised(data[size:], tuple(scales.tolist())), shape)


def dequantise(block: Quantised, shape: tuple[int, ...]) -> np.ndarray:
    """The weights as the browser sees them."""
    levels = unpack(block.data, np.dtype("<u2"), shape).astype(np.float64)
    return levels * (np.array(block.scales)[:, None, None] / STEPS)


def unpack(data: bytes, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """The array that `pack` was given."""
    planes = np.frombuffer(zlib.decompress(data), np.uint8).reshape(dtype.itemsize, -1)
    return np.ascontiguousarray(planes.T).view(dtype).reshape(shape)
