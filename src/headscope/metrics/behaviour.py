"""A name for what each head does, from its measured values (Clark et al. 2019, Fig. 6)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from headscope.results.measure import Measure

OTHER = "other"

BEHAVIOUR = Measure(
    "behaviour",
    title="Behaviour",
    meaning="A name for what the head mostly does.",
    formula="next or previous > 0.5, broad: entropy > 3.8, [CLS], [SEP] or punctuation > 0.6, else "
    "other; later ones win, and a relation or coreference that the head finds wins over all",
    reference="Clark et al. 2019, Fig. 6",
    unit="",
    range="names",
    cost="from the variables alone",
    with_errors=False,
)


@dataclass(frozen=True)
class Thresholds:
    """What a head must exceed to be named; the defaults are those of the released notebook."""

    next: float = 0.5
    previous: float = 0.5
    broad: float = 3.8  # nats
    cls: float = 0.6
    sep: float = 0.6
    punct: float = 0.6


def behaviour(
    measured: Mapping[str, Float[np.ndarray, "layer head"]], thresholds: Thresholds
) -> np.ndarray:
    """The label of every head; of several that fit the last one in `Thresholds` wins.

    `measured` maps a label to its values; a label without values, or with NaN, names no head.
    """
    shape = next(iter(measured.values())).shape
    labels = np.full(shape, OTHER, dtype="<U16")
    for name, threshold in vars(thresholds).items():
        if name in measured:
            labels[measured[name] > threshold] = name
    return labels
