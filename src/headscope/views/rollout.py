"""Attention rollout: what flows from the input to a layer through all layers below."""

from collections.abc import Sequence

import numpy as np


def rollout(layers: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Π ½(A + I) over the layers up to each one, heads averaged (Abnar & Zuidema 2020, Eq. 1–2).

    Rows are normalised first, so that mass a model gave to a learned sink does not leak away.
    """
    flow = np.eye(layers[0].shape[-1]) if layers else np.eye(0)
    flows = []
    for weights in layers:  # head query key
        flow = _mixed(weights.mean(0)) @ flow
        flows.append(flow)
    return flows


def _mixed(average: np.ndarray) -> np.ndarray:
    totals = average.sum(-1, keepdims=True)
    rows = np.divide(average, totals, out=np.zeros_like(average), where=totals > 0)
    return 0.5 * rows + 0.5 * np.eye(len(average))
