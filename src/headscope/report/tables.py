"""Tables as CSV files and as HTML; whatever comes from a corpus is escaped."""

import csv
import io
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from headscope.engine.files import write_text

Row = Mapping[str, Any]


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """One line per row, the keys of the first row as header."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, buffer.getvalue())


def to_html(rows: Sequence[Row], kind: str = "") -> str:
    """A <table>; numbers are rounded to be read, and a value's standard error stands beside it."""
    rows = [_with_errors(row) for row in rows]
    header = "".join(
        f"<th scope=col>{escape(str(name).replace('_', ' '))}</th>" for name in rows[0]
    )
    body = "".join(f"<tr{_class(row)}>{_cells(row)}</tr>" for row in rows)
    table = f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="table {kind}">{table}</div>'


def _with_errors(row: Row) -> Row:
    """NAME and NAME_se as one cell: value ± standard error."""
    return {
        name: f"{value:.3f} ± {row[f'{name}_se']:.3f}" if f"{name}_se" in row else value
        for name, value in row.items()
        if not name.endswith("_se")
    }


def _class(row: Row) -> str:
    """A row with a note on why it says little is grey."""
    return ' class="faint"' if row.get("note") else ""


def _cells(row: Row) -> str:
    return "".join(
        f'<td class="{"number" if isinstance(value, int | float) else "text"}">{_show(value)}</td>'
        for value in row.values()
    )


def _show(value: Any) -> str:
    if isinstance(value, float):
        return "–" if value != value else f"{value:.3f}".rstrip("0").rstrip(".") or "0"
    return escape(str(value))
