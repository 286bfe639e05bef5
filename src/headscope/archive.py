"""Arrays in one file: npz archives whose arrays each have a checksum, complete or not trusted."""

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

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


def is_intact(path: Path, name: str) -> bool:
    """Whether a file is a complete archive with that array and all checksums (CRC-32) are right."""
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            return archive.testzip() is None and f"{name}.npy" in archive.namelist()
    except (OSError, zipfile.BadZipFile, EOFError):
        return False
