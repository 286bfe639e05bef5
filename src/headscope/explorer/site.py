"""The explorer as plain files: the same pages, reading from files what they would ask a server.

```
index.html overview.html head.html …   one document under every page's name
explorer/static views/static theme.css   what a server would send
data/session.json                        the runs
data/runs/RUN.json                       a run and its measures
data/runs/RUN/measures/NAME.json         all slices of a measure
data/runs/RUN/heads/L0H0.json            a head's card; records/ and inputs/ beside it
data/compare/A/B.json                    two runs of one study
site.json                                says that the folder is a site
```

No file names another by more than a relative path: the folder works wherever it is put.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.resources import files
from itertools import permutations
from pathlib import Path
from typing import Any

import msgspec
import xarray as xr
from msgspec.structs import replace

import headscope
from headscope import theme
from headscope.errors import HeadscopeError, RunError
from headscope.explorer import answers, wire
from headscope.explorer.answers.card import card, head_records, input_text
from headscope.explorer.answers.runs import Column, Library, OpenRun
from headscope.explorer.pages import PAGES, POLICY
from headscope.explorer.wire import Band, HeadRecords, RefusedError, Space
from headscope.files import find_place
from headscope.progress import show_progress
from headscope.results.measure import heads_of

MARKER = "site.json"
PACKAGES = ("explorer", "views")
NO_MODEL = (
    "These pages are plain files; tracing a text needs a model: "
    "`headscope serve RUN --model M` on your own machine."
)
DIGITS = 6  # significant, of every number
PLACES = 3  # of a place on a map
EXAMPLES, TOP_EXAMPLES = 2, 5  # of a band, and of the very top
EDGES, LEAST = 3, 20  # weights of a row, and the smallest in thousandths
TOKENS = 20  # of a list

Answer = tuple[str, Callable[[], Any]]  # where it lies below data/, and how it is made


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
    wanted = list(_answers(library))
    for path, make in show_progress(wanted, len(wanted), "files", label="Site"):
        _write(folder / "data" / path, make)
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
    """The modules and styles of both packages, under the paths that they have to each other."""
    for package in PACKAGES:
        source = Path(str(files(f"headscope.{package}").joinpath("static")))
        for file in sorted(path for path in source.rglob("*") if path.is_file()):
            if file.name.endswith((".d.ts", ".html")):
                continue
            target = folder / package / "static" / file.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.read_bytes())
    (folder / "theme.css").write_text(theme.css_variables(), encoding="utf-8")


def _document() -> str:
    """The page of a server, with the policy that a server would send."""
    page = files("headscope.explorer").joinpath("static", "index.html").read_text(encoding="utf-8")
    policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    page = page.replace("<html ", '<html data-site="files" ', 1)
    return page.replace('<meta charset="utf-8">', f'<meta charset="utf-8">\n{policy}', 1)


def _answers(library: Library) -> Iterator[Answer]:
    """Everything that the pages may ask for."""
    limits = wire.Limits()
    offered = wire.TextLimits(limits.text, limits.generate, limits.weights)
    facts = wire.ModelFacts("", "none", NO_MODEL)
    yield "session.json", lambda: answers.session(library, facts, offered)
    opened = [library.run(slug) for slug in library.slugs]
    finished = [each for each in opened if each.run.state == "complete"]
    for each in opened:
        yield f"runs/{each.slug}.json", lambda each=each: answers.detail(each)
    for each in finished:
        for path, make in _answers_of(each):
            yield f"runs/{each.slug}/{path}", make
    for a, b in permutations(finished, 2):
        if a.run.study == b.run.study:
            yield from _compared(a, b)


def _answers_of(opened: OpenRun) -> Iterator[Answer]:
    data = opened.data
    for name, columns in opened.columns.items():
        yield f"measures/{name}.json", partial(_pictures, data, columns)
    yield "statements.json", lambda: answers.said(opened)
    yield "heads.json", lambda: answers.heads(opened)
    yield "clusters.json", lambda: answers.map_of(opened)
    for name in map(str, heads_of(opened.data)):
        yield f"heads/{name}.json", partial(card, opened, name)
    if opened.has_records:
        yield from _records(opened)


def _pictures(data: xr.Dataset, columns: Sequence[Column]) -> dict[str, wire.Picture]:
    """Every slice of a measure by its spec."""
    return {one.chosen.spec: answers.picture(data, one.chosen) for one in columns}


def _records(opened: OpenRun) -> Iterator[Answer]:
    """What is kept of every head, thinned, and the inputs that this names."""
    named: set[int] = set()
    for name in map(str, heads_of(opened.data)):
        found = thinned(head_records(opened, name))
        named |= {one.input for band in found.bands for one in band.examples}
        named |= set(found.samples.input)
        yield f"records/{name}.json", lambda found=found: found
    for number in sorted(named):
        yield f"inputs/{number}.json", lambda number=number: input_text(opened, str(number))


def thinned(found: HeadRecords) -> HeadRecords:
    """As much of a head as a small file holds."""
    places = ("component1", "component2", "x", "y")
    return replace(
        found,
        tops=[replace(one, tokens=one.tokens[:TOKENS]) for one in found.tops],
        raises=found.raises[:TOKENS],
        lowers=found.lowers[:TOKENS],
        spaces=[_rounded(space, places, PLACES) for space in found.spaces],
        bands=[_thin(band) for band in found.bands],
    )


def _rounded(space: Space, names: Sequence[str], digits: int) -> Space:
    """The same with numbers as exact as they are drawn."""
    parts = {name: [shorten(each, digits) for each in getattr(space, name)] for name in names}
    return replace(space, **parts)


def _thin(band: Band) -> Band:
    """The first examples, and the largest weights of every row, as far as they can be seen."""
    most = TOP_EXAMPLES if band.name == "top" else EXAMPLES
    examples = [
        replace(one, rows=[_largest(row) for row in one.rows]) for one in band.examples[:most]
    ]
    return replace(band, examples=examples)


def _largest(row: list[int]) -> list[int]:
    pairs = zip(row[0 : 2 * EDGES : 2], row[1 : 2 * EDGES : 2], strict=True)
    return [part for key, weight in pairs if weight >= LEAST for part in (key, weight)]


def _compared(a: OpenRun, b: OpenRun) -> Iterator[Answer]:
    """Two runs of one study; each measure head with head where that is how they compare."""
    place = f"compare/{a.slug}/{b.slug}"
    try:
        found = answers.comparison(a, b)
    except HeadscopeError as mistake:  # such as sums that an older version did not keep
        reason = str(mistake)
        yield f"{place}.json", lambda: _refused(reason)
        return
    yield f"{place}.json", lambda: found
    for name in found.measures if "index" in found.by else ():
        yield f"{place}/{name}.json", partial(answers.differences, a, b, name)


def _refused(reason: str) -> dict[str, str]:
    return {"error": reason}


def _write(path: Path, make: Callable[[], Any]) -> None:
    """An answer as a file; what is refused is written as the refusal, which the page says."""
    try:
        made = make()
    except (RefusedError, HeadscopeError) as mistake:
        made = _refused(str(mistake))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.encode(rounded(msgspec.to_builtins(made))))


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
