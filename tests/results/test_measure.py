"""What a measure declares holds in every run: the groups of its names, hence colour and shape."""

import numpy as np
import pytest
import xarray as xr

from headscope.errors import RunError
from headscope.results.measure import (
    Baseline,
    Behaviour,
    Measure,
    attach,
    behaviours_of,
    measure_of,
)

MEASURE = Measure(
    "behaviour", "Behaviour", "", "", "", unit="",
    groups={"next": "position", "previous": "position", "sep": "marks", "other": "unnamed",
            "": "syntax"},
)  # fmt: skip


def run(*labels: str) -> xr.Dataset:
    grid = {"layer": [0], "head": np.arange(len(labels))}
    result = xr.Dataset({"behaviour": (("layer", "head"), [list(labels)])}, coords=grid)
    return attach(result, [MEASURE])


def test_colour_and_shape_of_a_behaviour_do_not_depend_on_what_else_is_in_the_run() -> None:
    many = behaviours_of(run("obj", "next", "sep", "previous", "other", "det"))
    assert many == [
        Behaviour("next", "position", 0), Behaviour("previous", "position", 1),
        Behaviour("sep", "marks", 0), Behaviour("other", "unnamed", 0),
        Behaviour("det", "syntax", 0), Behaviour("obj", "syntax", 1),
    ]  # fmt: skip
    assert behaviours_of(run("previous", "previous")) == [many[1]]


def test_a_group_that_has_no_colour_is_refused_with_its_measure() -> None:
    result = run("next")
    attributes = result["behaviour"].attrs
    attributes["measure"] = attributes["measure"].replace("position", "nowhere")
    with pytest.raises(RunError, match="The measure of behaviour cannot be read"):
        measure_of(result, "behaviour")


def test_nothing_in_a_run_is_a_format_string() -> None:
    assert Baseline("x", "offset {}").words("+1") == "offset +1"
    hostile = "{:>2000000000}{0.__class__}"
    assert Baseline("x", hostile).words("+1") == hostile
