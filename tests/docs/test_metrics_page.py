"""The page of metrics is what the measures say, and leaves out no variable of a result."""

from types import ModuleType
from typing import Any

import pytest
import xarray as xr

import headscope as hs
from headscope.results.measure import Baseline, Measure
from headscope.results.statements import ATTRIBUTE
from tests.docs.page_module import DOCS, load_page
from tests.references.tiny_models import MODELS, annotated

PAGE = load_page("metrics_page")
# What a result says about the run that made it, not about heads.
ABOUT_THE_RUN = {
    "study", "model", "is_causal", "corpus", "sentences", "tokens", "mean_tokens", "skipped",
    "words", "left_out", "options", "weights", "bos", "word_pieces", "records_sha256",
    "shared_tokens", "unit_of_error", "documents", "groups", "copies", "shown_first", ATTRIBUTE,
}  # fmt: skip


def full_result(study: str, kind: str) -> xr.Dataset:
    options: dict[str, Any] = {"repeated_sequences": 2, "period": 8, "probe_seeds": 2}
    chosen = {"clark2019": options, "luger2026": {"context": 12, "points": 8, "rest": True}}
    return hs.study(study, MODELS[kind](), annotated(), **chosen.get(study, {}))


def test_the_page_of_metrics_is_current() -> None:
    assert (DOCS / "metrics.md").read_text(encoding="utf-8") == PAGE.page()


@pytest.mark.parametrize("kind", list(MODELS))
@pytest.mark.parametrize("study", ["vig2019", "clark2019", "luger2026"])
def test_every_variable_of_a_full_result_is_on_the_page(study: str, kind: str) -> None:
    result = full_result(study, kind)
    names = {*map(str, result.data_vars), *result.attrs} - ABOUT_THE_RUN
    assert names - PAGE.explained(study) == set()


def test_a_measure_explains_its_companions_and_the_variables_it_names() -> None:
    plain = Measure("share", "Share", "", "", "", with_errors=False, also=("share_ci",))
    assert PAGE.variables_of(plain) == ["share", "share_ci"]
    with_errors = Measure("share", "Share", "", "", "")
    ends = (
        "se",
        "by_layer",
        "by_layer_se",
        "head_mean",
        "numerator",
        "denominator",
        "q",
        "untrained",
    )
    companions = [f"share_{end}" for end in ends]
    assert PAGE.variables_of(with_errors) == ["share", *companions]


def test_a_row_says_title_meaning_and_baseline_and_escapes_bars() -> None:
    against = (Baseline("even", "the word at offset {}"),)
    measure = Measure("share", "Share", "Of it.", "|a|", "Me 2026", baselines=against)
    assert PAGE._row(measure) == (
        "| `share`\\* | **Share.** Of it. Beside the word at offset … (`even`). "
        "| \\|a\\| | Me 2026 |\n"
    )


def test_only_measures_that_a_module_declares_itself_are_its_own(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = "from headscope.results.measure import Measure\n"
    made = 'ONE = Measure("one", "One", "", "", "")\nALL = (ONE,)\n'
    (tmp_path / "declares_one.py").write_text(begin + made)
    (tmp_path / "imports_one.py").write_text("from declares_one import ALL, ONE\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    modules: list[ModuleType] = [__import__(n) for n in ("declares_one", "imports_one")]
    assert [[m.name for m in PAGE.measures_of(module)] for module in modules] == [["one"], []]
