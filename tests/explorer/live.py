"""The app behind a real server on a free port, in a thread of the tests."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette

from headscope.explorer import address, bind, configure
from headscope.explorer.safety import Access


@contextmanager
def live(app: Starlette) -> Iterator[str]:
    """The address without its last slash, for as long as the block runs."""
    with bind("127.0.0.1", 0) as listener:
        server = uvicorn.Server(configure(app))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield address(listener, Access()).rstrip("/")
        server.should_exit = True
        thread.join(timeout=10)
