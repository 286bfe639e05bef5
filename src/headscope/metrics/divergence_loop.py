"""Pairwise divergences on the CPU: one fused loop with a polynomial logarithm, compiled by numba.

A float32 x = 2^e·(1+f) has ln x = e·ln 2 + ln(1+f); e and f are read off its bits. Everything in
the inner loop is then an addition, a shift or a multiply-add, which the compiler turns into vector
instructions: 0.2 ns a logarithm where numpy needs 0.4 and the passes over memory as much again.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import torch
from jaxtyping import Float
from numpy.polynomial import Chebyshev, Polynomial

DEGREE = 6  # ln(1+f)/f to 1e-8 on the interval: below what float32 can hold


def sum_middles(blocks: Float[np.ndarray, "block unit element"]) -> Float[np.ndarray, "unit unit"]:
    """Σ m ln m with m = (p+q)/2 for every pair of units, upper triangle.

    Each thread has rows of its own.
    """
    halves = np.multiply(blocks, np.float32(0.5))
    units, threads = halves.shape[1], torch.get_num_threads()
    sums = np.zeros((units, units))
    if threads == 1:
        _kernel()(halves, 0, 1, sums)
        return sums
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda first: _kernel()(halves, first, threads, sums), range(threads)))
    return sums


def _log_coefficients() -> tuple[np.float32, ...]:
    """ln(1+f)/f as a polynomial for 1+f between √½ and √2, lowest power first."""
    domain = [0.5**0.5 - 1, 2**0.5 - 1]
    fit = Chebyshev.interpolate(lambda f: np.log1p(f) / f, DEGREE, domain)
    return tuple(np.float32(c) for c in fit.convert(kind=Polynomial).coef)


@cache
def _kernel() -> Callable[[np.ndarray, int, int, np.ndarray], None]:
    from numba import njit

    c0, c1, c2, c3, c4, c5, c6 = _log_coefficients()
    ln2, unity = np.float32(np.log(2)), np.float32(1)
    bits, root_half = np.int32(23), np.int32(0x3F3504F3)  # mantissa bits; √½ as an integer

    # fastmath lets the compiler keep one partial sum per vector lane.
    @njit("void(float32[:,:,::1],int64,int64,float64[:,::1])", fastmath=True, nogil=True)
    def add_entropies(halves, first, step, sums):  # noqa: ANN001, ANN202
        for block in range(halves.shape[0]):
            for i in range(first, halves.shape[1], step):
                for j in range(i, halves.shape[1]):
                    total = np.float32(0)
                    for k in range(halves.shape[2]):
                        m = np.float32(halves[block, i, k] + halves[block, j, k])
                        x = np.int32(m.view(np.int32))
                        e = np.int32(np.int32(x - root_half) >> bits)
                        f = np.int32(x - np.int32(e << bits)).view(np.float32) - unity
                        log1p = f * (
                            c0 + f * (c1 + f * (c2 + f * (c3 + f * (c4 + f * (c5 + f * c6)))))
                        )
                        total += m * (np.float32(e) * ln2 + log1p)
                    sums[i, j] += total

    return add_entropies
