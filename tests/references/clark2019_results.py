"""Made-up results of clark2019 that claims are judged on, and the judgement of one of them."""

import json

import numpy as np
import xarray as xr

from headscope.results.claims import JudgedClaim, Replicates, judge
from headscope.results.replicates import GROUPS
from headscope.studies.clark2019.claims import CLAIMS
from headscope.studies.clark2019.probes.relations import DIRECTIONS, OFFSETS
from headscope.studies.clark2019.probes.trees import ALL
from tests.references.results import put, with_sums

LAYERS, HEADS = 12, 3
RELATIONS = (ALL, "det", "rare")
SUMMED = (
    "offset_share",
    "special_share",
    "sep_to_sep",
    "gradient",
    "entropy",
    "entropy_from_cls",
    "confidence",
)


def surface(noise: float = 0.01, *, is_causal: bool = False) -> xr.Dataset:
    """A model whose heads are all alike."""
    coords = {
        "layer": np.arange(LAYERS),
        "head": np.arange(HEADS),
        "offset": [-1, 0, 1],
        "special": ["cls", "sep", "punct"],
        "target": ["sep", "punct", "unmasked"],
    }
    found = {}
    for name, axis in (
        ("offset_share", "offset"),
        ("special_share", "special"),
        ("gradient", "target"),
        ("sep_to_sep", None),
        ("entropy", None),
        ("entropy_from_cls", None),
        ("confidence", None),
    ):
        dims = ("layer", "head") if axis is None else ("layer", "head", axis)
        values = np.full([len(coords[dim]) for dim in dims], 0.2)
        found[name] = (dims, values)
        found[f"{name}_by_layer"] = (("layer", *dims[2:]), values.mean(1))
    result = xr.Dataset(found, coords, {"is_causal": int(is_causal), "sink_rate": 0.25})
    return with_sums(result, SUMMED, noise)


def claim(start: str, result: xr.Dataset) -> JudgedClaim:
    (named,) = [claim for claim in CLAIMS if claim.sentence.startswith(start)]
    judged = judge(named, Replicates(result))
    if judged.low is not None and judged.high is not None:
        assert named.quantity.least <= judged.low <= judged.high <= named.quantity.most
        assert judged.low < judged.high or named.is_counted
    return judged


def put_layers(
    result: xr.Dataset, name: str, layers: range, value: float, noise: float = 0.01, **place: object
) -> xr.Dataset:
    for layer in layers:
        for head in range(HEADS):
            result = put(result, name, value, noise, layer=layer, head=head, **place)
    return result


def words(
    det: float = 0.9,
    offset: float = 0.5,
    noise: float = 1.0,
    rare: int = 1,
    resolved: float = 0.6,
    coverage: float = 1.0,
) -> xr.Dataset:
    """Two layers of two heads; L1H0 finds `det`, and every other head finds a tenth."""
    rng = np.random.default_rng(2)
    scored = np.full((GROUPS, 2, 3), 40.0)
    scored[:, :, 2] = 0
    scored[:rare, :, 2] = 1
    shares = np.full((GROUPS, 2, 2, 2, 3), 0.1)
    shares[:, 1, 0, 0, :2] = det
    offsets = np.zeros((GROUPS, 2, len(OFFSETS), 3))
    offsets[:, :, 3, :] = offset * scored
    correct = (shares * scored[:, None, None] + noise * rng.normal(size=shares.shape)).clip(0)
    coords = {
        "layer": [0, 1],
        "head": [0, 1],
        "direction": list(DIRECTIONS),
        "relation": list(RELATIONS),
        "offset": list(OFFSETS),
        "candidates": ["words", "mentions"],
        "mention": ["all", "pronoun"],
        "system": ["nearest", "head_match", "rules"],
        "probe": ["right_branching", "distances_words", "random_attention_words", "attention",
                  "attention_words"],
        "share": [0.25, 0.5, 0.75, 1.0],
    }  # fmt: skip
    mentions = np.full((GROUPS, 2), 20.0)
    resolve = np.full((GROUPS, 2, 2, 2, 2), 0.1)
    resolve[:, 0, 1] = resolved
    systems = np.broadcast_to(np.array([0.3, 0.5, 0.7])[None, :, None], (GROUPS, 3, 2))
    jitter = noise * rng.normal(size=resolve.shape) / 20
    uas = np.array([0.3, 0.5, 0.3, 0.4, 0.7]) + 0.02 * noise * rng.normal(size=(GROUPS, 5))
    of_heads = ("group", "layer", "head")
    found = {
        "relation_accuracy_numerator": ((*of_heads, "direction", "relation"), correct),
        "relation_accuracy_denominator": (("group", "direction", "relation"), scored),
        "offset_accuracy_denominator": (("group", "relation"), scored[:, 0] / coverage),
        "offset_accuracy_scored_numerator": (("group", "direction", "offset", "relation"), offsets),
        "offset_accuracy_scored_denominator": (("group", "direction", "relation"), scored),
        "coref_accuracy_numerator": (
            (*of_heads, "candidates", "mention"), (resolve + jitter) * 20,
        ),
        "coref_accuracy_denominator": (("group", "mention"), mentions),
        "coref_baseline_numerator": (("group", "system", "mention"), systems * 20),
        "coref_baseline_denominator": (("group", "mention"), mentions),
        "parsing_uas_numerator": (("group", "probe"), 50 * uas),
        "parsing_uas_denominator": (("group",), np.full(GROUPS, 50.0)),
        "parsing_curve": (("probe", "share"), np.full((5, 4), 0.5)),
        "behaviour": (("layer", "head"), np.full((2, 2), "other")),
    }  # fmt: skip
    attributes = {"is_causal": 0, "options": json.dumps({"few": 20})}
    return xr.Dataset(found, coords, attributes)
