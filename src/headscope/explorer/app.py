"""The explorer as an ASGI app: guard, pages, files, API."""

import mimetypes
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from os import PathLike, stat_result
from pathlib import PureWindowsPath

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from headscope import theme
from headscope.explorer.api import Api, refused
from headscope.explorer.limits import RefusedError
from headscope.explorer.runs import Library
from headscope.explorer.safety import Access, Guard
from headscope.explorer.schemas import PAGES
from headscope.explorer.texts import Texts

# A machine's own table of types may say otherwise, and a browser runs no script of another type.
TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


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

    def file_response(
        self,
        full_path: str | PathLike[str],
        stat_result: stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        """As Starlette's, never taken from a cache unasked."""
        response = super().file_response(full_path, stat_result, scope, status_code)
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
    assert isinstance(error, HTTPException)
    said = {404: "There is nothing at this address.", 405: "This address takes another method."}
    answer = refused(RefusedError(error.status_code, said.get(error.status_code, error.detail)))
    answer.headers.update(error.headers or {})
    return answer
