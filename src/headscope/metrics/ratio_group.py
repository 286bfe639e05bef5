"""The ratios of all heads added together: a few large operations instead of many small ones.

The items of all ratios stand side by side, for every group of documents:

             pos_to: NOUN VERB …  | distance | entropy
  head 0          Σ     Σ            Σ          Σ
  head 1          Σ     Σ            Σ          Σ

Each input's terms are float32, their sums over inputs are float64 and stay on the device.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from headscope.metrics.ratio import (
    DENOMINATOR,
    NUMERATOR,
    HeadRatio,
    MatrixRatio,
    Terms,
    add_by_group,
)
from headscope.metrics.state import State
from headscope.observe.dense import DenseLayer
from headscope.observe.layer import Layer
from headscope.results.replicates import GROUPS


class RatioGroup:
    """The sums of several ratios over one shard."""

    def __init__(self, metrics: Sequence[HeadRatio | MatrixRatio], device: torch.device) -> None:
        self._metrics = metrics
        layers, heads = metrics[0].sums.grid.shape
        sizes = {
            NUMERATOR: [metric.sums.items for metric in metrics],
            DENOMINATOR: [metric.sums.parts for metric in metrics],
        }
        self._stops = {name: np.cumsum(size)[:-1] for name, size in sizes.items()}
        # The layer comes first here, so that what is added to is in one place.
        self._sums = {
            name: torch.zeros(layers, GROUPS, heads, sum(size), dtype=torch.float64, device=device)
            for name, size in sizes.items()
        }

    def update(self, layer: Layer) -> None:
        """Add one layer of one batch."""
        x, y = zip(*(_terms(metric, layer) for metric in self._metrics), strict=True)
        self._add(NUMERATOR, layer, torch.cat(x, dim=-1))
        self._add(DENOMINATOR, layer, torch.cat(y, dim=-1))

    def _add(self, name: str, layer: Layer, terms: Tensor) -> None:
        add_by_group(self._sums[name][layer.index], terms, layer.batch.groups)

    def finish(self, states: Mapping[str, State]) -> None:
        """Add everything to the states of the metrics."""
        for name, sums in self._sums.items():
            by_group = sums.transpose(0, 1).cpu().numpy()
            parts = np.split(by_group, self._stops[name], axis=-1)
            for metric, part in zip(self._metrics, parts, strict=True):
                states[metric.name].sums[name] += part


def _terms(metric: HeadRatio | MatrixRatio, layer: Layer) -> Terms:
    if isinstance(metric, HeadRatio):
        return metric.terms(layer)
    assert isinstance(layer, DenseLayer)  # the loop refuses matrix metrics on anything else
    return metric.terms(layer)
