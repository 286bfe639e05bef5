"""The explorer as an ASGI app: guard, pages, files, and the API.

Questions are answered in JSON, and in binary for the weights of a typed text.
"""

import asyncio
import mimetypes
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from os import stat_result
from pathlib import PureWindowsPath
from typing import Any, TypeVar, get_type_hints

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from headscope import theme
from headscope.errors import HeadscopeError
from headscope.explorer import answers
from headscope.explorer.answers.card import card, head_records, input_text
from headscope.explorer.answers.runs import Kept, Library, Stamp
from headscope.explorer.description import describe
from headscope.explorer.pages import PAGES
from headscope.explorer.safety import Access, Guard
from headscope.explorer.texts import Texts
from headscope.explorer.wire import Limits, Refusal, RefusedError, TextRequest, read_request

Answer = Callable[[Request], Awaitable[Response]]
Made = TypeVar("Made")
PIECE = 256 * 1024  # bytes of an answer that are handed to the network at once
# A machine's own table of types may say otherwise, and a browser runs no script of another type.
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


class Api:
    """Answers over the runs of a library and the texts of a model."""

    def __init__(self, library: Library, texts: Texts) -> None:
        self.library = library
        self.texts = texts
        self.kept = Kept(texts.limits.kept)

    def close(self) -> None:
        """End the threads and the model's process."""
        self.kept.close()
        self.texts.close()

    def routes(self) -> list[Route]:
        """Every address under /api."""
        asked = [Route(one.path, answer(partial(self.ask, one))) for one in QUESTIONS]
        openapi = Route("/api/openapi.json", lambda request: sent(_description()))
        return [*asked, openapi, Route("/api/trace", self.trace, methods=["POST"])]

    async def ask(self, question: "Question", request: Request) -> bytes:
        """The answer as JSON; of a run that has not changed it is computed once."""
        make = partial(self._make, question, request)
        if not question.runs(request):
            return await run_in_threadpool(make)
        stamps = await run_in_threadpool(self._stamps, question.runs(request))
        query = tuple(request.query_params.get(name) for name in question.query)
        return await self.kept.get((request.scope["path"], query, stamps), make)

    def _make(self, question: "Question", request: Request) -> bytes:
        if question.ask is answers.session:
            known = self.library, self.texts.facts(), self.texts.offered()
            return msgspec.json.encode(answers.session(*known))
        named = dict(request.path_params)
        runs = [named.pop("run")] if "run" in named else _asked(request, question.query)
        return msgspec.json.encode(question.ask(*map(self.library.run, runs), *named.values()))

    def _stamps(self, slugs: list[str]) -> tuple[Stamp | None, ...]:
        return tuple(self.library.stamp(slug) for slug in slugs)

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


@dataclass(frozen=True)
class Question:
    """An address, what answers it, and the query parameters that name its runs.

    The answer is asked for with the runs and with the other parts of the address. Its docstring
    describes the address in the OpenAPI document, its annotation what is sent.
    """

    path: str
    ask: Callable[..., Any]
    query: tuple[str, ...] = ()

    def runs(self, request: Request) -> list[str]:
        """The short names of the runs that the answer is made of; none where it is of all."""
        compared = [request.query_params.get(name) for name in self.query]
        return [slug for slug in (request.path_params.get("run"), *compared) if slug is not None]

    @property
    def answer(self) -> Any:
        """The type of what is sent."""
        return get_type_hints(self.ask)["return"]


QUESTIONS = (
    Question("/api/session", answers.session),
    Question("/api/runs/{run}", answers.detail),
    Question("/api/runs/{run}/measures/{spec:path}", answers.measured),
    Question("/api/runs/{run}/heads", answers.heads),
    Question("/api/runs/{run}/heads/{head}", card),
    Question("/api/runs/{run}/records/{head}", head_records),
    Question("/api/runs/{run}/inputs/{input}", input_text),
    Question("/api/runs/{run}/clusters", answers.map_of),
    Question("/api/runs/{run}/statements", answers.said),
    Question("/api/compare", answers.comparison, ("a", "b")),
    Question("/api/compare/{spec:path}", answers.difference, ("a", "b")),
)


def description() -> dict[str, Any]:
    """The OpenAPI document."""
    return describe([(one.path, one.ask.__doc__ or "", one.query, one.answer) for one in QUESTIONS])


@cache
def _description() -> bytes:
    return msgspec.json.encode(description())


def answer(ask: Callable[[Request], Awaitable[bytes]]) -> Answer:
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


def _asked(request: Request, names: Sequence[str]) -> list[str]:
    missing = [name for name in names if name not in request.query_params]
    if missing:
        raise RefusedError(400, f"The address needs the parameter {missing[0]}.")
    return [request.query_params[name] for name in names]


class PackageFiles(StaticFiles):
    """The files in the `static` folder of a package; a browser asks each time if one changed.

    They keep the paths they have in the package, so that the explorer's modules import those of
    the views by the same relative path on disk and in the browser.
    """

    def __init__(self, package: str) -> None:
        super().__init__(packages=[(package, "static")])

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
    """The one document under every page's address, the theme, and the files of both packages."""
    for ending, kind in TYPES.items():
        mimetypes.add_type(kind, ending)
    own = PackageFiles("headscope.explorer")

    async def page(request: Request) -> Response:
        return await own.get_response("index.html", request.scope)

    def colors(request: Request) -> Response:
        headers = {"cache-control": "no-cache"}
        return Response(theme.css_variables(), media_type="text/css", headers=headers)

    return [
        *(Route(f"/{name}", page) for name in ("", *PAGES)),
        Route("/theme.css", colors),
        Mount("/explorer/static", own),
        Mount("/views/static", PackageFiles("headscope.views")),
    ]


def _http_error(request: Request, error: Exception) -> Response:
    """A sentence as JSON; whoever follows a wrong link with a browser gets a page."""
    assert isinstance(error, HTTPException)
    if error.status_code == 404 and "text/html" in request.headers.get("accept", ""):
        page = files("headscope.explorer").joinpath("static", "lost.html")
        return HTMLResponse(page.read_text(encoding="utf-8"), 404)
    said = {404: "There is nothing at this address.", 405: "This address takes another method."}
    answer = refused(RefusedError(error.status_code, said.get(error.status_code, error.detail)))
    answer.headers.update(error.headers or {})
    return answer
