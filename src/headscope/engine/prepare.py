"""The inputs of shards, made by a DataLoader ahead of a GPU.

Reading, tokenizing and aligning take longer than a GPU takes for the same sentences. The processes
of the DataLoader are forked before the first batch: they have the corpus and the tokenizer already,
and never touch the GPU.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import get_all_start_methods
from typing import Any, NoReturn

import torch
from torch.utils.data import DataLoader, Dataset

from headscope.engine.part import Inputs, Part, read_inputs
from headscope.engine.setup import Setup
from headscope.errors import HeadscopeError, RunError
from headscope.observe.inputs import Examples
from headscope.text.corpus import Shard

MAX_READERS = 8  # processes; together they prepare more than one GPU takes


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
