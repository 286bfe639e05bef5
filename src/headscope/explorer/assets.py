"""The pages and scripts, read once: a request can name one of them, never a file.

They keep the paths they have in the package, so that the explorer's modules import those of the
views by the same relative path on disk and in the browser.
"""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

FOLDERS = {"/explorer/static/": "headscope.explorer", "/views/static/": "headscope.views"}
PAGES = ("/", "/overview", "/head", "/clusters", "/probes", "/text", "/compare")
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}


@dataclass(frozen=True)
class Asset:
    """One file as it is sent."""

    content: bytes
    kind: str

    @property
    def tag(self) -> str:
        """Changes with the content."""
        return f'"{hashlib.sha256(self.content).hexdigest()[:16]}"'


def load_assets() -> dict[str, Asset]:
    """Every asset by its address."""
    assets: dict[str, Asset] = {}
    for prefix, package in FOLDERS.items():
        folder = Path(str(files(package).joinpath("static")))
        for file in folder.rglob("*.*"):
            kind = TYPES.get(file.suffix)
            if kind is not None:
                name = file.relative_to(folder).as_posix()
                assets[prefix + name] = Asset(file.read_bytes(), kind)
    return assets


def asset_routes(assets: dict[str, Asset]) -> list[Route]:
    """One route for each asset, and the one page under every page's address."""
    index = assets["/explorer/static/index.html"]
    answers = assets | dict.fromkeys(PAGES, index)
    return [Route(path, _send(asset), methods=["GET"]) for path, asset in answers.items()]


def _send(asset: Asset) -> Callable[[Request], Awaitable[Response]]:
    headers = {"etag": asset.tag, "cache-control": "no-cache"}

    async def respond(request: Request) -> Response:
        if request.headers.get("if-none-match") == asset.tag:
            return Response(status_code=304, headers=headers)
        return Response(asset.content, media_type=asset.kind, headers=headers)

    return respond
