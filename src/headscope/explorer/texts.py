"""The queue before the model: bounded, fair, with a time limit, in front of a process of its own.

The model is loaded by the worker, so that the explorer is up at once and works without it. A text
that fails, takes too long or comes while the queue is full gets an answer; the next one is served.
A process that dies or does not come back is replaced.
"""

import asyncio
import multiprocessing
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from queue import PriorityQueue
from typing import TYPE_CHECKING

from headscope.explorer.tracing import Traced, answer, facts_of, sentence, work
from headscope.explorer.wire import (
    BusyError,
    Limits,
    ModelFacts,
    RefusedError,
    TextLimits,
    TextRequest,
    check_request,
)

if TYPE_CHECKING:
    from headscope.model.model import Model

Load = Callable[[], "Model"]
ROOM = 500  # characters more let one later text pass: 20,000 are overtaken by 40 texts at most


class LostError(Exception):
    """The worker is gone; another one must be started."""


class Here:
    """The model in this process, in the thread that asks."""

    def __init__(self, load: Load, limits: Limits) -> None:
        self._load = load
        self._limits = limits
        self._model: Model | None = None

    def open(self) -> ModelFacts:
        """Load the model; any error says why that failed."""
        self._model = self._load()
        return facts_of(self._model)

    def trace(self, request: TextRequest) -> Traced:
        assert self._model is not None
        return answer(self._model, request, self._limits)

    def close(self) -> None:
        """Nothing has to be ended."""


class OwnProcess:
    """The model in a process of its own, so that reads stay fast and a bad text ends only that."""

    def __init__(self, load: Load, limits: Limits) -> None:
        self._limits = limits
        self._closing = threading.Lock()
        spawn = multiprocessing.get_context("spawn")  # a fork would copy our threads' locks
        self._connection, theirs = spawn.Pipe()
        self._process = spawn.Process(target=work, args=(theirs, load, limits), daemon=True)
        self._process.start()
        theirs.close()

    def open(self) -> ModelFacts:
        """Wait until the model is loaded."""
        said = self._receive()
        if isinstance(said, ModelFacts):
            return said
        raise RefusedError(409, str(said))

    def trace(self, request: TextRequest) -> Traced:
        """One text, in at most the seconds of the limits; LostError if the process is lost."""
        try:
            self._connection.send(request)
            if not self._connection.poll(self._limits.seconds):
                raise LostError(f"took longer than {self._limits.seconds:g} seconds")
        except OSError as error:
            raise LostError("ended") from error
        made = self._receive()
        assert isinstance(made, Traced)
        return made

    def close(self) -> None:
        """Kill the process; the server and the thread of the queue may both ask for it."""
        with self._closing:
            self._process.kill()
            self._process.join()
            self._connection.close()

    def _receive(self) -> object:
        try:
            return self._connection.recv()
        except (EOFError, OSError) as error:
            raise LostError("ended; it may have run out of memory") from error


Worker = Here | OwnProcess  # has the model and traces one text at a time


@dataclass(order=True)
class _Job:
    turn: int
    number: int
    request: TextRequest | None = field(compare=False)  # None: there will be no more
    answer: "Future[bytes]" = field(compare=False, default_factory=Future)


class Texts:
    """The queue and the worker behind it, which a thread of its own feeds."""

    def __init__(
        self,
        name: str | None,
        load: Load | None,
        limits: Limits | None = None,
        *,
        own_process: bool = False,
    ) -> None:
        self.limits = limits or Limits()
        self._name = name or ""
        self._kind = OwnProcess if own_process else Here
        self._jobs: PriorityQueue[_Job] = PriorityQueue()
        self._numbers = count()
        self._places = threading.BoundedSemaphore(self.limits.waiting)
        self._worker: Worker | None = None
        self._closed = threading.Event()
        self._facts = ModelFacts("", "none", "Start `headscope serve` with --model to trace texts.")
        if load is not None:
            self._facts = ModelFacts(self._name, "loading")
            serve = partial(self._serve, load)
            threading.Thread(target=serve, name="headscope-texts", daemon=True).start()

    def offered(self) -> TextLimits:
        return TextLimits(self.limits.text, self.limits.generate, self.limits.weights)

    def facts(self) -> ModelFacts:
        """The state of the model now; never waits."""
        return self._facts

    async def trace(self, request: TextRequest) -> bytes:
        """The framed view; raises RefusedError where there is none.

        Whoever stops waiting gives up his place in the queue.
        """
        if self._facts.state == "none":
            raise RefusedError(409, "No model is loaded; start `headscope serve` with --model.")
        check_request(request, self.limits)
        if not self._places.acquire(blocking=False):
            raise BusyError(
                f"{self.limits.waiting} texts are waiting for the model; try again soon."
            )
        job = self._enqueue(request)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(job.answer), self.limits.seconds)
        except TimeoutError:
            raise BusyError(
                f"The model took longer than {self.limits.seconds:g} seconds."
            ) from None

    def close(self) -> None:
        """Forget what is waiting and end the worker."""
        self._closed.set()
        self._jobs.put(_Job(-1, next(self._numbers), None))
        if self._worker is not None:
            self._worker.close()

    def _enqueue(self, request: TextRequest) -> _Job:
        number = next(self._numbers)
        size = sum(len(text or "") for text in (request.text, request.pair, request.target))
        job = _Job(number + size // ROOM, number, request)
        job.answer.add_done_callback(lambda _: self._places.release())
        self._jobs.put(job)
        return job

    def _serve(self, load: Load) -> None:
        """Answer every job, with as many workers one after the other as it takes."""
        while not self._closed.is_set():
            self._facts = ModelFacts(self._name, "loading")
            try:
                self._worker = self._kind(load, self.limits)
                self._facts = self._worker.open()
            except BaseException as error:  # a tokenizer's panic is no Exception
                self._refuse_all(sentence(error))
                return
            while self._answer_next(self._worker):
                pass
            self._worker.close()

    def _answer_next(self, worker: Worker) -> bool:
        """Answer one job; False when this worker can answer no more."""
        job = self._jobs.get()
        if job.request is None:
            return False
        if not job.answer.set_running_or_notify_cancel():
            return True  # the visitor has left
        try:
            job.answer.set_result(worker.trace(job.request).unpack())
        except RefusedError as refusal:
            job.answer.set_exception(refusal)
        except LostError as lost:
            said = f"The process of the model {lost}; it is started again. Try a shorter text."
            job.answer.set_exception(BusyError(said))
            return False
        return True

    def _refuse_all(self, reason: str) -> None:
        self._facts = ModelFacts(self._name, "failed", reason)
        while (job := self._jobs.get()).request is not None:
            if job.answer.set_running_or_notify_cancel():
                said = f"The model {self._name} could not be loaded: {reason}"
                job.answer.set_exception(RefusedError(409, said))
