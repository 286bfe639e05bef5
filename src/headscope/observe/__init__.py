"""What a metric sees: batches of annotated inputs and the attention of one layer."""

from headscope.observe.batch import (
    FORMS,
    NO_LABEL,
    SPECIAL,
    AnnotatedBatch,
    Columns,
    Cut,
    Example,
    packing_of,
)
from headscope.observe.layer import BlockLayer, Layer, even_layer, separation, sum_segments
from headscope.observe.packed import (
    PackedLayer,
    pack_layer,
    sum_keys_plainly,
    sum_offsets_plainly,
    weigh_pairs,
)

__all__ = [
    "FORMS",
    "NO_LABEL",
    "SPECIAL",
    "AnnotatedBatch",
    "BlockLayer",
    "Columns",
    "Cut",
    "Example",
    "Layer",
    "PackedLayer",
    "even_layer",
    "pack_layer",
    "packing_of",
    "separation",
    "sum_keys_plainly",
    "sum_offsets_plainly",
    "sum_segments",
    "weigh_pairs",
]
