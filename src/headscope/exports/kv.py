"""Which heads need all keys and values of a long text: a plan for engines that serve a model.

```
keep     everything: the head copies from far, or looks further than a window
stream   the first tokens and a window of the last ones
sink     the first tokens above all: it rests there
```

A head is taken off `keep` only if the whole interval of its measure says so. The plan is of query
heads: where several share keys and values, an engine has to keep what one of them keeps.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope.errors import RunError
from headscope.results.measure import heads_of
from headscope.results.replicates import margin_of
from headscope.results.tables import to_csv

JSON_NAME, CSV_NAME = "kv.json", "kv.csv"
MEASURES = ("retrieval", "first_share", "distance")
RETRIEVES = 0.1  # weight on what is to be copied, from which on a head keeps everything
RESTS = 0.5  # share of its attention that a sink pays to the first token
WINDOW = 64  # tokens, the mean distance that a streaming head stays below
RULE = (
    f"keep where retrieval may reach {RETRIEVES}; else sink where first_share is at least {RESTS}; "
    f"else stream where distance is at most {WINDOW} tokens; else keep. Intervals of 95 % decide."
)


def require_distances(data: xr.Dataset) -> None:
    """Refuse a run without these measures, or of a model that keeps no keys and values."""
    missing = [name for name in MEASURES if not _is_known(data, name)]
    if missing:
        raise RunError(
            f"This run does not measure {missing[0]} with its error; a plan of keys and values "
            "takes a run of luger2026."
        )
    if not data.attrs.get("is_causal", 1):
        raise RunError(
            f"{data.attrs.get('model')} sees the whole text; it keeps no keys and values."
        )


def _is_known(data: xr.Dataset, name: str) -> bool:
    return (
        name in data and margin_of(data, name) is not None and bool(np.isfinite(data[name]).any())
    )


def write_kv(data: xr.Dataset, folder: Path) -> None:
    """Write the plan as JSON, for programs, and as CSV."""
    rows = plan_heads(data)
    plan = np.reshape(
        [row["plan"] for row in rows], [data.sizes[name] for name in ("layer", "head")]
    )
    content = {
        "model": str(data.attrs.get("model", "")),
        "window": WINDOW,
        "rule": RULE,
        "plan": plan.tolist(),
        "heads": rows,
    }
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    (folder / JSON_NAME).write_text(text, encoding="utf-8")
    (folder / CSV_NAME).write_bytes(to_csv(list(rows[0]), (list(row.values()) for row in rows)))


def plan_heads(data: xr.Dataset) -> list[dict[str, Any]]:
    """A line for each head: its plan, and value and interval of what decides."""
    margins = {name: margin_of(data, name) for name in MEASURES}
    rows = []
    for place in heads_of(data):
        row: dict[str, Any] = {"head": str(place), "plan": ""}
        for name, margin in margins.items():
            assert margin is not None  # required above
            value = float(data[name].sel(place._asdict()))
            half = float(margin.sel(place._asdict()))
            row |= {name: value, f"{name}_low": value - half, f"{name}_high": value + half}
        row["plan"] = _plan(row)
        rows.append({key: _finite(value) for key, value in row.items()})
    return rows


def _plan(row: dict[str, Any]) -> str:
    """An unknown end of an interval is NaN, and no comparison with it holds."""
    if not row["retrieval_high"] < RETRIEVES:
        return "keep"
    if row["first_share_low"] >= RESTS:
        return "sink"
    return "stream" if row["distance_high"] <= WINDOW else "keep"


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value
