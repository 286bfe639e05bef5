"""An app over made-up runs and a tiny model, and a visitor to it."""

from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from headscope.explorer.answers.runs import Library
from headscope.explorer.api import create_app
from headscope.explorer.texts import Texts
from tests.references.explorer_models import tiny_model
from tests.references.luger2026_run import write_luger_run
from tests.references.runs import unfinished_run, write_run

ADDRESS = "http://127.0.0.1:8642"


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of all studies, one of them unfinished, one damaged."""
    folder = tmp_path_factory.mktemp("runs")
    write_run(folder / "vig", "vig2019")
    write_run(folder / "vig-later", "vig2019", shift=2.0)
    write_run(folder / "clark", "clark2019")
    write_run(folder / "told", "clark2019", layers=(0, 1), described=True)
    write_luger_run(folder / "luger", layers=2, heads=3)
    unfinished_run(folder / "stopped")
    (write_run(folder / "damaged", "vig2019") / "result.nc").write_bytes(b"not HDF5")
    return folder


@pytest.fixture(scope="session")
def library(folder: Path) -> Library:
    """The runs as the command line would name them."""
    names = ("vig", "vig-later", "clark", "luger", "told", "stopped", "damaged")
    return Library([folder / name for name in names])


@pytest.fixture(scope="session")
def app(library: Library) -> Starlette:
    """The app with a model."""
    return create_app(library, Texts("tiny-gpt2", tiny_model))


@pytest.fixture
def visitor(app: Starlette) -> TestClient:
    """Somebody on the same machine."""
    return TestClient(app, base_url=ADDRESS, raise_server_exceptions=False)
