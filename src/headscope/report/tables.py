"""Tables as CSV files and as HTML; whatever comes from a corpus is escaped."""

import csv
import io
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from headscope.files import write_text

Row = Mapping[str, Any]


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """One line per row, the keys of the first row as header."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, buffer.getvalue())


def to_html(rows: Sequence[Row], name: str) -> str:
    """A <table>; numbers are rounded to be read, and a value's standard error stands beside it."""
    rows = [_with_errors(row) for row in rows]
    header = "".join(_heading(name, [row[name] for row in rows]) for name in rows[0])
    body = "".join(f"<tr{_class(row)}>{_cells(row)}</tr>" for row in rows)
    table = f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"
    return framed(table, name)


def framed(table: str, name: str, kind: str = "") -> str:
    """A table in a frame that scrolls where it is too wide, by keyboard too."""
    frame = f'class="table {kind}" tabindex="0" role="region" aria-label="{escape(name)}"'
    return f"<div {frame}>{table}</div>"


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


def _heading(name: str, values: Sequence[Any]) -> str:
    """Above numbers on the right, as they are."""
    kind = "number" if all(isinstance(value, int | float) for value in values) else "text"
    return f'<th scope=col class="{kind}">{escape(str(name).replace("_", " "))}</th>'


def _cells(row: Row) -> str:
    return "".join(
        f'<td class="{"number" if isinstance(value, int | float) else "text"}">{_show(value)}</td>'
        for value in row.values()
    )


def _show(value: Any) -> str:
    if isinstance(value, float):
        return "–" if value != value else f"{value:.3f}".rstrip("0").rstrip(".") or "0"
    return escape(str(value))
