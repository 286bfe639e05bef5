"""A run of luger2026 as the tree of JSON files that the page of HeadVis reads.

```
config.json                 the model and its shape
scatter_data.json           one row for each head
server_config.json          {}: there is no server
attributions/manifest.json  none are made
heads/L0H0.json             sequences, histograms, top tokens, statistics
```

A sequence's weights are sparse: of a sequence of n tokens, the weight from query q to key k has the
flat index q·n + k.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope.errors import RunError
from headscope.head import Head
from headscope.results.records import TOP_BAND, BandExample, KeptInput, Records, TopToken
from headscope.results.run import Run
from headscope.results.slices import heads_of

# What HeadVis calls a head's numbers, and ours; a variance is the square of our spread.
SCORES = {
    "self_attention_score": "self_share",
    "prev_token_score": "previous_share",
    "pattern_entropy": "entropy",
    "qk_distance": "distance",
    "qk_distance_variance": "distance_spread",
    "induction_score": "induction",
}
SQUARED = "distance_spread"
TOP = "top"


def require_examples(run: Run) -> None:
    """Refuse a run that keeps no examples."""
    if not run.records.files:
        raise RunError(
            f"{run.path} is a run of {run.study}, which keeps no examples of heads; HeadVis shows "
            "runs of `headscope study luger2026`. --format csv or parquet exports any run."
        )


def write_headvis(run: Run, folder: Path) -> None:
    """Write the tree."""
    heads = heads_of(run.data)
    _write(folder / "server_config.json", {})
    _write(folder / "attributions" / "manifest.json", {"heads": {}})
    _write(folder / "scatter_data.json", [scores(run.data, head) for head in heads])
    for head in heads:
        _write(folder / "heads" / f"{head}.json", head_file(run, head))
    _write(folder / "config.json", config(run))


def config(run: Run) -> dict[str, Any]:
    """The model, its shape, and the scores that the rows of the scatter have."""
    data = run.data
    return {
        "model": run.model or "",
        "dataset": run.corpus or "",
        "n_layers": data.sizes["layer"],
        "n_heads": data.sizes["head"],
        "context_length": _context(run),
        "metrics": [name for name, own in SCORES.items() if own in data],
    }


def scores(data: xr.Dataset, head: Head) -> dict[str, Any]:
    """A row of the scatter; null where the run lacks a measure, such as one that was left out."""
    values = {name: _value(data, own, head) for name, own in SCORES.items()}
    return {"layer": head.layer, "head": head.head, **values}


def head_file(run: Run, head: Head) -> dict[str, Any]:
    """Everything about one head."""
    data, records = run.data, run.records
    tokens = records.top_tokens(*head)
    bins = histogram(data, "peak_histogram", "peak", head, end=1.0)
    return {
        "layer": head.layer,
        "head": head.head,
        "sequences": sequences(records, head),
        "qk_distance_histogram": histogram(data, "distance_histogram", "separation", head),
        "top_query_tokens": _tokens(tokens, "query"),
        "top_key_tokens": _tokens(tokens, "key"),
        "histogram": bins,
        "statistics": {
            "n_samples": int(data.attrs.get("sentences", 0)),
            "mean_max_activation": _mean(bins),
        },
    }


def sequences(records: Records, head: Head) -> list[dict[str, Any]]:
    """The examples from the lowest band to the very top."""
    examples = records.examples(*head)
    inputs = records.inputs(one.input for one in examples)
    return [_sequence(one, inputs[one.input]) for one in examples]


def _sequence(example: BandExample, kept: KeptInput) -> dict[str, Any]:
    length = len(kept.tokens)
    places = [q * length + k for q, k in zip(example.query, example.key, strict=True)]
    return {
        "tokens": list(kept.tokens),
        "interval": TOP if example.band == TOP_BAND else example.band,
        "max_activation": example.peak,
        "attention": {"indices": places, "values": [round(w, 5) for w in example.weight]},
    }


def histogram(
    data: xr.Dataset, name: str, axis: str, head: Head, end: float | None = None
) -> dict[str, Any]:
    """The edges of the bins and what lies in each; the last bin doubles unless it has an end."""
    if name not in data:
        return {"bin_edges": [], "counts": []}
    lows = np.asarray(data.variables[axis].values, float)
    edges = np.append(lows, 2 * lows[-1] if end is None else end)
    values = data[name].sel(head._asdict()).values
    return {"bin_edges": edges.tolist(), "counts": [_finite(value) or 0.0 for value in values]}


def _mean(bins: dict[str, Any]) -> float | None:
    """The mean of the largest weights, each taken from the middle of its bin."""
    edges, counts = np.asarray(bins["bin_edges"]), np.asarray(bins["counts"])
    if not counts.sum() > 0:
        return None
    return float(((edges[:-1] + edges[1:]) / 2 * counts).sum() / counts.sum())


def _tokens(tokens: Sequence[TopToken], side: str) -> list[dict[str, Any]]:
    own = [one for one in tokens if (one.side, one.by) == (side, "mass")]
    return [{"token": one.token, "score": one.share, "count": one.count} for one in own]


def _value(data: xr.Dataset, name: str, head: Head) -> float | None:
    if name not in data:
        return None
    value = _finite(data[name].sel(head._asdict()).values)
    return value**2 if value is not None and name == SQUARED else value


def _finite(value: Any) -> float | None:
    plain = float(value)
    return plain if np.isfinite(plain) else None


def _context(run: Run) -> int | None:
    asked = run.about.get("options", {}).get("context")
    return asked if isinstance(asked, int) else None


def _write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    path.write_text(text, encoding="utf-8")
