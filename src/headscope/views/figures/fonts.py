"""Fonts that have the letters a figure needs."""

import warnings
from difflib import get_close_matches
from functools import cache

from headscope.errors import ViewError
from headscope.views.labels import label

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
    for family in _installed() if missing else ():
        found = missing & _letters_of(family)
        if found:
            chosen.append(family)
            missing -= found
        if not missing:
            break
    if missing and embedded:
        _warn(missing)
    return chosen


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
        f"No installed font has {sample}; boxes stand for such letters in PNG and PDF. "
        "Install a font that has them, for example Noto.",
        stacklevel=4,
    )


@cache
def _installed() -> tuple[str, ...]:
    """Upright sans-serif families of normal weight, Noto first."""
    names = {name for name in _files() if not any(word in name for word in _UNFIT)}
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
