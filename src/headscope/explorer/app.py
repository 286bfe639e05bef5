"""The explorer as an ASGI app: guard, pages, API."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from headscope.explorer.api import Api, refused
from headscope.explorer.assets import asset_routes, load_assets
from headscope.explorer.refusal import RefusedError
from headscope.explorer.runs import Library
from headscope.explorer.safety import Access, Guard
from headscope.explorer.texts import Texts


def create_app(library: Library, texts: Texts, access: Access | None = None) -> Starlette:
    """The app over these runs and this model, for visitors who may have access."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        texts.close()

    return Starlette(
        routes=[*asset_routes(load_assets()), *Api(library, texts).routes()],
        middleware=[Middleware(Guard, access=access or Access())],
        exception_handlers={HTTPException: _http_error},
        lifespan=lifespan,
    )


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    said = {404: "There is nothing at this address.", 405: "This address takes another method."}
    answer = refused(RefusedError(error.status_code, said.get(error.status_code, error.detail)))
    answer.headers.update(error.headers or {})
    return answer
