"""The notebook widget: the same modules under anywidget's contract, driven by a model."""

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import start_new_kernel
from playwright.sync_api import Route, expect

from headscope.views import View, head_view, model_view, neuron_view
from headscope.views.bundle import script, style
from headscope.views.cell import outputs
from tests.browser.conftest import Watched
from tests.references.traces import known_trace, random_trace

pytestmark = pytest.mark.browser

HOME = "https://headscope.test/"
# The least a notebook gives a widget: values by name, change events, a way to send changes back.
HOST = """
import widget from "./widget.js";

class Model {
  constructor(values, blocks) {
    Object.assign(this, { values, blocks, acts: {}, sent: [], changed: {} });
  }
  send({ blocks }) {  // the kernel answers, unless it is gone
    if (!this.blocks) return;
    const answer = () => {
      const buffers = blocks.map((number) => this.blocks[number]);
      for (const act of this.acts["msg:custom"] ?? []) act({ blocks }, buffers);
    };
    setTimeout(answer);
  }
  get(name) { return this.values[name]; }
  set(name, value) { this.values[name] = this.changed[name] = value; this.fire(name); }
  save_changes() { this.sent.push(this.changed); window.send?.(this.changed); this.changed = {}; }
  on(event, act) { (this.acts[event] ??= new Set()).add(act); }
  off(event, act) { this.acts[event]?.delete(act); }
  fire(name) { for (const act of this.acts[`change:${name}`] ?? []) act(); }
  fromPython(values) {
    Object.assign(this.values, values);
    Object.keys(values).forEach((name) => this.fire(name));
  }
}

window.start = (values, blocks) => {
  const bytes = (text) => Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  window.model = new Model(values, blocks?.map((text) => new DataView(bytes(text).buffer)));
  window.cleanup = widget.render({ model: window.model, el: document.getElementById("cell") });
};
window.started = true;
"""
PAGE = f"<!doctype html><meta charset=utf-8><style>{style()}</style><div id=cell></div>"


@pytest.fixture
def cell(watched: Watched) -> Iterator[Watched]:
    """An empty notebook cell; only the page and the widget's own script can be loaded."""
    files = {
        "": (f'{PAGE}<script type=module src="host.js"></script>', "text/html"),
        "host.js": (HOST, "text/javascript"),
        "widget.js": (script("entry/widget"), "text/javascript"),
    }
    for name, (body, kind) in files.items():
        watched.page.route(HOME + name, partial(_answer, body, kind))
    watched.page.goto(HOME)
    watched.page.wait_for_function("window.started")
    yield watched
    assert watched.console == []
    assert sorted(watched.requests) == sorted(HOME + name for name in files)


def _answer(body: str, kind: str, route: Route) -> None:
    route.fulfill(body=body, content_type=kind)


def show(cell: Watched, values: dict[str, Any], blocks: Sequence[bytes]) -> None:
    """Render a widget whose traits have these values."""
    cell.page.evaluate(
        "([values, blocks]) => window.start(values, blocks)",
        [values, [base64.b64encode(block).decode() for block in blocks]],
    )
    cell.page.wait_for_selector(".hs-root[data-theme]")


def traits(view: View) -> dict[str, Any]:
    """What a notebook would send."""
    return {name: getattr(view.widget, name) for name in ("header", "picture", *asdict(view.state))}


@pytest.mark.parametrize("make", [head_view, model_view, neuron_view])
def test_every_view_renders_in_a_notebook_cell(cell: Watched, make: Any) -> None:
    view = make(random_trace())
    show(cell, traits(view), view.payload.blocks)
    name = {"head": "Head view", "model": "Model view", "neuron": "Neuron view"}[view.kind]
    expect(cell.page.locator("h1")).to_have_text(name)
    cell.page.wait_for_selector(".hs-token, .hs-thumb, .hs-neuron-body .hs-neuron-row")
    cell.shot(f"widget-{view.kind}")


def test_the_widget_hides_the_picture_and_the_page_that_were_kept_for_it(cell: Watched) -> None:
    view = head_view(random_trace())
    picture, page, _ = (next(iter(bundle.values())) for bundle in outputs(view))
    cell.page.evaluate(
        """([picture, page]) => {
          const cell = document.getElementById("cell");
          const output = (html) => {
            const made = document.createElement("div");
            made.setHTMLUnsafe(html);
            return made;
          };
          const other = output(`<textarea></textarea><img src="${picture}">`);
          cell.parentElement.insertBefore(other, cell);
          const area = output("");
          cell.replaceWith(area);
          area.append(output(`<img src="${picture}">`), output(page), output(""));
          area.lastChild.append(cell);
        }""",
        [f"data:image/png;base64,{picture}", page],
    )
    shown = "[...document.querySelectorAll('img, iframe')].map(one => one.checkVisibility())"
    assert cell.page.evaluate(shown)[0] and cell.page.evaluate(shown)[2]
    show(cell, traits(view), view.payload.blocks)
    cell.page.wait_for_function(f"({shown}).join() === 'true,false,false'")


def test_without_a_kernel_the_widget_leaves_the_place_to_what_was_kept(cell: Watched) -> None:
    values = traits(head_view(random_trace()))
    cell.page.evaluate("values => window.start(values, null)", values)
    cell.page.wait_for_timeout(200)
    assert cell.page.locator("#cell").inner_html() == ""


@pytest.mark.parametrize("name", ["jpThemeLight"])
def test_the_widget_follows_the_notebook_from_light_to_dark_and_back(
    cell: Watched, name: str
) -> None:
    view = head_view(random_trace())
    show(cell, traits(view), view.payload.blocks)
    for said, theme in (("false", "dark"), ("true", "light")):
        cell.page.evaluate("([name, said]) => (document.body.dataset[name] = said)", [name, said])
        cell.page.wait_for_selector(f".hs-root[data-theme='{theme}']")


def test_a_trait_changed_in_python_changes_the_view(cell: Watched) -> None:
    view = head_view(random_trace())
    show(cell, traits(view), view.payload.blocks)
    cell.page.evaluate("window.model.fromPython({layer: 2, heads: [1], pinned: 'q4'})")
    cell.page.wait_for_selector("[data-side='q'] .hs-token[aria-selected='true']")
    expect(cell.page.get_by_label("Layer")).to_have_value("2")
    expect(cell.chip("Heads", 1)).to_have_attribute("aria-pressed", "true")
    expect(cell.chip("Heads", 0)).to_have_attribute("aria-pressed", "false")


def test_what_a_reader_does_is_sent_to_python(cell: Watched) -> None:
    view = head_view(random_trace())
    show(cell, traits(view), view.payload.blocks)
    cell.page.get_by_label("Layer").select_option("1")
    cell.chip("Heads", 0).click()
    cell.page.get_by_text("More", exact=True).click()
    cell.page.get_by_label("Hide first token").check()
    sent = cell.page.evaluate("window.model.sent")
    assert sent == [{"layer": 1}, {"heads": [1, 2, 3]}, {"hide": ["first"]}]


@pytest.mark.parametrize(
    ("name", "value"), [("jpThemeLight", "false"), ("vscodeThemeKind", "vscode-dark")]
)
def test_the_widget_is_dark_where_the_notebook_is(cell: Watched, name: str, value: str) -> None:
    view = head_view(random_trace())
    cell.page.evaluate("([name, value]) => (document.body.dataset[name] = value)", [name, value])
    show(cell, traits(view), view.payload.blocks)
    expect(cell.page.locator(".hs-root")).to_have_attribute("data-theme", "dark")


def test_a_closed_widget_listens_no_more(cell: Watched) -> None:
    view = head_view(random_trace())
    show(cell, traits(view), view.payload.blocks)
    cell.page.evaluate("window.cleanup()")
    assert cell.page.locator("#cell").inner_html() == ""
    assert cell.page.evaluate("Object.values(window.model.acts).every(acts => acts.size === 0)")


@pytest.fixture(scope="module")
def kernel() -> Iterator[BlockingKernelClient]:
    """A real notebook kernel."""
    manager, client = start_new_kernel(kernel_name="python3")
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def run(client: BlockingKernelClient, code: str) -> tuple[str, list[dict[str, Any]]]:
    """What a cell prints, and the messages it sends to the front end."""
    identity = client.execute(code)
    printed, messages = "", []
    while True:
        message = client.get_iopub_msg(timeout=60)
        if message["parent_header"].get("msg_id") != identity:
            continue
        kind, content = message["msg_type"], message["content"]
        if kind == "stream":
            printed += content["text"]
        elif kind in ("comm_open", "comm_msg"):
            messages.append({**content, "buffers": message["buffers"]})
        elif kind == "error":
            raise AssertionError("\n".join(content["traceback"]))
        elif kind == "status" and content["execution_state"] == "idle":
            return printed, messages


def test_kernel_and_page_keep_one_state(cell: Watched, kernel: BlockingKernelClient) -> None:
    weights = [known_trace().weights[0].tolist()] * 3
    code = f"""
import numpy as np
from headscope.model.trace import Trace
from headscope.views import head_view
view = head_view(Trace.from_weights(np.array({json.dumps(weights)}), ["one", "two", "three"]))
seen = []
view.widget.observe(lambda change: seen.append((change.name, change.new)), ["layer", "pinned"])
"""
    _, messages = run(kernel, code)
    opened = [one for one in messages if "header" in one.get("data", {}).get("state", {})]
    (widget,) = opened
    state = widget["data"]["state"]
    asked = list(range(state["header"]["blocks"]))
    _, messages = run(kernel, f"view.widget._send_blocks(None, {{'blocks': {asked}}}, None)")
    blocks = [bytes(buffer) for buffer in messages[0]["buffers"]]
    show(
        cell,
        {name: state[name] for name in ("header", "picture", *state["header"]["state"])},
        blocks,
    )

    _, messages = run(kernel, "view.widget.layer = 2")
    cell.page.evaluate("values => window.model.fromPython(values)", messages[0]["data"]["state"])
    expect(cell.page.get_by_label("Layer")).to_have_value("2")

    cell.token("q", 1).click()
    changes = cell.page.evaluate("window.model.sent")[-1]
    update = {"method": "update", "state": changes, "buffer_paths": []}
    content = {"comm_id": widget["comm_id"], "data": update}
    kernel.shell_channel.send(kernel.session.msg("comm_msg", content))
    printed, _ = run(kernel, "print(view.widget.pinned, seen)")
    assert printed.split(maxsplit=1)[0] == "q1"
    assert "('layer', 2)" in printed and "('pinned', 'q1')" in printed
