"""Head colours: 64 for a light and 64 for a dark background.

After a handful chosen by eye, each is the colour farthest from all before it, in OKLab, for the
worst of four kinds of sight: normal, protan, deutan and tritan. So any prefix is about as
distinguishable as that many colours can be; `tests/views/test_palette.py` measures the distances.
"""

_LIGHT = """
1f70eb e69f00 8a0f6e 56c2f0 00794c f50099 5c14b8 5299f5
ff708f 668f00 295c00 0000f5 9970b8 c2c27a b80a8f cc3d66
70a366 a33dc2 cc85c2 ad0a00 eba3c2 ff290a e066eb a3668f
7a008f 990047 cc0033 ff6652 29b899 1f47ff 8f3d70 1fd6e0
eb33cc 5c0ad6 008570 8547a3 338fd6 66cc52 e08fb8 3da33d
3de03d 145c85 d647ad c21f52 c200e0 70d699 663dad 9970ff
cc99d6 85adff d65270 d68570 3d6629 d62947 0085a3 991485
1466b8 f58f85 66c200 700aa3 85335c cc5ce0 523dc2 47b8e0
"""

_DARK = """
5ca3ff ffb03b d64fb0 8ce0ff 8f7a00 ccf5b8 8f47ff c29966
ffeb00 f57ab8 a3d6a3 d62970 7ac2ff c214cc ff7a14 ff1f00
a3f5eb c27a85 ff47e0 cce07a 8fc28f f5b8d6 5c8fe0 5285ad
b87052 ebd600 adcc70 ff8fd6 a3668f e0f57a ad66ff f514d6
5cada3 c2ad5c f54766 99ebc2 a3a329 eb70ff 52f599 ff99ff
00a38f 7aad85 5cd600 85ccad 478f3d a370c2 00b8c2 c200eb
ffc2f5 b8d666 5c9970 7ab8e0 52e0e0 d65233 85ff99 6699eb
ff00b8 85d6c2 85b885 e0e05c b88f47 99cc8f ad5ccc ff66cc
"""

LIGHT = tuple(f"#{code}" for code in _LIGHT.split())
DARK = tuple(f"#{code}" for code in _DARK.split())

POSITIVE, NEGATIVE = "#1f6fd6", "#d9740b"  # blue and orange: apart for every kind of sight


def head_color(head: int) -> str:
    """The colour of a head on paper."""
    return LIGHT[head % len(LIGHT)]


# ---- Figures and the report's page -------------------------------------------------------------
INK = "#24292f"  # replaced by the page's text colour when a figure is set into a page
FAINT = "#8b949e"
ACCENT = "#2f6f9f"
SECOND = "#c2571a"
SERIES = (ACCENT, SECOND, "#6a8f3c", "#8a5ea8", "#c9a227", "#4aa3a2", "#a05252", "#5b6abf")
PAPER = "white"  # behind figures that are pictures
MAP = "cividis"  # perceptually even, the same to readers with and without colour vision
SIGNED = "PuOr_r"  # orange for, violet against; the same with and without colour vision

# Variables of the page's style sheet: on a light and a dark screen, and in print.
PAGE = {
    "light": {
        "paper": "#fdfdfc", "ink": INK, "soft": "#57606a", "line": "#d8dce1", "wash": "#f3f4f2",
        "accent": ACCENT, "yes": "#2e7d4f", "no": "#a8452c", "unclear": "#8a6d1a",
    },
    "dark": {
        "paper": "#14171b", "ink": "#dfe3e8", "soft": "#98a2ad", "line": "#2f353c",
        "wash": "#1b1f24", "accent": "#7db4dc", "yes": "#6cc08f", "no": "#e58f74",
        "unclear": "#d6b760",
    },
    "print": {
        "paper": "#fff", "ink": "#000", "soft": "#444", "line": "#bbb", "wash": "#f4f4f4",
        "accent": "#1d4e74", "yes": "#2e7d4f", "no": "#a8452c", "unclear": "#7a5f12",
    },
}  # fmt: skip
