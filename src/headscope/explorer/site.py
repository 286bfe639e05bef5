"""The explorer as plain files: the same pages, reading from files what they would ask a server.

```
index.html overview.html head.html …   one document under every page's name
explorer.js static theme.css             what a server would send
data/session.js                          the runs
data/runs/RUN.js                         a run and its measures
data/runs/RUN/map.js                     the map of heads; portraits/ has what shows each head
data/runs/RUN/measures/NAME.js           all slices of a measure
data/runs/RUN/heads/L0H0.js              a head's card; records/ and inputs/ beside it
data/compare/A/B.js                      two runs of one study
site.json                                says that the folder is a site
```

No file names another by more than a relative path: the folder works wherever it is put, also where
it is opened from a disk. A browser then reads no file but scripts, so every answer is one: the JSON
of the server in a call of `headscopeAnswer`.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.resources import files
from itertools import combinations, groupby, permutations
from pathlib import Path
from typing import Any

import msgspec

import headscope
from headscope import theme
from headscope.errors import HeadscopeError, RunError
from headscope.explorer import addresses
from headscope.explorer.addresses import Answer
from headscope.explorer.answers.runs import Library, OpenRun, Sources
from headscope.explorer.pages import PAGES, POLICY, explorer_script
from headscope.explorer.wire import LIMITS, ModelFacts, Refusal, RefusedError, TextLimits
from headscope.files import find_place
from headscope.progress import show_progress

MARKER = "site.json"
NO_MODEL = (
    "These pages are plain files; tracing a text needs a model: "
    "`headscope serve RUN --model M` on your own machine."
)
DIGITS = 6  # significant, of every number

File = tuple[
    str, Callable[[], Any]
]  # where it lies below data/, without ending, and how it is made


def site(runs: Sequence[str | Path], out: str | Path) -> Path:
    """Write a site of the runs into a new or empty folder, or over an earlier site."""
    library, folder = Library(runs), find_place(out)
    finished = [library.run(slug) for slug in library.slugs]
    _require_something(finished)
    try:
        _claim(folder)
        _write_all(folder, library)
    except OSError as error:
        raise RunError(
            f"The site cannot be written to {folder} ({error.strerror or error}); make room or "
            "choose another with --out."
        ) from error
    return folder


def _write_all(folder: Path, library: Library) -> None:
    """The pages come last: a folder without them is no site yet."""
    _write_files(folder)
    limits = TextLimits(LIMITS.text, LIMITS.generate, LIMITS.weights)
    sources = Sources(library, lambda: ModelFacts("", "none", NO_MODEL), limits)
    wanted = list(_answers(sources))
    for path, make in show_progress(wanted, len(wanted), "files", label="Site"):
        _write(folder / "data" / f"{path}.js", make)
    for name in ("index", *PAGES):
        (folder / f"{name}.html").write_text(_document(), encoding="utf-8")


def _require_something(runs: Sequence[OpenRun]) -> None:
    if not runs:
        raise RunError("A site needs a run: `headscope site RUN… --out DIR`.")
    if not any(each.run.state == "complete" for each in runs):
        raise RunError(runs[0].run.notes[-1])


def _claim(folder: Path) -> None:
    """Take a new or empty folder, or one that an earlier call filled; never anybody else's."""
    folder.mkdir(parents=True, exist_ok=True)
    is_site = (folder / MARKER).is_file()
    if not is_site and any(folder.iterdir()):
        raise RunError(
            f"{folder} already has something else in it; nothing was changed. "
            "Choose an empty or new directory with --out."
        )
    if is_site:
        shutil.rmtree(folder / "data", ignore_errors=True)
    about = json.dumps({"headscope": headscope.__version__}) + "\n"
    (folder / MARKER).write_text(about, encoding="utf-8")


def _write_files(folder: Path) -> None:
    """The script, the styles and the icon, under the paths that the document names."""
    source = Path(str(files("headscope").joinpath("static")))
    for file in sorted(path for path in source.rglob("*") if path.suffix in (".css", ".svg")):
        target = folder / "static" / file.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())
    (folder / "theme.css").write_text(theme.css_variables(), encoding="utf-8")
    (folder / "explorer.js").write_text(explorer_script(), encoding="utf-8")


def _document() -> str:
    """The page of a server, with the policy that a server would send."""
    source = files("headscope").joinpath("static", "explorer", "index.html")
    page = source.read_text(encoding="utf-8")
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    page = page.replace("<html ", '<html data-site="files" ', 1)
    return page.replace('<meta charset="utf-8">', f'<meta charset="utf-8">\n{policy}', 1)


def _answers(sources: Sources) -> Iterator[File]:
    """Everything that the pages may ask for."""
    for answer in addresses.ANSWERS:
        for runs in _runs(answer, sources.library):
            yield from _files_of(answer, runs, sources)


def _runs(answer: Answer, library: Library) -> Iterator[tuple[OpenRun, ...]]:
    """The runs for which an answer is written, together as its address names them."""
    opened = [library.run(slug) for slug in library.slugs]
    if answer.runs < 2:
        yield from combinations(opened, answer.runs)
        return
    finished = [run for run in opened if run.run.state == "complete"]
    for runs in permutations(finished, answer.runs):
        if len({run.run.study for run in runs}) == 1:
            yield runs


def _files_of(answer: Answer, runs: tuple[OpenRun, ...], sources: Sources) -> Iterator[File]:
    """The files of an answer for these runs; all slices of a measure are in one, by their spec."""
    slugs = [run.slug for run in runs]
    place = re.sub(r"{\w+(:path)?}", "{}", answer.path)
    if answer.each is None:
        yield place.format(*slugs), partial(answer.make, sources, slugs)
        return
    try:
        parts = list(answer.each(*runs))
    except (RefusedError, HeadscopeError):  # the file about the run, or the two runs, says why
        return
    for name, group in groupby(parts, key=lambda part: part.split("~")[0]):
        yield place.format(*slugs, name), partial(_made, answer, sources, slugs, list(group))


def _made(answer: Answer, sources: Sources, slugs: list[str], parts: list[str]) -> Any:
    made = {part: answer.thinned(answer.make(sources, [*slugs, part])) for part in parts}
    return made if answer.is_sliced else made[parts[0]]


def _write(path: Path, make: Callable[[], Any]) -> None:
    """An answer as a file; what is refused is written as the refusal, which the page says."""
    try:
        made = make()
    except (RefusedError, HeadscopeError) as mistake:
        made = Refusal(str(mistake))
    path.parent.mkdir(parents=True, exist_ok=True)
    answer = msgspec.json.encode(rounded(msgspec.to_builtins(made)))
    path.write_bytes(b"headscopeAnswer(" + answer + b");\n")


def rounded(value: Any) -> Any:
    """The same JSON with every number to six digits."""
    if isinstance(value, float):
        return shorten(value, DIGITS)
    if isinstance(value, dict):
        return {name: rounded(part) for name, part in value.items()}
    return [rounded(part) for part in value] if isinstance(value, list) else value


def shorten(value: float, digits: int) -> float | int:
    """A number to some significant digits, whole ones without a point."""
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 10**DIGITS else short
