"""The second part of clark2019: heads as parsers, coreference, attention probes (§4 and §5)."""

import json
from pathlib import Path

import xarray as xr

from headscope.studies.clark2019.words.best import name_linguistic
from headscope.studies.clark2019.words.empty import drop_empty
from headscope.studies.clark2019.words.examples import add_examples
from headscope.studies.clark2019.words.figures import FIGURES
from headscope.studies.clark2019.words.findings import FINDINGS
from headscope.studies.clark2019.words.metrics import (
    OPTIONS,
    check_files,
    find_relations,
    left_out,
    parts,
)
from headscope.studies.clark2019.words.stage import add_probes
from headscope.studies.clark2019.words.tables import TABLES
from headscope.studies.study import Setup

__all__ = [
    "FIGURES",
    "FINDINGS",
    "OPTIONS",
    "TABLES",
    "check_files",
    "complete",
    "derive",
    "find_relations",
    "left_out",
    "parts",
]


def complete(setup: Setup, folder: Path, result: xr.Dataset) -> xr.Dataset:
    """What needs the model once more when the shards are merged: examples and probes."""
    result = add_examples(setup, drop_empty(result))
    return result if "parsing_uas" in left_out(setup) else add_probes(setup, folder, result)


def derive(result: xr.Dataset) -> xr.Dataset:
    """Name the heads that find relations and antecedents."""
    return name_linguistic(result, json.loads(result.attrs["options"])["few"])
