"""One long input on a GPU: every matrix-free statistic of vig2019 beside the plain forward pass.

PYTHONPATH=src python -m benchmarks.gpu_context                    SmolLM2's shape, 32,768 tokens
PYTHONPATH=src python -m benchmarks.gpu_context --tokens 64 --check 48 --layers 2 --device cpu

Needs torch and transformers only. Weights are random; what is measured does not depend on them.
"""

import argparse
import importlib.util
import sys
import time
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

if importlib.util.find_spec("xarray") is None:  # results are labelled with it, states are not
    sys.modules["xarray"] = types.SimpleNamespace(DataArray=object, Dataset=object)  # type: ignore

import headscope
from headscope.metrics.metric import Axis, Grid, State
from headscope.metrics.ratio import HeadRatio, RatioGroup
from headscope.metrics.records.examples import Exemplars
from headscope.metrics.what import dependencies, labels
from headscope.metrics.where import spread
from headscope.metrics.where.variability import Variability
from headscope.model.attention import PackedAttention, PlainAttention, TextAttention
from headscope.model.capture.modes import Mode
from headscope.model.inputs.batch import Batch
from headscope.model.model import Model
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.fused import PassSums, sum_in_blocks
from headscope.observe.layer import Layer
from headscope.observe.show import show_layers

TOKENIZER = Path(headscope.__file__).parent / "model" / "bundled" / "mini-gpt2"
TAGS, RELATIONS = 17, 45
LAUNCHES = [
    {"block_keys": keys, "block_queries": queries, "warps": warps, "stages": stages}
    for keys, queries, warps in (
        (128, 64, 4),
        (128, 64, 8),
        (128, 128, 8),
        (64, 64, 4),
        (64, 128, 4),
    )
    for stages in (2, 3)
]


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


def make_metrics(grid: Grid) -> list[HeadRatio | Exemplars | Variability]:
    """The metrics of attention in vig2019 that need no text."""
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
        Exemplars(grid),
    ]


def study(model: Model, batch: Batch, annotated: AnnotatedBatch, way: Mode) -> dict[str, State]:
    """The states of all metrics after the input."""
    annotated = replace(annotated)  # nothing computed before
    metrics = make_metrics(Grid(model.stacks[0].attending, model.heads))
    states = {metric.name: metric.zero(1) for metric in metrics}
    ratios = RatioGroup([m for m in metrics if isinstance(m, HeadRatio)], batch.ids.device)
    others = [metric for metric in metrics if not isinstance(metric, HeadRatio)]

    def update(layer: Layer) -> None:
        ratios.update(layer)
        for metric in others:
            metric.update_layer(states[metric.name], layer)

    show_layers(model, batch, annotated, way, update)
    ratios.finish(states)
    for state in states.values():
        state.settle()
    return states


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


def show(name: str, plain: tuple[float, float], found: tuple[float, float]) -> None:
    """One line of the table, beside the plain forward pass."""
    seconds, memory = found
    more = memory / plain[1] if plain[1] else float("nan")
    print(
        f"{name:28s} {seconds:8.3f} s {seconds / plain[0]:6.2f} ×  {memory:6.2f} GB {more:5.2f} ×"
    )


def values(states: dict[str, State]) -> dict[str, np.ndarray]:
    """What the states say of every head."""
    found = {
        name: state.sums["head.x"] / state.sums["head.y"]
        for name, state in states.items()
        if "head.x" in state.sums
    }
    found["exemplar"] = states["exemplars"].sums["weight"][..., 0]
    found["corner"] = states["variability"].sums["weight"]
    return found


def compare(one: dict[str, State], other: dict[str, State]) -> None:
    """The largest differences, relative to values above one."""
    left, right = values(one), values(other)
    for name in left:
        gap = np.abs(left[name] - right[name]) / np.maximum(1, np.abs(right[name]))
        print(f"  {name:26s} {np.nanmax(gap):.1e}")


def check(given: argparse.Namespace) -> None:
    """Fused against dense row blocks, float32, on a shorter input."""
    print(f"\nfused − rows, float32, {given.check} tokens: largest difference of any head")
    model = make_model(make_network(given, torch.float32))
    batch, annotated = make_batch(given.check, given.device)
    compare(study(model, batch, annotated, "fused"), study(model, batch, annotated, "rows"))
    with torch.no_grad():
        plain = model.forward(batch, logits=False)[0]
    fused = model.forward_fused(batch, lambda _: None, logits=False)[0]
    print(f"  network's own output       {float((fused - plain).abs().max()):.1e}")


def sweep(model: Model, batch: Batch) -> None:
    """The kernel of one layer in several launches, and against the plain pass."""
    from headscope.observe.fused_kernel import sum_on_gpu

    texts: list[TextAttention] = []

    def keep(layer: PlainAttention | PackedAttention) -> None:
        if not texts and isinstance(layer, PlainAttention):
            texts.append(layer.texts[0])

    model.forward_fused(batch, keep, logits=False)
    text, content = (
        texts[0],
        torch.ones(batch.ids.shape[1], dtype=torch.bool, device=batch.ids.device),
    )
    content[0] = False
    weights = torch.rand_like(text.lse)
    print("\none layer's pass over all pairs, by launch")
    for launch in LAUNCHES:
        try:
            seconds, _ = measure(lambda: sum_on_gpu(text, content, weights, **launch), 3, "cuda")  # noqa: B023
            print(
                f"  {' '.join(f'{k}={v}' for k, v in launch.items()):56s} {seconds * 1e3:6.2f} ms"
            )
        except Exception as error:  # a launch may ask for more than the chip has
            print(f"  {launch} {type(error).__name__}: {str(error)[:300]}")
    part = replace(text, query=text.query[:, :4096], key=text.key[:, :4096], lse=text.lse[:, :4096])
    head = content[:4096], weights[:, :4096]
    _print_gap(sum_on_gpu(part, *head), sum_in_blocks(part, *head))


def _print_gap(one: PassSums, other: PassSums) -> None:
    def gap(left: Tensor, right: Tensor) -> str:
        return f"{float(((left - right).abs() / right.abs().clamp(min=1e-3)).max()):.1e}"

    names = ("columns", "scores", "distance")
    shown = ", ".join(f"{name} {gap(getattr(one, name), getattr(other, name))}" for name in names)
    same = bool((one.apart.query == other.apart.query).all())
    print(f"  kernel − plain pass on the same numbers, 4,096 tokens: {shown}, same pair {same}")


def profile(run: Callable[[], Any]) -> None:
    """The operations that take most of the GPU's time."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as record

    with record(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
        run()
        torch.cuda.synchronize()
    table = found.key_averages().table(sort_by="self_cuda_time_total", row_limit=22)
    print("\n".join(line[:55] + line[-110:] for line in table.splitlines()))


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser()
    for name, default in {
        "tokens": 32768, "check": 2048, "layers": 30, "heads": 9, "key-heads": 3, "width": 576,
    }.items():  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--sweep", action="store_true", help="try several launches of the kernel")
    parser.add_argument("--profile", action="store_true", help="where the time goes")
    parser.add_argument("--rows", action="store_true", help="row blocks at full length as well")
    given = parser.parse_args()
    network = make_network(given, getattr(torch, given.dtype))
    batch, annotated = make_batch(given.tokens, given.device)
    name = torch.cuda.get_device_name() if given.device == "cuda" else given.device
    print(f"{name}, torch {torch.__version__}: {given.layers} layers × {given.heads} heads, "
          f"{given.tokens:,} tokens, {given.dtype}")  # fmt: skip
    network.set_attn_implementation("sdpa")
    with torch.no_grad():
        plain = measure(lambda: network.model(batch.ids, use_cache=False)[0], 5, given.device)
    model = make_model(network)
    show("plain forward (sdpa)", plain, plain)
    show("fused forward", plain, measure(
        lambda: model.forward_fused(batch, lambda _: None, logits=False), 3, given.device,
    ))  # fmt: skip
    show("fused, all statistics", plain, measure(
        lambda: study(model, batch, annotated, "fused"), 5, given.device))  # fmt: skip
    check(given)
    if given.sweep:
        sweep(model, batch)
    if given.rows:
        show("row blocks, all statistics", plain, measure(
            lambda: study(model, batch, annotated, "rows"), 1, given.device, warm=False,
        ))  # fmt: skip
    if given.profile:
        profile(lambda: study(model, batch, annotated, "fused"))


if __name__ == "__main__":
    main()
