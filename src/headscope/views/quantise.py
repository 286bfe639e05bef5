"""Numbers on their way to the browser: quantised, split into byte planes, deflated.

Weights take two bytes: each head's matrix is scaled by its largest weight and rounded to 65,535
steps, so a shown weight is within 7.7e-6 of the true one. Splitting the bytes into planes first
puts the mostly-zero high bytes side by side, which deflate likes.
"""

import zlib
from dataclasses import dataclass

import numpy as np

STEPS = 65535
_LEVEL = 5  # 6 and above cost twice the time for one per cent


@dataclass(frozen=True, slots=True)
class Quantised:
    """One layer's weights as bytes, and per head the value of the largest step."""

    data: bytes
    scales: tuple[float, ...]


def quantise(weights: np.ndarray) -> Quantised:
    """(head, query, key) weights in 16 bits each."""
    scales = weights.max(axis=(1, 2), initial=0.0).astype(np.float64)
    steps = np.divide(STEPS, scales, out=np.zeros_like(scales), where=scales > 0)
    levels = np.rint(weights * steps[:, None, None]).astype("<u2")
    return Quantised(pack(levels), tuple(float(scale) for scale in scales))


def quantise_tile(tile: np.ndarray, scales: np.ndarray) -> bytes:
    """A part of a layer: the scales of its heads as float32, then the levels as bytes planes."""
    steps = np.divide(STEPS, scales, out=np.zeros_like(scales), where=scales > 0)
    levels = np.rint(tile * steps[:, None, None]).astype("<u2")
    return scales.astype("<f4").tobytes() + pack(levels)


def dequantise_tile(data: bytes, shape: tuple[int, ...]) -> np.ndarray:
    """The part as the browser sees it."""
    size = 4 * shape[0]
    scales = np.frombuffer(data[:size], "<f4").astype(np.float64)
    return dequantise(Quantised(data[size:], tuple(scales.tolist())), shape)


def dequantise(block: Quantised, shape: tuple[int, ...]) -> np.ndarray:
    """The weights as the browser sees them."""
    levels = unpack(block.data, np.dtype("<u2"), shape).astype(np.float64)
    return levels * (np.array(block.scales)[:, None, None] / STEPS)


def pack(array: np.ndarray) -> bytes:
    """Byte planes of a little-endian array, deflated."""
    flat = np.ascontiguousarray(array).view(np.uint8).reshape(-1, array.itemsize)
    return zlib.compress(np.ascontiguousarray(flat.T).tobytes(), _LEVEL)


def unpack(data: bytes, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """The array that `pack` was given."""
    planes = np.frombuffer(zlib.decompress(data), np.uint8).reshape(dtype.itemsize, -1)
    return np.ascontiguousarray(planes.T).view(dtype).reshape(shape)
