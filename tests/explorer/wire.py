"""A framed payload as the browser reads it."""

import json
import struct
from typing import Any


def unframe(data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """The header and the blocks."""
    (length,) = struct.unpack_from("<I", data)
    head = json.loads(data[4 : 4 + length])
    blocks, at = [], 4 + length
    for size in head["blocks"]:
        blocks.append(data[at : at + size])
        at += size
    return head["header"], blocks
