"""The kinds of views there are, and the modules of the scripts that are made from them.

A new kind is a folder like `views/head`, a folder of scripts, and its name in `KINDS`.
"""

import json
from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from headscope.errors import ViewError
from headscope.views.head import HEAD
from headscope.views.kind import ViewKind
from headscope.views.model import MODEL
from headscope.views.neuron import NEURON
from headscope.views.state import Setting, settings_of

KINDS: dict[str, ViewKind] = {kind.name: kind for kind in (HEAD, MODEL, NEURON)}
_JAVASCRIPT: dict[Any, str] = {
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    str | None: "string | null",
    tuple[int, ...]: "number[]",
    tuple[int, int]: "number[]",
    tuple[str, ...]: "string[]",
}


def kind_of(name: str) -> ViewKind:
    """The kind of that name."""
    if name not in KINDS:
        raise ViewError(f"There is no view {name!r}; choose {', '.join(KINDS)}.")
    return KINDS[name]


def all_settings() -> dict[str, Setting]:
    """The settings of all kinds by name."""
    settings: dict[str, Setting] = {}
    for kind in KINDS.values():
        settings |= settings_of(kind.state)
    return settings


def javascript() -> str:
    """The module from which the pages take kinds and settings."""
    names = " | ".join(json.dumps(name) for name in KINDS)
    one = "{title: string, meaning: string, kinds: string[], choices: Record<string, string>}"
    types = {field.name: field.type for kind in KINDS.values() for field in fields(kind.state)}
    lines = [
        "/**",
        " * Kinds and settings of the views, generated from views/kinds.py: change them there.",
        " *",
        f" * @typedef {{{names}}} Kind",
        " *",
        " * @typedef {object} State",
    ]
    for name, setting in all_settings().items():
        lines.append(f" * @property {{{_JAVASCRIPT[types[name]]}}} {name}  {setting.meaning}")
    lines += [
        " */",
        "",
        f"/** @type {{Record<keyof State, {one}>}} */",
        "export const SETTINGS = {",
    ]
    for name, setting in all_settings().items():
        said = {
            "title": setting.title,
            "meaning": setting.meaning,
            "kinds": [kind.name for kind in KINDS.values() if name in kind.settings],
            "choices": setting.choices,
        }
        lines.append(f"  {name}: {json.dumps(said, ensure_ascii=False)},")
    return "\n".join([*lines, "};", ""])


def javascript_of_kinds(names: Iterable[str] = tuple(KINDS)) -> str:
    """The module that finds the view of a kind, for these kinds alone."""
    chosen = tuple(names)
    imports = [f'import {{ {name}View }} from "./{name}/view.js";' for name in chosen]
    known = ", ".join(f"{name}: {name}View" for name in chosen)
    said = "The view of every kind, generated from views/kinds.py: declare a new kind there."
    return "\n".join(
        [f"/** {said} */", "", *imports, "", f"export const VIEWS = {{ {known} }};", ""]
    )
