"""No request reaches a file that is not one of the explorer's own."""

from importlib.resources import files
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles
from starlette.testclient import TestClient

from headscope.explorer.api import StaticTree
from headscope.explorer.pages import PAGES

PATHS = [
    "/etc/passwd",
    "/static/../../../etc/passwd",
    "/static/%2e%2e/%2e%2e/errors.py",
    "/static/..%2f..%2ferrors.py",
    "/static//etc/passwd",
    "/static/../views/view.py",
    "/explorer/api.py",
    "/static/",
    "/static/pages",
    "/static/pages/",
    "/static/main%00.js",
    "/static/" + "a" * 300 + ".js",
    "/staticfiles",
    "/explorer/static/explorer.css",
    "/api/runs/../../etc/passwd",
    "/api/runs/..%2f..%2fetc/measures/entropy",
    "/api/runs/%2fetc%2fpasswd",
    "/api/runs/vig%00",
    "/api/runs/vig/heads/..%2f..%2frun.json",
    "/api/runs/vig/measures/..%2f..%2frun.json",
]


@pytest.mark.parametrize("path", PATHS)
def test_a_path_from_a_request_never_reaches_the_disk(visitor: TestClient, path: str) -> None:
    answer = visitor.get(path)
    assert answer.status_code == 404
    assert "root:" not in answer.text and "import" not in answer.text
    assert set(answer.json()) == {"error"}


@pytest.mark.parametrize("path", ["main\0.js", r"\\host\share\main.js", "C:main.js", "/etc/passwd"])
def test_a_name_that_no_file_of_ours_has_is_not_looked_up(
    monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """A look at the disk is enough: Windows would ask a stranger's machine for its share."""
    asked: list[str] = []
    monkeypatch.setattr(StaticFiles, "lookup_path", lambda _, name: asked.append(name))
    files_of_ours = StaticTree()
    assert (files_of_ours.lookup_path(path), asked) == (("", None), [])
    files_of_ours.lookup_path("main.js")
    assert asked == ["main.js"]


KINDS = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".svg": "image/svg+xml",
}


def test_every_module_that_a_page_imports_is_served_as_it_lies_in_the_package(
    visitor: TestClient,
) -> None:
    folder = Path(str(files("headscope") / "static"))
    served = [path for path in folder.rglob("*") if path.suffix in KINDS]
    assert len(served) > 60
    for path in served:
        answer = visitor.get(f"/static/{path.relative_to(folder)}")
        assert (answer.status_code, answer.content) == (200, path.read_bytes())
        assert answer.headers["content-type"] == KINDS[path.suffix]
        assert answer.headers["cache-control"] == "no-cache"


def test_a_link_out_of_the_package_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = StaticTree()
    outside = tmp_path / "secret.js"
    outside.write_text("secret")
    inside = tmp_path / "static"
    inside.mkdir()
    (inside / "link.js").symlink_to(outside)
    (inside / "own.js").write_text("own")
    monkeypatch.setattr(served, "all_directories", [str(inside)])
    visitor = TestClient(Starlette(routes=[Mount("/", served)]))
    assert visitor.get("/own.js").status_code == 200
    assert visitor.get("/link.js").status_code == 404


def test_the_theme_is_a_sheet_of_variables(visitor: TestClient) -> None:
    answer = visitor.get("/theme.css")
    assert answer.headers["content-type"].startswith("text/css")
    assert "--ink:" in answer.text and 'data-theme="dark"' in answer.text


def test_an_unchanged_file_is_not_sent_twice(visitor: TestClient) -> None:
    first = visitor.get("/static/explorer/main.js")
    again = visitor.get(
        "/static/explorer/main.js", headers={"if-none-match": first.headers["etag"]}
    )
    assert (again.status_code, again.content) == (304, b"")


def test_every_page_is_the_same_document(visitor: TestClient) -> None:
    index = visitor.get("/").content
    assert len(PAGES) == 9
    for page in PAGES:
        assert visitor.get(f"/{page}?run=vig").content == index


def test_other_methods_are_refused(visitor: TestClient) -> None:
    assert visitor.put("/api/session").status_code == 405
    assert visitor.get("/api/trace").status_code == 405
    assert visitor.delete("/overview").status_code == 405


def test_a_wrong_link_gets_a_page_and_a_program_gets_json(visitor: TestClient) -> None:
    page = visitor.get("/nowhere/at/all", headers={"accept": "text/html,*/*"})
    assert page.status_code == 404 and page.headers["content-type"].startswith("text/html")
    assert "There is nothing at this address." in page.text and 'href="/"' in page.text
    answer = visitor.get("/nowhere", headers={"accept": "*/*"})
    assert answer.status_code == 404
    assert answer.json() == {"error": "There is nothing at this address."}
