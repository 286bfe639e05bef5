"""The notebook of the documentation runs, and its widget answers a changed trait.

Its kernel is a new process that imports all that is heavy: first it asks for every public name.
"""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import headscope

NOTEBOOK = Path(__file__).parents[2] / "docs" / "views.ipynb"
EVERY_NAME = (
    "import headscope\n"
    "print(*(type(getattr(headscope, name)).__name__ for name in headscope.__all__))"
)
WIDGET = "application/vnd.jupyter.widget-view+json"
WIDGETS = "application/vnd.jupyter.widget-state+json"


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The notebook after a run in a kernel of its own."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(EVERY_NAME))
    folder = str(tmp_path_factory.mktemp("notebook"))
    resources = {"metadata": {"path": folder}}
    return NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources=resources
    ).execute()


def outputs(notebook: Any) -> list[dict[str, Any]]:
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [output["data"] for cell in cells for output in cell.outputs if "data" in output]


def test_every_public_name_can_be_imported(executed: Any) -> None:
    (printed,) = executed.cells[0].outputs
    assert len(printed["text"].split()) == len(headscope.__all__)


def test_every_view_shows_itself(executed: Any) -> None:
    shown = [data for data in outputs(executed) if WIDGET in data]
    assert len(shown) == 4
    state = executed.metadata.widgets[WIDGETS]["state"]
    kinds = [state[data[WIDGET]["model_id"]] for data in shown]
    assert [one["state"]["header"]["kind"] for one in kinds] == ["head", "model", "neuron", "head"]


def test_the_widget_answers_a_changed_trait(executed: Any) -> None:
    printed = [data["text/plain"] for data in outputs(executed)]
    assert "[('layer', 5), ('heads', [5])]" in printed
    shown = [data for data in outputs(executed) if WIDGET in data]
    model = shown[0][WIDGET]["model_id"]
    state = executed.metadata.widgets[WIDGETS]["state"][model]["state"]
    assert (state["layer"], state["heads"]) == (5, [5])
    assert state["header"]["state"]["layer"] == 6


def test_figures_are_written(executed: Any) -> None:
    assert outputs(executed)[-1]["text/plain"] == "['heads.pdf', 'heads.svg']"


def test_the_kept_outputs_are_those_of_a_run(executed: Any) -> None:
    """What GitHub and a reader without a kernel see is what the code makes."""
    kept = outputs(nbformat.read(NOTEBOOK, as_version=4))
    made = [data for data in outputs(executed) if WIDGET not in data]
    assert [data["text/plain"] for data in kept] == [data["text/plain"] for data in made]
    assert [sorted(data) for data in kept] == [sorted(data) for data in made]
    assert sum("image/png" in data for data in kept) == 4
    frames = [data["text/html"] for data in kept if "text/html" in data]
    assert len(frames) == 4 and all("<iframe" in frame for frame in frames)
    assert NOTEBOOK.stat().st_size < 2_500_000
