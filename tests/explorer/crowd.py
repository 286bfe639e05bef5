"""Many visitors at once, a third of their wishes bad: a few wishes in a test, a minute by hand."""

import asyncio
import math
import random
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx

Wish = tuple[str, str, dict]
GOOD: tuple[Wish, ...] = (
    ("GET", "/", {}),
    ("GET", "/static/explorer/main.js", {}),
    ("GET", "/api/session", {}),
    ("GET", "/api/runs/{run}", {}),
    ("GET", "/api/runs/{run}/measures/entropy", {}),
    ("GET", "/api/runs/{run}/heads/L0H1", {}),
    ("GET", "/api/compare/{run}/{run}", {}),
    ("POST", "/api/trace", {"json": {"text": "The cat sat on the mat."}}),
)
BAD: tuple[Wish, ...] = (
    ("GET", "/api/runs/..%2f..%2fetc%2fpasswd", {}),
    ("GET", "/static/../../../etc/passwd", {}),
    ("GET", "/api/session", {"headers": {"host": "evil.example"}}),
    ("POST", "/api/trace", {"json": {"text": "a"}, "headers": {"origin": "http://evil.example"}}),
    ("POST", "/api/trace", {"content": b"{", "headers": {"content-type": "application/json"}}),
    (
        "POST",
        "/api/trace",
        {"content": b" " * 900_000, "headers": {"content-type": "application/json"}},
    ),
    ("POST", "/api/trace", {"json": {"text": "a " * 3000}}),
    ("POST", "/api/trace", {"json": {"text": "", "kind": "brain", "nonsense": 1}}),
    ("DELETE", "/api/session", {}),
)


@dataclass
class Tally:
    """What came back."""

    good: Counter[int] = field(default_factory=Counter)
    bad: Counter[int] = field(default_factory=Counter)
    traces: Counter[int] = field(default_factory=Counter)  # of the good ones
    reads: list[float] = field(default_factory=list)  # seconds of every good GET
    waits: list[float] = field(default_factory=list)  # seconds of every trace that was answered
    slowest: float = 0.0

    def add(self, method: str, status: int, seconds: float, is_bad: bool) -> None:
        """Count one answer."""
        self.slowest = max(self.slowest, seconds)
        (self.bad if is_bad else self.good)[status] += 1
        if is_bad:
            return
        if method == "GET":
            self.reads.append(seconds)
            return
        self.traces[status] += 1
        if status == 200:
            self.waits.append(seconds)

    @property
    def broken(self) -> list[int]:
        """Statuses that must not occur."""
        wrong = [status for status in {*self.good, *self.bad} if status >= 500 and status != 503]
        return sorted([*wrong, *(status for status in self.bad if status < 400)])


async def visit(place: str, run: str, until: float, wishes: float, seed: int, tally: Tally) -> None:
    """One visitor: as fast as the answers come, every third wish a bad one."""
    chance = random.Random(seed)
    async with httpx.AsyncClient(base_url=place, timeout=60) as client:
        while time.monotonic() < until and wishes > 0:
            wishes -= 1
            is_bad = chance.random() < 1 / 3
            method, path, more = chance.choice(BAD if is_bad else GOOD)
            start = time.monotonic()
            answer = await client.request(method, path.format(run=run), **more)
            tally.add(method, answer.status_code, time.monotonic() - start, is_bad)


async def crowd(
    place: str, run: str, visitors: int, seconds: float = math.inf, wishes: float = math.inf
) -> Tally:
    """All visitors at once, for so long or until each had so many wishes."""
    tally = Tally()
    until = time.monotonic() + seconds
    visits = (visit(place, run, until, wishes, seed, tally) for seed in range(visitors))
    await asyncio.gather(*visits)
    return tally


def percentile(values: list[float], share: float) -> float:
    """The value that this share of them does not exceed; 0 of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def resident(pid: int) -> float:
    """Megabytes of memory that a process and its children hold."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    children = [int(child) for task in tasks for child in task.read_text().split()]
    return int(found[1]) / 1024 + sum(resident(child) for child in children)
