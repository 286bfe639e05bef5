"""Run docs/views.ipynb and keep its outputs: what a reader without a kernel, and GitHub, sees.

python -m docs.views_notebook
"""

import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parent / "views.ipynb"
WIDGET = "application/vnd.jupyter.widget-view+json"


def main() -> None:
    """Execute the notebook in a folder of its own; widgets, which need the kernel, are left out."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(
            notebook,
            timeout=300,
            kernel_name="python3",
            resources=resources,
            store_widget_state=False,
            record_timing=False,
        ).execute()
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [one for one in cell.outputs if WIDGET not in one.get("data", {})]
    nbformat.write(notebook, NOTEBOOK)


if __name__ == "__main__":
    main()
