"""The static modules become one script, and stay plain modules."""

import posixpath
import re

import pytest

from headscope.views.kinds import KINDS
from headscope.views.page import in_order, script, static
from tests.tools.generated import STATIC

FILES = sorted(path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*.js"))


@pytest.mark.parametrize("entry", ["page", "gallery", "widget"])
def test_the_script_imports_nothing(entry: str) -> None:
    text = script(entry)
    assert not re.search(r"^\s*import[ {(]", text, re.MULTILINE)
    assert not re.search(r"^export (?!default)", text, re.MULTILINE)


def test_the_widget_keeps_its_default_export() -> None:
    assert script("widget").rstrip().endswith("export default { render };")


@pytest.mark.parametrize("name", FILES)
def test_a_module_is_reached_from_a_host_and_stays_small(name: str) -> None:
    reached = {*in_order("page"), *in_order("gallery"), *in_order("widget")}
    assert name.removesuffix(".js") in reached
    assert len(static(name).splitlines()) < 400


@pytest.mark.parametrize("name", FILES)
def test_text_goes_into_the_page_as_text_only(name: str) -> None:
    unsafe = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|fetch\(|XMLHttp|https?://(?!www\.w3\.org/2000/svg)"
    assert not re.search(unsafe, static(name))


def test_a_module_stands_after_those_it_imports() -> None:
    order = in_order("page")
    for place, name in enumerate(order):
        for imported in re.findall(r'^import .* from "(.+)\.js"', static(f"{name}.js"), re.M):
            assert order.index(posixpath.normpath(f"{name}/../{imported}")) < place


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_carries_the_code_of_its_own_view(kind: str) -> None:
    code = script("page", (kind,))
    assert f"function {kind}View(" in code
    others = {"head": ("model", "neuron"), "model": ("neuron",), "neuron": ("model",)}[kind]
    assert not any(f"function {other}View(" in code for other in others)
    assert len(code) < len(script("page"))
