"""Tables as CSV that a spreadsheet opens as data: no text in them is taken for a formula."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any

_BEGINS_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def to_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """One line per row below the header; what is not a number is an empty cell or a text."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(map(_cell, header))
    writer.writerows(map(_cell, row) for row in rows)
    return buffer.getvalue().encode("utf-8")


def _cell(value: Any) -> Any:
    """A text that a spreadsheet would compute gets an apostrophe, which it does not show."""
    if not isinstance(value, str) or not value.startswith(_BEGINS_FORMULA) or _is_number(value):
        return value
    return f"'{value}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
