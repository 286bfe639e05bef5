"""A run as the tree of JSON files that the page of HeadVis reads.

```
config.json                 the model, its heads, the scores, what the page lists
scatter_data.json           one row for each head
server_config.json          {}: there is no server
attributions/manifest.json  {}: none are made
heads/L0H0.json             sequences, histograms, top tokens, statistics
```

Names and shapes are those that the reference code of HeadVis writes down for its page, and that the
public collection of heads has; `tests/exports/headvis_schema.json` holds them. A sequence's weights
are sparse: of a sequence of n tokens, the weight from query q to key k has the flat index q·n + k.
Intervals count from 1; the highest has the very top examples, too.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope.errors import RunError
from headscope.head import Head
from headscope.results.measure import heads_of, measure_of, number
from headscope.results.records import (
    BANDS,
    EXAMPLES,
    BandExample,
    KeptInput,
    Records,
    TopToken,
)
from headscope.results.run import Run
from headscope.studies import studies_with

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
PLOTS = {"qk_distance_histogram": "Attention by distance", "histogram": "Largest weights"}
TABLES = {"top_query_tokens": "Tokens it looks from", "top_key_tokens": "Tokens it looks at"}
STATISTICS = {"n_samples": "Examples", "mean_max_activation": "Mean largest weight"}


def require_examples(run: Run) -> None:
    """Refuse a run that keeps no examples."""
    if EXAMPLES not in run.records.files:
        raise RunError(
            f"{run.path} is a run of {run.study} that keeps no examples of heads; HeadVis shows "
            f"runs of `headscope study {studies_with('records')}`. --format csv or parquet exports "
            "any run."
        )


def write_headvis(run: Run, folder: Path) -> None:
    """Write the tree."""
    heads = heads_of(run.data)
    _write(folder / "server_config.json", {})
    _write(folder / "attributions" / "manifest.json", {})
    _write(folder / "scatter_data.json", [scores(run.data, head) for head in heads])
    for head in heads:
        _write(folder / "heads" / f"{head}.json", head_file(run, head))
    _write(folder / "config.json", config(run))


def config(run: Run) -> dict[str, Any]:
    """What the page reads first: the heads, the scores, and which parts of a head's file it shows.

    `pipeline_config` is read by nobody but people: how the numbers were made.
    """
    data = run.data
    known = {name: own for name, own in SCORES.items() if own in data}
    return {
        "model_name": run.model or "",
        "dataset_name": run.corpus or "",
        "heads": [list(head) for head in heads_of(data)],
        "n_layers": data.sizes["layer"],
        "n_heads": data.sizes["head"],
        "n_intervals": BANDS,
        "metrics": list(known),
        "metric_descriptions": {name: measure_of(data, own).meaning for name, own in known.items()},
        "head_data_pattern": "L{layer}H{head}.json",
        "has_umap": False,
        "umap_heads": [],
        "custom_plots": [{"key": key, "label": label} for key, label in PLOTS.items()],
        "custom_tables": [{"key": key, "label": label} for key, label in TABLES.items()],
        "statistics_display": {
            key: {"label": label, "format": "default"} for key, label in STATISTICS.items()
        },
        "pipeline_config": {
            "headscope": run.about.get("headscope"),
            "n_sequences": _inputs(data),
            "seq_len": _context(run),
        },
    }


def scores(data: xr.Dataset, head: Head) -> dict[str, Any]:
    """A row of the scatter; null where the run lacks a measure, such as one that was left out."""
    values = {name: _value(data, own, head) for name, own in SCORES.items()}
    return {"layer": head.layer, "head": head.head, **values}


def head_file(run: Run, head: Head) -> dict[str, Any]:
    """Everything about one head."""
    data, records = run.data, run.records
    tokens, kept = records.top_tokens(*head), sequences(records, head)
    peaks = histogram(data, "peak_histogram", "peak", head, end=1.0)
    return {
        "sequences": kept,
        "qk_distance_histogram": histogram(data, "distance_histogram", "separation", head),
        "top_query_tokens": _tokens(tokens, "query"),
        "top_key_tokens": _tokens(tokens, "key"),
        "histogram": _counted(peaks, _inputs(data)),
        "statistics": {"n_samples": len(kept), "mean_max_activation": _mean(peaks)},
    }


def sequences(records: Records, head: Head) -> list[dict[str, Any]]:
    """The examples from the lowest band to the very top, each input once in its interval."""
    examples = {(_interval(one), one.input): one for one in records.examples(*head)}
    inputs = records.inputs(one.input for one in examples.values())
    return [_sequence(one, inputs[one.input]) for one in examples.values()]


def _interval(example: BandExample) -> int:
    """Bands from 1; the very top examples are of the highest."""
    return min(example.band + 1, BANDS)


def _sequence(example: BandExample, kept: KeptInput) -> dict[str, Any]:
    length = len(kept.tokens)
    places = [q * length + k for q, k in zip(example.query, example.key, strict=True)]
    return {
        "sequence_id": example.input,
        "interval": _interval(example),
        "tokens": list(kept.tokens),
        "attention_indices": places,
        "attention_values": [round(weight, 5) for weight in example.weight],
        "seq_len": length,
        "max_activation": example.peak,
    }


def histogram(
    data: xr.Dataset, name: str, axis: str, head: Head, end: float | None = None
) -> dict[str, Any]:
    """The edges of the bins and what lies in each; the last bin doubles unless it has an end."""
    if name not in data:
        return {"bin_edges": [], "bin_values": []}
    lows = np.asarray(data.variables[axis].values, float)
    edges = np.append(lows, 2 * lows[-1] if end is None else end)
    values = data[name].sel(head._asdict()).values
    return {"bin_edges": edges.tolist(), "bin_values": [number(value) or 0.0 for value in values]}


def _counted(bins: dict[str, Any], inputs: int) -> dict[str, Any]:
    """Shares of the inputs as how many they are, where that is known."""
    shares = bins["bin_values"]
    return bins | {"bin_values": [round(share * inputs) for share in shares] if inputs else shares}


def _mean(bins: dict[str, Any]) -> float | None:
    """The mean of the largest weights, each taken from the middle of its bin."""
    edges, counts = np.asarray(bins["bin_edges"]), np.asarray(bins["bin_values"])
    if not counts.sum() > 0:
        return None
    return float(((edges[:-1] + edges[1:]) / 2 * counts).sum() / counts.sum())


def _tokens(tokens: Sequence[TopToken], side: str) -> list[dict[str, Any]]:
    own = [one for one in tokens if (one.side, one.by) == (side, "mass")]
    return [{"token": one.token, "weight": one.share} for one in own]


def _value(data: xr.Dataset, name: str, head: Head) -> float | None:
    if name not in data:
        return None
    value = number(data[name].sel(head._asdict()).values)
    return value**2 if value is not None and name == SQUARED else value


def _inputs(data: xr.Dataset) -> int:
    return int(data.attrs.get("sentences", 0))


def _context(run: Run) -> int | None:
    asked = run.about.get("options", {}).get("context")
    return asked if isinstance(asked, int) else None


def _write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    path.write_text(text, encoding="utf-8")
