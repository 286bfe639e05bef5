"""Run inputs through a model, batch by batch, and reduce every layer while the pass goes on."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from threading import Lock

import torch

from headscope.engine.memory import Allowance
from headscope.metrics.head_ratio import HeadRatio
from headscope.metrics.metric import (
    BatchMetric,
    LayerMetric,
    Metric,
    ModelMetric,
    State,
    TextMetric,
)
from headscope.metrics.ratio_group import RatioGroup
from headscope.model.attention import LayerAttention
from headscope.model.model import Model
from headscope.observe.columns import Columns, Cut, columns_of
from headscope.observe.example import Example
from headscope.observe.layer import ObservedLayer
from headscope.observe.long import Attention, choose_way, refuse_comparisons, show_long
from headscope.observe.precision import full_precision

_one_at_a_time = Lock()


def observe(
    model: Model,
    examples: Sequence[Example],
    metrics: Sequence[Metric],
    batch_tokens: int,
    choice: Attention = "dense",
) -> dict[str, State]:
    """The states of all metrics after the examples; no weights outlive their layer.

    `choice` says how layers are looked at; see `headscope.observe.long`.
    """
    columns = columns_of(examples)
    allowance = Allowance(model.name, batch_tokens)
    with torch.inference_mode(), _turn(model.device):
        return allowance.use(lambda tokens: _observe(model, columns, metrics, tokens, choice))


def _turn(device: torch.device) -> AbstractContextManager[object]:
    """One shard at a time on a GPU, whose memory is reckoned for one."""
    return nullcontext() if device.type == "cpu" else _one_at_a_time


def _observe(
    model: Model, columns: Columns, metrics: Sequence[Metric], batch_tokens: int, choice: Attention
) -> dict[str, State]:
    states = {metric.name: metric.zero(len(columns)) for metric in metrics}
    kinds = _sort(metrics, model.device)
    for rows in model.buckets(columns.lengths.tolist(), batch_tokens):
        cut = columns.cut(rows, pad=model.pad, is_causal=model.is_causal)
        _observe_batch(model, cut.to(model.device), kinds, states, choice)
    if kinds.ratios is not None:
        kinds.ratios.finish(states)
    for state in states.values():
        state.settle()
    return states


@dataclass(frozen=True)
class _Kinds:
    """Metrics by what they want to see; ratios of heads are added up together."""

    of_text: list[TextMetric]
    of_model: list[ModelMetric]
    of_layers: list[LayerMetric]
    of_batches: list[BatchMetric]
    ratios: RatioGroup | None


def _sort(metrics: Sequence[Metric], device: torch.device) -> _Kinds:
    ratios = [metric for metric in metrics if isinstance(metric, HeadRatio)]
    others = [metric for metric in metrics if not isinstance(metric, HeadRatio)]
    return _Kinds(
        [metric for metric in others if isinstance(metric, TextMetric)],
        [metric for metric in others if isinstance(metric, ModelMetric)],
        [metric for metric in others if isinstance(metric, LayerMetric)],
        [metric for metric in others if isinstance(metric, BatchMetric)],
        RatioGroup(ratios, device) if ratios else None,
    )


def _observe_batch(
    model: Model, cut: Cut, kinds: _Kinds, states: dict[str, State], choice: Attention
) -> None:
    batch, annotated = cut.batch, cut.annotated
    places = {layer: place for place, layer in enumerate(model.stacks[0].attending)}
    kept: list[ObservedLayer] = []

    def reduce(attention: LayerAttention) -> None:
        place, weights = places[attention.layer], attention.weights
        with full_precision():
            _reduce(ObservedLayer(place, weights, annotated), kinds, states)
        if kinds.of_batches:  # a new one: what the other has computed from the weights is let go
            kept.append(ObservedLayer(place, weights, annotated))

    for metric in kinds.of_text:
        metric.update_text(states[metric.name], annotated)
    for metric in kinds.of_model:
        metric.update_model(states[metric.name], model, batch, annotated)
    way = choose_way(model, batch.ids.shape[1], choice)
    if way == "dense":
        model.forward(batch, reduce, logits=False)
    else:
        refuse_comparisons(kinds.of_batches, batch.ids.shape[1])
        show_long(model, batch, annotated, way, lambda layer: _reduce(layer, kinds, states))
    for metric in kinds.of_batches:
        metric.update_batch(states[metric.name], kept)


def _reduce(layer: ObservedLayer, kinds: _Kinds, states: dict[str, State]) -> None:
    if kinds.ratios is not None:
        kinds.ratios.update(layer)
    for metric in kinds.of_layers:
        metric.update_layer(states[metric.name], layer)
