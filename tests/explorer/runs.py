"""Run directories made up by a seed, laid out and named as the studies do."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xarray as xr

import headscope

TAGS = ("ADJ", "ADP", "ADV", "AUX", "DET", "NOUN", "PRON", "PROPN", "PUNCT", "VERB")
DEPRELS = ("amod", "case", "det", "nmod", "nsubj", "nsubj:pass", "obj", "obl", "punct", "root")
FORMS = ("attender_is_parent", "receiver_is_parent", "either")
SENTENCE = ("The", "old", "cat", "sat", "on", "the", "mat", ".")
HOSTILE = '</script><img src=x onerror="alert(1)">'


def write_run(
    path: Path, study: str, *, layers: int = 4, heads: int = 4, seed: int = 0, shift: float = 0.0
) -> Path:
    """A finished run; `shift` is added to the distance (or entropy) of L1H2."""
    make = vig2019 if study == "vig2019" else clark2019
    data = make(layers, heads, seed)
    data["entropy"][1, 2] += shift
    path.mkdir(parents=True)
    data.to_netcdf(path / "result.nc", engine="h5netcdf")
    _write_about(path, study, seed)
    _write_exemplars(path, layers, heads)
    return path


def vig2019(layers: int, heads: int, seed: int) -> xr.Dataset:
    """All names of the vig2019 study."""
    random = np.random.default_rng(seed)
    grid = {"layer": np.arange(layers), "head": np.arange(heads)}
    data = xr.Dataset(
        attrs={"study": "vig2019", "left_out": "{}", "sentences": 120, "tokens": 2400}
    )
    for name in ("null_share", "variability"):
        _add(data, name, random.beta(2, 3, (layers, heads)), grid)
    distance = 1 + 3 * random.random((layers, heads)) + np.arange(layers)[:, None]
    _add(data, "distance", distance, grid)
    _add(data, "entropy", 0.2 * distance + random.random((layers, heads)), grid)
    tags = random.dirichlet(np.ones(len(TAGS)), (layers, heads))
    _add(data, "pos_to", tags, grid | {"tag": list(TAGS)})
    _add(data, "pos_from", tags[::-1], grid | {"tag": list(TAGS)})
    data["tag_frequency"] = ("tag", random.dirichlet(np.ones(len(TAGS))))
    relations = random.dirichlet(np.ones(len(DEPRELS)), (layers, heads))
    _add(data, "deprel_to", relations, grid | {"deprel": list(DEPRELS)})
    aligned = random.beta(2, 8, (layers, heads, 2))
    forms = np.concatenate([aligned, aligned.sum(-1, keepdims=True)], -1)
    _add(data, "dependency_alignment", forms, grid | {"form": list(FORMS)})
    data["dependency_baseline"] = ("form", np.array([0.03, 0.04, 0.07]))
    for name in ("distance", "deprel_to", "dependency_alignment"):
        data[f"{name}_by_layer"] = data[name].mean("head")
        data[f"{name}_by_layer_se"] = data[f"{name}_se"].mean("head")
    data["dependency_probability"] = ("separation", 0.5 / np.arange(1, 11))
    return data


def clark2019(layers: int, heads: int, seed: int) -> xr.Dataset:
    """All names of the clark2019 study."""
    random = np.random.default_rng(seed)
    grid = {"layer": np.arange(layers), "head": np.arange(heads)}
    shape = (layers, heads)
    data = xr.Dataset(attrs={"study": "clark2019", "left_out": "{}"})
    _add(data, "offset_share", random.beta(1, 3, (*shape, 3)), grid | {"offset": [-1, 0, 1]})
    special = ["cls", "sep", "punct"]
    _add(data, "special_share", random.beta(1, 3, (*shape, 3)), grid | {"special": special})
    for name in ("sep_to_sep", "other_to_sep", "entropy", "entropy_from_cls"):
        _add(data, name, random.beta(2, 2, shape) * (4 if "entropy" in name else 1), grid)
    data["uniform_entropy"] = ((), 4.2)
    target = ["sep", "punct", "unmasked"]
    _add(data, "gradient", random.random((*shape, 3)) * 1e-3, grid | {"target": target})
    _add_clusters(data, layers, heads, random)
    _add_probes(data, grid, random)
    return data


def unfinished_run(path: Path, shards: int = 3) -> Path:
    """A run that was interrupted."""
    (path / "shards").mkdir(parents=True)
    for number in range(shards):
        (path / "shards" / f"{number:05d}.npz").write_bytes(b"")
    _write_about(path, "vig2019", 0)
    return path


def _add(data: xr.Dataset, name: str, values: np.ndarray, coordinates: dict) -> None:
    array = xr.DataArray(values.astype(float), coords=coordinates, dims=list(coordinates))
    data[name] = array
    data[f"{name}_se"] = xr.full_like(array, 0.01) + 0.02 * np.abs(array)


def _add_clusters(data: xr.Dataset, layers: int, heads: int, random: np.random.Generator) -> None:
    units = [f"L{layer}H{head}" for layer in range(layers) for head in range(heads)]
    places = random.normal(size=(len(units), 2))
    between = np.linalg.norm(places[:, None] - places[None], axis=-1)
    data["head_position"] = xr.DataArray(
        places, coords={"unit": units, "axis": ["x", "y"]}, dims=["unit", "axis"]
    )
    data["head_divergence"] = xr.DataArray(
        between, coords={"unit": units, "other": units}, dims=["unit", "other"]
    )
    labels = random.choice(["next", "previous", "broad", "sep", "other"], (layers, heads))
    data["behaviour"] = (("layer", "head"), labels)


def _add_probes(data: xr.Dataset, grid: dict, random: np.random.Generator) -> None:
    shape = (len(grid["layer"]), len(grid["head"]))
    directions = ["dependent_to_head", "head_to_dependent"]
    accuracy = random.beta(2, 3, (*shape, 2, len(DEPRELS)))
    axes = grid | {"direction": directions, "relation": list(DEPRELS)}
    _add(data, "relation_accuracy", accuracy, axes)
    offsets = [-3, -2, -1, 1, 2, 3]
    data["offset_accuracy"] = xr.DataArray(
        random.beta(1, 3, (len(offsets) + 3, len(DEPRELS)))[3:],
        coords={"offset_word": offsets, "relation": list(DEPRELS)},
        dims=["offset_word", "relation"],
    )
    data["relation_count"] = ("relation", random.integers(20, 400, len(DEPRELS)))
    mentions = ["all", "pronoun", "proper", "nominal"]
    axes = grid | {"candidates": ["words", "mentions"], "mention": mentions}
    _add(data, "coref_accuracy", random.beta(2, 3, (*shape, 2, 4)), axes)
    systems = ["nearest", "head_match", "rules"]
    data["coref_baseline"] = xr.DataArray(
        random.beta(2, 3, (3, 4)), coords={"system": systems, "mention": mentions},
        dims=["system", "mention"],
    )  # fmt: skip
    probes = [
        "right_branching",
        "distances_words",
        "random_attention_words",
        "attention",
        "attention_words",
    ]
    data["parsing_uas"] = xr.DataArray(random.random(5), coords={"probe": probes}, dims=["probe"])


def _write_about(path: Path, study: str, seed: int) -> None:
    name = "mini-gpt2" if study == "vig2019" else "mini-bert"
    about = {
        "headscope": headscope.__version__,
        "study": study,
        "model": {"name": name, "layers": 4, "heads": 4},
        "corpus": {"fingerprint": "6f6f94b6bbe052b4", "sentences": 120},
        "options": {"seed": seed, "shard_sentences": 24},
    }
    (path / "run.json").write_text(json.dumps(about), encoding="utf-8")


def _write_exemplars(path: Path, layers: int, heads: int) -> None:
    hostile = (*SENTENCE[:2], HOSTILE, *SENTENCE[3:])
    rows = [
        {
            "layer": layer,
            "head": head,
            "rank": rank,
            "weight": 0.9 - 0.1 * rank - 0.01 * layer,
            "query": 3 + rank,
            "key": 2,
            "tokens": list(hostile if rank == 1 else SENTENCE),
            "text": "The old cat sat on the mat.",
        }
        for layer in range(layers)
        for head in range(heads)
        for rank in range(3)
    ]
    pq.write_table(pa.Table.from_pylist(rows), path / "exemplars.parquet")
