"""A view as one HTML file: code, style and data inside, nothing fetched, ever."""

import base64
import html
import json

from headscope.views.modules import script, static
from headscope.views.payload import Payload

# Only what is written in the page itself may run; nothing can be loaded or sent.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body class="hs-page">
<main id="headscope"></main>
<script type="application/json" id="headscope-header">{header}</script>
{blocks}
<script type="module">
{code}
</script>
</body>
</html>
"""


def page(payload: Payload) -> str:
    """The whole page as text."""
    header = payload.header
    return _PAGE.format(
        policy=_POLICY,
        title=html.escape(f"{header['kind'].capitalize()} view · {header['model']}"),
        style=static("view.css"),
        header=embedded_json(header),
        blocks="\n".join(map(_block, range(len(payload.blocks)), payload.blocks)),
        code=script("page"),
    )


def embedded_json(value: object) -> str:
    """JSON that cannot end the script element it stands in, whatever the tokens are."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)  # ASCII only
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _block(number: int, data: bytes) -> str:
    encoded = base64.b64encode(data).decode("ascii")
    return f'<script type="text/plain" id="headscope-block-{number}">{encoded}</script>'
