"""Fonts that have the letters a figure needs.

DejaVu Sans comes with matplotlib and has Latin, Greek, Cyrillic, Arabic, Hebrew and more. Subsets
of Noto Sans that come with Headscope have Chinese, Japanese, Korean and the scripts of South Asia,
so that a figure is the same on every machine. For anything else the installed fonts are asked.
"""

import warnings
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from headscope.errors import ViewError
from headscope.views.labels import label

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FIRST = "DejaVu Sans"  # comes with matplotlib
_GENERIC = ("serif", "sans-serif", "monospace", "cursive", "fantasy")
_UNFIT = ("Serif", "Mono", "DejaVu", "Last Resort", "STIX", "cm")


def families(text: str, *, embedded: bool = True) -> list[str]:
    """Font families in the order to try, so that every letter of `text` is found in one of them.

    Letters that no installed font has are reported where the file needs their shapes (`embedded`);
    an SVG holds the text and is set in the fonts of whoever opens it.
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
