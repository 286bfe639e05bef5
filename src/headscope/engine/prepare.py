"""Inputs made in other processes, so that the one that drives a GPU never waits for Python.

Reading, tokenizing and aligning take longer than a GPU takes for the same sentences, and threads
would share one interpreter with the work of launching kernels. The processes are forked before the
first shard: they have the corpus and the tokenizer already, and never touch the GPU.
"""

import multiprocessing
import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import Any, NoReturn

from headscope.observe.inputs import Examples, columns_of
from headscope.studies.study import Inputs, Part, Setup
from headscope.text.corpus import Shard

MOST = 8  # processes; together they prepare more than one GPU takes
AHEAD = 8  # shards that are read or ready before they are asked for

_given: dict[str, Any] = {}  # what a forked process works with


class Readers:
    """Processes that make the inputs of shards, of some before they are asked for."""

    def __init__(self, processes: ProcessPoolExecutor, expected: Sequence[Shard]) -> None:
        self._processes = processes
        self._expected = deque(expected)
        self._begun: dict[Shard, Future[list[Inputs]]] = {}
        self._lock = Lock()

    def read(self, shard: Shard) -> list[Inputs]:
        """The inputs of every part."""
        with self._lock:
            while self._expected and (shard not in self._begun or len(self._begun) <= AHEAD):
                self._begin(self._expected.popleft())
            if shard not in self._begun:
                self._begin(shard)
            inputs = self._begun.pop(shard)
        return inputs.result()

    def _begin(self, shard: Shard) -> None:
        self._begun[shard] = self._processes.submit(_read, shard)


@contextmanager
def open_readers(
    setup: Setup, parts: tuple[Part, ...], shards: Sequence[Shard]
) -> Iterator[Readers | None]:
    """Processes that read the shards ahead, in their order.

    None where this system cannot fork or has no core to spare.
    """
    count = min(MOST, (os.cpu_count() or 1) - 1)
    if "fork" not in multiprocessing.get_all_start_methods() or count < 1:
        yield None
        return
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(count, context, _begin, (setup, parts)) as processes:
        processes.submit(os.getpid).result()  # all are forked now, while no thread runs
        yield Readers(processes, shards)


def read_inputs(setup: Setup, parts: tuple[Part, ...], shard: Shard) -> list[Inputs]:
    """The inputs of every part for one shard, made here."""
    sentences = setup.corpus.read(shard)
    return [part.read(setup, shard, sentences) for part in parts]


def _begin(setup: Setup, parts: tuple[Part, ...]) -> None:
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # its threads did not survive the fork
    _given.update(setup=setup, parts=parts)


def _read(shard: Shard) -> list[Inputs]:
    found = read_inputs(_given["setup"], _given["parts"], shard)
    return [replace(each, examples=Examples(columns_of(each.examples), _refuse)) for each in found]


def _refuse(row: int) -> NoReturn:
    raise NotImplementedError("Single examples stay in the process that made them.")
