"""A view as one HTML file: code, style and data inside, nothing fetched, ever."""

import base64
import html
import json
from collections.abc import Sequence

from headscope.views.bundle import script, style
from headscope.views.payload import Payload

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
        code=script("entry/page", (header["kind"],)),
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
        style=style("entry/gallery.css"),
        unscripted="".join(unscripted for *_, unscripted in texts),
        data="\n".join(parts),
        code=script("entry/gallery"),
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
