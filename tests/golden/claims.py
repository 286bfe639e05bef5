"""The verdict on every claim of a study, also on results that lack something.

Twelve degraded variants of every result are judged: fewer layers, heads or groups of documents,
variables that are missing, and variables without data.
"""

from collections.abc import Callable, Iterator, Sequence
from math import isclose, isfinite
from typing import Any

import numpy as np
import xarray as xr

from headscope.results.claims import Replicates, judge
from headscope.results.statements import read_statements
from headscope.studies import find_study

Answer = Sequence[Any]  # the verdict, value, low and high, or the name of an error alone
Claims = dict[str, dict[str, Answer]]  # by the text of the claim and the variant of the result

WHOLE = "whole"  # the result as it is
RELATIVE, ABSOLUTE = 1e-4, 1e-6  # tolerance of these numbers
TAGS = ("pos_", "tag_", "top_", "offset_share")
ARC_DIMS = {"deprel", "form", "relation", "depth"}
ARCS = ("dependency", "relation", "tree", "noop", "induction", "retrieval")
NULLS = ("null_share", "special_share", "first_share", "first_token", "entropy_from_cls")
LABEL_DIMS = ("tag", "deprel", "relation", "form", "separation", "probe", "depth")


def judge_all(study: str, result: xr.Dataset) -> Claims:
    """Every claim as the result says it, and as it is judged on every degraded variant."""
    claims: Claims = {}
    for claim in read_statements(result).findings:
        claims[claim.claim] = {WHOLE: _answer(claim.holds, claim.value, claim.low, claim.high)}
    for name, degrade in DEGRADED.items():
        for claim, answer in judge_claims(study, degrade(result)).items():
            claims[claim][name] = answer
    return claims


def judge_claims(study: str, result: xr.Dataset) -> dict[str, Answer]:
    """Every claim judged on a result; where a statistic fails, the name of its error."""
    data = Replicates(result)
    answers: dict[str, Answer] = {}
    for claim in find_study(study).claims:
        try:
            judged = judge(claim, data)
        except Exception as error:  # whatever it is, it should stay the same
            answers[claim.sentence] = [type(error).__name__]
        else:
            numbers = judged.value, judged.low, judged.high
            answers[claim.sentence] = _answer(judged.holds, *numbers)
    return answers


def _answer(verdict: str, *numbers: float | None) -> Answer:
    """An answer as it is stored: None for a number that is unknown."""
    known = [None if number is None or not isfinite(number) else number for number in numbers]
    return [verdict, *(None if number is None else float(f"{number:.9g}") for number in known)]


def differences(stored: Claims, computed: Claims) -> Iterator[str]:
    """Verdicts that changed and numbers that moved, a line each."""
    for claim in sorted(stored.keys() | computed.keys()):
        before, after = stored.get(claim, {}), computed.get(claim, {})
        if not before or not after:
            yield f"claim {'gone' if before else 'new'}: {claim}"
            continue
        for variant in sorted(before.keys() | after.keys()):
            old, new = before.get(variant, []), after.get(variant, [])
            if not _are_close(old, new):
                yield f"{variant}: now {_say(new)}, was {_say(old)}: {claim}"


def _are_close(before: Answer, after: Answer) -> bool:
    if len(before) != len(after):
        return False
    for old, new in zip(before, after, strict=True):
        if isinstance(old, float | int) and isinstance(new, float | int):
            if not isclose(old, new, rel_tol=RELATIVE, abs_tol=ABSOLUTE):
                return False
        elif old != new:
            return False
    return True


def _say(answer: Answer) -> str:
    return ", ".join(map(str, answer)) or "not judged"


def drop_variables(
    result: xr.Dataset, beginnings: tuple[str, ...], dims: set[str] | None = None
) -> xr.Dataset:
    """The result without the variables that begin so, or that lie along one of these dimensions."""
    dropped = [
        name
        for name, array in result.data_vars.items()
        if str(name).startswith(beginnings) or (dims or set()).intersection(map(str, array.dims))
    ]
    return result.drop_vars(dropped)


def keep_groups(result: xr.Dataset, count: int) -> xr.Dataset:
    """The sums of the first groups that have data."""
    has_data = np.zeros(result.sizes["group"], dtype=bool)
    for name, array in result.data_vars.items():
        if str(name).endswith("_denominator"):
            weight = array.transpose("group", ...).values
            has_data |= (weight > 0).reshape(len(weight), -1).any(1)
    return result.isel(group=np.flatnonzero(has_data)[:count])


def without_values(result: xr.Dataset) -> xr.Dataset:
    """Every measure NaN, without any sums from which it could be computed."""
    bare = without_sums(result)
    unknown = {
        name: array * np.nan for name, array in bare.data_vars.items() if array.dtype.kind == "f"
    }
    return bare.assign(unknown)


def without_sums(result: xr.Dataset) -> xr.Dataset:
    """Every measure without its sums over groups: nothing is known of errors."""
    sums = [name for name in result.data_vars if str(name).endswith(("_numerator", "_denominator"))]
    return result.drop_vars(sums)


def with_empty_sums(result: xr.Dataset) -> xr.Dataset:
    """No group has any data."""
    sums = [name for name in result.data_vars if str(name).endswith(("_numerator", "_denominator"))]
    return result.assign({name: result[name] * 0 for name in sums})


def first_labels(result: xr.Dataset) -> xr.Dataset:
    """Only the first label of each kind."""
    return result.isel({dim: slice(1) for dim in LABEL_DIMS if dim in result.dims})


DEGRADED: dict[str, Callable[[xr.Dataset], xr.Dataset]] = {
    "first layer": lambda result: result.isel(layer=slice(1)),
    "last two layers": lambda result: result.isel(layer=slice(-2, None)),
    "one head": lambda result: result.isel(head=slice(1)),
    "one group": lambda result: keep_groups(result, 1),
    "two groups": lambda result: keep_groups(result, 2),
    "no tags": lambda result: drop_variables(result, TAGS, {"tag"}),
    "no arcs": lambda result: drop_variables(result, ARCS, ARC_DIMS),
    "no null": lambda result: drop_variables(result, NULLS),
    "no sums": without_sums,
    "empty sums": with_empty_sums,
    "no values": without_values,
    "one label": first_labels,
}
