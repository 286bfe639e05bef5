"""Answers that are computed once and kept, up to a number of bytes, the least used going first."""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor

THREADS = 4


class Kept:
    """Bytes by key; visitors who ask for the same at the same time wait for one computation."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._done: OrderedDict[Hashable, bytes] = OrderedDict()
        self._running: dict[Hashable, Future[bytes]] = {}
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="headscope-reads")

    async def get(self, key: Hashable, make: Callable[[], bytes]) -> bytes:
        """What is kept under the key, or what `make` makes, in a thread; an error is not kept."""
        with self._lock:
            if key in self._done:
                self._done.move_to_end(key)
                return self._done[key]
            running = self._running.get(key)
            if running is None:
                running = self._running[key] = self._threads.submit(self._make, key, make)
        return await asyncio.shield(asyncio.wrap_future(running))

    def close(self) -> None:
        """Let the threads end."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _make(self, key: Hashable, make: Callable[[], bytes]) -> bytes:
        try:
            made = make()
            with self._lock:
                self._keep(key, made)
            return made
        finally:
            with self._lock:
                del self._running[key]

    def _keep(self, key: Hashable, made: bytes) -> None:
        self._done[key] = made
        self._size += len(made)
        while self._size > self._most:
            _, dropped = self._done.popitem(last=False)
            self._size -= len(dropped)
