"""The ratios of all heads added together: a few large operations instead of many small ones.

The items of all ratios stand side by side, and the pooled layer stands below its heads:

             pos_to: NOUN VERB …  | distance | entropy
  head 0          Σ     Σ            Σ          Σ
  head 1          Σ     Σ            Σ          Σ
  the layer       Σ     Σ            Σ          Σ

Each input's terms are float32, their sums over inputs are float64 and stay on the device.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headscope.metrics import ratio
from headscope.metrics.ratio import HeadRatio, HeadSums, MatrixRatio, Terms
from headscope.metrics.state import State
from headscope.observe.dense import DenseLayer
from headscope.observe.layer import Layer


class RatioGroup:
    """The sums of several ratios over one shard."""

    def __init__(self, metrics: Sequence[HeadRatio | MatrixRatio], device: torch.device) -> None:
        self._metrics = metrics
        ratios = [metric.sums for metric in metrics]
        layers, heads = ratios[0].grid.shape
        self._parts = [each.parts for each in ratios]
        shared = [_repeat(each, start) for each, start in zip(ratios, self._starts, strict=True)]
        self._part_of_item = torch.cat(shared).to(device)
        shape = (layers, heads + 1)
        sizes = {**dict.fromkeys(ratio.NUMERATOR, len(self._part_of_item)),
                 **dict.fromkeys(ratio.DENOMINATOR, sum(self._parts))}  # fmt: skip
        self._sums = {
            name: torch.zeros(*shape, size, dtype=torch.float64, device=device)
            for name, size in sizes.items()
        }

    def update(self, layer: Layer) -> None:
        """Add one layer of one batch."""
        terms = [_terms(metric, layer) for metric in self._metrics]
        x = _with_pooled(torch.cat([above for above, _ in terms], dim=-1))
        y = _with_pooled(torch.cat([below for _, below in terms], dim=-1))
        for name, values in _sums_over(x, y, self._part_of_item).items():
            self._sums[name][layer.index] += values

    def finish(self, states: Mapping[str, State]) -> None:
        """Add everything to the states of the metrics."""
        copied = {name: values.cpu().numpy() for name, values in self._sums.items()}
        items = np.cumsum([metric.sums.items for metric in self._metrics])[:-1]
        split = {
            name: np.split(values, items if name in ratio.NUMERATOR else self._starts[1:], axis=-1)
            for name, values in copied.items()
        }
        for place, metric in enumerate(self._metrics):
            sums = states[metric.name].sums
            for name, parts in split.items():
                sums[f"head.{name}"] += parts[place][:, :-1]
                sums[f"layer.{name}"] += parts[place][:, -1]

    @property
    def _starts(self) -> list[int]:
        return (np.cumsum(self._parts) - self._parts).tolist()


def _terms(metric: HeadRatio | MatrixRatio, layer: Layer) -> Terms:
    if isinstance(metric, HeadRatio):
        return metric.terms(layer)
    assert isinstance(layer, DenseLayer)  # the loop refuses matrix metrics on anything else
    return metric.terms(layer)


def _repeat(sums: HeadSums, start: int) -> Tensor:
    """Which denominator each item of a ratio has."""
    if sums.parts == sums.items:
        return torch.arange(start, start + sums.items)
    return torch.full((sums.items,), start)


def _with_pooled(
    terms: Float[Tensor, "batch head item"],
) -> Float[Tensor, "batch head+1 item"]:
    wide = terms.double()
    return torch.cat([wide, wide.sum(1, keepdim=True)], dim=1)


def _sums_over(x: Tensor, y: Tensor, part_of_item: Tensor) -> dict[str, Tensor]:
    """The sums of `ratio.sums_over` over the first axis."""
    return {
        "x": x.sum(0),
        "xx": (x * x).sum(0),
        "xy": (x * y[..., part_of_item]).sum(0),
        "y": y.sum(0),
        "yy": (y * y).sum(0),
        "n": (y > 0).sum(0, dtype=torch.float64),
    }
