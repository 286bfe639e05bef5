"""The explorer as an ASGI app: guard, pages, files, and the API.

Questions are answered in JSON, and in binary for the weights of a typed text.
"""

import asyncio
import mimetypes
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from importlib.resources import files
from os import stat_result
from pathlib import PureWindowsPath
from typing import Any, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from headscope import theme
from headscope.errors import HeadscopeError
from headscope.explorer import addresses
from headscope.explorer.addresses import Answer
from headscope.explorer.answers.runs import Library, Sources
from headscope.explorer.description import describe
from headscope.explorer.pages import PAGES, explorer_script
from headscope.explorer.safety import Access, Guard
from headscope.explorer.texts import Texts
from headscope.explorer.wire import Limits, Refusal, RefusedError, TextRequest, read_request

Asked = Callable[[Request], Awaitable[bytes]]
Made = TypeVar("Made")
THREADS = 4  # that compute answers
PIECE = 256 * 1024  # bytes of an answer that are handed to the network at once
# A machine's own table of types may say otherwise, and a browser runs no script of another type.
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


class Api:
    """Answers over the runs of a library and the texts of a model."""

    def __init__(self, library: Library, texts: Texts) -> None:
        self.texts = texts
        self.sources = Sources(library, texts.facts, texts.offered())
        self.threads = ThreadPoolExecutor(THREADS, thread_name_prefix="headscope-reads")

    def close(self) -> None:
        """End the threads and the model's process."""
        self.threads.shutdown(wait=False, cancel_futures=True)
        self.texts.close()

    def routes(self) -> list[Route]:
        """Every address under /api."""
        asked = [
            Route(f"/api/{answer.path}", answered(partial(self.ask, answer)))
            for answer in addresses.ANSWERS
        ]
        openapi = Route("/api/openapi.json", lambda request: sent(description()))
        return [*asked, openapi, Route("/api/trace", self.trace, methods=["POST"])]

    async def ask(self, answer: Answer, request: Request) -> bytes:
        """The answer as JSON."""
        parts = [request.path_params[name] for name in answer.parts]
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.threads, answer.content, self.sources, parts)

    async def trace(self, request: Request) -> Response:
        """The weights of a text, packed for a view."""
        try:
            asked = await read_body(request, self.texts.limits)
            content = await unless_left(request, self.texts.trace(asked))
        except RefusedError as refusal:
            return refused(refusal)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody is there to read it
        return StreamingResponse(pieces(content), media_type="application/octet-stream")


def description() -> bytes:
    """The OpenAPI document."""
    return msgspec.json.encode(describe(addresses.ANSWERS))


def answered(ask: Asked) -> Callable[[Request], Awaitable[Response]]:
    """Send what is asked for; mistakes become sentences."""

    async def respond(request: Request) -> Response:
        try:
            return sent(await ask(request))
        except RefusedError as refusal:
            return refused(refusal)
        except HeadscopeError as mistake:
            return refused(RefusedError(409, str(mistake)))

    return respond


def sent(content: bytes, status: int = 200, **headers: str) -> Response:
    """JSON as an answer."""
    headers = {"cache-control": "no-store", **headers}
    return Response(content, status, headers=headers, media_type="application/json")


async def pieces(content: bytes) -> AsyncIterator[bytes]:
    """A large answer piece by piece, so that a slow reader holds up nobody."""
    for start in range(0, len(content), PIECE):
        yield content[start : start + PIECE]


async def unless_left(request: Request, work: Awaitable[Made]) -> Made:
    """What the work makes; it is cancelled when the visitor leaves."""
    job, left = asyncio.ensure_future(work), asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({job, left}, return_when=asyncio.FIRST_COMPLETED)
        if not job.done():
            raise ClientDisconnect
        return await job
    finally:
        job.cancel()
        left.cancel()


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def refused(refusal: RefusedError) -> Response:
    """The refusal as an answer."""
    later = {"retry-after": "5"} if refusal.status == 503 else {}
    return sent(msgspec.json.encode(Refusal(refusal.message)), refusal.status, **later)


async def read_body(request: Request, limits: Limits) -> TextRequest:
    """The body as a TextRequest, or a RefusedError that says what is wrong with it."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RefusedError(415, "Send the request as application/json.")
    try:
        async with asyncio.timeout(limits.body_seconds):
            body = await _bounded(request, limits.body)
    except TimeoutError as error:
        said = f"The request did not arrive within {limits.body_seconds:g} seconds."
        raise RefusedError(408, said) from error
    return read_request(body)


async def _bounded(request: Request, limit: int) -> bytes:
    """Stop reading as soon as the body is too large, whatever its length header says."""
    received = bytearray()
    async for chunk in request.stream():
        received += chunk
        if len(received) > limit:
            raise RefusedError(413, f"The request is larger than {limit:,} bytes.")
    return bytes(received)


class StaticTree(StaticFiles):
    """The files in `static/`; a browser asks each time if one changed."""

    def __init__(self) -> None:
        super().__init__(packages=[("headscope", "static")])

    def lookup_path(self, path: str) -> tuple[str, stat_result | None]:
        """As Starlette's; what cannot be the name of a file of ours never reaches the disk.

        Older versions fail on a NUL, and ask Windows for the share that an absolute path names.
        """
        if "\0" in path or PureWindowsPath(path).anchor:
            return "", None
        return super().lookup_path(path)

    def file_response(self, *given: Any, **named: Any) -> Response:
        """As Starlette's, never taken from a cache unasked."""
        response = super().file_response(*given, **named)
        response.headers["cache-control"] = "no-cache"
        return response


def create_app(library: Library, texts: Texts, access: Access | None = None) -> Starlette:
    """The app over these runs and this model, for visitors who may have access."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        api.close()

    api = Api(library, texts)
    return Starlette(
        routes=[*file_routes(), *api.routes()],
        middleware=[Middleware(Guard, access=access or Access())],
        exception_handlers={HTTPException: _http_error},
        lifespan=lifespan,
    )


def file_routes() -> list[BaseRoute]:
    """The one document under every page's address, the theme, and the static tree."""
    for ending, kind in TYPES.items():
        mimetypes.add_type(kind, ending)
    own = StaticTree()

    async def page(request: Request) -> Response:
        return await own.get_response("explorer/index.html", request.scope)

    def colors(request: Request) -> Response:
        headers = {"cache-control": "no-cache"}
        return Response(theme.css_variables(), media_type="text/css", headers=headers)

    def code(request: Request) -> Response:
        headers = {"cache-control": "no-cache"}
        return Response(explorer_script(), media_type="text/javascript", headers=headers)

    return [
        *(Route(f"/{name}", page) for name in ("", *PAGES)),
        Route("/theme.css", colors),
        Route("/explorer.js", code),
        Mount("/static", own),
    ]


def _http_error(request: Request, error: Exception) -> Response:
    """A sentence as JSON, or a page for a browser that follows a wrong link."""
    assert isinstance(error, HTTPException)
    if error.status_code == 404 and "text/html" in request.headers.get("accept", ""):
        page = files("headscope").joinpath("static", "explorer", "lost.html")
        return HTMLResponse(page.read_text(encoding="utf-8"), 404)
    said = {404: "There is nothing at this address.", 405: "This address takes another method."}
    answer = refused(RefusedError(error.status_code, said.get(error.status_code, error.detail)))
    answer.headers.update(error.headers or {})
    return answer
