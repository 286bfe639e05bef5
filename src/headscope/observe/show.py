"""Run a batch through a model and show its layers to metrics.

```
  tokens of the longest input      path    what the model gives
  up to DENSE_TOKENS               dense   whole matrices
  more, plain attention            fused   queries, keys and the sum of every row
  more, any other body             rows    some query rows at a time
```

On a GPU plain attention is fused at every length, unless a metric asks for whole matrices.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import torch
from torch import Tensor

from headscope.errors import RunError
from headscope.model.attention import (
    LayerAttention,
    PackedAttention,
    PlainAttention,
    RowsOf,
    TextAttention,
)
from headscope.model.capture.dense import Observer
from headscope.model.capture.modes import AttentionPath, block_rows
from headscope.model.inputs.batch import Batch
from headscope.model.model import Model
from headscope.model.writes import Reading, norms_of
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.layer import BlockLayer, Layer
from headscope.observe.packed import pack_layer

PathChoice = AttentionPath | Literal["auto"]
PATHS: tuple[AttentionPath, ...] = ("dense", "rows", "fused")
DENSE_TOKENS = 1024  # up to here whole matrices are small, and anything can be asked of them

Show = Callable[[Layer], None]


def choose_path(
    model: Model,
    tokens: int,
    choice: PathChoice,
    *,
    needs_matrices: bool = False,
    reading: Reading = "raw",
) -> AttentionPath:
    """The path for a batch whose longest input has this many tokens."""
    if choice != "auto":
        return choice
    can_pack = not needs_matrices and reading == "raw" and is_packed(model)
    if tokens > DENSE_TOKENS or can_pack:
        return long_path(model, reading)
    return "dense"


def is_packed(model: Model) -> bool:
    """Whether a GPU takes all texts of a batch at once; windows of attention are too narrow."""
    config = model.network.config.get_text_config()
    has_window = getattr(config, "sliding_window", None) is not None
    return model.device.type == "cuda" and not has_window and "fused" in model.modes


def long_path(model: Model, reading: Reading = "raw") -> AttentionPath:
    """The path for inputs of more than DENSE_TOKENS tokens."""
    paths: tuple[AttentionPath, ...] = ("fused", "rows", "dense")
    if reading != "raw":
        paths = ("rows", "dense")
    return next(path for path in paths if path in model.modes)


def check_attention(model: Model, choice: str | None) -> None:
    """Refuse a path that is unknown, or wrong for the model."""
    if choice is None or choice == "dense":
        return
    if choice not in PATHS:
        raise RunError(
            f"There is no attention={choice}; choose one of {', '.join(PATHS)}, or leave it out."
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
    path: AttentionPath,
    show: Show,
    reading: Reading = "raw",
    see: Observer | None = None,
) -> None:
    """Run the model over a batch and show every layer of its first stack, in order.

    Read as "norm", weights are those of `headscope.model.writes`; as "both", whole matrices come
    with the norms beside them. `see` is shown queries, keys and values as well, which the fused
    path has not.
    """
    places = {layer: index for index, layer in enumerate(model.stacks[0].attending)}
    texts, tokens = batch.ids.shape
    block = block_rows(texts * model.heads, tokens, batch.ids.device)

    def show_weights(seen: LayerAttention) -> None:
        if see is not None:
            see(seen)
        if not seen.is_last:  # the layer is shown once, when the network has all its rows
            return
        with full_precision():
            norms = None if reading == "raw" else norms_of(model.plan, seen)
            rows = tokens if path == "dense" else block
            layer = BlockLayer(places[seen.layer], annotated, seen.look, rows, norms)
            show(layer.normed if reading == "norm" else layer)

    def show_parts(seen: PlainAttention | PackedAttention) -> None:
        with full_precision():
            if isinstance(seen, PackedAttention):
                show(pack_layer(places[seen.layer], seen, annotated))
            else:
                rows_of = rebuild_rows(seen.texts, batch.spans(), tokens)
                show(BlockLayer(places[seen.layer], annotated, rows_of, block))

    if path == "dense":
        model.forward(batch, show_weights, logits=False)
    elif path == "rows":
        model.forward(batch, show_weights, block=block, logits=False)
    else:
        end_to_end = batch.is_padded and is_packed(model) and model.lays_end_to_end
        model.forward_fused(batch, show_parts, logits=False, end_to_end=end_to_end)


def rebuild_rows(texts: Sequence[TextAttention], spans: Sequence[slice], tokens: int) -> RowsOf:
    """The weights of some columns of the batch as queries; padded rows are zero."""
    if len(texts) == 1 and spans[0] == slice(0, tokens):
        return lambda start, stop: texts[0].weights(start, min(stop, tokens))[None]

    def rows_of(start: int, stop: int) -> Tensor:
        stop = min(stop, tokens)
        rows = texts[0].lse.new_zeros(len(texts), len(texts[0].query), stop - start, tokens)
        for row, (text, span) in enumerate(zip(texts, spans, strict=True)):
            low, high = max(start, span.start), min(stop, span.stop)
            if low < high:
                weights = text.weights(low - span.start, high - span.start)
                rows[row, :, low - start : high - start, span] = weights
        return rows

    return rows_of


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
