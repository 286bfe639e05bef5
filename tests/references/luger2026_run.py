"""A made-up run of luger2026: every file and variable that report, explorer and export may read."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr

import headscope
from headscope.metrics.composition import COMPOSITION, HeadComposition
from headscope.metrics.metric import Grid, Variables
from headscope.results.dataset import save
from headscope.results.measure import Measure, attach
from headscope.results.records import (
    BANDS,
    DIRECTIONS,
    EXAMPLES,
    INPUTS,
    MAPS,
    ORDERS,
    SIDES,
    SPACES,
    TOP_BAND,
    TOP_TOKENS,
    WRITES,
    WRITTEN,
    with_checksums,
    write_records,
)
from headscope.results.run import write_settings
from headscope.results.statements import Statements, write_statements
from tests.references.portraits import with_portraits

WORDS = (" the", " cat", "<script>alert(1)</script>", "\n", " sat", "日本", "=1+1", " of", ",")
LENGTH, INPUTS_KEPT, POINTS = 24, 12, 10  # tokens of an input, inputs, points of a space
SHARES = ("self_share", "previous_share", "next_share", "first_share", "delimiter_share")
DETECTED = ("induction", "duplicate", "successor", "retrieval")
OTHERS = ("entropy", "distance", "distance_spread", "removal", "mean_replacement")


def write_luger_run(
    path: Path, layers: int = 2, heads: int = 3, seed: int = 0, *, described: bool = False
) -> Path:
    """A finished run directory; one that is `described` has portraits of its heads."""
    path.mkdir(parents=True, exist_ok=True)
    checksums = write_made_records(path, layers, heads, seed)
    data = make_luger_result(layers, heads, seed)
    data = with_portraits(data, seed) if described else data
    result = with_checksums(data, checksums)
    save(write_statements(result, Statements((), (), ())), path / "result.nc")
    about = {
        "headscope": headscope.__version__,
        "study": "luger2026",
        "model": {"name": "mini-gpt2", "fingerprint": "one", "layers": layers, "heads": heads},
        "corpus": {"name": "demo", "path": None, "fingerprint": "6f6f", "sentences": INPUTS_KEPT},
        "options": {"seed": seed, "shard_sentences": 256},
    }
    write_settings(path, about)
    return path


def make_luger_result(layers: int, heads: int, seed: int) -> xr.Dataset:
    """Every measure of heads with its error, and the two histograms."""
    random = np.random.default_rng(seed)
    shape, grid = (layers, heads), {"layer": np.arange(layers), "head": np.arange(heads)}
    said = {"study": "luger2026", "left_out": "{}", "sentences": 400}
    data = xr.Dataset(attrs=said, coords=grid)
    for name in (*SHARES, *DETECTED, *OTHERS):
        data[name] = (("layer", "head"), random.random(shape))
        data[f"{name}_se"] = (("layer", "head"), 0.01 + 0.01 * random.random(shape))
    apart, bins = 2 ** np.arange(10), np.arange(50) / 50
    data = data.assign_coords(separation=apart, peak=bins)
    masses = random.dirichlet(np.ones(len(apart)), shape)
    data["distance_histogram"] = (("layer", "head", "separation"), masses)
    counts = random.dirichlet(np.ones(len(bins)), shape)
    data["peak_histogram"] = (("layer", "head", "peak"), counts)
    examples = np.zeros((*shape, BANDS + 1, 10), np.int64)
    data["example_input"] = (("layer", "head", "band", "pick"), examples)
    measures = [_measure(name) for name in (*SHARES, *DETECTED, *OTHERS)]
    return attach(data.assign(_composition(layers, heads, random)), [*measures, COMPOSITION])


def _composition(layers: int, heads: int, random: np.random.Generator) -> Variables:
    """Every head is fed by those of earlier layers, and by embeddings; two documents."""
    sources = [*(f"L{layer}H{head}" for layer in range(layers) for head in range(heads))]
    metric = HeadComposition(Grid(tuple(range(layers)), heads), (*sources, "embedding"))
    sums = metric.zero()
    for layer in range(layers):
        earlier = [*range(layer * heads), len(sources)]
        shares = random.dirichlet(np.arange(1, len(earlier) + 1), (2, heads, 2))
        sums["covariance"][:2, layer][..., earlier] = torch.from_numpy(shares)
    sums["variance"][:2] = 1
    return metric.compute(sums)


def write_made_records(path: Path, layers: int, heads: int, seed: int) -> dict[str, str]:
    """The five files; the checksum of each."""
    grid = [(layer, head) for layer in range(layers) for head in range(heads)]
    inputs = [_input(number, seed) for number in range(INPUTS_KEPT)]
    makers = {
        TOP_TOKENS: _top_tokens,
        EXAMPLES: _examples,
        MAPS: _points,
        WRITES: _writes,
    }
    found = {INPUTS: write_records(path / INPUTS, [inputs])}
    for name, make in makers.items():
        groups = ([{"layer": h[0], "head": h[1]} | row for row in make(h, seed)] for h in grid)
        found[name] = write_records(path / name, groups)
    return found


def _measure(name: str) -> Measure:
    title = name.replace("_", " ").capitalize()
    unit = "share" if name in SHARES + DETECTED else "nats"
    return Measure(name, title, f"{title} of a head.", "Σ a / Σ 1", "made up", unit=unit)


def _input(number: int, seed: int) -> dict[str, Any]:
    random = np.random.default_rng((seed, number))
    tokens = [WORDS[place] for place in random.integers(0, len(WORDS), LENGTH)]
    document = f"document {number // 3}"
    place = {"input": number, "document": document, "id": "", "start": number % 3 * LENGTH}
    labels: dict[str, list] = {"null": [], "tags": [], "relations": []}
    return place | labels | {"text": "".join(tokens), "tokens": tokens}


def _top_tokens(head: tuple[int, int], seed: int) -> Iterator[dict[str, Any]]:
    random = np.random.default_rng((seed, *head))
    for side in SIDES:
        for by in ORDERS:
            share, lift = np.sort(random.random((2, len(WORDS))) * [[0.1], [20]])[:, ::-1]
            for rank, token in enumerate(WORDS):
                numbers = {"share": share[rank], "lift": lift[rank], "count": 100 - rank}
                yield {"side": side, "by": by, "rank": rank, "token": token} | numbers


def _examples(head: tuple[int, int], seed: int) -> Iterator[dict[str, Any]]:
    random = np.random.default_rng((seed, *head, 1))
    for band in range(BANDS + 1):
        for rank in range(10 if band == TOP_BAND else 3):
            number = int(random.integers(INPUTS_KEPT))
            query = np.repeat(np.arange(1, LENGTH), 2)
            key = np.stack([query[::2] * 0, query[::2]], 1).ravel()
            own = np.random.default_rng((seed, *head, 1, number))  # of an input, whatever its band
            weight = own.random(len(query)) / 2
            best = int(np.where(key > 0, weight, 0).argmax())
            peak = min(1.0, (band + 1) / (BANDS + 1))
            yield {"band": band, "rank": rank, "peak": peak, "input": number} | {
                "query": query.tolist(),
                "key": key.tolist(),
                "weight": weight.tolist(),
                "attending": int(query[best]),
                "attended": int(key[best]),
            }


def _points(head: tuple[int, int], seed: int) -> Iterator[dict[str, Any]]:
    random = np.random.default_rng((seed, *head, 2))
    for space in SPACES:
        for place in range(POINTS):
            number, position = place % INPUTS_KEPT, int(random.integers(LENGTH))
            token = _input(number, seed)["tokens"][position]
            x, y = random.normal(size=2) if space in ("query", "key") else (None, None)
            yield {"space": space, "input": number, "position": position, "token": token} | {
                "component1": random.normal(),
                "component2": random.normal(),
                "x": x,
                "y": y,
                "cluster": place % 2,
            }


def _writes(head: tuple[int, int], seed: int) -> Iterator[dict[str, Any]]:
    for of in WRITTEN:
        for direction in DIRECTIONS:
            for rank, token in enumerate(WORDS):
                logit = (1.5 - 0.1 * rank) * (1 if direction == "raises" else -1)
                named = {"of": of, "direction": direction, "rank": rank}
                yield named | {"token": token, "logit": logit}
