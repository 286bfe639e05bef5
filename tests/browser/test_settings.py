"""Python and the pages have the same settings, the same choices and the same names of heads."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
from playwright.sync_api import BrowserContext

from headscope.head import name_head
from headscope.views.bundle import static
from headscope.views.kinds import KINDS, all_settings, kind_of
from headscope.views.view import open_view
from tests.browser.conftest import Watched
from tests.references.traces import pair_side, random_trace

IMPORTED = "text => import('data:text/javascript,' + encodeURIComponent(text))"


@pytest.fixture
def modules(context: BrowserContext) -> Callable[[str, str], Any]:
    """Evaluate an expression of a module that imports nothing."""
    page = context.new_page()

    def evaluate(name: str, expression: str) -> Any:
        return page.evaluate(f"text => ({IMPORTED})(text).then((it) => {expression})", static(name))

    return evaluate


def test_javascript_has_pythons_settings(modules: Callable[[str, str], Any]) -> None:
    assert modules("kinds/shared/settings.js", "it.SETTINGS") == {
        name: {
            "title": one.title,
            "meaning": one.meaning,
            "kinds": [kind.name for kind in KINDS.values() if name in kind.settings],
            "choices": dict(one.choices),
        }
        for name, one in all_settings().items()
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_takes_every_choice_and_no_other(
    open_page: Callable[..., Watched], kind: str
) -> None:
    spans: dict[str, Any] = (
        {} if kind == "neuron" else {"spans": ["1-3 subject"]}
    )  # without any, none are shown
    view = open_view(random_trace(tokens=pair_side(), causal=False), kind, **spans)
    watched = open_page(view)
    assert list(watched.state()) == list(asdict(view.state))
    for name in kind_of(kind).settings:
        for choice in all_settings()[name].choices:
            several = name == "hide"
            watched.set(**{name: [choice] if several else choice})
            assert watched.state()[name] == ([choice] if several else choice)
            watched.set(**{name: ["nonsense"] if several else "nonsense"})
            assert "nonsense" not in watched.state()[name]


def test_a_head_has_one_name(modules: Callable[[str, str], Any]) -> None:
    for layer, head in [(0, 0), (4, 11), (31, 7)]:
        assert modules("ui/heads.js", f"it.nameHead({layer}, {head})") == name_head(layer, head)
