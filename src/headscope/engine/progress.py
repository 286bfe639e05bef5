"""Showing how far a long piece of work is: a bar on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Iterable, Iterator

from headscope.text.corpus import Shard

SECONDS_BETWEEN_LINES = 10.0


def show_progress(shards: Iterable[Shard], total: int, label: str) -> Iterator[Shard]:
    """Pass finished shards through and report the sentences done, the rate and the time left."""
    show = _bar if sys.stderr.isatty() else _lines
    return show(shards, total, label)


def _bar(shards: Iterable[Shard], total: int, label: str) -> Iterator[Shard]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    rate = TextColumn("{task.fields[rate]:.0f} sentences/s")
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        rate,
        Remaining(),
    )
    started = time.monotonic()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(label, total=total, rate=0.0)
        for shard in shards:
            done = progress.tasks[0].completed + len(shard)
            progress.update(task, completed=done, rate=done / (time.monotonic() - started))
            yield shard


def _lines(shards: Iterable[Shard], total: int, label: str) -> Iterator[Shard]:
    started = said = time.monotonic()
    done = 0
    for shard in shards:
        done += len(shard)
        now = time.monotonic()
        if now - said >= SECONDS_BETWEEN_LINES or done == total:
            said = now
            print(_line(label, done, total, now - started), file=sys.stderr, flush=True)
        yield shard


def _line(label: str, done: int, total: int, seconds: float) -> str:
    rate = done / max(seconds, 1e-9)
    left = (total - done) / rate
    return f"{label}: {done:,} of {total:,} sentences, {rate:,.0f}/s, {left:,.0f} s left"
