"""A Ray cluster: connecting to it, what its nodes have, and how many workers they can hold."""

import logging
import os
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType

from headscope.errors import RunError

SETTINGS = {  # of a cluster that is started here
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is reported to anybody
    "RAY_worker_niceness": "0",  # on a busy machine workers get as much as other processes
}
_HOST = re.compile(r"(?P<host>[^/:]+|\[.+\]):(?P<port>\d+)")
_ANSWER_WITHIN = 5.0  # seconds


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

    def __str__(self) -> str:
        return "a GPU" if self.gpus else f"{self.cpus} CPU{'s' if self.cpus > 1 else ''}"


def import_ray() -> ModuleType:
    """Ray, or an error that says how to install it."""
    try:
        import ray
    except ImportError as error:
        raise RunError(
            'Ray is not installed; install it with `pip install "headscope[ray]"`.'
        ) from error
    return ray


@contextmanager
def connected(address: str | None) -> Iterator[None]:
    """A connection to a cluster: at the address, at $RAY_ADDRESS, or started here.

    A process that is connected already stays connected.
    """
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    ray = import_ray()
    if ray.is_initialized():
        if address is not None:
            raise RunError(
                f"This process is connected to a Ray cluster already; leave {address} out, or call "
                "ray.shutdown() first."
            )
        yield
        return
    _connect(ray, address or os.environ.get("RAY_ADDRESS") or "local")
    try:
        yield
    finally:
        ray.shutdown()


def find_nodes() -> list[Node]:
    """The machines of the cluster that are alive."""
    alive = (node["Resources"] for node in import_ray().nodes() if node["Alive"])
    return [Node(int(has.get("CPU", 0)), int(has.get("GPU", 0))) for has in alive]


def place_workers(
    nodes: Sequence[Node], *, workers: int | None, threads: int, needs_gpu: bool
) -> Placement:
    """One worker per GPU, or per `threads` cores; or the number asked for, sharing the cores."""
    if workers is not None and workers < 1:
        raise RunError(f"{workers} workers cannot work; ask for at least one.")
    if needs_gpu:
        return _place_on_gpus(nodes, workers)
    cores = sum(node.cpus for node in nodes)
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


def _place_on_gpus(nodes: Sequence[Node], workers: int | None) -> Placement:
    gpus = sum(node.gpus for node in nodes)
    if gpus < (workers or 1):
        raise RunError(
            f"The model is on a GPU and the cluster has {gpus} GPUs, too few for "
            f"{workers or 1} workers; ask for fewer with `--workers`, or use `--device cpu`."
        )
    spare = all(node.cpus >= node.gpus for node in nodes)
    return Placement(workers or gpus, int(spare), 1)


def _places(nodes: Sequence[Node], cpus: int) -> int:
    return sum(node.cpus // cpus for node in nodes)


def _connect(ray: ModuleType, address: str) -> None:
    _check_answers(address)
    own = {"include_dashboard": False} if address == "local" else {}
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **own)
    except (RuntimeError, ConnectionError, ValueError, OSError, ImportError) as error:
        said = next((line for line in str(error).splitlines() if line.strip()), "no reason given")
        raise RunError(
            f"Ray cannot be used at {address!r} ({said.strip().rstrip('.')}); start a cluster with "
            "`ray start --head`, or leave the address out to use this machine alone."
        ) from error


def _check_answers(address: str) -> None:
    """Refuse an address without a server at once; Ray itself tries for a minute."""
    match = _HOST.fullmatch(address)
    if match is None:
        return
    try:
        place = match["host"].strip("[]"), int(match["port"])
        socket.create_connection(place, timeout=_ANSWER_WITHIN).close()
    except OSError as error:
        raise RunError(
            f"Nobody answers at {address} ({error.strerror or error}); check the address of the "
            "cluster (`ray status` on its head node), or leave it out to use this machine alone."
        ) from error
