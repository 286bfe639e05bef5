"""Shards, resuming and execution of a study over a corpus."""

from headscope.engine.forward import (
    CPU_TOKENS,
    Allowance,
    default_batch_tokens,
    fitting_tokens,
    observe,
)
from headscope.engine.look_again import (
    LookAgain,
    blocks_of,
    largest_of_rows,
    look_at,
    why_no_examples,
)
from headscope.engine.measure import (
    SHARD_SENTENCES,
    SHARD_SENTENCES_CUDA,
    Counts,
    Measuring,
    pack,
    read_ahead,
    shards_of_documents,
    unpack,
)
from headscope.engine.question import Inputs, Part
from headscope.engine.run import RunFolder, lock_run
from headscope.engine.setup import Setup
from headscope.engine.stage import Stage

__all__ = [
    "CPU_TOKENS",
    "SHARD_SENTENCES",
    "SHARD_SENTENCES_CUDA",
    "Allowance",
    "Counts",
    "Inputs",
    "LookAgain",
    "Measuring",
    "Part",
    "RunFolder",
    "Setup",
    "Stage",
    "blocks_of",
    "default_batch_tokens",
    "fitting_tokens",
    "largest_of_rows",
    "lock_run",
    "look_at",
    "observe",
    "pack",
    "read_ahead",
    "shards_of_documents",
    "unpack",
    "why_no_examples",
]
