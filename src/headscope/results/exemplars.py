"""The exemplar sentences of a run: a file of rows, one for every head and rank."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headscope.errors import RunError

FILE = "exemplars.parquet"
Exemplar = dict[str, Any]


def read_exemplars(path: Path) -> list[Exemplar]:
    """The rows of an exemplar file."""
    if not path.exists():
        raise RunError(f"{path.parent} has no exemplars: its study keeps none.")
    try:
        with path.open("rb") as file:
            return pq.read_table(file).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise RunError(
            f"{path.name} cannot be read ({error}); run the study again into the same RUN."
        ) from error
