"""Files in `static/` generated from Python; `python -m tests.tools.generated` writes them."""

import re
from importlib.resources import files
from pathlib import Path

from headscope import theme
from headscope.views import kinds

STATIC = Path(str(files("headscope").joinpath("static")))


def view_colours() -> str:
    """The custom properties that view.css uses, for a view and for its page."""
    used = re.findall(
        r"var\(--hs-([\w-]+)\)", (STATIC / "kinds/view.css").read_text(encoding="utf-8")
    )
    wanted = {*used, "accent"}  # a script sets the colour of chips to the accent
    root = ":is(.hs-root, .hs-page)"
    said = "/* Generated from theme.py: change colours there. */\n"
    return said + theme.css_variables(root=root, prefix="hs-", only=wanted)


GENERATED = {
    "ui/theme.js": theme.javascript,
    "kinds/shared/settings.js": kinds.javascript,
    "kinds/index.js": kinds.javascript_of_kinds,
    "kinds/theme.css": view_colours,
}

if __name__ == "__main__":
    for name, make in GENERATED.items():
        (STATIC / name).write_text(make(), encoding="utf-8")
