"""Keep one in 32 of the training text's eight-word runs, as hashes, so that tests need no text.

A run is kept when its hash divides by 32, so the same runs are kept wherever they stand: a copied
article of 200 words has about six kept runs, and goes unseen with a chance of one in 400.

    python training/demo/sketch.py TEXT.xz tests/training/sketch.npz
"""

from __future__ import annotations

import argparse
import hashlib
import lzma
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from overlap import shingles

KEPT = 32
BYTES = 6  # of the hash: among half a million kept runs, one in 300 million others collides


def kept_hashes(runs: Iterable[str]) -> set[int]:
    """The hashes of those runs that a sketch keeps."""
    hashes = {int.from_bytes(hashlib.blake2b(r.encode(), digest_size=BYTES).digest()) for r in runs}
    return {value for value in hashes if value % KEPT == 0}


def sketch(text: Path) -> np.ndarray:
    """The sorted hashes kept of a training text, one paragraph per line."""
    found: set[int] = set()
    with lzma.open(text, "rt", encoding="utf-8") as lines:
        for line in lines:
            found |= kept_hashes(shingles(line))
    return np.array(sorted(found), dtype=np.uint64)


def save(hashes: np.ndarray, path: Path) -> None:
    """Write sorted hashes as the steps between them, which are small and compress well."""
    np.savez_compressed(path, steps=(np.diff(hashes, prepend=np.uint64(0)) // KEPT))


def load(path: Path) -> set[int]:
    """The hashes of a saved sketch."""
    steps = np.load(path)["steps"]
    return set((np.cumsum(steps) * np.uint64(KEPT)).tolist())


def main() -> None:
    """Sketch a training text."""
    parser = argparse.ArgumentParser(description="Keep a sketch of a training text.")
    parser.add_argument("text", type=Path, help="the training text, compressed with xz")
    parser.add_argument("out", type=Path, help="the .npz to write")
    arguments = parser.parse_args()
    hashes = sketch(arguments.text)
    save(hashes, arguments.out)
    print(f"kept {len(hashes)} runs in {arguments.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
