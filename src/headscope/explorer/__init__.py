"""Running the explorer: a missing run or model and a taken port are said before it starts."""

import logging
import socket
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.errors import HeadscopeError

if TYPE_CHECKING:
    from headscope.explorer.safety import Access
    from headscope.model.model import Model

CONNECTIONS = 200  # beyond which visitors are asked to come back; macOS allows a process 256 files


def serve(
    runs: Sequence[str | Path],
    *,
    model: str | None = None,
    load: Mapping[str, Any] | None = None,
    host: str = "127.0.0.1",
    port: int = 8642,
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve until Ctrl-C; `ready` gets the address to open once visitors are answered.

    `load` are options of `headscope.load`, such as `dtype` and `device_map`.
    """
    _require_extra()
    import uvicorn

    from headscope.explorer.answers.runs import Library
    from headscope.explorer.api import create_app
    from headscope.explorer.safety import Access
    from headscope.explorer.texts import Texts

    library, access = Library(runs), Access.for_host(host)
    if model is not None:
        check_model(model)
    with bind(host, port) as listener:
        open_model = None if model is None else partial(_load, model, dict(load or {}))
        app = create_app(library, Texts(model, open_model, own_process=True), access)
        config = configure(app)
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # it would log every lost socket
        library.read_all()  # the first visitor should not wait for it
        listener.listen()
        ready(address(listener, access))
        uvicorn.Server(config).run(sockets=[listener])


def configure(app: Any) -> Any:
    """uvicorn's settings."""
    import uvicorn

    return uvicorn.Config(
        app,
        http="h11",
        ws="none",
        limit_concurrency=CONNECTIONS,
        h11_max_incomplete_event_size=16 * 1024,
        log_level="error",  # strangers must not fill the log
        access_log=False,
        timeout_graceful_shutdown=2,
    )


def check_model(name: str) -> None:
    """Refuse a model that is nowhere to be found; its weights are loaded in the background."""
    from headscope.model.loading.source import explain, find_source, is_reachable

    source = find_source(name)
    if not source.hub:
        return
    from transformers.utils.hub import cached_file

    try:
        cached_file(source.place, "config.json", local_files_only=not is_reachable())
    except Exception as error:  # the hub has many, which the loader puts into words
        raise explain(error, source, "configuration") from error


def bind(host: str, port: int) -> socket.socket:
    """A socket bound to the address; says what to do where that is impossible."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, place = found[0]
        # asyncio sends at once only on sockets that are called TCP; others wait for an
        # acknowledgement between the head and the body of an answer, 40 ms a file.
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise HeadscopeError(
            f"The explorer cannot listen on {host} port {port}: {reason}. Choose another --port "
            "(0 takes a free one) or --host."
        ) from error
    return listener


def address(listener: socket.socket, access: "Access") -> str:
    """The address to open, with the token where one is needed."""
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    query = "" if access.token is None else f"?token={access.token}"
    return f"http://{shown}:{port}/{query}"


def _load(name: str, options: dict[str, Any]) -> "Model":
    from headscope.model.loading.load import load

    return load(name, **options)


def _require_extra() -> None:
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        raise HeadscopeError(
            f"The explorer needs {' and '.join(missing)}: pip install 'headscope[serve]'."
        )
