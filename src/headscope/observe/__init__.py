"""What a metric sees: batches of annotated inputs and the attention of one layer."""

from headscope.observe.batch import FORMS, SPECIAL, AnnotatedBatch, packing_of
from headscope.observe.block import separation, sum_segments
from headscope.observe.inputs import NO_LABEL, Columns, Cut, Example
from headscope.observe.layer import BlockLayer, Layer, even_layer
from headscope.observe.packed import (
    PackedLayer,
    pack_layer,
    sum_keys_plainly,
    sum_offsets_plainly,
    weigh_pairs,
)
from headscope.observe.show import check_reading, choose_path, rebuild_rows, show_layers

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
    "check_reading",
    "choose_path",
    "even_layer",
    "pack_layer",
    "packing_of",
    "rebuild_rows",
    "separation",
    "show_layers",
    "sum_keys_plainly",
    "sum_offsets_plainly",
    "sum_segments",
    "weigh_pairs",
]
