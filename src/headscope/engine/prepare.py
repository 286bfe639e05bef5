"""Inputs made in other processes, so that the one that drives a GPU never waits for Python.

Reading, tokenizing and aligning take longer than a GPU takes for the same sentences, and threads
would share one interpreter with the work of launching kernels. The processes are forked before the
first shard: they have the corpus and the tokenizer already, and never touch the GPU. Where every
sentence is an input, all of them work on the first shard at once, for which the GPU waits. What is
counted in texts, whatever the network does with them, they count as well.
"""

import os
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, reduce
from threading import Lock
from typing import NoReturn

import numpy as np
import torch

from headscope.metrics.metric import CondensingMetric, Metric, Sums, TextMetric
from headscope.model.inputs.batch import buckets
from headscope.observe.inputs import Columns, Examples, columns_of
from headscope.studies.study import Inputs, Part, Setup
from headscope.text.corpus import Shard
from headscope.workers.forked import Forked, can_fork

MOST = 8  # processes; together they prepare more than one GPU takes
AHEAD = 8  # shards that are read or ready before they are asked for
PIECE = 512  # sentences of a shard that one process reads at a time, if it can be cut
BATCH = 16384  # tokens that are counted at a time


class Readers:
    """Processes that make the inputs of shards, of some before they are asked for."""

    def __init__(
        self,
        processes: Forked[Shard, list[Inputs]],
        parts: Sequence[Part],
        expected: Sequence[Shard],
    ) -> None:
        self._processes = processes
        self._parts = parts
        self._piece = PIECE if all(part.by_sentence for part in parts) else None
        self._expected = deque(expected)
        self._begun: dict[Shard, list[Future[list[Inputs]]]] = {}
        self._lock = Lock()

    def begin(self) -> None:
        """Have the first shard read, before there is anybody to do it."""
        if self._expected:
            self._begin(self._expected.popleft())

    def read(self, shard: Shard) -> list[Inputs]:
        """The inputs of every part."""
        with self._lock:
            while self._expected and (shard not in self._begun or len(self._begun) <= AHEAD):
                self._begin(self._expected.popleft())
            if shard not in self._begun:
                self._begin(shard)
            pieces = self._begun.pop(shard)
        made = zip(*(piece.result() for piece in pieces), strict=True)
        return [join_inputs(part, of_part) for part, of_part in zip(self._parts, made, strict=True)]

    def _begin(self, shard: Shard) -> None:
        step = self._piece or max(1, len(shard))
        starts = range(shard.start, shard.stop, step) or (shard.start,)
        pieces = [replace(shard, start=at, stop=min(at + step, shard.stop)) for at in starts]
        self._begun[shard] = [self._processes.submit(piece) for piece in pieces]


@contextmanager
def open_readers(
    setup: Setup, parts: tuple[Part, ...], shards: Sequence[Shard]
) -> Iterator[Readers | None]:
    """Processes that read the shards ahead, in their order.

    None where this system cannot fork or has no core to spare.
    """
    count = min(MOST, (os.cpu_count() or 1) - 1)
    if not can_fork() or count < 1:
        yield None
        return
    processes = Forked(partial(_read, setup, parts), _use_one_thread)
    readers = Readers(processes, parts, shards)
    try:
        readers.begin()
        processes.start(count)
        yield readers
    finally:
        processes.close()


def read_inputs(setup: Setup, parts: tuple[Part, ...], shard: Shard) -> list[Inputs]:
    """The inputs of every part for one shard, made here."""
    sentences = setup.corpus.read(shard)
    return [part.read(setup, shard, sentences) for part in parts]


def join_inputs(part: Part, pieces: Sequence[Inputs]) -> Inputs:
    """What was made of some sentences and of those that follow them."""
    if len(pieces) == 1:
        return pieces[0]
    skipped, words = Counter[str](), Counter[str]()
    for piece in pieces:
        skipped.update(piece.skipped)
        words.update(piece.words)
    columns = Columns.join([piece.columns for piece in pieces])
    metrics = [metric for metric in part.metrics if any(metric.name in p.counts for p in pieces)]
    counts = {metric.name: _join_counts(metric, pieces) for metric in metrics}
    return Inputs(Examples(columns, _refuse), skipped, words, counts)


def _join_counts(metric: Metric, pieces: Sequence[Inputs]) -> Sums:
    blank = metric.zero(0).sums
    return reduce(
        metric.merge, ({**blank, **piece.counts.get(metric.name, {})} for piece in pieces)
    )


def count_texts(metrics: Sequence[Metric], columns: Columns, *, is_causal: bool) -> dict[str, Sums]:
    """The sums of the metrics that add up numbers of texts, whatever the batches are.

    Sums that texts alone do not change are left out: all that is found passes through a pipe.
    """
    counting = [metric for metric in metrics if isinstance(metric, TextMetric) and _adds(metric)]
    states = {metric.name: metric.zero(len(columns)) for metric in counting}
    for rows in buckets(columns.lengths.tolist(), BATCH) if counting else ():
        batch = columns.cut(rows, pad=0, is_causal=is_causal).annotated
        for metric in counting:
            metric.update_text(states[metric.name], batch)
    return {metric.name: _changed(metric, states[metric.name].sums) for metric in counting}


def _changed(metric: Metric, sums: Sums) -> Sums:
    blank = metric.zero(0).sums
    return {key: own for key, own in sums.items() if not np.array_equal(own, blank[key])}


def _adds(metric: Metric) -> bool:
    return not isinstance(metric, CondensingMetric) and not metric.zero(0).records


def _use_one_thread() -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # its threads did not survive the fork
    torch.set_num_threads(1)  # nor did torch's


def _read(setup: Setup, parts: tuple[Part, ...], shard: Shard) -> list[Inputs]:
    found = zip(parts, read_inputs(setup, parts, shard), strict=True)
    return [_count(part, each, is_causal=setup.model.is_causal) for part, each in found]


def _count(part: Part, made: Inputs, *, is_causal: bool) -> Inputs:
    columns = columns_of(made.examples)
    counts = count_texts(part.metrics, columns, is_causal=is_causal)
    return replace(made, examples=Examples(columns, _refuse), counts=counts)


def _refuse(row: int) -> NoReturn:
    raise NotImplementedError("Single examples stay in the process that made them.")
