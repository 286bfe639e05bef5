"""Run inputs through a model, batch by batch, and reduce every layer while the pass goes on.

How many tokens a batch may have: what fits, and half of it when the memory runs out.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import torch

from headscope.errors import ModelError
from headscope.metrics.metric import (
    BatchMetric,
    CondensingMetric,
    LayerMetric,
    MatrixMetric,
    Metric,
    ModelMetric,
    State,
    TextMetric,
    refuse_matrices,
)
from headscope.metrics.ratio import HeadRatio, MatrixRatio, RatioGroup
from headscope.model.loading.memory import free_on_gpu, is_out_of_memory
from headscope.model.loading.network import evaluating
from headscope.model.model import Model
from headscope.model.writes import Reading
from headscope.observe.dense import DenseLayer
from headscope.observe.inputs import Columns, Cut, Example, columns_of
from headscope.observe.layer import Layer
from headscope.observe.packed import places_of
from headscope.observe.show import Attention, choose_way, is_packed, show_layers

log = logging.getLogger("headscope")
Found = TypeVar("Found")

CPU_TOKENS = 1024  # a layer's weights then stay in the cache of a CPU core
# On a GPU: with fewer tokens it waits for Python to launch the next operation, and seen on an H200
# also with 65,536. More than MOST would make the shards too large that batches are cut from.
LEAST, MOST = 1024, 262144
SENTENCE = 64  # tokens; the square of it is what a query's row costs at most in a usual corpus
PACKED_ROW = 4  # numbers of a row that are left where weights are never held
SHARE = 0.25  # of the free memory; the rest is for the network's own activations and fragments
ENOUGH = 12 * 2**30  # bytes that keep any GPU busy; more would only take memory from others

_lowered: dict[str, int] = {}  # by model: what has proved too much once is not tried again


@dataclass(frozen=True)
class Allowance:
    """A number of tokens per batch that is halved until the work fits into memory."""

    model: str
    tokens: int

    def use(self, work: Callable[[int], Found]) -> Found:
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
    size = model.network.dtype.itemsize
    return fitting_tokens(free, heads=model.heads, width=_width(model), row=row, size=size)


def fitting_tokens(free: int, *, heads: int, width: int, row: int = SENTENCE, size: int = 4) -> int:
    """A power of two of tokens whose activations and weights fit into a share of so many bytes.

    Never fewer than LEAST, nor more than MOST.
    """
    each = _token_bytes(heads, width, row, size)
    tokens = max(LEAST, min(MOST, min(int(SHARE * free), ENOUGH) // each))
    return 1 << (tokens.bit_length() - 1)


def _token_bytes(heads: int, width: int, row: int, size: int) -> int:
    """A token has a row of weights in every head, of which about ten copies of four bytes live at
    once, and some thirty vectors of the network's width, whose numbers have `size` bytes.
    """
    return 4 * 10 * heads * row + size * 30 * width


def _width(model: Model) -> int:
    return model.network.config.get_text_config().hidden_size


def observe(
    model: Model,
    examples: Sequence[Example],
    metrics: Sequence[Metric],
    batch_tokens: int,
    choice: Attention = "dense",
    reading: Reading = "raw",
) -> dict[str, State]:
    """The states of all metrics after the examples; no weights outlive their layer.

    `choice` says how layers are looked at, `reading` how their weights are read; see
    `headscope.observe.show`.
    """
    columns = columns_of(examples)
    allowance = Allowance(model.name, batch_tokens)
    with torch.inference_mode(), evaluating(model.network):
        return allowance.use(
            lambda tokens: _observe(model, columns, metrics, tokens, choice, reading)
        )


def _observe(
    model: Model,
    columns: Columns,
    metrics: Sequence[Metric],
    batch_tokens: int,
    choice: Attention,
    reading: Reading,
) -> dict[str, State]:
    states = {metric.name: metric.zero(len(columns)) for metric in metrics}
    loop = _make_loop(metrics, states, model.device)
    # Nothing asks a GPU for a number before the end, which would leave it idle until the next batch
    # has been launched.
    for cut in _read_texts(model, columns, batch_tokens, loop):
        _observe_batch(model, cut.to(model.device), loop, choice, reading)
    loop.finish()
    if model.device.type == "cuda":
        torch.cuda.synchronize(model.device)
    for state in states.values():
        state.settle()
    return states


def _read_texts(model: Model, columns: Columns, batch_tokens: int, loop: "_Loop") -> Iterator[Cut]:
    """The batches on the host, after all that needs no network has been done with them."""
    packed, pad = is_packed(model), model.pad
    for rows in model.buckets(columns.lengths.tolist(), batch_tokens):
        cut = columns.cut(rows, pad=pad, is_causal=model.is_causal)
        for metric in loop.of_text:
            metric.update_text(loop.states[metric.name], cut.annotated)
        if packed:
            places_of(cut.annotated)
        yield cut


@dataclass(frozen=True)
class _Loop:
    """The metrics by what they look at, and their states; ratios of heads are added up together."""

    metrics: Sequence[Metric]
    states: Mapping[str, State]
    of_text: list[TextMetric]
    of_model: list[ModelMetric]
    of_layers: list[LayerMetric]
    of_matrices: list[MatrixMetric]
    of_batches: list[BatchMetric]
    ratios: RatioGroup | None

    @property
    def needs_matrices(self) -> bool:
        """Whether any metric asks for whole matrices."""
        of_ratios = any(isinstance(metric, MatrixRatio) for metric in self.metrics)
        return bool(self.of_matrices or self.of_batches or self.of_model or of_ratios)

    def finish(self) -> None:
        """Complete the states, as far as that can be done where they are."""
        if self.ratios is not None:
            self.ratios.finish(self.states)
        for metric in self.metrics:
            if isinstance(metric, CondensingMetric):
                metric.condense(self.states[metric.name])
            self.states[metric.name].fetch()

    def add_layer(self, layer: Layer) -> None:
        """Update whatever needs one layer."""
        if self.ratios is not None:
            self.ratios.update(layer)
        for metric in self.of_layers:
            metric.update_layer(self.states[metric.name], layer)
        if isinstance(layer, DenseLayer):
            for metric in self.of_matrices:
                metric.update_matrix(self.states[metric.name], layer)


def _make_loop(
    metrics: Sequence[Metric],
    states: Mapping[str, State],
    device: torch.device,
) -> _Loop:
    ratios = [metric for metric in metrics if isinstance(metric, HeadRatio | MatrixRatio)]
    others = [metric for metric in metrics if not isinstance(metric, HeadRatio | MatrixRatio)]
    return _Loop(
        metrics,
        states,
        [metric for metric in others if isinstance(metric, TextMetric)],
        [metric for metric in others if isinstance(metric, ModelMetric)],
        [metric for metric in others if isinstance(metric, LayerMetric)],
        [metric for metric in others if isinstance(metric, MatrixMetric)],
        [metric for metric in others if isinstance(metric, BatchMetric)],
        RatioGroup(ratios, device) if ratios else None,
    )


def _observe_batch(
    model: Model, cut: Cut, loop: _Loop, choice: Attention, reading: Reading
) -> None:
    batch, annotated = cut.batch, cut.annotated
    way = choose_way(
        model,
        batch.ids.shape[1],
        choice,
        needs_matrices=loop.needs_matrices,
        reading=reading,
    )
    if way != "dense":
        refuse_matrices(loop.metrics, batch.ids.shape[1])
    kept: list[DenseLayer] = []

    def show(layer: Layer) -> None:
        loop.add_layer(layer)
        if loop.of_batches and isinstance(layer, DenseLayer):
            kept.append(replace(layer))  # without the sums that it has computed for others

    for metric in loop.of_model:
        metric.update_model(loop.states[metric.name], model, batch, annotated)
    show_layers(model, batch, annotated, way, show, reading)
    for metric in loop.of_batches:
        metric.update_batch(loop.states[metric.name], kept)
