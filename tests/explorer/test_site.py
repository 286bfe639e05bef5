"""A site holds in files what the server would answer, and takes nobody's folder."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from headscope.errors import RunError
from headscope.explorer.pages import PAGES
from headscope.explorer.site import rounded, site
from tests.references.luger2026_run import write_luger_run
from tests.references.runs import unfinished_run

RUNS = ("vig", "vig-later", "clark", "luger", "stopped", "told")


@pytest.fixture(scope="module")
def made(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return site([folder / name for name in RUNS], tmp_path_factory.mktemp("site") / "pages")


def stored(made: Path, path: str) -> Any:
    script = (made / "data" / f"{path}.js").read_text(encoding="utf-8")
    assert script.startswith("headscopeAnswer(") and script.endswith(");\n")
    return json.loads(script.removeprefix("headscopeAnswer(").removesuffix(");\n"))


def same(found: Any, expected: Any) -> bool:
    """Whether two parsed answers are equal, numbers to six digits."""
    if isinstance(expected, float) and isinstance(found, int | float):
        return math.isclose(found, expected, rel_tol=1e-5)
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(
            same(found[name], part) for name, part in expected.items()
        )
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    return found == expected


@pytest.mark.parametrize(
    "path",
    ["runs/vig", "runs/stopped", "runs/clark/clusters", "runs/vig/statements", "runs/luger/heads",
     "runs/clark/heads/L1H2", "runs/luger/heads/L0H1", "runs/luger/inputs/3",
     "runs/told/map", "runs/told/portraits/L1H2"],
)  # fmt: skip
def test_files_hold_what_the_server_answers(made: Path, visitor: TestClient, path: str) -> None:
    assert same(stored(made, path), visitor.get(f"/api/{path}").json())


def test_a_measure_is_one_file_with_all_its_slices(made: Path, visitor: TestClient) -> None:
    slices = stored(made, "runs/vig/measures/pos_to")
    assert len(slices) == 10
    answer = visitor.get("/api/runs/vig/measures/pos_to~NOUN").json()
    assert same(slices["pos_to~NOUN"], answer)


def test_two_runs_of_one_study_are_compared_in_both_orders(made: Path, visitor: TestClient) -> None:
    for a, b in (("vig", "vig-later"), ("vig-later", "vig")):
        answer = visitor.get(f"/api/compare/{a}/{b}").json()
        assert same(stored(made, f"compare/{a}/{b}"), answer)
        answer = visitor.get(f"/api/compare/{a}/{b}/entropy").json()
        assert same(stored(made, f"compare/{a}/{b}/entropy")["entropy"], answer)
    assert not (made / "data" / "compare" / "luger").exists()


def test_what_the_server_refuses_is_a_file_that_says_why(made: Path, visitor: TestClient) -> None:
    said = visitor.get("/api/runs/vig/clusters").json()
    assert stored(made, "runs/vig/clusters") == said and "no map of them" in said["error"]


def test_every_page_is_there_and_names_files_by_relative_paths_only(made: Path) -> None:
    pages = {path.stem: path.read_text(encoding="utf-8") for path in made.glob("*.html")}
    assert pages.keys() == {"index", *PAGES} and len(set(pages.values())) == 1
    text = pages["index"]
    assert 'data-site="files"' in text and "default-src 'none'" in text
    assert 'href="/' not in text and 'src="/' not in text
    assert 'href: "/' not in (made / "explorer.js").read_text(encoding="utf-8")


def test_the_session_says_why_no_text_can_be_traced(made: Path) -> None:
    session = stored(made, "session")
    assert [run["slug"] for run in session["runs"]] == list(RUNS)
    assert session["model"]["state"] == "none" and "plain files" in session["model"]["reason"]
    assert session["runs"][4]["state"] == "unfinished"


def test_every_file_name_is_safe_on_every_disk(made: Path) -> None:
    names = [str(path.relative_to(made)).casefold() for path in made.rglob("*")]
    assert len(set(names)) == len(names)
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_./") for name in names)


def test_a_folder_with_other_files_is_refused_and_left_alone(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(RunError, match=r"already has something else in it; nothing was changed"):
        site([folder / "vig"], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_file_in_the_place_of_the_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("", encoding="utf-8")
    with pytest.raises(RunError, match="cannot be written"):
        site([folder / "vig"], tmp_path / "taken")


def test_a_site_is_written_over_an_earlier_one_and_keeps_no_old_run(
    folder: Path, tmp_path: Path
) -> None:
    site([folder / "luger"], tmp_path / "pages")
    (tmp_path / "pages" / "CNAME").write_text("heads.example", encoding="utf-8")
    made = site([write_luger_run(tmp_path / "other", layers=1, heads=1)], tmp_path / "pages")
    assert sorted(path.name for path in (made / "data" / "runs").iterdir()) == [
        "other",
        "other.js",
    ]
    assert (made / "CNAME").read_text(encoding="utf-8") == "heads.example"


def test_a_site_of_nothing_finished_says_how_to_finish(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="shards are done"):
        site([unfinished_run(tmp_path / "stopped")], tmp_path / "pages")
    with pytest.raises(RunError, match="needs a run"):
        site([], tmp_path / "pages")
    assert not (tmp_path / "pages").exists()


def test_numbers_are_as_short_as_six_digits_allow() -> None:
    assert rounded([0.1234567891, 1.0, 1e-12, None, True, "a", {"b": [2.5]}]) == [
        0.123457, 1, 1e-12, None, True, "a", {"b": [2.5]},
    ]  # fmt: skip
    assert json.dumps(rounded(3.0)) == "3"


def test_a_site_needs_neither_torch_nor_the_servers_libraries(folder: Path, tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from headscope.explorer.site import site\n"
        f"site([{str(folder / 'luger')!r}], {str(tmp_path / 'pages')!r})\n"
        "print({'torch', 'scipy.stats', 'starlette', 'uvicorn'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
