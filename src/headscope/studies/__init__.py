"""The published studies, each declared in one place."""

import json
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

from headscope.errors import RunError

if TYPE_CHECKING:
    from headscope.studies.study import Study

# Name and home of every study; its module has the declaration as STUDY.
STUDIES = {
    "vig2019": "headscope.studies.vig2019",
    "clark2019": "headscope.studies.clark2019",
}


def read_options(pairs: Iterable[str]) -> dict[str, Any]:
    """Options written as NAME=VALUE; a value is JSON (3, 0.5, false, [-1, 1]) or plain text."""
    options: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise RunError(f"{pair!r} is no option; write it as NAME=VALUE.")
        options[name] = _value(value)
    return options


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def find_study(name: str) -> "Study":
    """The study of that name."""
    if name not in STUDIES:
        near = get_close_matches(name, STUDIES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(STUDIES)}."
        raise RunError(f"There is no study {name!r}; {hint}")
    return import_module(STUDIES[name]).STUDY


def find_home(study: "Study") -> str:
    """Where a study is declared, as MODULE:NAME; "" for one that only exists in a session."""
    for name, module in list(sys.modules.items()):
        if name == "__main__":
            continue
        for attribute, value in list(getattr(module, "__dict__", {}).items()):
            if value is study:
                return f"{name}:{attribute}"
    return ""


def import_study(home: str) -> "Study | None":
    """The study that is declared at MODULE:NAME; None where it cannot be imported."""
    module, _, name = home.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError):
        return None
