"""Work on a Ray cluster: on all cores and GPUs of one machine or of many.

Every piece is a Ray task. Ray chooses its node, reuses processes, and repeats a task whose process
or node died. Here remain the number of tasks in progress, the opening of the work once per process,
and errors: a task returns an error as a value, since Ray prints a traceback of what is raised.
"""

import logging
import os
import pickle
import re
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from types import ModuleType
from typing import Any

import headscope
from headscope.errors import HeadscopeError, RunError
from headscope.workers import Outcome, Piece, Work

ATTEMPTS = 3  # at one piece; then it is named and the run stops
CHECK_SECONDS = 5.0  # without news, after which the nodes are looked at
ANSWER_SECONDS = 5.0  # that a cluster has to accept a connection
SETTINGS = {  # of a cluster that is started here
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is reported to anybody
    "RAY_worker_niceness": "0",  # on a busy machine workers get as much as other processes
}
HOST = re.compile(r"(?P<host>[^/:]+|\[.+\]):(?P<port>\d+)")


@dataclass(frozen=True)
class RayEngine:
    """The engine for what takes too long in one process.

    `address` is that of a running cluster, `workers` the number of processes that share its cores;
    by default one per GPU, or one for as many cores as torch has threads here.
    """

    address: str | None = None
    workers: int | None = None
    name: str = "ray"

    @contextmanager
    def open(self) -> Iterator["RayPool"]:
        """Connect to the cluster, or start one on this machine and stop it at the end."""
        with connected(self.address):
            nodes = find_nodes()
            if not any(node.gpus for node in nodes):  # else they may be what is asked for
                place_workers(nodes, self.workers, 1, needs_gpu=False)
            yield RayPool(self.workers)


@dataclass(frozen=True)
class Node:
    """The cores and GPUs of one machine of the cluster."""

    cpus: int
    gpus: int


@dataclass(frozen=True)
class Placement:
    """How many workers there are at a time, and the cores and GPUs that each reserves."""

    workers: int
    cpus: int
    gpus: int


@dataclass(frozen=True)
class RayPool:
    """A connection to a cluster, and how many workers were asked for."""

    workers: int | None = None

    def share(self, threads: int, *, needs_gpu: bool) -> int:
        """One thread per core of a worker; workers on GPUs share the cores of their nodes."""
        nodes = find_nodes()
        placement = place_workers(nodes, self.workers, threads, needs_gpu=needs_gpu)
        cores = placement.cpus
        if needs_gpu:
            cores = sum(node.cpus for node in nodes) // placement.workers
        return max(1, min(threads, cores))

    def run(
        self, work: Work[Piece, Outcome], pieces: Iterable[Piece]
    ) -> Iterator[tuple[Piece, Outcome]]:
        """Every piece with its outcome, as they arrive; one piece per worker is in progress."""
        ray: Any = import_ray()
        nodes, workers = find_nodes(), self.workers
        if workers is not None:  # nodes may have gone since the run began
            room = sum(node.gpus if work.needs_gpu else node.cpus for node in nodes)
            workers = max(1, min(workers, room))
        placement = place_workers(nodes, workers, work.threads, needs_gpu=work.needs_gpu)
        task = ray.remote(
            num_cpus=placement.cpus,
            num_gpus=placement.gpus,
            max_retries=ATTEMPTS - 1,
            max_calls=0,  # a process keeps its model: on GPUs Ray would end it after every piece
            scheduling_strategy="SPREAD",
        )(do_piece)
        # A list keeps Ray from sending the content along with every piece.
        content = [ray.put(ray.cloudpickle.dumps(work))]
        remaining = iter(pieces)
        in_progress: dict[Any, tuple[Piece, int]] = {}  # with the number of the attempt

        def submit(piece: Piece, attempt: int = 1) -> None:
            in_progress[task.remote(content, headscope.__version__, piece)] = (piece, attempt)

        try:
            for piece in islice(remaining, placement.workers):
                submit(piece)
            while in_progress:
                finished, _ = ray.wait(list(in_progress), timeout=CHECK_SECONDS)
                if not finished:
                    check_room(find_nodes(), placement)
                    continue
                piece, attempt = in_progress.pop(finished[0])
                try:
                    outcome = ray.get(finished[0])
                except ray.exceptions.RayError as error:  # after all attempts of Ray
                    outcome, attempt = Failure(_explain(error)), ATTEMPTS
                if not isinstance(outcome, Failure):
                    for following in islice(remaining, 1):  # while this outcome is written
                        submit(following)
                    yield piece, outcome
                elif attempt < ATTEMPTS:
                    submit(piece, attempt + 1)
                else:
                    raise RunError(
                        f"{work.describe(piece)} failed {ATTEMPTS} times, the last time because: "
                        f"{outcome.reason.rstrip('.')}. What is finished is kept; run the same "
                        "command again when this is mended."
                    )
        finally:  # after an error or Ctrl-C, or if nobody asks for the rest
            for reference in in_progress:
                ray.cancel(reference, force=True)


@dataclass(frozen=True)
class Failure:
    """What a task returns in place of an outcome: what went wrong, in one line."""

    reason: str


_opened: dict[str, Any] = {}  # the work that this process of the cluster has opened, by its content


def do_piece(content: list[Any], version: str, piece: Any) -> Any:
    """The outcome of one piece or a Failure; runs in a process of the cluster."""
    try:
        return _open(content, version)(piece)
    except Exception as error:
        return Failure(_explain(error))


def _open(content: list[Any], version: str) -> Work[Any, Any]:
    """The work, which a process opens once."""
    if version != headscope.__version__:
        raise RunError(
            f"This node has headscope {headscope.__version__}, the run was started with "
            f"{version}; install the same version on every node."
        )
    (reference,) = content
    name = reference.hex()
    if name not in _opened:
        _opened.clear()
        work = pickle.loads(import_ray().get(reference))
        work.open()
        _opened[name] = work
    return _opened[name]


def place_workers(
    nodes: list[Node], workers: int | None, threads: int, *, needs_gpu: bool
) -> Placement:
    """One worker per GPU, or per `threads` cores; or the number asked for, sharing the cores."""
    if workers is not None and workers < 1:
        raise RunError(f"{workers} workers cannot work; ask for at least one.")
    cores = sum(node.cpus for node in nodes)
    gpus = sum(node.gpus for node in nodes)
    if needs_gpu:
        if gpus < (workers or 1):
            raise RunError(
                f"The model is on a GPU and the cluster has {gpus} GPUs, too few for "
                f"{workers or 1} workers; ask for fewer with `--workers`, or use `--device cpu`."
            )
        return Placement(workers or gpus, cpus=0, gpus=1)
    if cores < (workers or 1):
        raise RunError(
            f"The cluster has {cores} CPUs, too few for {workers or 1} workers; "
            "ask for fewer with `--workers`, or add nodes."
        )
    if workers is None:
        cpus = min(threads, max(node.cpus for node in nodes))
        return Placement(sum(node.cpus // cpus for node in nodes), cpus, gpus=0)
    cpus = min(threads, cores // workers)
    while sum(node.cpus // cpus for node in nodes) < workers:  # a worker fits on one node
        cpus -= 1
    return Placement(workers, cpus, gpus=0)


def check_room(nodes: list[Node], placement: Placement) -> None:
    """Refuse to wait for a cluster that no longer has a node for any worker."""
    for node in nodes:
        if node.cpus >= placement.cpus and node.gpus >= placement.gpus:
            return
    raise RunError(
        f"No node with {placement.cpus} CPUs and {placement.gpus} GPUs is left in the cluster; "
        "what is finished is kept, so run the same command again when there is one."
    )


def find_nodes() -> list[Node]:
    """The machines of the cluster that are alive."""
    nodes = []
    for node in import_ray().nodes():
        if node["Alive"]:
            resources = node["Resources"]
            nodes.append(Node(int(resources.get("CPU", 0)), int(resources.get("GPU", 0))))
    return nodes


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


def _connect(ray: ModuleType, address: str) -> None:
    _check_answers(address)
    options = {"include_dashboard": False} if address == "local" else {}
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **options)
    except (RuntimeError, ConnectionError, ValueError, OSError, ImportError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = lines[0].rstrip(".") if lines else "no reason given"
        raise RunError(
            f"Ray cannot be used at {address!r} ({reason}); start a cluster with "
            "`ray start --head`, or leave the address out to use this machine alone."
        ) from error


def _check_answers(address: str) -> None:
    """Refuse an address without a server at once; Ray itself tries for a minute."""
    match = HOST.fullmatch(address)
    if match is None:
        return
    try:
        host, port = match["host"].strip("[]"), int(match["port"])
        socket.create_connection((host, port), timeout=ANSWER_SECONDS).close()
    except OSError as error:
        raise RunError(
            f"Nobody answers at {address} ({error.strerror or error}); check the address of the "
            "cluster (`ray status` on its head node), or leave it out to use this machine alone."
        ) from error


def _explain(error: Exception) -> str:
    """What was raised in the worker, or how it died, in one line."""
    name, message = type(error).__name__, (str(error).splitlines() or [""])[0]
    if isinstance(error, HeadscopeError):
        return message
    if name == "OutOfMemoryError" and type(error).__module__.startswith("ray."):
        return "its node ran out of memory"
    if name in ("WorkerCrashedError", "NodeDiedError", "LocalRayletDiedError"):
        return "its process or its node died"
    return f"{name}: {message}"
