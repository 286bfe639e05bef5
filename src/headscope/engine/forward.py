"""Run inputs through a model, batch by batch, and reduce every layer while the pass goes on."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from threading import Lock

import torch

from headscope.engine.memory import Allowance
from headscope.metrics.metric import (
    BatchMetric,
    LayerMetric,
    MatrixMetric,
    Metric,
    ModelMetric,
    State,
    TextMetric,
    refuse_matrices,
)
from headscope.metrics.ratio import HeadRatio, MatrixRatio
from headscope.metrics.ratio_group import RatioGroup
from headscope.model.model import Model
from headscope.observe.dense import DenseLayer
from headscope.observe.inputs import Columns, Cut, Example, columns_of
from headscope.observe.layer import Layer
from headscope.observe.show import Attention, choose_way, show_layers

_one_at_a_time = Lock()


def observe(
    model: Model,
    examples: Sequence[Example],
    metrics: Sequence[Metric],
    batch_tokens: int,
    choice: Attention = "dense",
) -> dict[str, State]:
    """The states of all metrics after the examples; no weights outlive their layer.

    `choice` says how layers are looked at; see `headscope.observe.show`.
    """
    columns = columns_of(examples)
    allowance = Allowance(model.name, batch_tokens)
    with torch.inference_mode(), _turn(model.device):
        return allowance.use(lambda tokens: _observe(model, columns, metrics, tokens, choice))


def _turn(device: torch.device) -> AbstractContextManager[object]:
    """One shard at a time on a GPU: batches are as large as its memory allows."""
    return nullcontext() if device.type == "cpu" else _one_at_a_time


def _observe(
    model: Model, columns: Columns, metrics: Sequence[Metric], batch_tokens: int, choice: Attention
) -> dict[str, State]:
    states = {metric.name: metric.zero(len(columns)) for metric in metrics}
    loop = _make_loop(metrics, states, model.device)
    for rows in model.buckets(columns.lengths.tolist(), batch_tokens):
        cut = columns.cut(rows, pad=model.pad, is_causal=model.is_causal)
        _observe_batch(model, cut.to(model.device), loop, choice)
    if loop.ratios is not None:
        loop.ratios.finish(states)
    for state in states.values():
        state.settle()
    return states


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
    metrics: Sequence[Metric], states: Mapping[str, State], device: torch.device
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


def _observe_batch(model: Model, cut: Cut, loop: _Loop, choice: Attention) -> None:
    batch, annotated = cut.batch, cut.annotated
    way = choose_way(model, batch.ids.shape[1], choice)
    if way != "dense":
        refuse_matrices(loop.metrics, batch.ids.shape[1])
    kept: list[DenseLayer] = []

    def show(layer: Layer) -> None:
        loop.add_layer(layer)
        if loop.of_batches and isinstance(layer, DenseLayer):
            kept.append(replace(layer))  # without the sums that it has computed for others

    for metric in loop.of_text:
        metric.update_text(loop.states[metric.name], annotated)
    for metric in loop.of_model:
        metric.update_model(loop.states[metric.name], model, batch, annotated)
    show_layers(model, batch, annotated, way, show)
    for metric in loop.of_batches:
        metric.update_batch(loop.states[metric.name], kept)
