"""Run a batch through a model and show its layers to metrics, in one of three ways.

```
  tokens of the longest input      way
  up to DENSE_TOKENS               dense   whole matrices
  more, plain attention            fused   never the matrix
  more, any other body             rows    blocks of query rows
```

On a GPU plain attention is fused at every length, unless a metric asks for whole matrices.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from headscope.errors import RunError
from headscope.model.attention import (
    LayerAttention,
    Look,
    PackedAttention,
    PlainAttention,
    RowAttention,
)
from headscope.model.capture.modes import Mode, block_rows
from headscope.model.inputs.batch import Batch
from headscope.model.model import Model
from headscope.model.writes import Reading, norm_weighted, norms_of
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.dense import DenseLayer
from headscope.observe.fused import fuse_layer
from headscope.observe.layer import Layer
from headscope.observe.rows import RowsBuilder

Attention = Mode | Literal["auto"]
WAYS: tuple[Mode, ...] = ("dense", "rows", "fused")
DENSE_TOKENS = 1024  # up to here whole matrices are small, and anything can be asked of them

Show = Callable[[Layer], None]


def choose_way(
    model: Model,
    tokens: int,
    choice: Attention,
    *,
    needs_matrices: bool = False,
    reading: Reading = "raw",
) -> Mode:
    """The way for a batch whose longest input has this many tokens."""
    if choice != "auto":
        return choice
    can_pack = not needs_matrices and reading == "raw" and is_packed(model)
    if tokens > DENSE_TOKENS or can_pack:
        return long_way(model, reading)
    return "dense"


def is_packed(model: Model) -> bool:
    """Whether a GPU takes all texts of a batch at once; windows of attention are too narrow."""
    config = model.network.config.get_text_config()
    has_window = getattr(config, "sliding_window", None) is not None
    return model.device.type == "cuda" and not has_window and "fused" in model.modes


def long_way(model: Model, reading: Reading = "raw") -> Mode:
    """The way for inputs of more than DENSE_TOKENS tokens."""
    best: tuple[Mode, ...] = ("fused", "rows", "dense") if reading == "raw" else ("rows", "dense")
    return next(way for way in best if way in model.modes)


def check_attention(model: Model, choice: str | None) -> None:
    """Refuse a way that is unknown, or wrong for the model."""
    if choice is None or choice == "dense":
        return
    if choice not in WAYS:
        raise RunError(
            f"There is no attention={choice}; choose one of {', '.join(WAYS)}, or leave it out."
        )
    if choice not in model.modes:
        raise RunError(
            f"{model.name} cannot run with attention={choice}: {model.modes.refused[choice]}; "
            "leave the option out."
        )


def check_reading(model: Model, reading: str, choice: str | None) -> None:
    """Refuse to weight attention by values where they, or their projection, are not seen."""
    if reading == "raw":
        return
    reason = model.stacks[0].no_norms
    if reason is not None:
        raise RunError(
            f"{model.name} cannot run with weights={reading}: {reason}; leave the option out."
        )
    if choice == "fused":
        raise RunError(
            f"weights={reading} needs the weights of whole rows, which attention=fused never has; "
            "set attention=rows, or leave it out."
        )


def show_layers(
    model: Model,
    batch: Batch,
    annotated: AnnotatedBatch,
    way: Mode,
    show: Show,
    reading: Reading = "raw",
) -> None:
    """Run the model over a batch and show every layer of its first stack, in order.

    Read as "norm", weights are those of `headscope.model.writes`; as "both", whole matrices come
    with the norms beside them.
    """
    places = {layer: place for place, layer in enumerate(model.stacks[0].attending)}
    if way == "dense":

        def whole(seen: LayerAttention) -> None:
            with full_precision():
                show(_dense(model, seen, places[seen.layer], annotated, reading))

        model.forward(batch, whole, logits=False)
    elif way == "fused":

        def fuse(seen: PlainAttention | PackedAttention) -> None:
            with full_precision():
                show(fuse_layer(places[seen.layer], seen, annotated))

        laid = batch.is_padded and is_packed(model) and model.lays_end_to_end
        model.forward_fused(batch, fuse, logits=False, end_to_end=laid)
    else:
        _show_rows(model, batch, annotated, places, show, reading)


def _dense(
    model: Model, seen: LayerAttention, index: int, annotated: AnnotatedBatch, reading: Reading
) -> DenseLayer:
    if reading == "raw":
        return DenseLayer(index, seen.weights, annotated)
    norms = norms_of(model.plan, seen)
    if reading == "both":
        return DenseLayer(index, seen.weights, annotated, norms)
    return DenseLayer(index, norm_weighted(seen.weights, norms), annotated)


def _show_rows(
    model: Model,
    batch: Batch,
    annotated: AnnotatedBatch,
    places: dict[int, int],
    show: Show,
    reading: Reading,
) -> None:
    builder, norms = RowsBuilder(annotated), None

    def add(seen: RowAttention) -> None:
        nonlocal builder, norms
        with full_precision():
            if reading == "norm" and seen.start == 0:
                norms = norms_of(model.plan, seen)
            builder.add(_read(seen.weights, norms), seen.start)
            if seen.stop == seen.queries:
                look = partial(_look, seen.look, norms)
                show(builder.finish(places[seen.layer], look))
                builder = RowsBuilder(annotated)

    count, tokens = batch.ids.shape
    block = block_rows(count * model.heads, tokens, batch.ids.device)
    model.forward_rows(batch, add, block, logits=False)


def _read(weights: Tensor, norms: Tensor | None) -> Tensor:
    return weights if norms is None else norm_weighted(weights, norms)


def _look(look: Look, norms: Tensor | None, start: int, stop: int) -> Tensor:
    return _read(look(start, stop), norms)


@contextmanager
def full_precision() -> Iterator[None]:
    """Matrix products of statistics in true float32, whatever the network computes in.

    Within the block no product is rounded to the ten bits of TF32.
    """
    before = torch.get_float32_matmul_precision()
    if before == "highest":
        yield
        return
    torch.set_float32_matmul_precision("highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
