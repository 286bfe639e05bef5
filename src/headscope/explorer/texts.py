"""Typed texts: traced one after the other by one worker, which is a process of its own.

The model is loaded by the worker, so that the explorer is up at once and works without it. A
semaphore bounds how many texts wait, a time limit how long. A text that fails, takes too long or
comes while too many wait gets an answer, and the next one is traced. A process that dies or does
not come back is replaced.
"""

import asyncio
import multiprocessing
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from headscope.explorer.tracing import Traced, answer, facts_of, sentence, work
from headscope.explorer.wire import (
    LIMITS,
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
        """Kill the process; the server and the thread that waits for it may both ask for it."""
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


class Texts:
    """The model for every visitor: a text waits for its turn, in the order in which they came."""

    def __init__(
        self,
        name: str | None,
        load: Load | None,
        limits: Limits = LIMITS,
        *,
        own_process: bool = False,
    ) -> None:
        self.limits = limits
        self._name = name or ""
        self._places = threading.BoundedSemaphore(limits.waiting)
        self._turns = ThreadPoolExecutor(1, thread_name_prefix="headscope-texts")
        self._kind = OwnProcess if own_process else Here
        self._load = load
        self._worker: Worker | None = None
        self._closed = False
        self._facts = ModelFacts("", "none", "Start `headscope serve` with --model to trace texts.")
        if load is not None:
            self._facts = ModelFacts(self._name, "loading")
            self._turns.submit(self._opened)

    def offered(self) -> TextLimits:
        return TextLimits(self.limits.text, self.limits.generate, self.limits.weights)

    def facts(self) -> ModelFacts:
        """The state of the model now; never waits."""
        return self._facts

    async def trace(self, request: TextRequest) -> bytes:
        """The framed view; raises RefusedError where there is none.

        Whoever stops waiting gives up his turn.
        """
        if self._facts.state == "none":
            raise RefusedError(409, "No model is loaded; start `headscope serve` with --model.")
        check_request(request, self.limits)
        if not self._places.acquire(blocking=False):
            raise BusyError(
                f"{self.limits.waiting} texts are waiting for the model; try again soon."
            )
        turn = self._turns.submit(self._trace, request)
        turn.add_done_callback(lambda _: self._places.release())
        try:
            return await asyncio.wait_for(asyncio.wrap_future(turn), self.limits.seconds)
        except TimeoutError:
            raise BusyError(
                f"The model took longer than {self.limits.seconds:g} seconds."
            ) from None

    def close(self) -> None:
        """Forget what is waiting and end the worker."""
        self._closed = True
        self._turns.shutdown(wait=False, cancel_futures=True)
        if self._worker is not None:
            self._worker.close()

    def _trace(self, request: TextRequest) -> bytes:
        worker = self._opened()
        try:
            return worker.trace(request).unpack()
        except LostError as lost:
            worker.close()
            self._worker = None
            if not self._closed:
                self._turns.submit(self._opened)
            raise BusyError(
                f"The process of the model {lost}; it is started again. Try a shorter text."
            ) from lost

    def _opened(self) -> Worker:
        """The worker, started if there is none; a model that failed to load is not tried again."""
        if self._worker is None and self._load is not None:
            self._facts = ModelFacts(self._name, "loading")
            self._worker = self._kind(self._load, self.limits)
            if self._closed:
                self._worker.close()
            try:
                self._facts = self._worker.open()
            except BaseException as error:  # a tokenizer's panic is no Exception
                self._facts = ModelFacts(self._name, "failed", sentence(error))
        if self._worker is None or self._facts.state != "ready":
            reason = self._facts.reason
            raise RefusedError(409, f"The model {self._name} could not be loaded: {reason}")
        return self._worker
