"""The notebook of the documentation runs, and its widget answers a changed trait."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[2] / "docs" / "views.ipynb"
WIDGETS = "application/vnd.jupyter.widget-state+json"


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The notebook after a run in a kernel of its own."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    folder = str(tmp_path_factory.mktemp("notebook"))
    resources = {"metadata": {"path": folder}}
    return NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources=resources
    ).execute()


def outputs(notebook: Any) -> list[dict[str, Any]]:
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [output["data"] for cell in cells for output in cell.outputs if "data" in output]


def test_every_view_shows_itself(executed: Any) -> None:
    shown = [
        data for data in outputs(executed) if "application/vnd.jupyter.widget-view+json" in data
    ]
    assert len(shown) == 4
    state = executed.metadata.widgets[WIDGETS]["state"]
    kinds = [state[data["application/vnd.jupyter.widget-view+json"]["model_id"]] for data in shown]
    assert [one["state"]["header"]["kind"] for one in kinds] == ["head", "model", "neuron", "head"]


def test_the_widget_answers_a_changed_trait(executed: Any) -> None:
    printed = [data["text/plain"] for data in outputs(executed)]
    assert "[('layer', 5), ('heads', [5])]" in printed
    shown = [
        data for data in outputs(executed) if "application/vnd.jupyter.widget-view+json" in data
    ]
    model = shown[0]["application/vnd.jupyter.widget-view+json"]["model_id"]
    state = executed.metadata.widgets[WIDGETS]["state"][model]["state"]
    assert (state["layer"], state["heads"]) == (5, [5])
    assert state["header"]["state"]["layer"] == 6


def test_figures_are_written(executed: Any) -> None:
    assert outputs(executed)[-1]["text/plain"] == "['heads.pdf', 'heads.svg']"


def test_the_notebook_is_kept_without_outputs() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells)
