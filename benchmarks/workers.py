"""The same study in one process with one thread and by Ray workers with one thread each.

python -m benchmarks.workers
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
import xarray as xr

import headscope as hs
import headscope.engine.measure as measuring
from headscope.workers import Engine, LocalEngine, Outcome, Piece, Pool, Work
from headscope.workers.ray import RayEngine, connected

SENTENCES = 2048
SHARD = 64
ROUNDS = 2
WAYS: dict[str, Engine] = {
    "local": LocalEngine(),
    "ray, 1 worker": RayEngine(workers=1),
    "ray, 2 workers": RayEngine(workers=2),
}


def corpus() -> hs.Corpus:
    """The bundled corpus over and over."""
    sentences = list(hs.demo_corpus())
    return hs.Corpus.from_sentences(sentences[n % len(sentences)] for n in range(SENTENCES))


@dataclass(frozen=True)
class Timed:
    """An engine, and when each of its shards was done."""

    engine: Engine
    times: list[float] = field(default_factory=list)
    name: str = "timed"

    @contextmanager
    def open(self) -> Iterator[Pool]:
        with self.engine.open() as pool:
            yield TimedPool(pool, self.times)


@dataclass(frozen=True)
class TimedPool:
    pool: Pool
    times: list[float]

    def share(self, threads: int, *, needs_gpu: bool) -> int:
        return self.pool.share(threads, needs_gpu=needs_gpu)

    def run(
        self, work: Work[Piece, Outcome], pieces: Iterable[Piece]
    ) -> Iterator[tuple[Piece, Outcome]]:
        for done in self.pool.run(work, pieces):
            self.times.append(time.perf_counter())
            yield done


def measure(engine: Engine, model: hs.Model, texts: hs.Corpus) -> tuple[float, float, xr.Dataset]:
    """Sentences a second over the second half, when every worker has started; all seconds."""
    timed, start = Timed(engine), time.perf_counter()
    result = hs.study("vig2019", model, texts, engine=timed)
    half = len(timed.times) // 2
    rate = SHARD * (len(timed.times) - half) / (timed.times[-1] - timed.times[half - 1])
    return rate, time.perf_counter() - start, result


def compare(model: hs.Model, texts: hs.Corpus) -> None:
    """All ways, one after the other."""
    first: tuple[float, xr.Dataset] | None = None
    for name, engine in WAYS.items():
        rate, whole, result = measure(engine, model, texts)
        first = first or (rate, result)
        xr.testing.assert_identical(result, first[1])
        print(f"{name:15} {rate:7.0f} sentences/s {rate / first[0]:6.2f} ×   {whole:5.0f} s in all")


def main() -> None:
    torch.set_num_threads(1)
    measuring.SHARD_SENTENCES = SHARD
    model, texts = hs.load("mini-gpt2", device="cpu"), corpus()
    print(f"vig2019 of mini-gpt2, {SENTENCES:,} sentences, one thread a worker, the same bits")
    with connected(None):
        for _ in range(ROUNDS):
            compare(model, texts)


if __name__ == "__main__":
    main()
