"""No request reaches a file that is not one of the explorer's own."""

import pytest
from starlette.testclient import TestClient

from headscope.explorer.assets import load_assets

PATHS = [
    "/etc/passwd",
    "/explorer/static/../../../../etc/passwd",
    "/explorer/static/%2e%2e/%2e%2e/errors.py",
    "/explorer/static/..%2f..%2ferrors.py",
    "/explorer/static//etc/passwd",
    "/views/static/../view.py",
    "/explorer/app.py",
    "/explorer/static/",
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


def test_every_module_that_a_page_imports_is_served_as_it_lies_in_the_package(
    visitor: TestClient,
) -> None:
    for address, asset in load_assets().items():
        answer = visitor.get(address)
        assert answer.status_code == 200
        assert answer.content == asset.content
        assert answer.headers["content-type"] == asset.kind


def test_an_unchanged_file_is_not_sent_twice(visitor: TestClient) -> None:
    first = visitor.get("/explorer/static/main.js")
    again = visitor.get(
        "/explorer/static/main.js", headers={"if-none-match": first.headers["etag"]}
    )
    assert (again.status_code, again.content) == (304, b"")


def test_every_page_is_the_same_document(visitor: TestClient) -> None:
    index = visitor.get("/").content
    for page in ("overview", "head", "clusters", "probes", "text", "compare"):
        assert visitor.get(f"/{page}?run=vig").content == index


def test_other_methods_are_refused(visitor: TestClient) -> None:
    assert visitor.put("/api/session").status_code == 405
    assert visitor.get("/api/trace").status_code == 405
    assert visitor.delete("/overview").status_code == 405
