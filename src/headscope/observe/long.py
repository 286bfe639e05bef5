"""Layers of long inputs: which way they are looked at, and how metrics get to see them.

```
  tokens of the longest input      way
  up to DENSE_TOKENS               dense   whole matrices
  more, plain attention            fused   never the matrix
  more, any other body             rows    blocks of query rows
```
"""

from collections.abc import Callable, Sequence
from typing import Literal, cast

from headscope.errors import RunError
from headscope.metrics.metric import Metric
from headscope.model.attention import PlainAttention, RowAttention
from headscope.model.batch import Batch
from headscope.model.capture.kernels import block_rows
from headscope.model.capture.modes import Mode
from headscope.model.model import Model
from headscope.observe.batch import AnnotatedBatch
from headscope.observe.fused import reduce_layer
from headscope.observe.layer import ObservedLayer
from headscope.observe.precision import full_precision
from headscope.observe.reduced import ReducedLayer
from headscope.observe.rows import GrowingLayer, sum_rows

Attention = Mode | Literal["auto"]
WAYS: tuple[Mode, ...] = ("dense", "rows", "fused")
DENSE_TOKENS = 1024  # up to here whole matrices are small, and anything can be asked of them

Show = Callable[[ObservedLayer], None]


def choose_way(model: Model, tokens: int, choice: Attention) -> Mode:
    """The way for a batch whose longest input has so many tokens."""
    if choice != "auto":
        return choice
    if tokens <= DENSE_TOKENS:
        return "dense"
    return long_way(model)


def long_way(model: Model) -> Mode:
    """The way for inputs of more than DENSE_TOKENS tokens."""
    best: tuple[Mode, ...] = ("fused", "rows", "dense")
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


def refuse_comparisons(metrics: Sequence[Metric], tokens: int) -> None:
    """Refuse metrics that need the matrices of all layers at once."""
    if metrics:
        raise RunError(
            f"{metrics[0].name} compares whole attention matrices, which inputs of {tokens:,} "
            "tokens do not get; leave it out, or set the option attention=dense if there is "
            "memory for them."
        )


def show_long(model: Model, batch: Batch, annotated: AnnotatedBatch, way: Mode, show: Show) -> None:
    """Run the model over a batch and show every layer's sums, in order."""
    places = {layer: place for place, layer in enumerate(model.stacks[0].attending)}
    if way == "fused":

        def reduce(attention: PlainAttention) -> None:
            with full_precision():
                show(_as_observed(reduce_layer(places[attention.layer], attention, annotated)))

        model.forward_fused(batch, reduce, logits=False)
        return
    growing = GrowingLayer(annotated)

    def add(block: RowAttention) -> None:
        nonlocal growing
        with full_precision():
            growing.add(sum_rows(block.weights, annotated, block.start), block.start)
            if block.stop == block.queries:
                show(_as_observed(growing.finish(places[block.layer], block.look)))
                growing = GrowingLayer(annotated)

    count, tokens = batch.ids.shape
    block = block_rows(count * model.heads, tokens, batch.ids.device)
    model.forward_rows(batch, add, block, logits=False)


def _as_observed(layer: ReducedLayer) -> ObservedLayer:
    """Metrics ask the same of both; what only matrices have is refused when it is asked for."""
    return cast(ObservedLayer, layer)
