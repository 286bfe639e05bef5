"""Shards on a Ray cluster: on all cores and GPUs of one machine or of many."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from headscope.workers.cluster import connected, find_nodes, make_plan
from headscope.workers.crew import hired
from headscope.workers.engine import Outcome, Piece, Work
from headscope.workers.ledger import Ledger


@dataclass(frozen=True)
class RayEngine:
    """The engine for what takes too long in one process.

    `address` is that of a running cluster, `workers` how many processes share its cores; by default
    there is one for every GPU, or for every so many cores as torch uses here.
    """

    address: str | None = None
    workers: int | None = None
    name: str = "ray"

    @contextmanager
    def open(self) -> Iterator["RayPool"]:
        """Connect to the cluster, or start one on this machine and stop it at the end."""
        with connected(self.address):
            yield RayPool(self.workers)


@dataclass(frozen=True)
class RayPool:
    """Workers on a cluster."""

    workers: int | None

    def share(self, threads: int, *, needs_gpu: bool) -> int:
        """So many threads as a worker has cores; workers on GPUs share those of their nodes."""
        nodes = find_nodes()
        plan = make_plan(nodes, workers=self.workers, threads=threads, needs_gpu=needs_gpu)
        cores = sum(node.cpus for node in nodes) // plan.workers if needs_gpu else plan.cpus
        return max(1, min(threads, cores))

    def run(
        self, work: Work[Piece, Outcome], pieces: Iterable[Piece]
    ) -> Iterator[tuple[Piece, Outcome]]:
        """Do the work on every piece; a worker that dies costs only the piece in its hands."""
        plan = make_plan(
            find_nodes(),
            workers=self.workers,
            threads=work.threads,
            needs_gpu=work.needs_gpu,
        )
        with hired(work, plan) as crew:
            yield from crew.results(Ledger(pieces))
