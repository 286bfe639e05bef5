"""How far a long piece of work has come: a bar on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from headscope.wording import counted, plain

Item = TypeVar("Item")

_LINE_EVERY = 10.0  # seconds


def show_progress(
    items: Iterable[Item],
    total: int | None,
    noun: str,
    *,
    label: str = "",
    size: Callable[[Item], int] = lambda item: 1,
) -> Iterator[Item]:
    """Yield the items and report on stderr how many are done, the rate and the time left.

    `noun` is in the plural. `size` says how many an item counts for: a shard holds many sentences.
    """
    label = plain(label)
    if sys.stderr.isatty():
        yield from _bar(items, total, noun, label, size)
        return
    start = reported = time.monotonic()
    done = 0
    for item in items:
        yield item
        done += size(item)
        now = time.monotonic()
        if now - reported >= _LINE_EVERY and done != total:  # the last line comes at the end
            reported = now
            _say(label, done, total, noun, now - start)
    _say(label, done, total, noun, time.monotonic() - start)


def _bar(
    items: Iterable[Item], total: int | None, noun: str, label: str, size: Callable[[Item], int]
) -> Iterator[Item]:
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn(f"{noun}, {{task.fields[rate]:,.0f}}/s"),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(label, total=total, rate=0.0)
        for item in items:
            yield item
            bar.update(task, advance=size(item), rate=bar.tasks[task].speed or 0.0)


def _say(label: str, done: int, total: int | None, noun: str, seconds: float) -> None:
    rate = done / max(seconds, 1e-9)
    line = f"{counted(done, noun)}, {rate:,.0f}/s, {seconds:,.0f} s"
    if total is not None and done < total:
        left = (total - done) / max(rate, 1e-9)
        line = f"{done:,} of {counted(total, noun)}, {rate:,.0f}/s, {left:,.0f} s left"
    print(f"{label}: {line}" if label else line, file=sys.stderr, flush=True)
