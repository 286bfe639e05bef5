"""The views on paper: vector figures with real text, made without a browser.

Fonts that have the letters a figure needs.

DejaVu Sans comes with matplotlib and has Latin, Greek, Cyrillic, Arabic, Hebrew and more. Subsets
of Noto Sans that come with Headscope have Chinese, Japanese, Korean and the scripts of South Asia,
so that a figure is the same on every machine. For anything else the installed fonts are asked.
"""

import io
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from importlib.resources import as_file, files
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from headscope.errors import ViewError
from headscope.views.kinds import kind_of
from headscope.views.labels import label
from headscope.views.payload import Scores
from headscope.views.state import ViewState

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headscope.model.trace import Trace

# Where the user's rcParams are matplotlib's own: text stays text, searchable, and set in the fonts
# of the document it goes into.
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "font.size": 8.0,
    "savefig.dpi": 300,
}

_FIRST = "DejaVu Sans"  # comes with matplotlib
_GENERIC = ("serif", "sans-serif", "monospace", "cursive", "fantasy")
_UNFIT = ("Serif", "Mono", "DejaVu", "Last Resort", "STIX", "cm")


def figure(trace: "Trace", kind: str, state: ViewState, scores: Scores | None = None) -> "Figure":
    """One view as a matplotlib figure."""
    return resolve_name(kind_of(kind).figure)(trace, state, scores)


def rendered(
    trace: "Trace",
    draw: "Callable[[], Figure]",
    ending: str,
    *,
    width: float | None = None,
    font: str | None = None,
    size: float | None = None,
    dpi: float | None = None,
) -> bytes:
    """The file of a drawing; written to memory first, for a full disk must not leave half of it."""
    for name, value in {"width": width, "size": size, "dpi": dpi}.items():
        if value is not None and not 0 < value < 10_000:
            raise ViewError(f"{name} is {value}; give a number above 0 and below 10,000.")
    with styled(trace, ending, font, size):
        drawn = draw()
        if width is not None:
            _resize(drawn, width, scale_text=size is None)
        buffer = io.BytesIO()
        # Without a date, so that the same view gives the same file.
        undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(ending, {})
        drawn.savefig(buffer, format=ending[1:], dpi=dpi, metadata=undated)
    return buffer.getvalue()


@contextmanager
def styled(
    trace: "Trace", ending: str, font: str | None = None, size: float | None = None
) -> Iterator[None]:
    """Within it, matplotlib has the fonts that the tokens need, and the house's defaults."""
    with drawing_with(_style(trace, ending, font, size)):
        yield


@contextmanager
def drawing_with(settings: Mapping[Any, Any]) -> Iterator[None]:
    """matplotlib with these rcParams; labels are data, and `families` says which letters lack."""
    from matplotlib import rc_context

    data: dict[Any, Any] = {"text.parse_math": False, "text.usetex": False}  # it may hold dollars
    with rc_context({**settings, **data}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        yield


def untouched(settings: Mapping[Any, Any]) -> dict[Any, Any]:
    """Those of some rcParams that are as matplotlib comes; what a reader has set stays."""
    from matplotlib import rcParams, rcParamsDefault

    return {
        name: value for name, value in settings.items() if rcParams[name] == rcParamsDefault[name]
    }


def _style(trace: "Trace", ending: str, font: str | None, size: float | None) -> dict[Any, Any]:
    """rcParams: the options, else what the user changed, else ours."""
    from matplotlib import rcParams

    embedded = ending != ".svg"
    if font is not None and embedded:
        check_font(font)
    own = [] if untouched({"font.family": None}) else rcParams["font.family"]
    tokens = [
        token
        for stack in trace.stacks.values()
        for token in (*stack.queries.labels, *stack.keys.labels)
    ]
    chosen = families("".join(tokens), embedded=embedded)
    style = {**untouched(_STYLE), "font.family": [*([font] if font else own), *chosen]}
    return style if size is None else {**style, "font.size": size}


def _resize(drawn: "Figure", width: float, *, scale_text: bool) -> None:
    """Scale a figure to a width in inches, and its text with it, so that nothing overlaps."""
    from matplotlib.text import Text

    wide, tall = drawn.get_size_inches()
    drawn.set_size_inches(width, tall * width / wide)
    for text in drawn.findobj(Text) if scale_text else ():
        text.set_fontsize(float(text.get_fontsize()) * width / wide)


def families(text: str, *, embedded: bool = True) -> list[str]:
    """Font families in the order to try, so that every letter of `text` is found in one of them.

    Letters that no installed font has are reported where the file needs their shapes (`embedded`);
    an SVG holds the text and is set in the fonts of the machine that shows it.
    """
    missing = {char for char in label(text) if not char.isspace()} - _letters_of(_FIRST)
    chosen = [_FIRST]
    if missing:
        # The script of most letters first: signs such as the danda are in several fonts.
        ours = sorted(_ours(), key=lambda family: -len(missing & _letters_of(family)))
        for family in (*ours, *_installed()):
            found = missing & _letters_of(family)
            if found:
                chosen.append(family)
                missing -= found
            if not missing:
                break
    if missing and embedded:
        _warn(missing)
    return chosen


def dress(figure: "Figure") -> None:
    """Add to every text of a drawn figure the fonts that its letters need besides its own."""
    from matplotlib.text import Text

    rich = [each for each in figure.findobj(Text) if not each.get_text().isascii()]
    needed = families("".join(each.get_text() for each in rich))
    for text in rich:
        own = text.get_fontfamily()
        text.set_fontfamily([*own, *(name for name in needed if name not in own)])


def check_font(name: str) -> None:
    """Refuse a font that is not installed: another one would take its place unseen."""
    if name in _GENERIC or name in _files():
        return
    near = get_close_matches(name, _files(), 1)
    hint = f"did you mean {near[0]!r}?" if near else "save as .svg, or choose serif or sans-serif."
    raise ViewError(f"The font {name!r} is not installed here; {hint}")


def points(size: float) -> float:
    """A size of text that goes with the size of the figure's font, which is 8 points by default."""
    from matplotlib import rcParams

    return rcParams["font.size"] * size / 8


def _warn(missing: set[str]) -> None:
    sample = " ".join(sorted(missing)[:5])
    warnings.warn(
        f"No font here has {sample}; signs of the script stand for such letters in PNG and PDF. "
        "Install a font that has them, for example Debian's fonts-noto, or save as HTML or SVG.",
        stacklevel=4,
    )


@cache
def _ours() -> tuple[str, ...]:
    """The families that come with Headscope; matplotlib is told of them for this process alone.

    They serve as their own bold faces, of which matplotlib would complain otherwise.
    """
    from matplotlib.font_manager import fontManager

    before = len(fontManager.ttflist)
    with as_file(files("headscope.views") / "fonts") as folder:
        for path in sorted(folder.glob("*.ttf")):
            fontManager.addfont(path)
    added = fontManager.ttflist[before:]
    fontManager.ttflist += [replace(entry, weight=700) for entry in added]
    _files.cache_clear()
    return tuple(entry.name for entry in added)


@cache
def _installed() -> tuple[str, ...]:
    """Upright sans-serif families of normal weight, Noto first."""
    unfit = (*_UNFIT, *_ours())
    names = {name for name in _files() if not any(word in name for word in unfit)}
    return tuple(sorted(names, key=lambda name: (not name.startswith("Noto Sans"), name)))


@cache
def _files() -> dict[str, str]:
    from matplotlib.font_manager import fontManager

    upright = (
        e for e in fontManager.ttflist if e.style == "normal" and e.weight in (400, "normal")
    )
    return {entry.name: entry.fname for entry in upright}


@cache
def _letters_of(family: str) -> frozenset[str]:
    from matplotlib.font_manager import get_font

    return frozenset(map(chr, get_font(_files()[family]).get_charmap()))
