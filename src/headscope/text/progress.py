"""How far a long pass over a stream has come: a bar on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")

_LINE_EVERY = 10.0  # seconds


def show_progress(items: Iterable[Item], total: int | None, noun: str) -> Iterator[Item]:
    """Pass the items on and report on stderr their number, the rate and the time left."""
    show = _bar if sys.stderr.isatty() else _lines
    return show(items, total, noun)


def _bar(items: Iterable[Item], total: int | None, noun: str) -> Iterator[Item]:
    from rich import progress
    from rich.console import Console

    columns = (
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn(f"{noun}, {{task.fields[rate]:,.0f}}/s"),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(noun, total=total, rate=0.0)
        for item in items:
            yield item
            bar.update(task, advance=1, rate=bar.tasks[task].speed or 0.0)


def _lines(items: Iterable[Item], total: int | None, noun: str) -> Iterator[Item]:
    start = reported = time.monotonic()
    done = 0
    for done, item in enumerate(items, start=1):
        yield item
        now = time.monotonic()
        if now - reported >= _LINE_EVERY:
            reported = now
            print(_line(done, total, noun, now - start), file=sys.stderr, flush=True)
    print(_line(done, total, noun, time.monotonic() - start), file=sys.stderr, flush=True)


def _line(done: int, total: int | None, noun: str, seconds: float) -> str:
    rate = done / max(seconds, 1e-9)
    if total is None or done >= total:
        return f"{done:,} {noun}, {rate:,.0f}/s, {seconds:,.0f} s"
    return f"{done:,} of {total:,} {noun}, {rate:,.0f}/s, {(total - done) / rate:,.0f} s left"
