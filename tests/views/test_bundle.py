"""The static modules become one script, and stay plain modules."""

import posixpath
import re

import pytest

from headscope.views.bundle import in_order, script, static, stripped, style
from headscope.views.kinds import KINDS
from tests.tools.generated import STATIC

FILES = sorted(path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*.js"))
ENTRIES = ["entry/page", "entry/gallery", "entry/widget"]
UNSAFE = (
    r"innerHTML|outerHTML|dangerouslySetInnerHTML|insertAdjacentHTML|document\.write"
    r"|\beval\(|new Function|XMLHttp|https?://(?!www\.w3\.org/2000/svg)"
)


@pytest.mark.parametrize("entry", ENTRIES)
def test_the_script_imports_nothing(entry: str) -> None:
    text = script(entry)
    assert not re.search(r"^\s*import[ {(]", text, re.MULTILINE)
    assert not re.search(r"^export (?!default)", text, re.MULTILINE)


def test_the_widget_keeps_its_default_export() -> None:
    assert script("entry/widget").rstrip().endswith("export default { render };")


def test_every_module_is_reached_from_a_page() -> None:
    reached = {name for entry in (*ENTRIES, "explorer/main") for name in in_order(entry)}
    assert {name.removesuffix(".js") for name in FILES} == reached


@pytest.mark.parametrize("name", FILES)
def test_text_goes_into_the_page_as_text_only(name: str) -> None:
    text = static(name)
    assert not re.search(UNSAFE, text)
    assert name == "explorer/api.js" or "fetch(" not in text


def test_a_module_stands_after_those_it_imports() -> None:
    order = in_order("entry/page")
    for place, name in enumerate(order):
        for imported in re.findall(r'^import .* from "(.+)\.js"', static(f"{name}.js"), re.M):
            assert order.index(posixpath.normpath(f"{name}/../{imported}")) < place


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_carries_the_code_of_its_own_view(kind: str) -> None:
    code = script("entry/page", (kind,))
    assert f"function {kind}View(" in code
    others = {"head": ("model", "neuron"), "model": ("neuron",), "neuron": ("model",)}[kind]
    assert not any(f"function {other}View(" in code for other in others)
    assert len(code) < len(script("entry/page"))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("/** What it is. */\nconst a = 1; // why\n\n  let b;\n", "const a = 1; \nlet b;\n"),
        ('const a = "/* no comment */";', 'const a = "/* no comment */";'),
        ("const a = `\n    two\n    lines`;", "const a = `\n    two\n    lines`;"),
        ("`${\n    a // why\n  }  b`", "`${a }  b`"),
        ("f(\n  a,\n  { b },\n) {\n  c\n}", "f(a,{ b },) {c}"),
        ("`a ${ { b: `\n  c` } }\n  d`", "`a ${ { b: `\n  c` } }\n  d`"),
        (r"`\`  // text\${`", r"`\`  // text\${`"),
        (r"test(/[/`\"]\/  /, a)", r"test(/[/`\"]\/  /, a)"),
        ("return /'/.test(a)", "return /'/.test(a)"),
        ("a = (b + 1) / 2; // c / d", "a = (b + 1) / 2; "),
    ],
)
def test_comments_and_indentation_go_and_literals_stay(code: str, expected: str) -> None:
    assert stripped(code) == expected


def test_styles_lose_comments_and_indentation() -> None:
    text = style("entry/gallery.css")
    assert "/*" not in text and "\n " not in text and "\n\n" not in text
    assert re.search(r"\.hs-gallery \{\n[a-z-]+: ", text)
