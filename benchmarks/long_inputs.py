"""Long inputs of random tokens, a network to read them, and the statistics of vig2019 on them."""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

import headscope
from headscope.engine.forward import show_layers
from headscope.metrics import Axis, Grid, HeadExamples, Metric, Sums, dependencies, labels, spread
from headscope.metrics.variability import Variability
from headscope.model.capture.modes import AttentionPath
from headscope.model.inputs.batch import Batch
from headscope.model.model import Model
from headscope.observe import AnnotatedBatch, Layer

TOKENIZER = Path(headscope.__file__).parent / "model" / "bundled" / "mini-gpt2"
TAGS, RELATIONS = 17, 45


def make_network(given: argparse.Namespace, dtype: torch.dtype) -> LlamaForCausalLM:
    """A Llama of the given shape."""
    config = LlamaConfig(
        vocab_size=49152, hidden_size=given.width, intermediate_size=given.width * 8 // 3,
        num_hidden_layers=given.layers, num_attention_heads=given.heads,
        num_key_value_heads=given.key_heads, max_position_embeddings=max(given.tokens, 64),
        rope_parameters={"rope_type": "default", "rope_theta": 100000.0},
        tie_word_embeddings=True, bos_token_id=1, eos_token_id=2, initializer_range=0.06,
    )  # fmt: skip
    torch.manual_seed(0)
    network = LlamaForCausalLM(config).eval()
    network.to(device=given.device, dtype=dtype)  # pyright: ignore[reportCallIssue]
    return network


def make_model(network: LlamaForCausalLM) -> Model:
    """The network as Headscope sees it."""
    return Model(network, AutoTokenizer.from_pretrained(TOKENIZER), name="llama")


def make_batch(tokens: int, device: str) -> tuple[Batch, AnnotatedBatch]:
    """One input of random tokens with random tags, relations and short arcs."""
    rng = np.random.default_rng(0)
    ids = torch.from_numpy(rng.integers(10, 4000, (1, tokens))).to(device)
    mask = torch.ones_like(ids, dtype=torch.bool)
    parents = np.clip(np.arange(tokens) + rng.integers(-8, 9, tokens), 0, tokens - 1)
    arcs = np.stack([np.zeros(tokens, int), parents, np.arange(tokens)], 1)
    null = torch.zeros_like(mask)
    null[:, 0] = True
    annotated = AnnotatedBatch(
        np.zeros(1, int), np.zeros(1, int), torch.zeros_like(ids[:, 0]), mask, null, True,
        {
            "tag": torch.from_numpy(rng.integers(0, TAGS, (1, tokens))).to(device),
            "deprel": torch.from_numpy(rng.integers(0, RELATIONS, (1, tokens))).to(device),
        },
        torch.from_numpy(arcs[parents != np.arange(tokens)]).to(device),
    )  # fmt: skip
    return Batch(ids, mask, torch.zeros_like(ids), (0,), (tokens,)), annotated


def make_metrics(grid: Grid) -> list[Metric]:
    """The metrics of attention in vig2019."""
    tag = Axis("tag", tuple(map(str, range(TAGS))))
    deprel = Axis("deprel", tuple(map(str, range(RELATIONS))))
    return [
        spread.distance(grid),
        spread.entropy(grid),
        spread.null_share(grid),
        spread.null_share_of_all_queries(grid),
        labels.label_to(labels.POS_TO, grid, tag),
        labels.label_from(labels.POS_FROM, grid, tag),
        labels.label_to(labels.DEPREL_TO, grid, deprel),
        dependencies.dependency_alignment(grid),
        Variability(grid, True),
        HeadExamples(grid, seed=0),
    ]


def study(
    model: Model, batch: Batch, annotated: AnnotatedBatch, path: AttentionPath
) -> dict[str, Sums]:
    """The sums of all metrics after the input."""
    annotated = replace(annotated)  # nothing computed before
    metrics = make_metrics(Grid(model.stacks[0].attending, model.heads))
    sums = {metric.name: metric.zero() for metric in metrics}
    for metric in metrics:
        metric.see_text(sums[metric.name], annotated)

    def see(layer: Layer) -> None:
        for metric in metrics:
            metric.see_layer(sums[metric.name], layer)

    show_layers(model, batch, annotated, path, see)
    return sums


def measure(
    run: Callable[[], Any], times: int, device: str, *, warm: bool = True
) -> tuple[float, float]:
    """Seconds (the best of some runs) and peak memory in GB."""
    if warm:
        run()
    cuda = device.startswith("cuda")
    if cuda:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        if cuda:
            torch.cuda.synchronize()
        taken.append(time.perf_counter() - start)
    return min(taken), torch.cuda.max_memory_allocated() / 1e9 if cuda else 0.0
