"""A kind of view that is not ours: a folder of Python, and a folder of scripts in it."""

from importlib import import_module
from pathlib import Path

import pytest

from headscope.views.kinds import KINDS

FILES = {
    "__init__.py": """
from headscope.views.kind import ViewKind
from rings.state import RingState

RINGS = ViewKind(
    name="rings",
    state=RingState,
    open="rings.opening:open_rings",
    figure="rings.figure:draw",
    parts=frozenset({"norms"}),
    without=frozenset({"layers", "heads", "window", "summary"}),
    scripts="rings.scripts",
)
""",
    "state.py": """
from dataclasses import dataclass

from headscope.views.state import ViewState, setting


@dataclass(frozen=True, slots=True)
class RingState(ViewState):
    rings: int = setting("Rings", "how many rings", default=3)
    turn: str = setting("Turn", "which way", default="left", choices={"left": "L", "right": "R"})
""",
    "opening.py": """
from dataclasses import replace


def open_rings(stack, asked, state):
    return replace(state, rings=asked.get("rings", len(stack.layers)))
""",
    "figure.py": """
from matplotlib.figure import Figure


def draw(trace, state, scores):
    figure = Figure(figsize=(2, 2))
    figure.text(0.5, 0.5, f"{state.rings} rings of L{state.layer}H{state.head}")
    return figure
""",
    "scripts/__init__.py": "",
    "scripts/view.js": """
import { settingControl } from "../shared/filters.js";
import { h } from "../../ui/dom.js";

export function ringsView(root, data, store) {
  const drawn = h("p", { class: "rings" });
  root.append(drawn);
  return {
    first: [settingControl(store, "turn")],
    rest: [],
    update: async () => {
      const { rings, turn, head } = store.state;
      drawn.textContent = `${rings} rings of head ${head}, turned ${turn}`;
    },
    scene: () => ({ width: 10, height: 10, paper: "white", shapes: [] }),
    caveats: () => [],
    lines: () => [],
    title: () => "rings",
    remove: () => {},
  };
}
""",
}


def install_rings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the package, and name its kind in the registry; nothing else is touched."""
    for name, text in FILES.items():
        path = folder / "rings" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setitem(KINDS, "rings", import_module("rings").RINGS)
