"""Every colour has one home, and head colours can be told apart, whatever the eye."""

import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import headscope
from headscope.results.measure import RoleGroup
from headscope.theme import (
    HEADS,
    NEGATIVE,
    POSITIVE,
    ROLES,
    SCREEN,
    css_variables,
    head_color,
    javascript,
)

LIGHT, DARK = HEADS

# Machado et al. 2009, severity 1, in linear RGB.
SIGHTS = {
    "normal": np.eye(3),
    "protan": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deutan": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.01182, 0.04294, 0.968881],
    ],
    "tritan": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.3039],
    ],
}
# Björn Ottosson's OKLab, 2020: a distance of 0.02 is just noticeable.
TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_LAB = np.array(
    [
        [0.2104542553, 0.793617785, -0.0040720468],
        [1.9779984951, -2.428592205, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.808675766],
    ]
)


def linear(colors: tuple[str, ...]) -> np.ndarray:
    values = np.array([[int(code[i : i + 2], 16) / 255 for i in (1, 3, 5)] for code in colors])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def distances(colors: tuple[str, ...], sight: str) -> np.ndarray:
    """The distance of every pair, as this eye sees it."""
    seen = np.clip(linear(colors) @ np.array(SIGHTS[sight]).T, 0, 1)
    lab = np.cbrt(seen @ TO_CONES.T) @ TO_LAB.T
    apart = np.linalg.norm(lab[:, None] - lab[None], axis=-1)
    return apart[np.triu_indices(len(colors), 1)]


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_32_colours_are_twice_as_far_apart_as_can_just_be_noticed(
    palette: tuple[str, ...], sight: str
) -> None:
    assert distances(palette[:32], sight).min() > 0.039
    assert distances(palette[:12], sight).min() > 0.07


@pytest.mark.parametrize(("palette", "paper"), [(LIGHT, "#ffffff"), (DARK, "#14181d")])
def test_colours_stand_out_from_their_background(palette: tuple[str, ...], paper: str) -> None:
    for color in palette:
        assert distances((color, paper), "normal")[0] > 0.2


@pytest.mark.parametrize("sight", SIGHTS)
def test_positive_and_negative_differ_for_every_eye(sight: str) -> None:
    assert distances((POSITIVE, NEGATIVE), sight)[0] > 0.15


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("side", ["light", "dark"])
def test_groups_of_roles_can_be_told_apart_by_every_eye(side: str, sight: str) -> None:
    colours = tuple(getattr(colour, side) for colour in ROLES.values())
    assert distances(colours, sight).min() > 0.09
    paper = getattr(SCREEN["paper"], side)
    for colour in colours:
        assert distances((colour, paper), "normal")[0] > 0.2


def test_every_group_has_a_colour_in_python_css_and_javascript() -> None:
    assert set(get_args(RoleGroup)) == set(ROLES)
    assert f"--role-word-class: {ROLES['word class'].light};" in css_variables()
    assert f'"roleWordClass": "{ROLES["word class"].dark}"' in javascript()


def test_heads_beyond_the_palette_begin_again() -> None:
    assert head_color(0) == head_color(64) == LIGHT[0]
    assert len(set(LIGHT)) == len(set(DARK)) == 64


PACKAGE = Path(headscope.__file__).parent
NAMED = "white|black|red|green|blue|orange|yellow|purple|gray|grey|silver|navy|teal"
# A number after # or in rgb() and hsl(), or a name where a colour is expected.
LITERAL = re.compile(
    r"(?<![\w&/])#(?:[0-9a-fA-F]{8}|[0-9a-fA-F]{6}|[0-9a-fA-F]{3,4})\b(?!-)"
    r"|\b(?:rgb|hsl)a?\(\s*\d"
    rf"|(?:colou?rs?|background|fill|stroke|border)[\w-]*\s*[=:]\s*[\"']?(?:{NAMED})\b",
)
GENERATED = {"views/static/theme.css", "views/static/core/theme.js"}  # held by tests/views
SOURCES = sorted(
    path.relative_to(PACKAGE).as_posix()
    for ending in ("py", "js", "css", "html")
    for path in PACKAGE.rglob(f"*.{ending}")
)


@pytest.mark.parametrize("name", [name for name in SOURCES if name not in GENERATED | {"theme.py"}])
def test_no_colour_stands_outside_the_theme(name: str) -> None:
    text = (PACKAGE / name).read_text(encoding="utf-8")
    assert [found[0] for found in LITERAL.finditer(text)] == []


@pytest.mark.parametrize(
    "line",
    [
        "color: #fff;",
        'INK = "#24292f"',
        "fill='#1c212880'",
        "rgb(1, 2, 3)",
        "hsla(120 50% 50%)",
        'facecolor="white"',
        "border-color: red",
    ],
)
def test_a_colour_is_recognised(line: str) -> None:
    assert LITERAL.search(line)


@pytest.mark.parametrize("line", ["see #12", "href='#content'", "&#123;", "color: var(--ink)"])
def test_what_is_no_colour_is_left_alone(line: str) -> None:
    assert not LITERAL.search(line)


def test_custom_properties_are_light_and_dark_by_system_and_by_attribute() -> None:
    light, system, chosen = css_variables(only={"ink", "accent-soft"}).splitlines()
    ink = SCREEN["ink"]
    assert light.startswith(":root { color-scheme: light; --ink: " + ink.light)
    assert system.startswith("@media (prefers-color-scheme: dark) { :root:not([data-theme])")
    assert chosen.startswith(':root[data-theme="dark"] { color-scheme: dark; --ink: ' + ink.dark)
    assert all("--accent-soft: #" in line for line in (light, system, chosen))
