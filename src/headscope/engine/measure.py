"""The first stage of a run: the sums of all metrics over a corpus, shard by shard.

```
shard ─► sentences ─► inputs of every part ─► sums of its metrics ─► shards/00000.npz
all shards, in their order ─► merged sums ─► variables of the result
```

Ahead of a GPU a DataLoader makes the inputs: reading, tokenizing and aligning take longer than a
GPU takes for the same sentences. Its processes are forked before the first batch: they have the
corpus and the tokenizer already, and never touch the GPU.
"""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from multiprocessing import get_all_start_methods
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
import xarray as xr
from torch.utils.data import DataLoader, Dataset

from headscope.engine.forward import observe
from headscope.engine.question import Inputs, Part, read_inputs
from headscope.engine.setup import ModelWork, Setup
from headscope.engine.stage import Stage
from headscope.errors import HeadscopeError, RunError
from headscope.files import pack_arrays, unpack_arrays
from headscope.metrics.metric import Metric, Sums, Variables
from headscope.model.model import Model
from headscope.observe.batch import Examples
from headscope.results import dataset
from headscope.text.alignment import SEVERAL
from headscope.text.corpus import Corpus, Shard
from headscope.text.segments import documents_of
from headscope.workers import LocalEngine, Pool, Work, use_threads

SHARD_SENTENCES = 256
SHARD_SENTENCES_CUDA = 8192  # two batches or more of the size that keeps a GPU busy
SHARD_OF_DOCUMENTS_CUDA = 1024  # a sentence may be a document; several readers share them
LONGEST = 16  # shards' worth of sentences after which even a document is cut
SUMS, COUNTS = "sums", "counts"  # in the file of a shard
MAX_READERS = 8  # processes; together they prepare more than one GPU takes
REMEDY = "see docs/studies.md for what each reason means"


@dataclass(frozen=True)
class Counts:
    """How many inputs and tokens were read, how many sentences were skipped and why, and words."""

    inputs: int = 0
    tokens: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    words: Mapping[str, int] = field(default_factory=dict)  # how words and tokens meet

    def __add__(self, other: "Counts") -> "Counts":
        skipped = dict(sorted((Counter(self.skipped) + Counter(other.skipped)).items()))
        words = {
            name: self.words.get(name, 0) + other.words.get(name, 0)
            for name in {**self.words, **other.words}
        }
        return Counts(self.inputs + other.inputs, self.tokens + other.tokens, skipped, words)


@dataclass(frozen=True)
class MeasureShards(Stage[Shard]):
    """Measures a corpus: every piece is a shard of it."""

    parts: Callable[[Setup], tuple[Part, ...]]  # made anew in every process
    remedy: str = REMEDY  # what to do about a corpus that no input could be made of
    name: str = "shards"

    subfolder = "shards"  # a folder that other programs look into
    ending = ".npz"
    noun = "sentences"

    def pieces(self, setup: Setup, result: xr.Dataset) -> list[Shard]:
        """All shards; where documents are inputs, a shard holds whole ones."""
        size = shard_sentences(setup.model)
        if setup.context is None:
            return setup.corpus.shards(size)
        return list(shards_of_documents(setup.corpus, min(size, SHARD_OF_DOCUMENTS_CUDA)))

    def size(self, piece: Shard) -> int:
        """Its sentences."""
        return len(piece)

    def work(self, setup: Setup, result: xr.Dataset, threads: int, folder: Path) -> "Measuring":
        """What is done to a shard."""
        return Measuring(setup, threads, self.parts)

    def compute(
        self, work: Work[Shard, bytes], pieces: Sequence[Shard], pool: Pool
    ) -> Iterator[tuple[Shard, bytes]]:
        """The sums of every shard; other processes read ahead of a GPU of this machine."""
        if isinstance(work, Measuring) and work.needs_gpu and isinstance(pool, LocalEngine):
            return work.run_ahead(pieces)
        return pool.run(work, pieces)

    def finish(
        self, setup: Setup, result: xr.Dataset, outcomes: Mapping[Shard, bytes], folder: Path
    ) -> xr.Dataset:
        """The variables of all metrics, computed from the sums of all shards."""
        metrics = metrics_of(self.parts(setup))
        sums = {name: metric.zero() for name, metric in metrics.items()}
        counts = Counts()
        for shard in outcomes:  # in their order, one at a time
            more_sums, more_counts = unpack(outcomes[shard])
            for name, metric in metrics.items():
                sums[name] = metric.merge(sums[name], more_sums[name])
            counts += more_counts
        if counts.inputs == 0:
            reasons = ", ".join(f"{count:,} × {reason}" for reason, count in counts.skipped.items())
            raise RunError(f"No sentence of the corpus could be used ({reasons}); {self.remedy}.")
        variables: Variables = {}
        for name, metric in metrics.items():
            variables |= metric.compute(sums[name])
        return dataset.build(variables, {**result.attrs, **_attributes(counts)})


@dataclass(frozen=True)
class Measuring(ModelWork[Shard]):
    """Computes the sums of a shard: everything that is needed for it, in any process."""

    make_parts: Callable[[Setup], tuple[Part, ...]]

    def compute(self, shard: Shard, /) -> bytes:
        """The content of a shard's file."""
        return self.measure(read_inputs(self.setup, self.parts, shard))

    def run_ahead(self, shards: Sequence[Shard]) -> Iterator[tuple[Shard, bytes]]:
        """Every shard with the content of its file, while other processes read the next ones."""
        self.open()
        with explain_dead_readers(), use_threads(self.threads):
            ahead = read_ahead(self.setup, self.parts, shards)
            for shard, inputs in zip(shards, ahead, strict=True):
                yield shard, self.measure(inputs)

    def describe(self, shard: Shard, /) -> str:
        """The shard by its number and its sentences, counted from 0."""
        return f"Shard {shard.index} (sentences {shard.start} to {shard.stop - 1})"

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """What is read and measured."""
        return self.make_parts(self.setup)

    def measure(self, inputs_of_parts: Sequence[Inputs]) -> bytes:
        """The sums of all metrics after the inputs of a shard, as the content of its file."""
        setup = self.setup
        sums: dict[str, Sums] = {}
        counts = Counts()
        for part, inputs in zip(self.parts, inputs_of_parts, strict=True):
            counts += Counts(skipped=inputs.skipped, words=inputs.words)
            if part.kind.of_corpus:
                counts += Counts(len(inputs.examples), int(inputs.columns.lengths.sum()))
            sums |= observe(
                setup.model,
                inputs.columns,
                part.metrics,
                setup.batch_tokens,
                setup.attention,
                setup.reading,
            )
        return pack(sums, counts)


def pack(sums: Mapping[str, Sums], counts: Counts) -> bytes:
    """The sums of all metrics, and what was counted, as the content of a file."""
    arrays = {COUNTS: np.array(json.dumps(vars(counts)))}
    for metric, tensors in sums.items():
        for name, values in tensors.items():
            arrays[f"{SUMS}/{metric}/{name}"] = values.numpy()
    return pack_arrays(arrays)


def unpack(content: bytes) -> tuple[dict[str, Sums], Counts]:
    """The sums of every metric by name, and the counts."""
    arrays = unpack_arrays(content)
    counts = Counts(**json.loads(str(arrays.pop(COUNTS))))
    sums: dict[str, Sums] = {}
    for key, values in arrays.items():
        _, metric, name = key.split("/", 2)
        sums.setdefault(metric, {})[name] = torch.from_numpy(values)
    return sums, counts


def metrics_of(parts: Sequence[Part]) -> dict[str, Metric]:
    """All metrics of all parts by name."""
    return {metric.name: metric for part in parts for metric in part.metrics}


def shard_sentences(model: Model) -> int:
    """How many sentences a shard has."""
    return SHARD_SENTENCES_CUDA if model.device.type == "cuda" else SHARD_SENTENCES


def shards_of_documents(corpus: Corpus, size: int) -> Iterator[Shard]:
    """Documents with at least that many sentences in all; only very long ones are cut."""
    index = begin = end = 0
    for start, stop in documents_of(corpus):
        for cut in (*range(start + LONGEST * size, stop, LONGEST * size), stop):
            end = cut
            if end - begin >= size:
                yield Shard(index, begin, end)
                index, begin = index + 1, end
    if end > begin:
        yield Shard(index, begin, end)


def _attributes(counts: Counts) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "sentences": counts.inputs,
        "tokens": counts.tokens,
        "mean_tokens": counts.tokens / counts.inputs,
        "skipped": json.dumps(dict(counts.skipped)),
        "words": json.dumps(dict(counts.words)),
    }
    if SEVERAL in counts.words:  # the whole study reads words in one way
        attributes["shared_tokens"] = counts.words[SEVERAL]  # tokens that cover several words
    return attributes


def read_ahead(
    setup: Setup, parts: tuple[Part, ...], shards: Sequence[Shard]
) -> Iterator[list[Inputs]]:
    """The inputs of every shard, in order; the next ones are made meanwhile by other processes."""
    readers = min(MAX_READERS, len(shards), (os.cpu_count() or 1) - 1)
    if "fork" not in get_all_start_methods():  # Windows
        readers = 0
    loader: DataLoader[Any] = DataLoader(
        _Shards(setup, parts, shards),
        batch_size=None,
        num_workers=readers,
        prefetch_factor=1 if readers else None,
        multiprocessing_context="fork" if readers else None,
        collate_fn=_unchanged,
        worker_init_fn=_use_one_thread,
        generator=torch.Generator(),  # leaves the numbers that torch draws elsewhere as they are
    )
    for inputs in loader:
        if isinstance(inputs, HeadscopeError):
            raise inputs
        yield inputs


@contextmanager
def explain_dead_readers() -> Iterator[None]:
    """A reader that dies is reported while anything is done in this process, as a RunError."""
    try:
        yield
    except RuntimeError as error:
        if not str(error).startswith("DataLoader worker"):
            raise
        raise RunError(
            "A process that prepared inputs died; if memory was short, free some, and run the same "
            "command again to go on."
        ) from error


class _Shards(Dataset[list[Inputs] | HeadscopeError]):
    """The inputs of each shard as they are sent through a pipe: flat arrays, no examples."""

    def __init__(self, setup: Setup, parts: tuple[Part, ...], shards: Sequence[Shard]) -> None:
        self._setup = setup
        self._parts = parts
        self._shards = shards

    def __len__(self) -> int:
        return len(self._shards)

    def __getitem__(self, index: int) -> list[Inputs] | HeadscopeError:
        try:
            inputs = read_inputs(self._setup, self._parts, self._shards[index])
        except HeadscopeError as error:
            return error  # raised by a DataLoader, it would be a traceback in words
        return [replace(part, examples=Examples(part.columns, _refuse)) for part in inputs]


def _unchanged(inputs: Any) -> Any:
    return inputs


def _use_one_thread(_: int) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # its threads do not survive the fork
    torch.set_num_threads(1)  # nor do torch's


def _refuse(row: int) -> NoReturn:
    raise NotImplementedError("Single examples stay in the process that made them.")
