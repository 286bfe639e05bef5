"""Connections that do not take up room for ever: silent and stalled ones are closed.

uvicorn waits without end for the first request and for a reader that does not read. Where there
are too many connections, the one that has been silent longest makes room for the new one, so that
no number of silent sockets locks the owner out.
"""

import asyncio
import logging
import sys
import time

from uvicorn.protocols.http.h11_impl import H11Protocol

if sys.platform != "win32":
    import resource

PATIENCE = 10.0  # seconds for a request's headers, and for a reader to take anything
MOST = 256
FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 5\r\n"
    b"content-length: 0\r\n\r\n"
)


class PatientProtocol(H11Protocol):
    """HTTP/1.1 with a time limit on silence and a limit on connections."""

    patience = PATIENCE
    most = MOST
    _silent_since = 0.0
    _unsent = 0
    _timer: asyncio.TimerHandle | None = None

    @property
    def is_silent(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Find room for the connection and start its clock."""
        super().connection_made(transport)
        self._silent_since = self.loop.time()
        self._timer = self.loop.call_later(self.patience, self._look)
        if len(self.connections) > self.most:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """From here on the connection is silent until the next request."""
        self._silent_since = self.loop.time()
        super().on_response_complete()

    def _make_room(self) -> None:
        others = [one for one in self.connections if isinstance(one, PatientProtocol)]
        silent = [one for one in others if one.is_silent and one is not self]
        if silent:
            oldest = min(silent, key=lambda one: one._silent_since)
            oldest.connections.discard(oldest)
            oldest.transport.abort()
        else:
            self.transport.write(FULL)
            self.transport.close()

    def _look(self) -> None:
        """Close what has been silent too long, or has sent nothing since the last look."""
        unsent = self.transport.get_write_buffer_size()
        left = self.patience - (self.loop.time() - self._silent_since)
        is_stalled = 0 < self._unsent == unsent
        if (self.is_silent and left <= 0) or is_stalled:
            self.transport.abort()
            return
        self._unsent = unsent
        wait = left if self.is_silent and not unsent else self.patience
        self._timer = self.loop.call_later(wait, self._look)


class OncePerMinute(logging.Filter):
    """Lets asyncio say once a minute that the descriptors are used up, not thousands of times."""

    def __init__(self) -> None:
        super().__init__()
        self._said = -60.0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is shown."""
        if "out of system resource" not in record.getMessage():
            return True
        if time.monotonic() - self._said < 60:
            return False
        self._said = time.monotonic()
        return True


def descriptors() -> int:
    """How many files and sockets this process may have open, after asking for all it can get."""
    if sys.platform == "win32":
        return 2 * MOST
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4096 if hard == resource.RLIM_INFINITY else min(4096, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return 4096 if soft == resource.RLIM_INFINITY else soft


def protocol(descriptors: int) -> type[PatientProtocol]:
    """The protocol for a process with so many descriptors: half of them are for visitors."""
    most = max(4, min(MOST, descriptors // 2))
    return type("PatientProtocol", (PatientProtocol,), {"most": most})
