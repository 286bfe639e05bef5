"""Any statistic of the corpus alone that is a ratio of sums over inputs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float
from torch import Tensor

from headscope.metrics import ratio
from headscope.metrics.metric import Axis, Records, State, Sums, Variables, add, label
from headscope.observe.batch import AnnotatedBatch

Terms = tuple[Float[Tensor, "batch item"], Float[Tensor, "batch part"]]


@dataclass(frozen=True)
class TextRatio:
    """Σx / Σy over the inputs; the same estimator as for heads, without attention."""

    name: str
    terms: Callable[[AnnotatedBatch], Terms]
    axis: Axis | None = None
    description: str = ""

    def zero(self, inputs: int) -> State:
        """Empty sums."""
        return State(ratio.zero((len(self.axis) if self.axis else 1,), (1,)))

    def update_text(self, state: State, batch: AnnotatedBatch) -> None:
        """Add the inputs of a batch."""
        above, below = self.terms(batch)
        state.receive(partial(_add, state), above.double(), below.double())

    def merge(self, left: Sums, right: Sums) -> Sums:
        """Sums add."""
        return add(left, right)

    def compute(self, sums: Sums, records: Records) -> Variables:
        """NAME and NAME_se."""
        axes = (self.axis,) if self.axis else ()
        value = label(self._trim(ratio.value(sums)), *axes)
        error = label(self._trim(ratio.standard_error(sums)), *axes)
        described = value.assign_attrs(description=self.description)
        return {self.name: described, f"{self.name}_se": error}

    def _trim(self, values: np.ndarray) -> np.ndarray:
        return values if self.axis else values[0]


def _add(state: State, above: np.ndarray, below: np.ndarray) -> None:
    for name, values in ratio.sums_over(above, below).items():
        state.sums[name] += values
