"""Test the map of heads: names in groups, the summary, and the heads that are told of first."""

import json

import numpy as np
import xarray as xr

from headscope.results.evidence import INKS, PLACES, PROFILE
from headscope.results.head_map import map_heads

HEADS = (
    ("previous token", "position", 0.9, "L0H0 looks at the previous token."),
    ("recent tokens", "position", 0.5, "L0H1 looks at recent tokens."),
    ("recent tokens", "position", 0.7, "L0H2 looks at recent tokens."),
    ("first token", "sink", 0.8, "L1H0 rests on the first token."),
    ("evenly", "even", np.nan, "L1H1 spreads evenly."),
    ("unnamed", "unnamed", 0.1, "L1H2 looks at nothing that has a name."),
)


def portraits() -> xr.Dataset:
    stored = []
    for name, group, _, _ in HEADS:
        words = "rests on the first token" if group == "sink" else name
        fact = {"key": name, "words": words, "value": 0.5, "group": group}
        stored.append(json.dumps({"name": name, "group": group, "facts": [fact]}))
    grid = ("layer", "head")
    return xr.Dataset(
        {
            "description": (grid, np.array([head[3] for head in HEADS]).reshape(2, 3)),
            "portrait": (grid, np.array(stored).reshape(2, 3)),
            "explained": (grid, np.array([head[2] for head in HEADS]).reshape(2, 3)),
        },
        {"layer": [0, 1], "head": [0, 1, 2]},
    )


def test_the_map_has_every_head_with_name_group_and_share() -> None:
    heads = map_heads(portraits())
    assert heads is not None
    assert [(cell.head, cell.name, cell.group) for cell in heads.cells[:2]] == [
        ("L0H0", "previous token", "position"),
        ("L0H1", "recent tokens", "position"),
    ]
    assert heads.cells[0].explained == 0.9
    assert heads.cells[4].explained is None


def test_the_summary_counts_every_head_once() -> None:
    heads = map_heads(portraits())
    assert heads is not None
    assert heads.summary == (
        "Of 6 heads 1 rests on the first token, 3 look at near or fixed positions, 1 spreads "
        "evenly or widely; 1 has no name yet. On texts that they were not fitted to, the portraits "
        "explain 70 % of the middle head’s attention."
    )
    assert [(name.name, name.heads) for name in heads.names] == [
        ("first token", 1),
        ("recent tokens", 2),
        ("previous token", 1),
        ("evenly", 1),
        ("unnamed", 1),
    ]
    assert sum(name.heads for name in heads.names) == len(heads.cells)


def test_of_every_name_the_best_explained_head_is_told_of() -> None:
    heads = map_heads(portraits())
    assert heads is not None
    assert [cell.head for cell in heads.telling()] == ["L0H0", "L1H0", "L0H2"]
    assert [cell.head for cell in heads.telling(1)] == ["L0H0"]


def test_a_run_without_portraits_has_no_map() -> None:
    assert map_heads(portraits().drop_vars("portrait")) is None


def test_bars_are_the_profile_and_places_that_no_head_can_see_are_known() -> None:
    profile = np.zeros((2, 3, 3, len(PLACES)))
    profile[0, 0, 1, PLACES.index("-1")] = 0.75
    profile[1, 0, 0, PLACES.index("first")] = 0.5
    axes = ("layer", "head", "ink", "ink_place")
    result = portraits().assign_coords(ink=list(INKS), ink_place=list(PLACES))
    heads = map_heads(result.assign({PROFILE: (axes, profile)}))
    assert heads is not None
    assert [PLACES[place] for place in heads.seen] == ["first", "-1"]
    assert [[bars[place] for place in heads.seen] for bars in heads.cells[0].bars] == [
        [0.0, 0.0], [0.0, 0.75], [0.0, 0.0],
    ]  # fmt: skip
    assert [[bars[place] for place in heads.seen] for bars in heads.cells[3].bars] == [
        [0.5, 0.0], [0.0, 0.0], [0.0, 0.0],
    ]  # fmt: skip
