"""What one shard contributes to a study, and its file, which holds arrays only."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from headscope import archive
from headscope.metrics.metric import State, Sums

SUMS, RECORDS, COUNTS = "sums", "records", "counts"


@dataclass(frozen=True)
class Counts:
    """How many inputs and tokens were read, and how many sentences were skipped and why."""

    inputs: int = 0
    tokens: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: "Counts") -> "Counts":
        skipped = dict(sorted((Counter(self.skipped) + Counter(other.skipped)).items()))
        return Counts(self.inputs + other.inputs, self.tokens + other.tokens, skipped)


@dataclass(frozen=True)
class Partial:
    """The states of all metrics after one shard."""

    states: Mapping[str, State]
    counts: Counts


def pack(partial: Partial) -> bytes:
    """A partial result as the content of its file."""
    arrays = {COUNTS: np.array(json.dumps(vars(partial.counts)))}
    for name, state in partial.states.items():
        arrays |= {f"{SUMS}/{name}/{key}": value for key, value in state.sums.items()}
        arrays |= {f"{RECORDS}/{name}/{key}": value for key, value in state.records.items()}
    return archive.pack_arrays(arrays)


def load_sums(path: Path) -> tuple[dict[str, Sums], Counts]:
    """The sums of every metric by name, and the counts; records stay on disk."""
    sums: dict[str, Sums] = {}
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        for key in arrays.files:
            kind, _, rest = key.partition("/")
            if kind == SUMS:
                metric, _, name = rest.partition("/")
                sums.setdefault(metric, {})[name] = arrays[key]
        return sums, Counts(**json.loads(str(arrays[COUNTS])))


def load_records(path: Path, metric: str) -> dict[str, np.ndarray]:
    """The records of one metric."""
    prefix = f"{RECORDS}/{metric}/"
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        found = [key for key in arrays.files if key.startswith(prefix)]
        return {key.removeprefix(prefix): arrays[key] for key in found}
