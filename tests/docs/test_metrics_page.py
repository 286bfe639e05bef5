"""The page of metrics is what the docstrings say, and leaves out no variable of a result."""

from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import xarray as xr

import headscope as hs
from headscope import metrics, probes
from headscope.studies import clark2019
from tests.docs.page_module import DOCS, load_page
from tests.engine.tiny import MODELS
from tests.studies.clark2019.words.test_study import annotated

PAGE = load_page("metrics_page")
# What a result says about the run that made it, not about heads.
ABOUT_THE_RUN = {
    "study", "model", "is_causal", "corpus", "sentences", "tokens", "mean_tokens", "skipped",
    "left_out", "options",
}  # fmt: skip
SUFFIXES = ("_se", "_by_layer", "_by_layer_se", "_head_mean")


def explained(section: str) -> set[str]:
    """The names that the page explains for a study; NAME_* stands for its four companions."""
    modules = [*PAGE.SECTIONS[section], *PAGE.SECTIONS["Both studies"]]
    entries = [entry for name in modules for entry in PAGE.entries(import_module(name))]
    names = {name for entry in entries for name in entry.variables}
    stars = {name.removesuffix("_*") for name in names if name.endswith("_*")}
    return names | {star + suffix for star in stars for suffix in SUFFIXES}


def full_result(study: str, kind: str) -> xr.Dataset:
    options: dict[str, Any] = {"repeated_sequences": 2, "period": 8, "probe_seeds": 2}
    chosen = options if study == "clark2019" else {}
    return hs.study(study, MODELS[kind](), annotated(), **chosen)


def test_the_page_of_metrics_is_current() -> None:
    assert (DOCS / "metrics.md").read_text(encoding="utf-8") == PAGE.page()


@pytest.mark.parametrize("kind", list(MODELS))
@pytest.mark.parametrize("study", ["vig2019", "clark2019"])
def test_every_variable_of_a_full_result_is_on_the_page(study: str, kind: str) -> None:
    result = full_result(study, kind)
    names = {*map(str, result.data_vars), *result.attrs} - ABOUT_THE_RUN
    assert names - explained(study) == set()


def test_no_documented_module_is_left_off_the_page() -> None:
    packages = (metrics, probes, clark2019)
    documented = {
        f"{package.__name__}.{file.stem}"
        for package in packages
        for file in Path(package.__path__[0]).glob("*.py")
        if "\n    Variables: " in file.read_text(encoding="utf-8")
    }
    assert documented == {name for modules in PAGE.SECTIONS.values() for name in modules}


def test_a_block_without_its_five_fields_is_refused() -> None:
    with pytest.raises(ValueError, match="Formula"):
        PAGE._fields("Variables: share\nRange: 0 to 1")


def test_starred_names_are_those_with_companions() -> None:
    assert "distance_by_layer_se" in explained("vig2019")
    assert not any(fnmatchcase(name, "variability_by_layer*") for name in explained("vig2019"))
