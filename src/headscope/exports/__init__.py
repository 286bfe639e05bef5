"""A run as files of other tools: CSV and Parquet in long form, and the tree that HeadVis reads."""

from pathlib import Path
from typing import Literal, get_args

from headscope.errors import RunError
from headscope.exports.headvis import require_examples, write_headvis
from headscope.exports.tables import write_tables
from headscope.files import find_place
from headscope.results.run import read_finished

Format = Literal["csv", "parquet", "headvis"]
FORMATS: tuple[str, ...] = get_args(Format)


def export(run: str | Path, out: str | Path, format: Format = "csv") -> Path:
    """Write everything in a finished run into a new or empty folder; the folder."""
    if format not in FORMATS:
        raise RunError(f"There is no format {format!r}; there are {', '.join(FORMATS)}.")
    found, folder = read_finished(run), find_place(out)
    if format == "headvis":
        require_examples(found)
    try:
        _claim(folder)
        if format == "headvis":
            write_headvis(found, folder)
        else:
            write_tables(found, folder, format)
    except OSError as error:
        raise RunError(
            f"The export cannot be written to {folder} ({error.strerror or error}); make room or "
            "choose another with --out."
        ) from error
    return folder


def _claim(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise RunError(
            f"{folder} already has something in it; nothing was changed. "
            "Choose an empty or new directory with --out."
        )
