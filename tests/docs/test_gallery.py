"""The notebooks of the gallery run, end in a picture, and show what they show without a kernel.

Their cells run here, in one process: a kernel for each would import torch six times.
"""

import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import pytest

from docs.site.notebooks import SET_UP
from docs.site.stage import repository

GALLERY = Path(__file__).parents[2] / "docs" / "gallery"
NOTEBOOKS = sorted(GALLERY.glob("*.ipynb"))
OF_SMOLLM2 = GALLERY / "what-feeds-it.ipynb"  # needs its weights; `make gallery` runs it
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
each_bundled = pytest.mark.parametrize(
    "path", [path for path in NOTEBOOKS if path != OF_SMOLLM2], ids=lambda path: path.stem
)


def cells(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def code(path: Path) -> list[dict[str, Any]]:
    return [cell for cell in cells(path) if cell["cell_type"] == "code"]


def printed(cell: dict[str, Any]) -> str:
    return "".join("".join(output.get("text", "")) for output in cell["outputs"])


def words(text: str) -> list[str]:
    """What was said, without the numbers: they may differ in the last place elsewhere."""
    return re.findall(r"[^\W\d]{2,}", text)


@each_bundled
def test_a_notebook_runs_and_says_what_is_stored(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    matplotlib.use("agg")
    monkeypatch.setattr("matplotlib.pyplot.show", lambda: None)
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in code(path):
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile("".join(cell["source"]), path.name, "exec"), names)
        kept, now = words(printed(cell)), words(said.getvalue())
        assert bool(kept) == bool(now)
        assert kept[:4] == now[:4]
    plt.close("all")


@each_notebook
def test_a_notebook_shows_its_pictures_without_a_kernel_and_stays_small(path: Path) -> None:
    outputs = [output for cell in code(path) for output in cell["outputs"]]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    assert pictures and all("text/html" not in output.get("data", {}) for output in outputs)
    assert "image/png" in code(path)[-1]["outputs"][-1]["data"]  # it ends in one
    assert not any(output["output_type"] == "error" for output in outputs)
    assert path.stat().st_size < 150_000


@each_notebook
def test_a_notebook_opens_in_colab_and_installs_a_clone_where_it_is_missing(path: Path) -> None:
    first, second = cells(path)[:2]
    place = repository().removeprefix("https://github.com/")
    link = f"https://colab.research.google.com/github/{place}/blob/main/docs/gallery/{path.name}"
    assert f"({link})" in "".join(first["source"])
    assert second["id"] == SET_UP and f'"git+{repository()}"' in "".join(second["source"])


def test_there_are_seven() -> None:
    assert len(NOTEBOOKS) == 7
