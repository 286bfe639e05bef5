"""Run inputs through a model, batch by batch, and reduce every layer while the pass goes on."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from headscope.engine.example import Example, annotate
from headscope.metrics.layer import ObservedLayer
from headscope.metrics.metric import (
    BatchMetric,
    LayerMetric,
    Metric,
    ModelMetric,
    State,
    TextMetric,
)
from headscope.model.attention import LayerAttention
from headscope.model.model import Model


def observe(
    model: Model, examples: Sequence[Example], metrics: Sequence[Metric], batch_tokens: int
) -> dict[str, State]:
    """The states of all metrics after the examples; no weights outlive their layer."""
    states = {metric.name: metric.zero(len(examples)) for metric in metrics}
    lengths = [len(example.encoded) for example in examples]
    kinds = _sort(metrics)
    with torch.inference_mode():
        for rows in model.buckets(lengths, batch_tokens):
            _observe_batch(model, examples, rows, kinds, states)
    return states


@dataclass(frozen=True)
class _Kinds:
    """Metrics by what they want to see."""

    of_text: list[TextMetric]
    of_model: list[ModelMetric]
    of_layers: list[LayerMetric]
    of_batches: list[BatchMetric]


def _sort(metrics: Sequence[Metric]) -> _Kinds:
    return _Kinds(
        [metric for metric in metrics if isinstance(metric, TextMetric)],
        [metric for metric in metrics if isinstance(metric, ModelMetric)],
        [metric for metric in metrics if isinstance(metric, LayerMetric)],
        [metric for metric in metrics if isinstance(metric, BatchMetric)],
    )


def _observe_batch(
    model: Model,
    examples: Sequence[Example],
    rows: Sequence[int],
    kinds: _Kinds,
    states: dict[str, State],
) -> None:
    batch = model.batch([example.encoded for example in examples], rows)
    annotated = annotate(examples, batch, is_causal=model.is_causal)
    places = {layer: place for place, layer in enumerate(model.stacks[0].attending)}
    kept: list[ObservedLayer] = []

    def reduce(attention: LayerAttention) -> None:
        place, weights = places[attention.layer], attention.weights
        layer = ObservedLayer(place, weights, annotated)
        for metric in kinds.of_layers:
            metric.update_layer(states[metric.name], layer)
        if kinds.of_batches:  # a new one: what the other has computed from the weights is let go
            kept.append(ObservedLayer(place, weights, annotated))

    for metric in kinds.of_text:
        metric.update_text(states[metric.name], annotated)
    for metric in kinds.of_model:
        metric.update_model(states[metric.name], model, batch, annotated)
    model.forward(batch, reduce, logits=False)
    for metric in kinds.of_batches:
        metric.update_batch(states[metric.name], kept)
