"""The published studies, each declared in one place."""

import sys
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.errors import RunError

if TYPE_CHECKING:
    from headscope.studies.study import Study

# Name and home of every study; its module has the declaration as STUDY.
STUDIES = {
    "vig2019": "headscope.studies.vig2019",
    "clark2019": "headscope.studies.clark2019",
    "luger2026": "headscope.studies.luger2026",
}
OWN = "one of your own as package.module:STUDY"


def find_study(name: str) -> "Study":
    """A published study by its name, or one's own by its import path (package.module:STUDY)."""
    if ":" in name:
        return _import_study(name)
    if name not in STUDIES:
        near = get_close_matches(name, STUDIES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"choose {', '.join(STUDIES)} or {OWN}."
        raise RunError(f"There is no study {name!r}; {hint}")
    return import_module(STUDIES[name]).STUDY


def studies_with(option: str) -> str:
    """The published studies that take an option, NAME or NAME=VALUE; to say which one to run."""
    name = option.partition("=")[0]
    having = [
        study for study in STUDIES if any(each.name == name for each in find_study(study).options)
    ]
    return " or ".join(having)


def find_modules_here(name: str) -> None:
    """Make a study in the current directory importable, as `python -m` does."""
    if ":" in name:
        sys.path.insert(0, str(Path.cwd()))


def _import_study(path: str) -> "Study":
    from headscope.studies.study import Study

    module, _, attribute = path.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise RunError(f"There is no study at {path!r} ({error}); give {OWN}.") from error
    if not isinstance(found, Study):
        raise RunError(f"{path!r} is a {type(found).__name__}, not a Study; give {OWN}.")
    return found
