"""Processes forked from this one, each of which begins to work as soon as it is there.

To fork a process with a model in it takes as long as to read some thousand sentences. An executor
of the standard library begins when all its processes are there; here the first pieces wait in a
pipe before the first of them is.

```
           ┌─▶ process ─┐
pieces ────┼─▶ process ─┼───▶ outcomes       whoever is free takes the next piece
           └─▶ process ─┘
```
"""

import multiprocessing
import signal
from collections.abc import Callable
from concurrent.futures import Future
from itertools import count
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from multiprocessing.synchronize import Lock as ProcessLock
from threading import Lock, Thread
from typing import Any, Generic

from headscope.errors import RunError
from headscope.workers import Outcome, Piece


def can_fork() -> bool:
    """Whether this system can fork a process."""
    return "fork" in multiprocessing.get_all_start_methods()


class Forked(Generic[Piece, Outcome]):
    """Forked processes and what they are to do; `begin` is called once in each of them."""

    def __init__(self, work: Callable[[Piece], Outcome], begin: Callable[[], None]) -> None:
        self._context = multiprocessing.get_context("fork")
        self._work, self._begin = work, begin
        self._theirs, self._ours = self._context.Pipe(duplex=False)
        self._turn = self._context.Lock()  # to take a piece
        self._sending = Lock()
        self._numbers = count()
        self._waiting: dict[int, Future[Outcome]] = {}
        self._processes: dict[Connection, ForkProcess] = {}
        self._is_closed = False
        self._loss: RunError | None = None  # why nothing more will be done

    def submit(self, piece: Piece) -> Future[Outcome]:
        """Have a piece worked on; it waits if no process is free, or none has been started."""
        future: Future[Outcome] = Future()
        with self._sending:
            number = next(self._numbers)
            self._waiting[number] = future
            self._ours.send((number, piece))
        if self._is_closed:
            self._let_go()
        return future

    def start(self, processes: int) -> None:
        """Fork the processes. No thread of this process may hold a lock meanwhile.

        What the first of them have done is taken over between forks, so that they can go on.
        """
        for _ in range(processes):
            if self._is_closed:
                break
            end, other_end = self._context.Pipe(duplex=False)
            process = self._context.Process(
                target=self._take_pieces, args=(other_end,), daemon=True
            )
            process.start()
            other_end.close()
            self._processes[end] = process
            self._receive(0)
        Thread(target=self._collect, daemon=True).start()

    def close(self) -> None:
        """End the processes, whatever they are doing; nobody waits for an outcome any more."""
        self._is_closed = True
        for process in self._processes.values():
            process.terminate()
        self._let_go()

    def _take_pieces(self, outcomes: Connection) -> None:
        """What a process does until it is ended, or sees that its parent is gone."""
        self._ours.close()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears it too, and ends us
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._begin()
        while True:
            found = _take(self._turn, self._theirs)
            if found is None:
                return
            number, piece = found
            try:
                outcomes.send((number, self._work(piece), None))
            except BrokenPipeError:
                return
            except Exception as error:
                outcomes.send((number, None, error))

    def _collect(self) -> None:
        """Hand over what arrives until the end, then see the processes off."""
        while not self._is_closed:
            self._receive(None)
        for process in self._processes.values():
            process.join()

    def _receive(self, seconds: float | None) -> None:
        """Hand over what has arrived, or arrives within so many seconds."""
        for end in wait(list(self._processes), seconds):
            assert isinstance(end, Connection)
            try:
                number, outcome, error = end.recv()
            except (EOFError, OSError):
                self._give_up(self._processes[end])
                return
            future = self._waiting.pop(number)
            if error is None:
                future.set_result(outcome)
            else:
                future.set_exception(error)

    def _give_up(self, ended: ForkProcess) -> None:
        if self._is_closed:
            return
        ended.join()
        self._loss = RunError(
            f"A process that prepared inputs ended with exit code {ended.exitcode}; if memory was "
            "short, free some, and run the same command again to go on."
        )
        self.close()

    def _let_go(self) -> None:
        """Fail whatever is still waited for: with what went wrong, if anything did."""
        for number in list(self._waiting):
            future = self._waiting.pop(number, None)
            if future is not None and self._loss is None:
                future.cancel()
            elif future is not None:
                future.set_exception(self._loss)


def _take(turn: ProcessLock, pieces: Connection) -> tuple[int, Any] | None:
    """The next piece and its number; none comes when the parent is gone."""
    with turn:
        try:
            return pieces.recv()
        except EOFError:
            return None
