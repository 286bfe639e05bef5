"""A checksum at the end of a file, so that rot is noticed before anything trusts the content.

HDF5 and zip archives may be followed by other bytes, so a sealed `result.nc` or shard opens with
any reader as before.
"""

import hashlib
from pathlib import Path

_MARK = b"\nheadscope sha256 "
LENGTH = len(_MARK) + 64 + 1
_AT_ONCE = 2**20


def seal(content: bytes) -> bytes:
    """The content with its checksum behind it."""
    return content + _mark(hashlib.sha256(content).hexdigest())


def is_intact(path: Path) -> bool:
    """Whether a file ends in the checksum of all that comes before; reads it once, in pieces."""
    left = path.stat().st_size - LENGTH
    if left < 0:
        return False
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while left > 0:
            piece = file.read(min(left, _AT_ONCE))
            if not piece:
                return False
            digest.update(piece)
            left -= len(piece)
        return file.read(LENGTH + 1) == _mark(digest.hexdigest())


def checksum(path: Path) -> str:
    """SHA-256 of a whole file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _mark(digest: str) -> bytes:
    return _MARK + digest.encode("ascii") + b"\n"
