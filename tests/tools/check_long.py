"""Hold rows and fused attention against whole matrices on networks of your own.

python -m tests.tools.check_long MODEL [MODEL …]

Prints for each the largest difference of any value, relative to values above one, and of the
output; fails above 1e-5. Two texts of different length, so that one is padded.
"""

import sys

import numpy as np
import torch
from torch import Tensor

import headscope as hs
from headscope.engine.forward import show_layers
from headscope.model.capture.modes import AttentionPath
from headscope.model.inputs.tokens import Tokens
from headscope.model.model import Model
from headscope.observe import Columns, Example, Layer, separation

LIMIT = 1e-5
WAYS: tuple[AttentionPath, ...] = ("rows", "fused")
TEXT = (
    "The old gardener remembers a curious telescope on the mountain, and the teacher who painted "
    "every window of the quiet house understands why nobody follows him up there any more. "
)


def make_columns(model: Model, tokens: int) -> Columns:
    """Two texts with random tags and arcs, one of about so many tokens, one of half as many."""
    rng = np.random.default_rng(0)
    once = len(encode(model, TEXT))
    examples = []
    for number, length in enumerate((tokens, tokens // 2)):
        encoded = encode(model, TEXT * max(1, length // once))
        size = len(encoded)
        null = [place == 0 for place in range(size)] if model.is_causal else encoded.special
        near = np.clip(np.arange(size) + rng.integers(-6, 7, size), 0, size - 1)
        arcs = [(int(head), token) for token, head in enumerate(near) if head != token]
        examples.append(Example(number, encoded, null, {"tag": [0] * size}, arcs))
    return Columns.of(examples)


def encode(model: Model, text: str) -> Tokens:
    """As vig2019 does it: no delimiters for a causal model."""
    return model.encode(text, special=not model.is_causal)


def values(layer: Layer, on_arcs: Tensor, distance: Tensor, columns: Tensor) -> dict[str, Tensor]:
    """What metrics make of a layer, one value for each input and head, or more."""
    total = layer.total.double()[..., None]
    return {
        "alignment": on_arcs.double() / total,
        "distance": distance.double()[..., None] / total,
        "received": columns / total,
        "paid": layer.rows,
        "null": layer.to_null,
        "entropy": layer.entropy_sum / layer.counted.sum(-1).clamp(min=1),
        "largest": layer.largest(with_self=True),
        "apart": layer.largest(with_self=False),
    }


def dense_values(layer: Layer) -> dict[str, Tensor]:
    """The same from whole matrices, long sums in float64."""
    tokens = layer.batch.mask.shape[1]
    kept = next(layer.blocks()).kept.double()
    far = separation(0, tokens, tokens, kept.device).double()
    return values(layer, layer.on_arcs, (kept * far).sum((-2, -1)), kept.sum(-2))


def gap(found: Tensor, wanted: Tensor) -> float:
    """The largest difference, relative to values above one."""
    found, wanted = found.double(), wanted.double()
    return float(((found - wanted).abs() / wanted.abs().clamp(min=1)).max())


def check(name: str, tokens: int = 400) -> float:
    """Print and return the largest difference of a model."""
    model = hs.load(name, device="cpu")
    tokens = min(tokens, model.max_length or tokens)
    cut = make_columns(model, tokens).cut([0, 1], pad=model.pad, is_causal=model.is_causal)
    wanted: list[dict[str, Tensor]] = []

    def keep(layer: Layer) -> None:
        wanted.append(dense_values(layer))

    show_layers(model, cut.batch, cut.annotated, "dense", keep)
    real = cut.annotated.mask[..., None]
    output = model.forward(cut.batch, logits=False)[0].detach() * real
    worst = 0.0
    for way in WAYS:
        gaps: dict[str, float] = dict.fromkeys(wanted[0], 0.0)

        def compare(layer: Layer, gaps: dict[str, float] = gaps) -> None:
            mine = values(layer, layer.on_arcs, layer.distance, layer.columns)
            for key, value in wanted[layer.index].items():
                gaps[key] = max(gaps[key], gap(mine[key], value))

        show_layers(model, cut.batch, cut.annotated, way, compare)
        print(f"{name} {way}: " + ", ".join(f"{key} {value:.1e}" for key, value in gaps.items()))
        worst = max(worst, *gaps.values())
    fused = model.forward_fused(cut.batch, lambda _: None, logits=False)[0]
    close = gap(fused * cut.annotated.mask[..., None], output)
    print(f"{name} output: {close:.1e}; {cut.batch.lengths} tokens, {len(wanted)} layers")
    return worst


if __name__ == "__main__":
    with torch.inference_mode():
        found = [check(name) for name in sys.argv[1:]]
    sys.exit(max(found) > LIMIT)
