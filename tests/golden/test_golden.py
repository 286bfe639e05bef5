"""The numbers and claims of eight small runs are those that are stored.

If they moved on purpose: python -m tests.golden.record, and a reason in MOVED in `runs.py`.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from tests.golden import claims, summaries
from tests.golden.record import CLAIMS, STORED, numbers_file, read_claims
from tests.golden.runs import RUNS, GoldenRun, compute

MOST_BYTES = 1_500_000  # of all stored files
LINES = 40  # of a failure


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_a_run_gives_the_stored_numbers_and_claims(run: GoldenRun) -> None:
    result = compute(run)
    stored = summaries.read(numbers_file(run.name))
    moved = [*summaries.differences(stored, summaries.summarise(result))]
    moved += claims.differences(read_claims()[run.name], claims.judge_all(run.study, result))
    shown = [f"{run.name}: {line}" for line in moved[:LINES]]
    assert not moved, "\n".join([f"{run.name}: {len(moved)} differences", *shown])


def test_every_run_is_stored_and_all_of_them_are_small() -> None:
    names = {run.name for run in RUNS}
    assert {path.stem for path in STORED.glob("*.npz")} == names
    assert read_claims().keys() == names
    assert sum(path.stat().st_size for path in (CLAIMS, *STORED.glob("*.npz"))) < MOST_BYTES


def test_every_run_is_judged_on_twelve_degraded_results() -> None:
    variants = {claims.WHOLE, *claims.DEGRADED}
    assert len(claims.DEGRADED) == 12
    for of_run in read_claims().values():
        assert all(answers.keys() == variants for answers in of_run.values())


@pytest.fixture
def result() -> xr.Dataset:
    rng = np.random.default_rng(0)
    return xr.Dataset(
        {
            "small": (("layer", "head"), rng.random((3, 4))),
            "large": (("layer", "token"), rng.random((3, 5000))),
            "chosen": (("layer",), np.array([3, 1, 2])),
            "unknown": (("layer",), np.array([np.nan, 1.0, 2.0])),
        },
        coords={"head": ["a", "b", "c", "d"]},
        attrs={"tokens": 7.0, "model": "any"},
    )


@pytest.fixture
def stored(result: xr.Dataset, tmp_path: Path) -> dict[str, summaries.Summary]:
    summaries.write(tmp_path / "result.npz", summaries.summarise(result))
    return summaries.read(tmp_path / "result.npz")


def differences(stored: dict[str, summaries.Summary], result: xr.Dataset) -> list[str]:
    return list(summaries.differences(stored, summaries.summarise(result)))


def test_a_stored_result_is_no_difference(
    result: xr.Dataset, stored: dict[str, summaries.Summary]
) -> None:
    assert differences(stored, result) == []
    nearly = result.assign(small=result["small"] * (1 + 1e-5), large=result["large"] * (1 - 1e-5))
    assert differences(stored, nearly) == []


def test_a_value_that_changed_by_a_thousandth_is_found(
    result: xr.Dataset, stored: dict[str, summaries.Summary]
) -> None:
    largest = float(result["small"].max())
    result["small"][1, 2] += 1e-3 * largest
    (line,) = differences(stored, result)
    assert line == f"small moved by 1.0e-03 of its largest value, {largest:.4g}"


def test_a_change_beside_the_drawn_values_is_found_by_the_sums(
    result: xr.Dataset, stored: dict[str, summaries.Summary]
) -> None:
    flat = result["large"].values.ravel()
    is_drawn = np.isin(np.arange(flat.size), summaries.draw_places(flat.size))
    assert is_drawn.sum() == summaries.MOST_VALUES
    flat[~is_drawn] *= 1.001
    (line, *_) = differences(stored, result)
    assert line.startswith("large moved by") and "over all values" in line


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        (lambda r: r.transpose("head", "layer", "token"), "small has dimensions"),
        (lambda r: r.assign_coords(head=["a", "b", "d", "c"]), "head differs in 2 of 4"),
        (lambda r: r.assign(chosen=r["chosen"] + [0, 0, 1]), "chosen differs in 1 of 3"),
        (lambda r: r.assign(chosen=r["chosen"] * 1.0), "chosen is of kind f, was i"),
        (lambda r: r.assign(unknown=r["unknown"].fillna(0)), "unknown has 0 NaN, had 1"),
        (lambda r: r.assign(unknown=r["unknown"][::-1]), "unknown has NaN in other places"),
        (lambda r: r.drop_vars("large"), "large is gone"),
        (lambda r: r.assign(more=1), "more is new"),
        (lambda r: r.assign_attrs(tokens=8.0), "attribute tokens moved by 1.4e-01"),
    ],
)
def test_what_is_not_a_number_is_compared_exactly(
    result: xr.Dataset,
    stored: dict[str, summaries.Summary],
    changed: Callable[[xr.Dataset], xr.Dataset],
    line: str,
) -> None:
    assert any(found.startswith(line) for found in differences(stored, changed(result)))


def test_a_verdict_or_a_number_of_a_claim_that_changed_is_found() -> None:
    name = RUNS[0].name
    of_run = read_claims()[name]
    assert list(claims.differences(of_run, of_run)) == []
    judged = [claim for claim, answers in of_run.items() if answers[claims.WHOLE][2] is not None]
    verdict, value, low, high = of_run[judged[0]][claims.WHOLE]
    for answer in (["never", value, low, high], [verdict, value, low, high * 1.001], ["KeyError"]):
        changed = of_run | {judged[0]: of_run[judged[0]] | {claims.WHOLE: answer}}
        (line,) = claims.differences(of_run, changed)
        assert line.startswith(f"{claims.WHOLE}: now ") and line.endswith(judged[0])


def test_a_stored_variable_that_moved_fails_its_run() -> None:
    run = next(run for run in RUNS if run.name == "vig2019-both")
    stored = summaries.read(numbers_file(run.name))
    entropy = stored["entropy"]
    moved = replace(entropy, values=entropy.values * np.float32(1.001))
    (line,) = summaries.differences(stored, stored | {"entropy": moved})
    assert line.startswith("entropy moved by 1.0e-03")
