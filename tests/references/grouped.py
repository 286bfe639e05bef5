"""Results as studies make them: measures with their sums over groups of documents."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from headscope.head import Head
from headscope.results.dataset import save
from headscope.results.measure import Measure, attach
from headscope.results.replicates import GROUPS, standard_error
from headscope.results.run import Run, write_settings

SHARE = Measure("share", "Share of attention", "What a tag receives.", "", "")
SPREAD = Measure("spread", "Spread", "How wide.", "", "", unit="nats")


def with_sums(
    data: xr.Dataset,
    measure: Measure,
    numerator: np.ndarray,
    denominator: np.ndarray,
    axes: Mapping[str, Sequence[Any]],
) -> xr.Dataset:
    """The dataset with a ratio measure; sums are group, layer, head and further axes."""
    name, dims = measure.name, list(axes)
    x = xr.DataArray(numerator, dims=["group", *dims], coords=dict(axes))
    y = xr.DataArray(np.broadcast_to(denominator, numerator.shape), dims=x.dims, coords=x.coords)
    total = y.sum("group")
    value = x.sum("group") / total.where(total > 0)
    rest = (x.sum("group") - x) / (total - y).where(total - y > 0)
    replicates = np.concatenate([value.values[None], rest.transpose("group", ...).values])
    error = standard_error(replicates, (y > 0).sum("group").values)
    found = {name: value, f"{name}_se": value.copy(data=error),
             f"{name}_numerator": x, f"{name}_denominator": y}  # fmt: skip
    if "head" in dims:
        pooled = x.sum(("group", "head")) / y.sum(("group", "head"))
        found[f"{name}_by_layer"] = pooled
    return attach(data.assign(found), [measure])


def random_result(
    seed: int,
    layers: int = 3,
    heads: int = 4,
    tags: Sequence[str] = ("DET", "NOUN"),
    *,
    texts: int = 0,
    noise: float = 0.05,
    study: str = "mine",
) -> xr.Dataset:
    """Random heads; runs with the same `texts` have the same documents, harder or easier."""
    heads_of, documents = np.random.default_rng(seed), np.random.default_rng(texts + 10_000)
    axes = {"layer": range(layers), "head": range(heads)}
    rates = 0.1 + 0.8 * heads_of.random((layers, heads, len(tags)))
    hard = documents.normal(0, noise, (GROUPS, 1, 1, 1))
    shares = np.clip(rates + hard + heads_of.normal(0, noise / 5, (GROUPS, *rates.shape)), 0, 1)
    weight = documents.integers(20, 60, (GROUPS, 1, 1, 1)).astype(float)
    data = with_sums(
        xr.Dataset(attrs={"study": study}), SHARE, shares * weight, weight,
        {**axes, "tag": list(tags)},
    )  # fmt: skip
    own = heads_of.normal(0, noise / 5, (GROUPS, layers, heads))
    wide = 1 + heads_of.random((layers, heads)) + hard[..., 0] + own
    return with_sums(data, SPREAD, wide * weight[..., 0], weight[..., 0], axes)


def sketch(seed: int) -> str:
    """The sketch of a network's embeddings."""
    return " ".join(f"{x:.4g}" for x in np.random.default_rng(seed).normal(size=256))


def run_of(data: xr.Dataset, *, network: int = 0, seed: int = 0, path: str = "run") -> Run:
    """A finished run of a network over a corpus drawn with a seed."""
    return Run(Path(path), "complete", (), about(network, seed), data)


def about(network: int = 0, seed: int = 0) -> dict[str, Any]:
    """What run.json says."""
    return {
        "headscope": "0.1.0",
        "study": "mine",
        "model": {"name": "mine", "fingerprint": f"{network}", "sketch": sketch(network)},
        "corpus": {"fingerprint": "texts", "sentences": 100},
        "options": {"sentences": 10, "seed": seed, "batch_tokens": 100 + network},
    }


def write_run(path: Path, data: xr.Dataset, *, network: int = 0, seed: int = 0) -> Path:
    """A run directory."""
    path.mkdir()
    save(data, path / "result.nc")
    write_settings(path, about(network, seed))
    return path


def moved(data: xr.Dataset, by: float) -> xr.Dataset:
    """One tag of one head takes more of the attention, in all groups alike."""
    data = data.copy(deep=True)
    x, y = data["share_numerator"], data["share_denominator"]
    x[:, 1, 1, 0] = (x[:, 1, 1, 0] + by * y[:, 1, 1, 0]).clip(0, y[:, 1, 1, 0])
    data["share"] = (x.sum("group") / y.sum("group")).assign_attrs(data["share"].attrs)
    return data


def permuted(data: xr.Dataset, seed: int) -> tuple[xr.Dataset, list[Head]]:
    """The same heads in another order, and where each of them went."""
    layers, heads = data.sizes["layer"], data.sizes["head"]
    order = np.random.default_rng(seed).permutation(layers * heads)
    flat = data.stack(unit=("layer", "head")).isel(unit=order)
    moved = data.copy(deep=True)
    for name in data.data_vars:
        values = flat[name].transpose("unit", ...).values.reshape(data[name].shape)
        moved[name] = data[name].copy(data=values)
    return moved, [Head(int(p) // heads, int(p) % heads) for p in np.argsort(order)]
