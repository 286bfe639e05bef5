"""A made-up result of the vig2019 study: figures and findings can be tried at any size."""

import json
import zlib

import numpy as np
import xarray as xr

from headscope.observe import FORMS
from headscope.results.replicates import GROUPS

TAGS = ("ADJ", "DET", "NOUN", "PROPN", "PUNCT")
RELATIONS = ("det", "nsubj", "root")
SUMMED = (
    "null_share",
    "distance",
    "entropy",
    "variability",
    "pos_to",
    "pos_from",
    "deprel_to",
    "dependency_alignment",
    "dependency_expected",
    "dependency_probability",
    "dependency_within",
)


def make_result(layers: int = 12, heads: int = 12, seed: int = 0) -> xr.Dataset:
    """Random values in the right places and ranges."""
    rng = np.random.default_rng(seed)
    coords = {
        "layer": np.arange(layers),
        "head": np.arange(heads),
        "tag": np.array(TAGS),
        "deprel": np.array(RELATIONS),
        "form": np.array(FORMS),
        "separation": np.arange(1, 101),
        "pair": np.array(["distance~entropy", "distance~alignment"]),
        "query": np.array(["0 a", "1 $b", "2 <c>"]),
        "key": np.array(["0 a", "1 $b", "2 <c>"]),
    }
    data: dict = {}
    for name, axis in (
        ("null_share", ()),
        ("distance", ()),
        ("entropy", ()),
        ("pos_to", ("tag",)),
        ("pos_from", ("tag",)),
        ("deprel_to", ("deprel",)),
        ("dependency_alignment", ("form",)),
        ("dependency_expected", ("form",)),
    ):
        shape = [len(coords[dim]) for dim in axis]
        values = rng.uniform(0.1, 0.5, (layers, heads, *shape))
        data[name] = (("layer", "head", *axis), values)
        data[f"{name}_se"] = (("layer", "head", *axis), values / 100)
        data[f"{name}_by_layer"] = (("layer", *axis), values.mean(1))
        data[f"{name}_by_layer_se"] = (("layer", *axis), values.mean(1) / 1000)
        data[f"{name}_head_mean"] = (("layer", *axis), values.mean(1))
    data["variability"] = (("layer", "head"), rng.uniform(0.01, 0.9, (layers, heads)))
    data["variability_se"] = (("layer", "head"), np.full((layers, heads), 0.01))
    data["tag_frequency"] = (("tag",), np.full(len(TAGS), 1 / len(TAGS)))
    data["deprel_frequency"] = (("deprel",), np.full(len(RELATIONS), 1 / len(RELATIONS)))
    data["pos_to_even"] = data["pos_from_even"] = data["tag_frequency"]
    data["deprel_to_even"] = data["deprel_frequency"]
    data["dependency_baseline"] = (("form",), np.array([0.05, 0.05, 0.1]))
    probability = 0.5 / np.arange(1, 101)
    data["dependency_probability"] = (("separation",), probability)
    data["dependency_probability_se"] = (("separation",), probability / 50)
    data["dependency_within"] = (("separation",), np.linspace(0.3, 1, 100))
    data["correlation"] = (("pair",), np.array([0.6, -0.7]))
    data["correlation_p"] = (("pair",), np.array([1e-9, 1e-12]))
    weights = rng.dirichlet([1, 1, 1], (layers, heads, 3))
    data["example_map"] = (("layer", "head", "query", "key"), weights)
    attributes = {
        "study": "vig2019",
        "model": "made-up",
        "is_causal": 1,
        "sentences": 10,
        "tokens": 200,
        "mean_tokens": 20.0,
        "mean_dependency_span": 3.5,
        "skipped": json.dumps({"too long": 2}),
        "left_out": json.dumps({}),
    }
    return with_sums(xr.Dataset(data, coords=coords, attrs=attributes), SUMMED)


def with_sums(result: xr.Dataset, names: tuple[str, ...], noise: float = 0.01) -> xr.Dataset:
    """The result with sums of groups that vary a little and give its values."""
    found = {}
    for name in names:
        found[f"{name}_denominator"] = xr.DataArray(np.ones(GROUPS), dims="group")
        found[f"{name}_numerator"] = numerator(result[name], noise)
    return result.assign(found)


def numerator(values: xr.DataArray, noise: float = 0.01, seed: int = 0) -> xr.DataArray:
    """Sums of groups of weight one whose mean is each value, with that relative deviation."""
    drawn = np.random.default_rng(seed).normal(size=(GROUPS, *values.shape))
    drawn = noise * (drawn - drawn.mean(0))
    varied = xr.DataArray(1 + drawn, dims=("group", *values.dims), coords=values.coords)
    return varied * values


def put(
    result: xr.Dataset, name: str, value: float, noise: float = 0.01, **place: object
) -> xr.Dataset:
    """A copy with one value changed, and the sums behind it."""
    changed = result.copy(deep=True)
    changed[name].loc[place] = value
    if f"{name}_numerator" in changed:
        seed = zlib.crc32(repr(sorted(place.items())).encode())
        now = numerator(changed[name].sel(place), noise, seed)
        changed[f"{name}_numerator"].loc[place] = now
    return changed
