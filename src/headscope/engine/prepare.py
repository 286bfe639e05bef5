"""Inputs made in other processes, so that the one that drives a GPU never waits for Python.

Reading, tokenizing and aligning take longer than a GPU takes for the same sentences, and threads
would share one interpreter with the work of launching kernels. The processes are forked before the
first shard: they have the corpus and the tokenizer already, and never touch the GPU.
"""

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NoReturn

from headscope.observe.inputs import Examples, columns_of
from headscope.studies.study import Inputs, Part, Setup
from headscope.text.corpus import Shard

MOST = 8  # processes; together they prepare more than one GPU takes

_given: dict[str, Any] = {}  # what a forked process works with


class Readers:
    """Processes that make the inputs of shards."""

    def __init__(self, processes: ProcessPoolExecutor) -> None:
        self._processes = processes

    def read(self, shard: Shard) -> list[Inputs]:
        """The inputs of every part."""
        return self._processes.submit(_read, shard).result()


@contextmanager
def open_readers(setup: Setup, parts: tuple[Part, ...]) -> Iterator[Readers | None]:
    """Processes that read ahead; None where this system cannot fork or has no core to spare."""
    count = min(MOST, (os.cpu_count() or 1) - 1)
    if "fork" not in multiprocessing.get_all_start_methods() or count < 1:
        yield None
        return
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(count, context, _begin, (setup, parts)) as processes:
        processes.submit(os.getpid).result()  # all are forked now, while no thread runs
        yield Readers(processes)


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
