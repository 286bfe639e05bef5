"""The explorer's questions and answers: JSON, and binary for the weights of a typed text.

`python -m headscope.explorer.api` prints their types, which the pages have as static/types.d.ts.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, get_type_hints

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

import headscope
from headscope.errors import HeadscopeError
from headscope.explorer.card import card
from headscope.explorer.limits import RefusedError
from headscope.explorer.openapi import describe
from headscope.explorer.pictures import (
    catalogue,
    clusters,
    comparison,
    correlation,
    difference,
    number,
    picture,
    whole_numbers,
)
from headscope.explorer.runs import Library, OpenRun
from headscope.explorer.schemas import (
    Card,
    Cell,
    Clusters,
    Comparison,
    Correlation,
    Difference,
    Picture,
    Refusal,
    RunDetail,
    RunSummary,
    Said,
    Session,
    StoredTable,
    TextRequest,
)
from headscope.explorer.texts import Texts, frame
from headscope.explorer.typed import read, typescript_interfaces
from headscope.results.dataset import left_out
from headscope.results.statements import Table

Answer = Callable[[Request], Awaitable[Response]]


class Api:
    """Answers over the runs of a library and the texts of a model.

    The first line of a method's docstring describes its address in the OpenAPI document, its
    annotation what is sent.
    """

    def __init__(self, library: Library, texts: Texts) -> None:
        self.library = library
        self.texts = texts

    def routes(self) -> list[Route]:
        """Every address under /api."""
        asked = [
            Route(one.path, answer(lambda request, ask=one.ask: ask(self, request)))
            for one in QUESTIONS
        ]
        openapi = Route("/api/openapi.json", answer(lambda _: description()))
        return [*asked, openapi, Route("/api/trace", self.trace, methods=["POST"])]

    def session(self, request: Request) -> Session:
        """The runs and the model."""
        runs = [summary(self.library.run(slug)) for slug in self.library.slugs]
        return Session(headscope.__version__, runs, self.texts.facts(), self.texts.offered())

    def run(self, request: Request) -> RunDetail:
        """One run and its measures."""
        opened = self._run(request)
        result = opened.run.result
        return RunDetail(
            **vars(summary(opened)),
            about=opened.run.about,
            measures=[] if result is None else catalogue(result),
            left_out={} if result is None else left_out(result),
        )

    def measure(self, request: Request) -> Picture:
        """One measure over layers and heads."""
        return picture(self._run(request).data, request.path_params["spec"])

    def correlation(self, request: Request) -> Correlation:
        """r and p of two measures over heads."""
        data = self._run(request).data
        return correlation(data, _asked(request, "x"), _asked(request, "y"))

    def head(self, request: Request) -> Card:
        """One head's card."""
        return card(self._run(request), request.path_params["head"])

    def clusters(self, request: Request) -> Clusters:
        """The map of heads."""
        opened = self._run(request)
        looks = {one.name: one.sentence for one in opened.statements.heads}
        return clusters(opened.data, looks)

    def statements(self, request: Request) -> Said:
        """The tables, judged claims and chosen heads that are stored with the run."""
        said = self._run(request).statements
        return Said([stored(one) for one in said.tables], list(said.findings), list(said.choices))

    def compare(self, request: Request) -> Comparison:
        """The largest differences of two runs."""
        return comparison(*self._pair(request))

    def compare_measure(self, request: Request) -> Difference:
        """One measure in two runs."""
        return difference(*self._pair(request), request.path_params["spec"])

    async def trace(self, request: Request) -> Response:
        """The weights of a text, packed for a view."""
        try:
            asked = await read_body(request, self.texts.limits.body)
            payload = await self.texts.trace(asked)
        except RefusedError as refusal:
            return refused(refusal)
        return StreamingResponse(frame(payload), media_type="application/octet-stream")

    def _run(self, request: Request) -> OpenRun:
        return self.library.run(request.path_params["run"])

    def _pair(self, request: Request) -> tuple[OpenRun, OpenRun]:
        return self.library.run(_asked(request, "a")), self.library.run(_asked(request, "b"))


@dataclass(frozen=True)
class Question:
    """An address, who answers it, and the query parameters it needs."""

    path: str
    ask: Callable[[Api, Request], Any]
    query: tuple[str, ...] = ()

    @property
    def answer(self) -> Any:
        """The type of what is sent."""
        return get_type_hints(self.ask)["return"]


QUESTIONS = (
    Question("/api/session", Api.session),
    Question("/api/runs/{run}", Api.run),
    Question("/api/runs/{run}/measures/{spec:path}", Api.measure),
    Question("/api/runs/{run}/correlation", Api.correlation, ("x", "y")),
    Question("/api/runs/{run}/heads/{head}", Api.head),
    Question("/api/runs/{run}/clusters", Api.clusters),
    Question("/api/runs/{run}/statements", Api.statements),
    Question("/api/compare", Api.compare, ("a", "b")),
    Question("/api/compare/{spec:path}", Api.compare_measure, ("a", "b")),
)


def description() -> dict[str, Any]:
    """The OpenAPI document."""
    return describe([(one.path, one.ask.__doc__ or "", one.query, one.answer) for one in QUESTIONS])


def declarations() -> str:
    """The types of everything that is sent and received, in TypeScript."""
    made = "// Printed by `python -m headscope.explorer.api` from the types in schemas.py.\n\n"
    return made + typescript_interfaces(*(one.answer for one in QUESTIONS), TextRequest)


def answer(ask: Callable[[Request], Any]) -> Answer:
    """Ask in a thread, so that reading a run does not hold up others; mistakes become sentences."""

    async def respond(request: Request) -> Response:
        try:
            return sent(await run_in_threadpool(ask, request))
        except RefusedError as refusal:
            return refused(refusal)
        except HeadscopeError as mistake:
            return refused(RefusedError(409, str(mistake)))

    return respond


def sent(value: Any, status: int = 200, **headers: str) -> Response:
    """A dataclass as JSON."""
    content = json.dumps(value, default=vars, ensure_ascii=False, allow_nan=False)
    return Response(
        content.encode(),
        status,
        headers={"cache-control": "no-store", **headers},
        media_type="application/json",
    )


def refused(refusal: RefusedError) -> Response:
    """The refusal as an answer."""
    later = {"retry-after": "5"} if refusal.status == 503 else {}
    return sent(Refusal(refusal.message), refusal.status, **later)


async def read_body(request: Request, limit: int) -> TextRequest:
    """The body as a TextRequest, or a RefusedError that says what is wrong with it."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RefusedError(415, "Send the request as application/json.")
    try:
        given = json.loads(await _bounded(request, limit))
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, "The body is not JSON.") from error
    return read(TextRequest, given)


def summary(opened: OpenRun) -> RunSummary:
    """One run in the menus."""
    run = opened.run
    axes = {} if run.result is None else run.result.coords
    return RunSummary(
        slug=opened.slug,
        study=run.study,
        state=run.state,
        notes=list(run.notes),
        model=run.model,
        corpus=run.corpus,
        layers=whole_numbers(axes["layer"]) if "layer" in axes else [],
        heads=whole_numbers(axes["head"]) if "head" in axes else [],
    )


def stored(table: Table) -> StoredTable:
    """A stored table with its rows as lists, in the order of the columns."""
    columns = list(dict.fromkeys(column for row in table.rows for column in row))
    rows = [[_cell(row.get(column)) for column in columns] for row in table.rows]
    return StoredTable(table.name, table.title, table.caption, columns, rows)


def _cell(value: Any) -> Cell:
    return number(value) if isinstance(value, float) else value


async def _bounded(request: Request, limit: int) -> bytes:
    """Stop reading as soon as the body is too large, whatever its length header says."""
    received = bytearray()
    async for chunk in request.stream():
        received += chunk
        if len(received) > limit:
            raise RefusedError(413, f"The request is larger than {limit:,} bytes.")
    return bytes(received)


def _asked(request: Request, name: str) -> str:
    value = request.query_params.get(name)
    if value is None:
        raise RefusedError(400, f"The address needs the parameter {name}.")
    return value


if __name__ == "__main__":
    print(declarations(), end="")
