"""How many workers share the cores and GPUs of a cluster, and what each of them gets."""

from collections.abc import Sequence
from dataclasses import dataclass

from headscope.errors import RunError


@dataclass(frozen=True)
class Node:
    """The cores and GPUs of one machine of the cluster."""

    cpus: int
    gpus: int


@dataclass(frozen=True)
class Placement:
    """How many workers there are, and the cores and GPUs of each."""

    workers: int
    cpus: int
    gpus: int

    def is_like(self, other: "Placement") -> bool:
        """Whether each worker has the same cores and GPUs, however many workers there are."""
        return (self.cpus, self.gpus) == (other.cpus, other.gpus)

    def __str__(self) -> str:
        return "a GPU" if self.gpus else f"{self.cpus} CPU{'s' if self.cpus > 1 else ''}"


def place_workers(
    nodes: Sequence[Node], *, workers: int | None, threads: int, needs_gpu: bool
) -> Placement:
    """One worker per GPU, or per `threads` cores; or the number asked for, sharing the cores."""
    if workers is not None and workers < 1:
        raise RunError(f"{workers} workers cannot work; ask for at least one.")
    cores, gpus = sum(node.cpus for node in nodes), sum(node.gpus for node in nodes)
    if needs_gpu and gpus < (workers or 1):
        raise RunError(
            f"The model is on a GPU and the cluster has {gpus} GPUs, too few for "
            f"{workers or 1} workers; ask for fewer with `--workers`, or use `--device cpu`."
        )
    if needs_gpu:
        spare = all(node.cpus >= node.gpus for node in nodes)
        return Placement(workers or gpus, int(spare), 1)
    if cores < (workers or 1):
        raise RunError(
            f"The cluster has {cores} CPUs, too few for {workers or 1} workers; "
            "ask for fewer with `--workers`, or add nodes."
        )
    if workers is None:
        each = min(threads, max(node.cpus for node in nodes))
        return Placement(_places(nodes, each), each, 0)
    each = min(threads, cores // workers)
    while _places(nodes, each) < workers:  # nodes of different sizes leave cores over
        each -= 1
    return Placement(workers, each, 0)


def _places(nodes: Sequence[Node], cpus: int) -> int:
    return sum(node.cpus // cpus for node in nodes)
