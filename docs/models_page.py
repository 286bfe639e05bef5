"""Put the tables of docs/families.json into docs/models.md: `python docs/models_page.py`."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
CAPTURED = ("stacks", "backend", "neuron view", "norms", "families")
REFUSED = ("model type", "why")


def page(text: str, families: Mapping[str, Any]) -> str:
    """The page with both of its tables made again."""
    captured = _table(CAPTURED, _captured(families["captured"]))
    refused = _table(
        REFUSED, [(f"`{one['model_type']}`", one["why"]) for one in families["refused"]]
    )
    return _replaced(_replaced(text, CAPTURED, captured), REFUSED, refused)


def _captured(records: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """A row for all families that are captured alike."""
    yes = {True: "yes", False: "no"}
    alike: dict[tuple[str, ...], list[str]] = {}
    for record in records:
        seen = yes[record["neuron_view"]], yes[record["norms"]]
        kind = " · ".join(record["stacks"]), record["backend"], *seen
        note = f" ({record['notes']})" if record["notes"] else ""
        alike.setdefault(kind, []).append(f"{record['family']}{note}")
    return [(*kind, ", ".join(families)) for kind, families in alike.items()]


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _replaced(text: str, header: Sequence[str], table: str) -> str:
    """The page with the table of this header replaced."""
    pattern = rf"^\| {re.escape(' | '.join(header))} \|\n(?:\|.*\n)+"
    changed, count = re.subn(pattern, lambda _: table, text, flags=re.MULTILINE)
    if count != 1:
        raise ValueError(
            f"docs/models.md must have one table with the columns {header}, not {count}."
        )
    return changed


if __name__ == "__main__":
    models = DOCS / "models.md"
    families = json.loads((DOCS / "families.json").read_text(encoding="utf-8"))
    models.write_text(page(models.read_text(encoding="utf-8"), families), encoding="utf-8")
