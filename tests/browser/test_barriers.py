"""What axe-core finds wrong with the views and with a report: nothing serious."""

from collections.abc import Callable
from pathlib import Path

import pytest

import headscope as hs
from headscope.reports import report
from headscope.views import head_view, model_view, neuron_view
from tests.browser.conftest import Watched
from tests.references.tiny_models import MODELS, treebank
from tests.references.traces import random_trace

pytestmark = pytest.mark.browser

Open = Callable[..., Watched]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("view", [head_view, model_view, neuron_view])
def test_a_view_has_no_barriers(open_page: Open, view: Callable, theme: str) -> None:
    page = open_page(view(random_trace(), theme=theme))
    assert page.barriers(of_colours=theme == "dark") == []


def test_words_can_be_read_on_the_shades_of_any_head(open_page: Open) -> None:
    trace = random_trace(heads=8)
    view = head_view(trace, layer=0, heads=[5], layout="text", pinned=9, theme="dark")
    assert open_page(view).barriers(of_colours=True) == []


@pytest.mark.parametrize("study", ["vig2019", "clark2019"])
def test_a_report_has_no_barriers(watched: Watched, study: str, tmp_path: Path) -> None:
    options = {} if study == "vig2019" else {"probe_seeds": 1, "gradients": False}
    hs.study(study, MODELS["bidirectional"](), treebank(40), tmp_path, **options)
    watched.page.goto(f"file://{report(tmp_path, formats=['svg'])}")
    assert watched.barriers() == []
    assert watched.console == []
