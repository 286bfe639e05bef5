"""The browser code as one script: the modules in `static/` one after the other.

The modules are plain ES modules that a server can hand out as they are. A notebook widget and a
self-contained page need a single text, so imports are resolved here: each module becomes a function
that returns its exports, placed after the modules it imports.
"""

import re
from functools import cache
from importlib.resources import files

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "\./(\w+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)


@cache
def script(entry: str) -> str:
    """The module `entry` and all it imports, as one module."""
    *imported, last = in_order(entry)
    return "\n".join([*map(_wrapped, imported), _linked(static(f"{last}.js"))])


@cache
def static(name: str) -> str:
    """The text of one file in `static/`."""
    return files("headscope.views").joinpath("static", name).read_text(encoding="utf-8")


def in_order(entry: str) -> list[str]:
    """`entry` and what it imports, each after its own imports."""
    order: list[str] = []
    _visit(entry, order, ())
    return order


def _visit(name: str, order: list[str], path: tuple[str, ...]) -> None:
    if name in path:
        raise ImportError(f"static modules import in a circle: {' → '.join((*path, name))}")
    if name in order:
        return
    for _, imported in _IMPORT.findall(static(f"{name}.js")):
        _visit(imported, order, (*path, name))
    order.append(name)


def _wrapped(name: str) -> str:
    text = static(f"{name}.js")
    exports = ", ".join(found[1] for found in _EXPORT.findall(text))
    body = _EXPORT.sub(r"\1", _linked(text))
    return f"const ${name} = (() => {{\n{body}\nreturn {{ {exports} }};\n}})();"


def _linked(text: str) -> str:
    return _IMPORT.sub(r"const \1 = $\2;\n", text)
