"""Hashes are those of splitmix64, element by element."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headscope.metrics import seeded_hash

WORD = 2**64


def splitmix64(state: int) -> int:
    """The next number of the generator in the integers of Python."""
    mixed = (state + 0x9E3779B97F4A7C15) % WORD
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB % WORD
    return mixed ^ (mixed >> 31)


def test_the_hash_of_a_seed_is_the_first_number_of_the_published_generator() -> None:
    assert int(seeded_hash(0)) == 0xE220A8397B1DCDAF
    assert int(seeded_hash(1234567)) == 6457827717110365317


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(-1, 2**40), max_size=5), st.integers(0, 9))
def test_every_part_is_mixed_in_turn(seed: int, numbers: list[int], position: int) -> None:
    hashes = seeded_hash(seed, np.array(numbers, dtype=np.int64), position)
    assert hashes.dtype == np.uint64
    expected = [
        splitmix64((splitmix64((splitmix64(seed) + number) % WORD) + position) % WORD)
        for number in numbers
    ]
    assert hashes.tolist() == expected


def test_hashes_of_neighbours_are_spread_evenly() -> None:
    shares = seeded_hash(3, np.arange(20_000)) / 2.0**64
    counts = np.histogram(shares, bins=10, range=(0, 1))[0]
    assert abs(counts - 2000).max() < 200
    assert abs(np.corrcoef(shares[1:], shares[:-1])[0, 1]) < 0.02
