"""Run inputs through a model, batch by batch, and show metrics what they ask for.

How many tokens a batch may have: what fits, and half of it when the memory runs out. By which path
the layers of a batch are looked at:

```
  tokens of the longest input      path    what the model gives
  up to DENSE_TOKENS               dense   whole matrices
  more, plain attention            fused   queries, keys and the sum of every row
  more, any other body             rows    some query rows at a time
```

On a GPU plain attention is fused at every length, unless a metric asks for whole matrices.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeVar

import torch
from torch import Tensor

from headscope.errors import ModelError, RunError
from headscope.metrics.metric import Metric, Sums
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
from headscope.model.loading.memory import free_on_gpu, is_out_of_memory
from headscope.model.loading.network import evaluating
from headscope.model.model import Model
from headscope.model.writes import Reading, norms_of
from headscope.observe.batch import AnnotatedBatch, Columns, Cut
from headscope.observe.layer import BlockLayer, Layer
from headscope.observe.packed import pack_layer

log = logging.getLogger("headscope")
Result = TypeVar("Result")

HOST = torch.device("cpu")
CPU_TOKENS = 1024  # a layer's weights then stay in the cache of a CPU core
# On a GPU: with fewer tokens it waits for Python to launch the next operation, and seen on an H200
# also with 65,536. More than MOST would make the shards too large that batches are cut from.
LEAST, MOST = 1024, 262144
SENTENCE = 64  # tokens; the square of it is what a query's row costs at most in a usual corpus
PACKED_ROW = 4  # numbers of a row that are left where weights are never held
SHARE = 0.25  # of the free memory; the rest is for the network's own activations and fragments
ENOUGH = 12 * 2**30  # bytes that keep any GPU busy; more would only take memory from others
MATRICES = 2**31  # bytes of a batch's matrices where those of all layers are held together

PathChoice = AttentionPath | Literal["auto"]
PATHS: tuple[AttentionPath, ...] = ("dense", "rows", "fused")
DENSE_TOKENS = 1024  # up to here whole matrices are small, and anything can be asked of them

Show = Callable[[Layer], None]

_lowered: dict[str, int] = {}  # by model: what has proved too much once is not tried again


@dataclass(frozen=True)
class Allowance:
    """A number of tokens per batch that is halved until the work fits into memory."""

    model: str
    tokens: int

    def use(self, work: Callable[[int], Result]) -> Result:
        """Do the work with as many tokens per batch as fit; from the start after each halving."""
        tokens = min(self.tokens, _lowered.get(self.model, self.tokens))
        while True:
            try:
                return work(tokens)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                if tokens <= 1:
                    raise ModelError(
                        f"{self.model} does not fit into the memory of the device even with one "
                        "input at a time; use a smaller model, fewer bits "
                        "(--dtype, --quantization), several devices (--device-map) or the CPU."
                    ) from error
                tokens //= 2
                _say_once(self.model, tokens)
            if torch.cuda.is_available():
                torch.cuda.empty_cache()


def _say_once(model: str, tokens: int) -> None:
    if model not in _lowered:
        log.warning(
            "The memory of the device ran out: batches of %s are halved to %d tokens, and again if "
            "need be. Results do not change; --batch-tokens sets another number.",
            model,
            tokens,
        )
    _lowered[model] = tokens


def default_batch_tokens(model: Model) -> int:
    """As many tokens per batch as the free memory of the device allows."""
    if model.device.type != "cuda":
        return CPU_TOKENS
    free = free_on_gpu(model.device)
    row = PACKED_ROW if is_packed(model) else SENTENCE
    width, size = model.network.config.get_text_config().hidden_size, model.network.dtype.itemsize
    return fitting_tokens(free, heads=model.heads, width=width, row=row, size=size)


def fitting_tokens(free: int, *, heads: int, width: int, row: int = SENTENCE, size: int = 4) -> int:
    """A power of two of tokens whose activations and weights fit into a share of so many bytes.

    Never fewer than LEAST, nor more than MOST. A token has a row of weights in every head, of which
    about ten copies of four bytes live at once, and some thirty vectors of the network's width,
    whose numbers have `size` bytes.
    """
    token_bytes = 4 * 10 * heads * row + size * 30 * width
    tokens = max(LEAST, min(MOST, min(int(SHARE * free), ENOUGH) // token_bytes))
    return 1 << (tokens.bit_length() - 1)


def tokens_of_matrices(model: Model, longest: int) -> int:
    """How many tokens a batch may have whose matrices of all layers are held together."""
    heads = len(model.stacks[0].attending) * model.heads
    return max(longest, MATRICES // (4 * heads * max(longest, 1)))


def observe(
    model: Model,
    columns: Columns,
    metrics: Sequence[Metric],
    batch_tokens: int,
    choice: PathChoice = "dense",
    reading: Reading = "raw",
) -> dict[str, Sums]:
    """The sums of all metrics by name after some inputs; no weights outlive their layer.

    `choice` says by which path layers are looked at, `reading` how their weights are read.
    """

    def see_inputs(tokens: int) -> dict[str, Sums]:
        with torch.inference_mode(mode=False):  # metrics of gradients add to them outside of it
            sums = {metric.name: on_device(metric.zero(), model.device) for metric in metrics}
        for rows in model.buckets(columns.lengths.tolist(), tokens):
            cut = columns.cut(rows, pad=model.pad, is_causal=model.is_causal)
            _see_batch(model, cut.to(model.device), metrics, sums, choice, reading)
        shrunk = {metric.name: metric.shrink(sums[metric.name]) for metric in metrics}
        return {name: on_device(of_metric, HOST) for name, of_metric in shrunk.items()}

    if any(metric.needs_matrices for metric in metrics):
        longest = int(columns.lengths.max(initial=1))
        batch_tokens = min(batch_tokens, tokens_of_matrices(model, longest))
    with torch.inference_mode(), evaluating(model.network):
        return Allowance(model.name, batch_tokens).use(see_inputs)


def on_device(sums: Sums, device: torch.device) -> Sums:
    """The sums where the model is, or on the host, where they are written."""
    return {name: values.to(device) for name, values in sums.items()}


def _see_batch(
    model: Model,
    cut: Cut,
    metrics: Sequence[Metric],
    sums: dict[str, Sums],
    choice: PathChoice,
    reading: Reading,
) -> None:
    for metric in metrics:
        metric.see_text(sums[metric.name], cut.annotated)
    for metric in metrics:
        metric.see_model(sums[metric.name], model, cut.batch, cut.annotated)
    of_layers = [metric for metric in metrics if metric.sees_layers]
    if not of_layers:
        return
    needs_matrices = [metric for metric in of_layers if metric.needs_matrices]
    tokens = cut.batch.ids.shape[1]
    path = choose_path(model, tokens, choice, needs_matrices=bool(needs_matrices), reading=reading)
    if path != "dense" and needs_matrices:
        raise RunError(
            f"{needs_matrices[0].name} needs whole attention matrices, which inputs of {tokens:,} "
            "tokens do not get; leave it out, or set the option attention=dense if there is "
            "memory for them."
        )

    def show(layer: Layer) -> None:
        for metric in of_layers:
            metric.see_layer(sums[metric.name], layer)

    show_layers(model, cut.batch, cut.annotated, path, show, reading)


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
