"""Pure functions of attention weights, and additive states over them; one file per question."""

from headscope.metrics.example_map import ExampleMap
from headscope.metrics.examples import (
    BINS,
    DIGITS,
    HIGH,
    LOW,
    PLACE_BITS,
    HeadExamples,
    TokenSample,
    first_of_groups,
    part_bins,
)
from headscope.metrics.hashing import seeded_hash
from headscope.metrics.metric import (
    Axis,
    Grid,
    Metric,
    Ratio,
    Sums,
    Terms,
    Variables,
    add_by_group,
    even_of,
    sum_by_group,
)
from headscope.metrics.top_tokens import TopTokens, largest

__all__ = [
    "BINS",
    "DIGITS",
    "HIGH",
    "LOW",
    "PLACE_BITS",
    "Axis",
    "ExampleMap",
    "Grid",
    "HeadExamples",
    "Metric",
    "Ratio",
    "Sums",
    "Terms",
    "TokenSample",
    "TopTokens",
    "Variables",
    "add_by_group",
    "even_of",
    "first_of_groups",
    "largest",
    "part_bins",
    "seeded_hash",
    "sum_by_group",
]
