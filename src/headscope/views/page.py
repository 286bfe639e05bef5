"""A view as one HTML file: code, style and data inside, nothing fetched, ever.

The code in `static/` is plain ES modules that a server can hand out as they are. A page and a
notebook widget need a single text, so imports are resolved here: each module becomes a function
that returns its exports, placed after the modules it imports.
"""

import base64
import html
import json
import posixpath
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from headscope.views.kinds import KINDS, javascript_of_kinds
from headscope.views.payload import Payload

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "([./]+[\w/]+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)
_INDENT = re.compile(r"^ +", re.MULTILINE)
_COMMENT = re.compile(r"^ */\*\*(?:(?!\*/).)*\*/\n", re.MULTILINE | re.DOTALL)

_FRAME_HEIGHT = 640  # pixels

# Only what is written in the page itself may run; nothing can be loaded or sent.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)

# Where scripts run, what is written for pages without them is not shown, not even for a moment.
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}
.hs-scripts .hs-unscripted {{ display: none; }}
</style>
<script>document.documentElement.classList.add("hs-scripts");</script>
</head>
<body class="hs-page">
<main id="headscope"><div class="hs-unscripted">{unscripted}</div></main>
{data}
<script type="module">
{code}
</script>
</body>
</html>
"""


def page(payload: Payload, unscripted: str) -> str:
    """The whole page as text; `unscripted` is the HTML that is read where scripts may not run."""
    header = payload.header
    return _PAGE.format(
        policy=_POLICY,
        title=html.escape(f"{header['kind'].capitalize()} view · {header['model']}"),
        style=style(),
        unscripted=unscripted,
        data="\n".join(_data("headscope", payload)),
        code=script("page", (header["kind"],)),
    )


def gallery_page(title: str, texts: Sequence[tuple[str, str, Payload, str]]) -> str:
    """A page of several texts: for each its title, the text, its payload and `unscripted` HTML."""
    listed = [{"title": name, "text": text} for name, text, _, _ in texts]
    parts = [_json("headscope-gallery", {"title": title, "texts": listed})]
    for number, (_, _, payload, _) in enumerate(texts):
        parts += _data(f"headscope-{number}", payload)
    return _PAGE.format(
        policy=_POLICY,
        title=html.escape(title),
        style=style() + static("gallery.css"),
        unscripted="".join(unscripted for *_, unscripted in texts),
        data="\n".join(parts),
        code=script("gallery"),
    )


class Frame(str):
    """A frame as HTML text, which a notebook shows and other hosts take as a string."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


def frame(source: str, title: str, height: int | None = None, **data: str) -> Frame:
    """A page in a frame of its own.

    Without a height the frame is made as high as its page where the host allows it. `data` are
    further attributes, written data-headscope-NAME.
    """
    fit = ' data-headscope="fit"' if height is None else ""
    more = "".join(f' data-headscope-{name}="{html.escape(said)}"' for name, said in data.items())
    style = f"width:100%;height:{height or _FRAME_HEIGHT}px;border:0"
    return Frame(
        f'<iframe title="{html.escape(title)}" style="{style}"{fit}{more} loading="lazy" '
        f'srcdoc="{html.escape(source)}"></iframe>'
    )


def _data(name: str, payload: Payload) -> list[str]:
    blocks = map(_block, [name] * len(payload.blocks), range(len(payload.blocks)), payload.blocks)
    return [_json(f"{name}-header", payload.header), *blocks]


def _json(name: str, value: object) -> str:
    return f'<script type="application/json" id="{name}">{embedded_json(value)}</script>'


def embedded_json(value: object) -> str:
    """JSON that cannot end the script element it stands in, whatever the tokens are."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)  # ASCII only
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _block(name: str, number: int, data: bytes) -> str:
    encoded = base64.b64encode(data).decode("ascii")
    return f'<script type="text/plain" id="{name}-block-{number}">{encoded}</script>'


def style() -> str:
    """The style sheet of the views, colours first."""
    return static("theme.css") + static("view.css")


@cache
def script(entry: str, kinds: tuple[str, ...] = tuple(KINDS)) -> str:
    """The module `entry` and all it imports, as one module, with the views of these kinds.

    Comments and indentation are left behind: they are most of what a reader would not miss.
    """
    *imported, last = in_order(entry, kinds)
    parts = [*(_wrapped(name, kinds) for name in imported), _linked(last, kinds)]
    return _INDENT.sub("", _COMMENT.sub("", "\n".join(parts)))


@cache
def static(name: str) -> str:
    """The text of one file in `static/`."""
    return files("headscope.views").joinpath("static", name).read_text(encoding="utf-8")


def in_order(entry: str, kinds: tuple[str, ...] = tuple(KINDS)) -> list[str]:
    """`entry` and what it imports, each after its own imports."""
    order: list[str] = []
    _visit(entry, kinds, order, ())
    return order


def _module(name: str, kinds: tuple[str, ...]) -> str:
    """The text of a module; the one that knows the kinds knows these alone."""
    return javascript_of_kinds(kinds) if name == "views" else static(f"{name}.js")


def _visit(name: str, kinds: tuple[str, ...], order: list[str], path: tuple[str, ...]) -> None:
    if name in path:
        raise ImportError(f"static modules import in a circle: {' → '.join((*path, name))}")
    if name in order:
        return
    for _, imported in _IMPORT.findall(_module(name, kinds)):
        _visit(_resolved(name, imported), kinds, order, (*path, name))
    order.append(name)


def _wrapped(name: str, kinds: tuple[str, ...]) -> str:
    text = _linked(name, kinds)
    exports = ", ".join(found[1] for found in _EXPORT.findall(text))
    body = _EXPORT.sub(r"\1", text)
    return f"const {_variable(name)} = (() => {{\n{body}\nreturn {{ {exports} }};\n}})();"


def _linked(name: str, kinds: tuple[str, ...]) -> str:
    return _IMPORT.sub(
        lambda found: f"const {found[1]} = {_variable(_resolved(name, found[2]))};\n",
        _module(name, kinds),
    )


def _resolved(name: str, imported: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), imported))


def _variable(name: str) -> str:
    return "$" + name.replace("/", "$")
