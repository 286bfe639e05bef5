"""A view's payload on the wire: the header's length, the header as JSON, then the blocks."""

import json
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headscope.views.payload import Payload


def frame(payload: "Payload") -> Iterator[bytes]:
    """4 bytes little-endian length, `{"header": …, "blocks": [sizes]}`, and the blocks."""
    sizes = [len(block) for block in payload.blocks]
    head = json.dumps({"header": payload.header, "blocks": sizes}, allow_nan=False).encode()
    yield struct.pack("<I", len(head))
    yield head
    yield from payload.blocks


def unframe(data: bytes) -> tuple[dict, list[bytes]]:
    """What `frame` was given, as the browser reads it."""
    (length,) = struct.unpack_from("<I", data)
    head = json.loads(data[4 : 4 + length])
    blocks, at = [], 4 + length
    for size in head["blocks"]:
        blocks.append(data[at : at + size])
        at += size
    return head["header"], blocks
