"""Make the fonts that come with Headscope: subsets of Noto Sans for scripts that DejaVu Sans lacks.

    python training/bundle_fonts.py FOLDER

FOLDER holds NotoSansCJK-Regular.ttc and NotoSansDevanagari-Regular.ttf and their like in any depth,
as the Debian packages fonts-noto-cjk and fonts-noto-core have them. Han characters are those of the
first levels of GB 2312, JIS X 0208 and Big5, the ones that texts are written with; Hangul those of
KS X 1001. Outlines become quadratic, because a PDF with editable text holds TrueType fonts alone.
The families get names of their own, so that a subset never hides a whole Noto that is installed.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fontTools import subset
from fontTools.pens.cu2quPen import Cu2QuPen
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib import TTCollection, TTFont, newTable

PLACE = Path(__file__).parents[1] / "src" / "headscope" / "views" / "fonts"
SCRIPTS = (
    "Devanagari", "Bengali", "Gurmukhi", "Gujarati", "Oriya", "Tamil", "Telugu", "Kannada",
    "Malayalam", "Sinhala", "Thai", "Khmer", "Myanmar", "Ethiopic",
)  # fmt: skip
_SIMPLIFIED = 2  # the place of Noto Sans CJK SC in the collection
_LARGEST_ERROR = 2.0  # of a curve, in thousandths of an em
_KEPT_NAMES = (0, 13, 14)  # copyright and licence


def east_asian() -> str:
    """The characters of the subset for Chinese, Japanese and Korean."""
    levels = (("gb2312", 16, 55), ("euc_jp", 16, 47), ("euc_kr", 16, 40))
    rows = {char for codec, first, last in levels for char in _rows(codec, first, last)}
    lead, trail = range(0xA4, 0xC7), (*range(0x40, 0x7F), *range(0xA1, 0xFF))
    big5 = {bytes((a, b)).decode("big5", "ignore") for a in lead for b in trail}
    blocks = ((0x3000, 0x3100), (0x31F0, 0x3200), (0xFF01, 0xFFEF))
    signs = {chr(code) for start, stop in blocks for code in range(start, stop)}
    return "".join(sorted(rows | big5 | signs))


def _rows(codec: str, first: int, last: int) -> Iterator[str]:
    """The characters of some rows of a national standard of 94 by 94 places."""
    for row in range(first, last + 1):
        for place in range(1, 95):
            yield bytes((row + 0xA0, place + 0xA0)).decode(codec, "ignore")


def reduce(font: TTFont, text: str | None) -> None:
    """Keep some characters, or all, without hints and with the shaping that scripts need."""
    options: Any = subset.Options()
    options.hinting = False
    options.notdef_outline = True
    options.name_IDs = list(_KEPT_NAMES)
    options.layout_features = [] if text else ["*"]
    options.drop_tables += ["vhea", "vmtx", "VORG", "BASE", "DSIG"]
    chosen = subset.Subsetter(options)
    chosen.populate(text=text) if text else chosen.populate(unicodes=font.getBestCmap())
    chosen.subset(font)


def to_quadratic(font: TTFont) -> None:
    """Replace cubic outlines (CFF) by quadratic ones (glyf)."""
    outlines: Any = font.getGlyphSet()
    glyphs: dict[str, Any] = {}
    for name in font.getGlyphOrder():
        pen = TTGlyphPen(outlines)
        outlines[name].draw(Cu2QuPen(pen, _LARGEST_ERROR, reverse_direction=True))
        glyphs[name] = pen.glyph()
    font["loca"], font["glyf"] = newTable("loca"), newTable("glyf")
    font["glyf"].glyphOrder = font.getGlyphOrder()
    font["glyf"].glyphs = glyphs
    del font["CFF "]
    limits: Any = newTable("maxp")
    limits.tableVersion = 0x00010000
    for field in (
        "maxZones", "maxTwilightPoints", "maxStorage", "maxFunctionDefs", "maxInstructionDefs",
        "maxStackElements", "maxSizeOfInstructions", "maxComponentElements",
    ):  # fmt: skip
        setattr(limits, field, 1 if field == "maxZones" else 0)
    font["maxp"] = limits
    post: Any = font["post"]
    post.formatType = 3.0
    font.sfntVersion = "\000\001\000\000"


def rename(font: TTFont, family: str) -> None:
    """A family name of its own; who made it and under which licence stays."""
    names: Any = font["name"]
    for number, text in (
        (1, family), (2, "Regular"), (3, family), (4, family), (6, family.replace(" ", "")),
    ):  # fmt: skip
        names.setName(text, number, 3, 1, 0x409)


def save(font: Any, script: str) -> None:
    font["post"].formatType = 3.0  # names of glyphs are of no use
    rename(font, f"Headscope Sans {script}")
    font["head"].modified = font["head"].created  # so that the same input gives the same file
    font.recalcTimestamp = False
    path = PLACE / f"HeadscopeSans-{script}.ttf"
    font.save(path)
    print(f"{path.name}: {len(font.getBestCmap()):,} characters, {path.stat().st_size:,} bytes")


def main(folder: str) -> None:
    PLACE.mkdir(exist_ok=True)
    [collection] = Path(folder).rglob("NotoSansCJK-Regular.ttc")
    font = TTCollection(str(collection)).fonts[_SIMPLIFIED]
    reduce(font, east_asian())
    to_quadratic(font)
    save(font, "CJK")
    for script in SCRIPTS:
        [file] = Path(folder).rglob(f"NotoSans{script}-Regular.ttf")
        font = TTFont(str(file))
        reduce(font, None)
        save(font, script)


if __name__ == "__main__":
    main(sys.argv[1])
