"""The modules in `static/` as one script, for pages and widgets that can fetch nothing.

The modules are plain ES modules, which a server hands out as they are. Here each one becomes a
function that returns its exports, placed after the modules that it imports. Comments and
indentation stay behind; template literals keep every character.
"""

import posixpath
import re
from functools import cache
from importlib.resources import files

from headscope.views.kinds import KINDS, javascript, javascript_of_kinds

VIEWS = "kinds/index"  # the module that knows the kinds of views
SETTINGS = "kinds/shared/settings"  # and the one that knows their settings

_IMPORT = re.compile(r'^import (\{[^}]*\}) from "([./]+[\w/]+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)
_BLANK = re.compile(r"\n\s+")
_GOES_ON = re.compile(r"(?<=[(\[,])\n|\n(?=[)\]])")  # a line break that says nothing
# What must not be read as code. A slash begins a pattern where no value stands before it.
_OTHER = re.compile(
    r"(?P<comment>/\*[\s\S]*?\*/|//[^\n]*)"
    r"|(?P<kept>\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
    r"|(?:(?<=[(,=:\[!&|?{;>])|(?<=return))\s*/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/)"
    r"|(?P<template>`)|(?P<open>\{)|(?P<close>\})"
)


@cache
def static(name: str) -> str:
    """The text of one file in `static/`."""
    return files("headscope").joinpath("static", name).read_text(encoding="utf-8")


@cache
def style(*more: str) -> str:
    """The style sheets of the views, colours first, and more, without comments and indentation."""
    text = "".join(static(name) for name in ("kinds/theme.css", "kinds/view.css", *more))
    return _BLANK.sub("\n", re.sub(r"/\*[\s\S]*?\*/", "", text)).lstrip()


@cache
def script(entry: str, kinds: tuple[str, ...] = tuple(KINDS)) -> str:
    """The module `entry` and all it imports, as one module, with the views of these kinds."""
    parts: list[str] = []
    for name in in_order(entry, kinds):
        code = _IMPORT.sub(
            lambda found, name=name: _constant(found[1], _resolved(name, found[2])),
            stripped(_source(name, kinds)),
        )
        parts.append(code if name == entry else _function(name, code))
    return "\n".join(parts)


def in_order(entry: str, kinds: tuple[str, ...] = tuple(KINDS)) -> list[str]:
    """`entry` and what it imports, each after its own imports."""
    order: list[str] = []

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            raise ImportError(f"static modules import in a circle: {' → '.join((*path, name))}")
        if name in order:
            return
        for _, imported in _IMPORT.findall(_source(name, kinds)):
            visit(_resolved(name, imported), (*path, name))
        order.append(name)

    visit(entry, ())
    return order


def stripped(code: str) -> str:
    """Code without comments, indentation and empty lines; literals stay as they are."""
    pieces: list[str] = []
    _strip(code, 0, pieces)
    return "".join(pieces).lstrip()


def _strip(code: str, start: int, pieces: list[str]) -> int:
    """Strip code up to the brace that closes it, or to the end; returns where that is."""
    depth = 0
    place = start
    while found := _OTHER.search(code, place):
        part = _blank(code[place : found.start()], pieces)
        pieces.append(part.removesuffix("\n") if found["close"] else part)
        place = found.end()
        if found["comment"]:
            continue
        pieces.append(found[0])
        if found["template"]:
            place = _keep_template(code, place, pieces)
        elif found["open"]:
            depth += 1
        elif found["close"]:
            if depth == 0:
                return place
            depth -= 1
    pieces.append(_blank(code[place:], pieces))
    return len(code)


def _keep_template(code: str, start: int, pieces: list[str]) -> int:
    """Keep a template literal to its closing backtick; what `${}` holds is code again."""
    place = start
    while place < len(code):
        if code[place] == "\\":
            pieces.append(code[place : place + 2])
            place += 2
        elif code.startswith("${", place):
            pieces.append("${")
            place = _strip(code, place + 2, pieces)
        else:
            pieces.append(code[place])
            place += 1
            if code[place - 1] == "`":
                break
    return place


def _blank(code: str, before: list[str]) -> str:
    """Code with one line break where there were several, and none where a line goes on."""
    code = _GOES_ON.sub("", _BLANK.sub("\n", code))
    goes_on = not before or before[-1].endswith(("\n", "{"))
    return code.removeprefix("\n") if goes_on else code


def _source(name: str, kinds: tuple[str, ...]) -> str:
    """The text of a module; the one that knows the kinds knows these alone."""
    if name == VIEWS:
        return javascript_of_kinds(kinds)
    if name == SETTINGS:
        return javascript()
    folder, _, module = name.removeprefix("kinds/").partition("/")
    package = KINDS[folder].scripts if folder in KINDS and name.startswith("kinds/") else None
    if package is not None:
        return files(package).joinpath(f"{module}.js").read_text(encoding="utf-8")
    return static(f"{name}.js")


def _function(name: str, code: str) -> str:
    exports = ", ".join(found[1] for found in _EXPORT.findall(code))
    body = _EXPORT.sub(r"\1", code)
    return f"const {_variable(name)} = (() => {{\n{body}\nreturn {{ {exports} }};\n}})();"


def _constant(names: str, module: str) -> str:
    return f"const {names.replace(' as ', ': ')} = {_variable(module)};\n"


def _resolved(name: str, imported: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(name), imported))


def _variable(name: str) -> str:
    return "$" + name.replace("/", "$")
