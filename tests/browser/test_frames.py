"""A view in a frame: whatever the host forbids, a changed control changes the drawing."""

import json

import pytest
from playwright.sync_api import expect

from headscope.views import head_view, model_view, neuron_view
from headscope.views.bundle import script
from headscope.views.view import View
from tests.browser.conftest import Watched
from tests.browser.frames import HOME, Framed, framed, open_host
from tests.references.traces import known_trace, random_trace

pytestmark = pytest.mark.browser

FRAMES = {
    "srcdoc": "",
    "sandboxed": 'sandbox="allow-scripts"',
    "sandboxed, same origin": 'sandbox="allow-scripts allow-same-origin"',
}
PAPER = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 29)"}


def complaints(shown: Framed) -> list[str]:
    """What the console has, without Chromium's word on the host's own choice of sandbox."""
    return [said for said in shown.console if "can escape its sandboxing" not in said]


def show(watched: Watched, view: View, frame: str) -> Framed:
    return open_host(watched, framed(view.html(), FRAMES[frame]))


@pytest.mark.parametrize("frame", FRAMES)
def test_layer_heads_and_theme_change_the_drawing_of_the_head_view(
    watched: Watched, frame: str
) -> None:
    trace = random_trace()
    shown = show(watched, head_view(trace, layer=0, heads=[0, 1], hide=(), mass=1.0), frame)
    shown.frame.get_by_label("Layer", exact=True).select_option("2")
    drawn = {(line["head"], line["query"], line["key"]): line["weight"] for line in shown.lines()}
    assert drawn[1, 5, 3] == pytest.approx(float(trace.weights[2][1, 5, 3]), abs=1e-5)
    shown.frame.locator("[data-number='0']").first.click()
    assert {line["head"] for line in shown.lines()} == {1}
    assert shown.ground() == PAPER["light"]
    shown.frame.get_by_text("More", exact=True).click()
    shown.frame.get_by_role("radio", name="Dark").click()
    assert shown.ground() == PAPER["dark"]
    assert shown.scene()["paper"] == "#14181d"
    assert complaints(shown) == []


def test_the_canvas_in_a_frame_is_painted_again(watched: Watched) -> None:
    trace = known_trace()
    shown = show(watched, head_view(trace, heads=[0], hide=(), mass=1.0), "srcdoc")
    full = next(shape for shape in shown.scene()["shapes"] if shape.get("alpha") == 1)
    middle = [[(full["from"][0] + full["to"][0]) / 2, full["from"][1]]]
    ((*_, opaque),) = shown.pixels(".hs-stage canvas", middle)
    shown.frame.get_by_text("More", exact=True).click()
    shown.frame.get_by_label("Hide first token").check()
    shown.settle()
    ((*_, hidden),) = shown.pixels(".hs-stage canvas", middle)
    assert (opaque, hidden) == (255, 0)


def test_a_click_enlarges_a_head_of_the_model_view(watched: Watched) -> None:
    trace = random_trace()
    view = model_view(trace, layer=0, head=0, enlarged=False, hide=(), mass=1.0)
    shown = show(watched, view, "sandboxed")
    assert shown.lines() == []
    shown.frame.get_by_role("gridcell", name="Layer 2, head 3").or_(
        shown.frame.locator(".hs-thumb").nth(11)
    ).first.click()
    drawn = {(line["query"], line["key"]): line["weight"] for line in shown.lines()}
    assert drawn[5, 3] == pytest.approx(float(trace.weights[2][3, 5, 3]), abs=1e-5)
    assert complaints(shown) == []


def test_another_head_changes_the_weights_of_the_neuron_view(watched: Watched) -> None:
    trace = random_trace()
    shown = show(watched, neuron_view(trace, layer=0, head=0, pinned=4), "sandboxed")
    shown.frame.get_by_label("Head", exact=True).select_option("2")
    shown.settle()
    texts = [shape.get("text") for shape in shown.scene()["shapes"]]
    assert f"{float(trace.weights[0][2, 4, 1]):.4f}" in texts
    assert f"{float(trace.weights[0][0, 4, 1]):.4f}" not in texts
    assert complaints(shown) == []


def test_a_sandboxed_frame_shows_the_picture_that_it_may_not_save(watched: Watched) -> None:
    shown = show(watched, head_view(random_trace()), "sandboxed, same origin")
    for kind, size in (("SVG", 1), ("PNG", 3)):
        shown.button(kind).click()
        shown.frame.locator(".hs-note", has_text=f".{kind.lower()}.").wait_for()
        image = shown.frame.locator(".hs-note img")
        expect(shown.frame.locator(".hs-note")).to_contain_text("This frame forbids saving files")
        width = image.evaluate("image => image.decode().then(() => image.naturalWidth)")
        assert width == pytest.approx(size * shown.scene()["width"], abs=size)
    shown.button("PDF").click()
    note = shown.frame.locator(".hs-note").inner_text()
    assert "This frame forbids printing" in note
    shown.button("Close").click()
    expect(shown.frame.locator(".hs-note")).to_be_hidden()
    assert complaints(shown) == []


def test_a_frame_that_cannot_be_asked_is_told_both_ways(watched: Watched) -> None:
    shown = show(watched, head_view(random_trace()), "sandboxed")
    shown.button("SVG").click()
    shown.frame.locator(".hs-note img").wait_for()
    expect(shown.frame.locator(".hs-note")).to_contain_text(
        "if the frame around this page allows it"
    )
    shown.button("PDF").click()
    shown.frame.locator(".hs-note", has_text="forbids printing").wait_for()


def test_a_free_frame_saves_files_and_says_nothing(watched: Watched) -> None:
    shown = show(watched, head_view(random_trace()), "srcdoc")
    with shown.host.expect_download() as download:
        shown.button("SVG").click()
    assert download.value.suggested_filename.endswith(".svg")
    expect(shown.frame.locator(".hs-note")).to_be_hidden()


def test_the_theme_follows_the_host_while_it_runs(watched: Watched) -> None:
    shown = show(watched, head_view(random_trace()), "srcdoc")
    for place, dark, light in (
        ("document.body.dataset.jpThemeLight", "false", "true"),
        ("document.body.dataset.vscodeThemeKind", "vscode-dark", "vscode-light"),
        ("document.body.className", "dark dark-theme", ""),
        ("document.documentElement.dataset.theme", "dark", "light"),
        ("document.body.style.background", "#1b1e23", ""),
    ):
        shown.host.evaluate(f"{place} = '{dark}'")
        shown.frame.wait_for_selector(".hs-root[data-theme='dark']")
        assert shown.scene()["paper"] == "#14181d", place
        shown.host.evaluate(f"{place} = '{light}'")
        shown.frame.wait_for_selector(".hs-root[data-theme='light']")
        assert shown.ground() == PAPER["light"], place
        shown.host.evaluate("""() => {
          delete document.body.dataset.jpThemeLight;
          delete document.body.dataset.vscodeThemeKind;
          delete document.documentElement.dataset.theme;
        }""")


def test_keys_do_not_reach_the_host(watched: Watched) -> None:
    # In a cell the host shares the document; in a frame only what it listens to in capture.
    shown = show(watched, head_view(random_trace()), "srcdoc")
    shown.frame.evaluate(
        "() => { window.heard = []; document.addEventListener('keydown', e => heard.push(e.key)); }"
    )
    shown.frame.locator("[data-number='0']").first.focus()
    for key in ("x", "ArrowDown", "Escape", "d", "Shift+Enter", "Control+s"):
        shown.host.keyboard.press(key)
    assert shown.frame.evaluate("window.heard") == ["Enter", "Control", "s"]


def test_a_listener_that_throws_stops_no_other(watched: Watched) -> None:
    watched.page.goto("about:blank")
    heard = watched.page.evaluate(
        """async ([code, header]) => {
          const { Store } = await import("data:text/javascript," + encodeURIComponent(code));
          const store = new Store(header);
          const heard = [];
          store.subscribe(() => { throw new Error("not allowed here"); });
          store.subscribe((state) => heard.push(state.layer));
          store.set({ layer: 2 });
          return heard;
        }""",
        [
            script("kinds/shared/state"),
            json.loads(json.dumps(head_view(random_trace()).payload.header)),
        ],
    )
    assert heard == [2]
    assert watched.console == ["not allowed here"]


def test_an_address_that_may_not_be_written_stops_no_drawing(watched: Watched) -> None:
    shown = show(watched, head_view(random_trace(), layer=0), "srcdoc")
    shown.frame.evaluate(
        """() => {
          const before = history.replaceState;
          window.calls = 0;
          history.replaceState = () => { window.calls += 1; throw new DOMException("no"); };
        }"""
    )
    shown.frame.get_by_label("Layer", exact=True).select_option("1")
    shown.settle()
    assert shown.frame.evaluate("window.calls") == 1
    assert shown.frame.evaluate("window.headscope.state().layer") == 1
    assert shown.lines()


def test_a_frame_reports_its_height(watched: Watched) -> None:
    page = framed(head_view(random_trace(), layer=0, heads=[0]).html(), 'data-headscope="fit"')
    listen = (
        "<script>window.heights = []; addEventListener('message', "
        "(event) => event.data.type === 'headscope:height' && heights.push(event.data.height));"
        "</script><iframe"
    )
    shown = open_host(watched, page.replace("<iframe", listen, 1))
    shown.settle()
    content = shown.frame.evaluate("document.getElementById('headscope').scrollHeight")
    shown.host.wait_for_function("most => Math.abs(heights.at(-1) - most) <= 1", arg=content)
    shown.host.wait_for_function(
        "most => Math.abs(document.querySelector('iframe').clientHeight - most) <= 6", arg=content
    )


@pytest.mark.parametrize("attributes", ["", 'sandbox=""'])
def test_where_scripts_may_not_run_the_page_says_so_in_words(
    watched: Watched, attributes: str
) -> None:
    policy = "default-src 'self'" if not attributes else "default-src * 'unsafe-inline'"
    page = watched.page
    source = framed(head_view(known_trace(), heads=[0], hide=()).html(), attributes)
    headers = {"Content-Security-Policy": policy, "Content-Type": "text/html; charset=utf-8"}
    page.route(HOME, lambda route: route.fulfill(body=source, headers=headers))
    page.goto(HOME)
    inside = page.frame_locator("iframe")
    said = inside.locator(".hs-unscripted")
    said.wait_for()
    text = said.inner_text()
    assert "drawn by JavaScript, which is turned off here or forbidden by the policy" in text
    expect(inside.locator("table tr").nth(1).locator("td")).to_have_text(
        [
            "L0H0",
            "two",
            "two",
            "0.750",
        ]
    )
