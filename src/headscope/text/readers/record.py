"""One line of a JSONL file."""

import json
from typing import Any


class RecordError(Exception):
    """What is wrong with the object on a line."""


def parse_record(line: str) -> dict[str, Any]:
    """The object on a line."""
    try:
        value = json.loads(line)
    except ValueError as error:
        raise RecordError(f"not JSON ({error}); correct it.") from error
    if not isinstance(value, dict):
        raise RecordError('not a JSON object; write {"text": "…"}.')
    try:
        # JSON can escape half of a surrogate pair, which is no character and cannot be stored.
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise RecordError("a \\u escape is half of a surrogate pair; write both.") from error
    return value
