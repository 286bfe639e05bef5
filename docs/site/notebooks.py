"""Notebooks as pages and as programs.

`to_markdown` shows a notebook with the outputs that are stored in it. `make gallery` runs the
notebooks of the gallery again, each in a kernel, and stores what they show.
"""

import base64
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

GALLERY = Path(__file__).parents[1] / "gallery"
SET_UP = "set-up"  # the cell that installs the package where it is missing; no page shows it


def to_markdown(text: str, name: str) -> tuple[str, dict[str, bytes]]:
    """The page of a notebook and the pictures in it, by file name."""
    pictures: dict[str, bytes] = {}
    cells = [cell for cell in json.loads(text)["cells"] if cell.get("id") != SET_UP]
    parts = [part for cell in cells for part in _cell(cell, name, pictures)]
    return "\n\n".join(parts) + "\n", pictures


def _cell(cell: dict[str, Any], name: str, pictures: dict[str, bytes]) -> Iterator[str]:
    source = "".join(cell["source"]).strip()
    if cell["cell_type"] == "markdown":
        yield source
    elif source:
        yield f"```python\n{source}\n```"
        for output in cell["outputs"]:
            yield from _output(output, name, pictures)


def _output(output: dict[str, Any], name: str, pictures: dict[str, bytes]) -> Iterator[str]:
    """What a cell showed: a picture if there is one, else its text. HTML is never taken over."""
    data = output.get("data", {})
    if "image/png" in data:
        file = f"{name}-{len(pictures) + 1}.png"
        pictures[file] = base64.b64decode("".join(data["image/png"]))
        yield f"![What the cell above drew]({file})"
    elif text := "".join(output.get("text", data.get("text/plain", ""))).rstrip():
        yield f"```text\n{text}\n```"


def execute(path: Path) -> None:
    """Run a notebook in a kernel of its own and store its outputs, less what changes by itself."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    notebook.metadata.pop("widgets", None)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":  # progress goes to stderr and is of no use to a reader
            cell.outputs = [each for each in cell.outputs if each.get("name") != "stderr"]
    nbformat.write(notebook, path)


def main() -> None:
    """Run the notebooks that are named, or all of the gallery."""
    for path in map(Path, sys.argv[1:] or sorted(map(str, GALLERY.glob("*.ipynb")))):
        execute(path)
        print(f"{path}: {path.stat().st_size / 1024:.0f} kB")


if __name__ == "__main__":
    main()
