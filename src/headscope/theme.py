"""Every colour of views, explorer, report and figures, by what it means; nothing else names one.

CSS takes them as custom properties (`css_variables`), JavaScript from a generated module
(`javascript`), matplotlib from the constants.
"""

import json
from collections.abc import Collection, Mapping
from typing import NamedTuple


class Colour(NamedTuple):
    """One meaning on a light and on a dark background, and in print where that differs."""

    light: str
    dark: str
    print: str | None = None


Palette = Mapping[str, Colour]

# Groups of what heads do, the same in explorer, report and figures and in every run: hues for what
# a head looks for, greys for what it does not. Like HEADS apart for four kinds of sight.
ROLES: Palette = {
    "position": Colour("#1a49f4", "#2b8af8"),
    "marks": Colour("#744f00", "#e2e42d"),  # special tokens, punctuation, line breaks
    "repetition": Colour("#a218ac", "#cfadea"),
    "token": Colour("#21965a", "#a5eaf7"),
    "word class": Colour("#003c1f", "#4bd582"),
    "syntax": Colour("#e94a0c", "#fa5e36"),
    "sink": Colour("#424a53", "#99a1aa"),  # resting on the null tokens
    "even": Colour("#8d959e", "#7a828b"),
    "unnamed": Colour("#5c646d", "#5d656e"),
}


def role_variable(group: str) -> str:
    """The name of a group's colour among those of the screen: role-word-class."""
    return f"role-{group.replace(' ', '-')}"


# Views and explorer.
SCREEN: Palette = {
    **{role_variable(group): colour for group, colour in ROLES.items()},
    "ink": Colour("#1c2128", "#e4e8ee"),
    "faint": Colour("#5c6570", "#98a2ae"),  # captions, special tokens, axis labels
    "ground": Colour("#f4f6f8", "#0e1216"),  # the page behind its cards
    "paper": Colour("#ffffff", "#14181d"),
    "raised": Colour("#f5f7f9", "#1d232a"),  # bars of controls, hovered rows
    "rule": Colour("#d5dae0", "#333b45"),  # borders, and tokens that are hidden
    "accent": Colour("#1860d0", "#6fb0ff"),  # links, focus, what is chosen
    "accent-soft": Colour("#e3edfd", "#1d3150"),  # the ground of what is chosen
    "mark": Colour("#c2410c", "#ffa043"),  # baselines, published values, selected heads
    "wrong": Colour("#b3261e", "#ff8a80"),
    "note": Colour("#fff8e6", "#2a2415"),
    "note-rule": Colour("#ecd9a4", "#5a4c22"),
    "button": Colour("#1860d0", "#1860d0"),  # the one button that starts something
    "button-hover": Colour("#124fb0", "#124fb0"),
    "on-button": Colour("#ffffff", "#ffffff"),
    "positive": Colour("#1f6fd6", "#5aa5ff"),  # blue and orange: apart for every kind of sight
    "negative": Colour("#d9740b", "#ffa043"),
    "grid": Colour("#e9edf1", "#252c34"),  # lines behind a chart
    "bar": Colour("#5b8fd0", "#4a80bf"),
    "none": Colour("#eef1f4", "#20262d"),  # a cell without a value
}

# The report: on a light and a dark screen, and in print.
REPORT: Palette = {
    **{role_variable(group): colour for group, colour in ROLES.items()},
    "paper": Colour("#fdfdfc", "#14171b", "#ffffff"),
    "ink": Colour("#24292f", "#dfe3e8", "#000000"),
    "soft": Colour("#57606a", "#98a2ad", "#444444"),  # captions and notes
    "line": Colour("#d8dce1", "#2f353c", "#bbbbbb"),
    "wash": Colour("#f3f4f2", "#1b1f24", "#f4f4f4"),  # the ground of notes
    "accent": SCREEN["accent"],
    "yes": Colour("#2e7d4f", "#6cc08f", "#2e7d4f"),  # verdicts of findings
    "no": Colour("#a8452c", "#e58f74", "#a8452c"),
    "unclear": Colour("#8a6d1a", "#d6b760", "#7a5f12"),
}


class Ramp(NamedTuple):
    """Several colours in order, on a light and on a dark background."""

    light: tuple[str, ...]
    dark: tuple[str, ...]


def _ramp(light: str, dark: str) -> Ramp:
    return Ramp(*(tuple(f"#{code}" for code in codes.split()) for codes in (light, dark)))


# Head colours: after a handful chosen by eye, each is the colour farthest from all before it, in
# OKLab, for the worst of four kinds of sight: normal, protan, deutan and tritan. So any prefix is
# about as distinguishable as that many colours can be; `tests/test_theme.py` measures it.
HEADS = _ramp(
    """
    1f70eb e69f00 8a0f6e 56c2f0 00794c f50099 5c14b8 5299f5
    ff708f 668f00 295c00 0000f5 9970b8 c2c27a b80a8f cc3d66
    70a366 a33dc2 cc85c2 ad0a00 eba3c2 ff290a e066eb a3668f
    7a008f 990047 cc0033 ff6652 29b899 1f47ff 8f3d70 1fd6e0
    eb33cc 5c0ad6 008570 8547a3 338fd6 66cc52 e08fb8 3da33d
    3de03d 145c85 d647ad c21f52 c200e0 70d699 663dad 9970ff
    cc99d6 85adff d65270 d68570 3d6629 d62947 0085a3 991485
    1466b8 f58f85 66c200 700aa3 85335c cc5ce0 523dc2 47b8e0
    """,
    """
    5ca3ff ffb03b d64fb0 8ce0ff 8f7a00 ccf5b8 8f47ff c29966
    ffeb00 f57ab8 a3d6a3 d62970 7ac2ff c214cc ff7a14 ff1f00
    a3f5eb c27a85 ff47e0 cce07a 8fc28f f5b8d6 5c8fe0 5285ad
    b87052 ebd600 adcc70 ff8fd6 a3668f e0f57a ad66ff f514d6
    5cada3 c2ad5c f54766 99ebc2 a3a329 eb70ff 52f599 ff99ff
    00a38f 7aad85 5cd600 85ccad 478f3d a370c2 00b8c2 c200eb
    ffc2f5 b8d666 5c9970 7ab8e0 52e0e0 d65233 85ff99 6699eb
    ff00b8 85d6c2 85b885 e0e05c b88f47 99cc8f ad5ccc ff66cc
    """,
)
SEQUENTIAL = _ramp(  # small to large
    "f1f5fa cfe0f1 9cc3e6 5b9bd5 2a6cb3 124583 082a57",
    "1c232b 1d3650 215585 2f7cc0 62a8e6 a5d0f7 e6f3ff",
)
DIVERGING = _ramp(  # negative, zero, positive
    "7f3300 c9650b f0a75e fbe3c8 f5f7f9 d3e4f7 7db3ea 2569bd 0a2f66",
    "ffd3a1 ffa043 b96a1c 5c3a1a 20262d 1b3d61 2a6db5 68aef5 cfe6ff",
)
GROUPS = _ramp(  # Okabe and Ito's colours, darkened or lightened to stand out from the paper
    "0072b2 d55e00 007a5a a8528a 8a6d00 3d7fa6 6b4fbb 5c6570",
    "56b4e9 ff8c42 2fc79a e39acb e6c229 8fd0f0 b39ddb 98a2ae",
)
RAMPS = {"heads": HEADS, "sequential": SEQUENTIAL, "diverging": DIVERGING, "groups": GROUPS}
ON_COLOUR = ("#ffffff", "#000000")  # of these the one that can be read on a colour

# Figures of the report, on white paper.
PAPER = "#ffffff"
INK = REPORT["ink"].light  # replaced by the page's text colour when a figure is set into a page
FAINT = "#8b949e"
ACCENT = SCREEN["accent"].light
SECOND = SCREEN["mark"].light
SERIES = (ACCENT, SECOND, "#6a8f3c", "#8a5ea8", "#c9a227", "#4aa3a2", "#a05252", "#5b6abf")
UNKNOWN = SCREEN["rule"].light  # a cell without a value

# Printed views, on white paper; maps are stops from the lowest to the highest value.
PRINT_INK, PRINT_FAINT, PRINT_RULE = (SCREEN[name].light for name in ("ink", "faint", "rule"))
POSITIVE, NEGATIVE = SCREEN["positive"].light, SCREEN["negative"].light
SIGN_MAP = (NEGATIVE, PAPER, POSITIVE)
HEAD_MAP = (PAPER, HEADS.light[0])

# The report's custom properties, by where it is read.
PAGE = {
    side: {name: getattr(colour, side) or colour.light for name, colour in REPORT.items()}
    for side in ("light", "dark", "print")
}


def head_color(head: int) -> str:
    """The colour of a head on paper."""
    return HEADS.light[head % len(HEADS.light)]


def css_variables(
    *, root: str = ":root", prefix: str = "", only: Collection[str] | None = None
) -> str:
    """Custom properties such as `--ink`: light, or dark where the reader's system or the attribute
    `data-theme` of the root says so."""
    chosen = {f"--{prefix}{n}": c for n, c in SCREEN.items() if only is None or n in only}
    dark = _block({name: colour.dark for name, colour in chosen.items()}, "dark")
    rules = [
        f"{root} {_block({name: colour.light for name, colour in chosen.items()}, 'light')}",
        f"@media (prefers-color-scheme: dark) {{ {root}:not([data-theme]) {dark} }}",
        f'{root}[data-theme="dark"] {dark}',
    ]
    return "\n".join(rules) + "\n"


def javascript() -> str:
    """The module from which views and explorer take their colours."""
    colours = {
        side: {_camel(name): getattr(colour, side) for name, colour in SCREEN.items()}
        for side in ("light", "dark")
    }
    ramps = {name.upper(): ramp._asdict() for name, ramp in RAMPS.items()}
    parts = {"COLORS": colours, **ramps, "ON_COLOR": ON_COLOUR}
    lines = [f"export const {name} = {json.dumps(value)};" for name, value in parts.items()]
    first = "/** Every colour, generated from theme.py: change it there. */"
    return "\n".join([first, *lines, ""])


def _block(values: Mapping[str, str], scheme: str) -> str:
    declared = " ".join(f"{name}: {value};" for name, value in values.items())
    return f"{{ color-scheme: {scheme}; {declared} }}"


def _camel(name: str) -> str:
    first, *rest = name.split("-")
    return first + "".join(word.capitalize() for word in rest)
