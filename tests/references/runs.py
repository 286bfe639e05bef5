"""Run directories made up by a seed, laid out and named as the studies do."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import headscope
from headscope.head import name_head, name_in_paper
from headscope.results.dataset import save
from headscope.results.measure import attach
from headscope.results.ranks import top_heads
from headscope.results.records import EXAMPLES, INPUTS, TOP_BAND, with_checksums, write_records
from headscope.results.run import write_settings
from headscope.results.statements import (
    Choice,
    JudgedClaim,
    Row,
    Statements,
    Table,
    write_statements,
)
from headscope.results.tables import HeadName, tabulate
from tests.references.portraits import with_portraits
from tests.references.run_measures import MEASURES

TAGS = ("ADJ", "ADP", "ADV", "AUX", "DET", "NOUN", "PRON", "PROPN", "PUNCT", "VERB")
DEPRELS = ("amod", "case", "det", "nmod", "nsubj", "nsubj:pass", "obj", "obl", "punct", "root")
FORMS = ("attender_is_parent", "receiver_is_parent", "either")
DIRECTIONS = ("dependent_to_head", "head_to_dependent")
SENTENCE = ("The", "old", "cat", "sat", "on", "the", "mat", ".")
HOSTILE = '</script><img src=x onerror="alert(1)">'
FOUR = (0, 1, 2, 3)
GROUPS = 8


def write_run(
    path: Path,
    study: str,
    *,
    layers: Sequence[int] = FOUR,
    heads: int = 4,
    seed: int = 0,
    shift: float = 0.0,
    network: str = "one",
    described: bool = False,
) -> Path:
    """A finished run; `shift` is added to the entropy of head 2 of the second layer.

    A run that is `described` has portraits of its heads.
    """
    make = vig2019 if study == "vig2019" else clark2019
    data = make(layers, heads, seed)
    data["entropy"][1, 2] += shift
    path.mkdir(parents=True)
    data = with_sums(data, int(100 * shift) + seed)
    data = with_portraits(data, seed) if described else data
    write_result(path, with_checksums(data, write_examples(path, layers, heads)))
    _write_about(path, study, seed, network)
    return path


def with_sums(data: xr.Dataset, seed: int) -> xr.Dataset:
    """The result with sums over groups of documents, which differ a little."""
    random = np.random.default_rng(seed)
    found = {}
    for name in (str(name).removesuffix("_se") for name in data.data_vars):
        if f"{name}_se" in data and "layer" in data[name].dims and f"{name}_numerator" not in data:
            noise = random.normal(0, 0.005, (GROUPS, *data[name].shape))
            x = data[name].values + noise - noise.mean(0)
            found[f"{name}_numerator"] = (("group", *data[name].dims), x)
            found[f"{name}_denominator"] = ("group", np.ones(GROUPS))
    return data.assign(found)


def write_result(path: Path, data: xr.Dataset) -> None:
    """result.nc with every measure in words and what is said of the result."""
    said = write_statements(attach(data, MEASURES), statements(data))
    save(said, path / "result.nc")


def statements(data: xr.Dataset) -> Statements:
    """Tables, a finding and a choice, made as the studies make theirs."""
    relations = "relation" in data.dims
    table = _relations(data) if relations else _tags(data)
    layer, head, value = top_heads(data["entropy"], 1)[0]
    claim = JudgedClaim(
        "Entropy differs between heads",
        "0.41 in L5H1",
        f"highest {value:.3f} in {name_head(layer, head)}",
        "yes",
        "The highest value exceeds the mean.",
    )
    open_claim = JudgedClaim("Layers differ", "–", "no layer stands out", "unclear", "Two errors.")
    choice = Choice(table.name, layer, head, "The widest attention of all heads.")
    return Statements((table,), (claim, open_claim), (choice,))


def _table(name: str, title: str, caption: str, rows: Sequence[Row]) -> Table:
    return Table(name, title, caption, *tabulate(rows), name)


def _tags(data: xr.Dataset) -> Table:
    best = {tag: top_heads(data["pos_to"].sel(tag=tag), 1)[0] for tag in TAGS}
    rows = tuple(
        {
            "tag": tag,
            "to_best": value,
            "to_head": HeadName(name_head(layer, head)),
            "to_factor": float("nan"),
        }
        for tag, (layer, head, value) in best.items()
    )
    return _table("tags", "The heads of each tag", "The head that looks most at each tag.", rows)


def _relations(data: xr.Dataset) -> Table:
    rows = tuple(_relation(data, name) for name in DEPRELS)
    return _table("relations", "Table 1: best heads", "Chosen and scored on the same words.", rows)


def _relation(data: xr.Dataset, name: str) -> Row:
    own = data["relation_accuracy"].sel(relation=name)
    layer, head, value = top_heads(own.max("direction"), 1)[0]
    return {
        "relation": name,
        "words": int(data["relation_count"].sel(relation=name)),
        "head": HeadName(name_in_paper(layer, head)),
        "accuracy": value,
        "baseline": float(data["offset_accuracy"].sel(relation=name).max()),
    }


def vig2019(layers: Sequence[int], heads: int, seed: int) -> xr.Dataset:
    """All names of the vig2019 study."""
    random = np.random.default_rng(seed)
    grid = {"layer": list(layers), "head": np.arange(heads)}
    shape = (len(layers), heads)
    data = xr.Dataset(
        attrs={
            "study": "vig2019",
            "left_out": "{}",
            "sentences": 120,
            "tokens": 2400,
            "shown_first": "distance entropy",
        }
    )
    for name in ("null_share", "variability"):
        _add(data, name, random.beta(2, 3, shape), grid)
    distance = 1 + 3 * random.random(shape) + np.arange(len(layers))[:, None]
    _add(data, "distance", distance, grid)
    _add(data, "entropy", 0.2 * distance + random.random(shape), grid)
    tags = random.dirichlet(np.ones(len(TAGS)), shape)
    _add(data, "pos_to", tags, grid | {"tag": list(TAGS)})
    _add(data, "pos_from", tags[::-1], grid | {"tag": list(TAGS)})
    data["tag_frequency"] = ("tag", random.dirichlet(np.ones(len(TAGS))))
    relations = random.dirichlet(np.ones(len(DEPRELS)), shape)
    _add(data, "deprel_to", relations, grid | {"deprel": list(DEPRELS)})
    aligned = random.beta(2, 8, (*shape, 2))
    forms = np.concatenate([aligned, aligned.sum(-1, keepdims=True)], -1)
    _add(data, "dependency_alignment", forms, grid | {"form": list(FORMS)})
    data["dependency_baseline"] = ("form", np.array([0.03, 0.04, 0.07]))
    for name in ("distance", "deprel_to", "dependency_alignment"):
        data[f"{name}_by_layer"] = data[name].mean("head")
        data[f"{name}_by_layer_se"] = data[f"{name}_se"].mean("head")
    data["dependency_probability"] = ("separation", 0.5 / np.arange(1, 11))
    return data


def clark2019(layers: Sequence[int], heads: int, seed: int) -> xr.Dataset:
    """All names of the clark2019 study."""
    random = np.random.default_rng(seed)
    grid = {"layer": list(layers), "head": np.arange(heads)}
    shape = (len(layers), heads)
    data = xr.Dataset(
        attrs={
            "study": "clark2019",
            "left_out": "{}",
            "uniform_entropy": 4.2,
            "shown_first": "special_share entropy",
        }
    )
    _add(data, "offset_share", random.beta(1, 3, (*shape, 3)), grid | {"offset": [-1, 0, 1]})
    special = ["cls", "sep", "punct"]
    _add(data, "special_share", random.beta(1, 3, (*shape, 3)), grid | {"special": special})
    for name in ("sep_to_sep", "other_to_sep", "entropy", "entropy_from_cls"):
        _add(data, name, random.beta(2, 2, shape) * (4 if "entropy" in name else 1), grid)
    target = ["sep", "punct", "unmasked"]
    _add(data, "gradient", random.random((*shape, 3)) * 1e-3, grid | {"target": target})
    _add_clusters(data, layers, heads, random)
    _add_relations(data, grid, random)
    _add_coreference(data, grid, random)
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


def _add_clusters(
    data: xr.Dataset, layers: Sequence[int], heads: int, random: np.random.Generator
) -> None:
    units = [name_head(layer, head) for layer in layers for head in range(heads)]
    places = random.normal(size=(len(units), 2))
    between = np.linalg.norm(places[:, None] - places[None], axis=-1)
    data["head_position"] = xr.DataArray(
        places, coords={"unit": units, "axis": ["x", "y"]}, dims=["unit", "axis"]
    )
    data["head_divergence"] = xr.DataArray(
        between, coords={"unit": units, "other": units}, dims=["unit", "other"]
    )
    labels = random.choice(["next", "previous", "broad", "sep", "other"], (len(layers), heads))
    data["behaviour"] = (("layer", "head"), labels)


def _add_relations(data: xr.Dataset, grid: dict, random: np.random.Generator) -> None:
    """Counts of groups of documents, and the accuracy that follows from them."""
    axes = grid | {"direction": list(DIRECTIONS), "relation": list(DEPRELS)}
    shape = tuple(len(labels) for labels in axes.values())
    scored = random.integers(10, 200, (GROUPS, len(DIRECTIONS), len(DEPRELS)))
    chance = random.beta(2, 3, shape)
    correct = random.binomial(scored[:, None, None], chance)
    groups = {"group": list(range(GROUPS))} | axes
    data["relation_accuracy_numerator"] = xr.DataArray(correct, coords=groups, dims=list(groups))
    counted = {name: groups[name] for name in ("group", "direction", "relation")}
    data["relation_accuracy_denominator"] = xr.DataArray(scored, coords=counted, dims=list(counted))
    _add(data, "relation_accuracy", correct.sum(0) / scored.sum(0), axes)
    bounds = np.stack([data["relation_accuracy"] - 0.05, data["relation_accuracy"] + 0.05], -1)
    ends = axes | {"bound": ["low", "high"]}
    data["relation_accuracy_ci"] = xr.DataArray(bounds, coords=ends, dims=list(ends))
    offsets = [-3, -2, -1, 1, 2, 3]
    data["offset_accuracy"] = xr.DataArray(
        random.beta(1, 3, (len(offsets), len(DEPRELS))),
        coords={"offset_word": offsets, "relation": list(DEPRELS)},
        dims=["offset_word", "relation"],
    )
    data["relation_count"] = ("relation", random.integers(20, 400, len(DEPRELS)))


def _add_coreference(data: xr.Dataset, grid: dict, random: np.random.Generator) -> None:
    shape = (len(grid["layer"]), len(grid["head"]))
    mentions = ["all", "pronoun", "proper", "nominal"]
    axes = grid | {"candidates": ["words", "mentions"], "mention": mentions}
    _add(data, "coref_accuracy", random.beta(2, 3, (*shape, 2, 4)), axes)
    systems = ["nearest", "head_match", "rules"]
    data["coref_baseline"] = xr.DataArray(
        random.beta(2, 3, (3, 4)), coords={"system": systems, "mention": mentions},
        dims=["system", "mention"],
    )  # fmt: skip


def _write_about(path: Path, study: str, seed: int, network: str = "one") -> None:
    name = "mini-gpt2" if study == "vig2019" else "mini-bert"
    about = {
        "headscope": headscope.__version__,
        "study": study,
        "model": {"name": name, "fingerprint": network, "layers": 4, "heads": 4},
        "corpus": {
            "name": "demo",
            "path": "corpora/demo.conllu",
            "format": "conllu",
            "fingerprint": "6f6f94b6bbe052b4",
            "sentences": 120,
        },
        "options": {"seed": seed, "shard_sentences": 24},
    }
    write_settings(path, about)


def write_examples(path: Path, layers: Sequence[int], heads: int) -> dict[str, str]:
    """Three sentences for every head, and their tokens; the checksums of the files."""
    hostile = (*SENTENCE[:2], HOSTILE, *SENTENCE[3:])
    inputs = [
        {
            "input": number,
            "document": "d0",
            "id": f"s{number}",
            "start": 0,
            "text": "The old cat sat on the mat.",
            "tokens": list(hostile if number == 1 else SENTENCE),
            "null": [0],
            "tags": ["DET", "ADJ", "NOUN", "VERB", "ADP", "DET", "NOUN", "PUNCT"],
            "relations": ["det", "amod", "nsubj", "root", "case", "det", "obl", "punct"],
        }
        for number in range(3)
    ]
    examples = [
        [_example(layer, head, rank) for rank in range(3)]
        for layer in layers
        for head in range(heads)
    ]
    files = {EXAMPLES: examples, INPUTS: [inputs]}
    return {name: write_records(path / name, groups) for name, groups in files.items()}


def _example(layer: int, head: int, rank: int) -> dict[str, Any]:
    peak = 0.9 - 0.1 * rank - 0.01 * layer
    return {
        "layer": layer, "head": head, "band": TOP_BAND, "rank": rank, "peak": peak, "input": rank,
        "attending": 3 + rank, "attended": 2,
        "query": [2, 2, 3 + rank, 6], "key": [0, 1, 2, 5], "weight": [0.95, 0.05, peak, 0.04],
    }  # fmt: skip
