"""Inputs of every length on a GPU: the statistics of vig2019 beside the plain forward pass.

python -m benchmarks.gpu_lengths                                  every length, then large shapes
python -m benchmarks.gpu_lengths --device cpu --lengths 16 40 --tokens 200 --shapes tiny
python -m benchmarks.gpu_lengths --check                          values beside those of the CPU
python -m benchmarks.gpu_lengths --profile                        what the GPU does for long inputs

Needs torch and transformers only. Weights and texts are random; what is measured does not depend on
them. Inputs are in memory already: what is compared is the network alone with the network and all
sums of its layers.
"""

import argparse
from collections import Counter
from collections.abc import Sequence
from itertools import product

import numpy as np
import torch
from transformers import (
    AutoTokenizer,
    GPT2Config,
    GPT2Model,
    LlamaConfig,
    LlamaModel,
    MistralConfig,
    MistralModel,
    PreTrainedModel,
)

from benchmarks.absent import stand_in

MISSING = stand_in()

from benchmarks.long_inputs import RELATIONS, TAGS, TOKENIZER, make_metrics, measure  # noqa: E402
from headscope.engine import default_batch_tokens, observe  # noqa: E402
from headscope.metrics import Grid, Sums  # noqa: E402
from headscope.model.model import Model  # noqa: E402
from headscope.observe import Columns  # noqa: E402

LENGTHS = (16, 64, 256, 1024, 4096, 16384, 32768)
SHAPES = ("gpt2", "llama-8b")
PROFILED = 6  # kernels that are named
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def make_network(shape: str, longest: int) -> PreTrainedModel:
    if shape == "gpt2":
        return GPT2Model(GPT2Config(n_positions=longest, bos_token_id=0, eos_token_id=0))
    sizes = {
        "tiny": (32, 64, 2, 4, 2),
        "tiny-window": (32, 64, 2, 4, 2),
        "llama-135m": (576, 1536, 30, 9, 3),
        "llama-8b": (4096, 14336, 32, 32, 8),
    }
    width, middle, layers, heads, key_heads = sizes[shape]
    given = {
        "vocab_size": 32000, "hidden_size": width, "intermediate_size": middle,
        "num_hidden_layers": layers, "num_attention_heads": heads,
        "num_key_value_heads": key_heads, "max_position_embeddings": longest,
        "bos_token_id": 1, "eos_token_id": 2, "initializer_range": 0.05,
    }  # fmt: skip
    if shape == "tiny-window":
        return MistralModel(MistralConfig(**given, sliding_window=24))
    return LlamaModel(LlamaConfig(**given))


def make_model(shape: str, longest: int, dtype: torch.dtype, device: str) -> Model:
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    with torch.device(device):
        network = make_network(shape, longest)
    torch.set_default_dtype(before)
    return Model(network.eval(), AutoTokenizer.from_pretrained(TOKENIZER), name=shape)


def make_columns(count: int, tokens: int, *, ragged: bool = False) -> Columns:
    """Inputs of random tokens with random tags, relations and short arcs."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(tokens // 2, tokens + 1, count) if ragged else np.full(count, tokens)
    total = int(lengths.sum())
    starts = np.cumsum(lengths) - lengths
    row = np.repeat(np.arange(count), lengths)
    within = np.arange(total) - starts[row]
    parent = np.clip(within + rng.integers(-8, 9, total), 0, lengths[row] - 1)
    arcs = np.stack([row, parent, within], 1)[parent != within]
    arcs = arcs[np.lexsort(arcs.T[::-1])]  # in order, as those of a study are
    return Columns(
        np.arange(count), rng.integers(0, 32, count), lengths, rng.integers(10, 4000, total),
        np.zeros(total, int), within == 0,
        {"tag": rng.integers(0, TAGS, total), "deprel": rng.integers(0, RELATIONS, total)},
        arcs,
    )  # fmt: skip


def study(model: Model, columns: Columns, batch_tokens: int) -> dict[str, Sums]:
    """The sums of all metrics after the inputs."""
    model.network.set_attn_implementation("eager")
    metrics = make_metrics(Grid(model.stacks[0].attending, model.heads))
    return observe(model, columns, metrics, batch_tokens, "auto")


def forward(model: Model, columns: Columns, batch_tokens: int) -> None:
    """The network alone over the same batches."""
    model.network.set_attn_implementation("sdpa")
    with torch.inference_mode():
        for rows in model.buckets(columns.lengths.tolist(), batch_tokens):
            cut = columns.cut(rows, pad=model.pad, is_causal=True).to(model.device)
            model.network(
                input_ids=cut.batch.ids, attention_mask=cut.batch.mask.long(), use_cache=False
            )


def print_line(name: str, model: Model, columns: Columns, device: str, tokens: int | None) -> None:
    batch_tokens = tokens or max(default_batch_tokens(model), int(columns.lengths.max()))
    plain = measure(lambda: forward(model, columns, batch_tokens), 2, device)
    found = measure(lambda: study(model, columns, batch_tokens), 2, device)
    print(
        f"{name:34s}{batch_tokens:8d}{plain[0]:9.3f} s{plain[1]:7.1f} GB{found[0]:9.3f} s"
        f"{found[1]:7.1f} GB{found[0] / plain[0]:7.2f} ×",
        flush=True,
    )


def print_lengths(lengths: Sequence[int], options: argparse.Namespace) -> None:
    for dtype in options.dtypes:
        for length in lengths:
            model = make_model("llama-135m" if options.device == "cuda" else "tiny", length,
                               DTYPES[dtype], options.device)  # fmt: skip
            count = max(1, options.tokens // length)
            name = f"{count} × {length} tokens, 135M, {dtype}"
            print_line(name, model, make_columns(count, length), options.device, None)


def print_shapes(options: argparse.Namespace) -> None:
    counts = {"gpt2": 2048, "llama-8b": 512, "tiny": 8, "llama-135m": 512}
    for shape in options.shapes:
        model = make_model(shape, 512, torch.bfloat16, options.device)
        name = f"{counts[shape]} × 512 tokens, {shape}, bfloat16"
        print_line(name, model, make_columns(counts[shape], 512), options.device, None)
        del model
        if options.device == "cuda":
            torch.cuda.empty_cache()


def profile(tokens: int, device: str) -> None:
    """Milliseconds that each kernel keeps the GPU busy for one input, study or not."""
    model = make_model("llama-135m", tokens, torch.bfloat16, device)
    columns = make_columns(1, tokens)
    for name, run in {"forward": forward, "study": study}.items():
        run(model, columns, tokens)
        with torch.profiler.profile() as seen:
            run(model, columns, tokens)
            torch.cuda.synchronize()
        spent: Counter[str] = Counter()
        for event in seen.events() or ():
            if event.device_type.name == "CUDA":
                spent[event.name] += event.device_time_total / 1000
        print(f"{name}: {tokens} tokens keep the GPU busy for {spent.total():.0f} ms")
        for kernel, busy in spent.most_common(PROFILED):
            print(f"{busy:9.1f} ms  {kernel[:80]}")


def check(device: str) -> None:
    """Sums of the device beside those of the CPU, in true float32, then in bfloat16."""
    torch.set_float32_matmul_precision("highest")
    shapes = ("tiny", "tiny-window")
    for shape, length, ragged in product(shapes, (16, 60, 200, 700), (True, False)):
        columns = make_columns(12, length, ragged=ragged)
        models = [make_model(shape, 1024, torch.float32, place) for place in ("cpu", device)]
        models[1].network.load_state_dict(models[0].network.state_dict())
        one, other = (values(study(model, columns, 4096)) for model in models)
        halved = make_model(shape, 1024, torch.bfloat16, device)
        halved.network.load_state_dict(models[0].network.state_dict())
        rough = values(study(halved, columns, 4096))
        gaps = [max(_gap(one[name], found[name]) for name in one) for found in (other, rough)]
        kind = "at most" if ragged else "all of"
        seen = ", a window of 24" if shape == "tiny-window" else ""
        print(f"{kind}{length:5d} tokens{seen}: float32 differs by {gaps[0]:.1e}, "
              f"bfloat16 by {gaps[1]:.1e}")  # fmt: skip


def values(sums: dict[str, Sums]) -> dict[str, np.ndarray]:
    """The ratios of every head, and the corners."""
    arrays = {}
    for name, parts in sums.items():
        if "numerator" in parts:
            ratio = parts["numerator"].sum(0) / parts["denominator"].sum(0).clamp(min=1e-9)
            arrays[name] = ratio.numpy()
    return arrays | {"corner": sums["variability"]["corner"].numpy()}


def _gap(one: np.ndarray, other: np.ndarray) -> float:
    return float((np.abs(one - other) / np.maximum(1, np.abs(one))).max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--lengths", type=int, nargs="*", default=LENGTHS)
    parser.add_argument("--shapes", nargs="*", default=SHAPES)
    parser.add_argument("--dtypes", nargs="*", default=["bfloat16"])
    parser.add_argument("--tokens", type=int, default=2**18, help="of all inputs of a length")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    name = torch.cuda.get_device_name() if options.device == "cuda" else options.device
    print(f"{name}, torch {torch.__version__}, stand-ins for {', '.join(MISSING) or 'nothing'}")
    if options.check:
        check(options.device)
        return
    torch.set_float32_matmul_precision("high")
    if options.profile:
        profile(max(options.lengths), options.device)
        return
    print(f"{'inputs':34s}{'batch':>8s}{'forward':>11s}{'':10s}{'study':>11s}{'':10s}{'ratio':>9s}")
    print_lengths(options.lengths, options)
    print_shapes(options)


if __name__ == "__main__":
    main()
