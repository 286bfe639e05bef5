"""One number per head by which the model view can order the heads."""

import numpy as np


def head_scores(weights: np.ndarray) -> dict[str, np.ndarray]:
    """Scores of one layer's heads for this one text, from (head, query, key) weights."""
    return {
        "entropy": _entropy(weights),
        "distance": _distance(weights),
        "largest weight": weights.max((1, 2), initial=0.0),
        "first token": weights[:, :, 0].mean(1),
        "previous token": _diagonal(weights, -1),
        "same token": _diagonal(weights, 0),
        "next token": _diagonal(weights, 1),
    }


def _entropy(weights: np.ndarray) -> np.ndarray:
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    return -(weights * logs).sum(-1).mean(-1)


def _distance(weights: np.ndarray) -> np.ndarray:
    """Mean |query − key| weighted by attention (Vig & Belinkov 2019, Eq. 6)."""
    _, queries, keys = weights.shape
    gap = np.abs(np.arange(queries)[:, None] - np.arange(keys)[None, :])
    total = weights.sum((1, 2))
    return np.divide((weights * gap).sum((1, 2)), total, out=np.zeros_like(total), where=total > 0)


def _diagonal(weights: np.ndarray, offset: int) -> np.ndarray:
    diagonal = np.diagonal(weights, offset, axis1=1, axis2=2)
    return diagonal.sum(-1) / weights.shape[1]
