"""A checksum at the end of a file, so that rot is noticed before anything trusts the content.

HDF5 and zip archives may be followed by other bytes, so a sealed `result.nc` or shard opens with
any reader as before. A seal may also say whose file it is: the third shard of one run is damage in
the place of the fourth, or in another run.
"""

import hashlib
from pathlib import Path

_MARK = b"\nheadscope sha256 "
LENGTH = len(_MARK) + 64 + 1
_AT_ONCE = 2**20


def seal(content: bytes, of: str = "") -> bytes:
    """The content with its checksum behind it; `of` says whose content it is."""
    return content + _mark(hashlib.sha256(of.encode() + content).hexdigest())


def unseal(content: bytes, of: str = "") -> bytes | None:
    """What was sealed; None if any of it, or whose it is, has changed."""
    inner = content[:-LENGTH]
    return inner if len(content) >= LENGTH and seal(inner, of) == content else None


def is_intact(path: Path, of: str = "") -> bool:
    """Whether a file ends in the checksum of all that comes before; reads it once, in pieces."""
    left = path.stat().st_size - LENGTH
    if left < 0:
        return False
    digest = hashlib.sha256(of.encode())
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
