"""The explorer's questions and answers: JSON, and binary for the weights of a typed text."""

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

import headscope
from headscope.errors import HeadscopeError
from headscope.explorer.body import read_text_request
from headscope.explorer.card import card
from headscope.explorer.clusters import clusters
from headscope.explorer.correlation import correlation
from headscope.explorer.difference import difference_picture, differences
from headscope.explorer.frame import frame
from headscope.explorer.measures import catalogue, picture
from headscope.explorer.openapi import description
from headscope.explorer.probes import probe_tables
from headscope.explorer.refusal import RefusedError
from headscope.explorer.runs import Library, Run
from headscope.explorer.texts import Texts, session
from headscope.results.dataset import left_out

Answer = Callable[[Request], Awaitable[Response]]


class Api:
    """Answers over the runs of a library and the texts of a model."""

    def __init__(self, library: Library, texts: Texts) -> None:
        self.library = library
        self.texts = texts

    def routes(self) -> list[Route]:
        """Every address under /api."""
        asks: dict[str, Callable[[Request], Any]] = {
            "/api/session": self.session,
            "/api/runs/{run}": self.run,
            "/api/runs/{run}/measures/{spec:path}": self.measure,
            "/api/runs/{run}/correlation": self.correlation,
            "/api/runs/{run}/heads/{head}": self.head,
            "/api/runs/{run}/clusters": lambda request: clusters(self._run(request).data),
            "/api/runs/{run}/probes": lambda request: probe_tables(self._run(request).data),
            "/api/compare": self.compare,
            "/api/compare/{spec:path}": self.compare_measure,
            "/api/openapi.json": lambda _: description(),
        }
        routes = [Route(path, answer(ask), methods=["GET"]) for path, ask in asks.items()]
        return [*routes, Route("/api/trace", self.trace, methods=["POST"])]

    def session(self, request: Request) -> dict[str, Any]:
        """The runs and the model."""
        runs = [_summary(self.library.run(slug)) for slug in self.library.slugs]
        model = session(self.texts.facts(), self.texts.limits)
        return {"version": headscope.__version__, "runs": runs, **model}

    def run(self, request: Request) -> dict[str, Any]:
        """One run: what it is, and the measures it has."""
        run = self._run(request)
        measures = [] if run.result is None else catalogue(run.result)
        missing = {} if run.result is None else left_out(run.result)
        return {**_summary(run), "about": run.about, "measures": measures, "left_out": missing}

    def measure(self, request: Request) -> dict[str, Any]:
        """One layer × head picture."""
        run = self._run(request)
        return picture(run.data, run.study, request.path_params["spec"])

    def correlation(self, request: Request) -> dict[str, Any]:
        """r and p of two measures."""
        data = self._run(request).data
        return correlation(data, _asked(request, "x"), _asked(request, "y"))

    def head(self, request: Request) -> dict[str, Any]:
        """One head's card."""
        return card(self._run(request), request.path_params["head"])

    def compare(self, request: Request) -> dict[str, Any]:
        """The largest differences between two runs over all shared measures."""
        return differences(*self._pair(request))

    def compare_measure(self, request: Request) -> dict[str, Any]:
        """One measure's slice in two runs, with the difference of every head."""
        a, b = self._pair(request)
        return difference_picture(a, b, request.path_params["spec"])

    async def trace(self, request: Request) -> Response:
        """The weights of a typed text, packed for a view."""
        try:
            asked = await read_text_request(request, self.texts.limits.body)
            payload = await self.texts.trace(asked)
        except RefusedError as refusal:
            return refused(refusal)
        return StreamingResponse(frame(payload), media_type="application/octet-stream")

    def _run(self, request: Request) -> Run:
        return self.library.run(request.path_params["run"])

    def _pair(self, request: Request) -> tuple[Run, Run]:
        return self.library.run(_asked(request, "a")), self.library.run(_asked(request, "b"))


def answer(ask: Callable[[Request], Any]) -> Answer:
    """Ask in a thread, so that reading a run does not hold up others; mistakes become sentences."""

    async def respond(request: Request) -> Response:
        try:
            found = await run_in_threadpool(ask, request)
        except RefusedError as refusal:
            return refused(refusal)
        except HeadscopeError as mistake:
            return refused(RefusedError(409, str(mistake)))
        return JSONResponse(found, headers={"cache-control": "no-store"})

    return respond


def refused(refusal: RefusedError) -> Response:
    """The refusal as an answer."""
    headers = {"cache-control": "no-store"} | (
        {"retry-after": "5"} if refusal.status == 503 else {}
    )
    return JSONResponse({"error": refusal.message}, refusal.status, headers=headers)


def _asked(request: Request, name: str) -> str:
    value = request.query_params.get(name)
    if value is None:
        raise RefusedError(400, f"The address needs the parameter {name}.")
    return value


def _summary(run: Run) -> dict[str, Any]:
    result = run.result
    return {
        "slug": run.slug,
        "study": run.study,
        "state": run.state,
        "notes": list(run.notes),
        "model": run.model,
        "corpus": run.corpus,
        "layers": None if result is None else result.sizes.get("layer"),
        "heads": None if result is None else result.sizes.get("head"),
    }
