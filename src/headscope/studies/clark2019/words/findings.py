"""What the paper found in BERT-base about syntax and coreference, held against a result."""

from functools import partial

import numpy as np
import xarray as xr

from headscope.head import name_in_paper
from headscope.probes.papers import SAME_RELATION, TABLE1, TABLE3
from headscope.probes.selection import BestHead
from headscope.probes.trees import ALL
from headscope.results.findings import (
    DIFFERENCE,
    PERCENT,
    SHARE,
    Finding,
    Found,
    NotMeasured,
    known,
    percent,
    whole,
)
from headscope.studies.clark2019.words.choices import (
    best_resolver,
    direction_gaps,
    layer_number,
    nominal_strength,
    relation_row,
    resolver_gap,
)

FEW = 20  # words of a relation that a best head can be chosen by
HALF = 0.5
NEAR = 0.05  # how much less than the rules still comes near to them; the paper's head: 0.04
LEVEL = 0.01  # a probe that gains more in the last quarter of its training has not levelled off
# The paper's row looks shifted.
REMARKS = {"auxpass": "; the released notebook prints 94.1 against 82.5"}
TOLD = ("det", "dobj", "nsubj", "poss with 's", "auxpass", "prep", "pobj", "amod", "mark", "prt")


def _row(data: xr.Dataset, relation: str) -> BestHead:
    names = {relation, *(label for label, same in SAME_RELATION.items() if same == relation)}
    row = relation_row(data, names)
    if row is None:
        raise NotMeasured("the corpus has no such relation")
    if not np.isfinite(row.held_out.value):
        raise NotMeasured(f"the {row.words} words with it are in one half of the documents")
    return row


def _relation_margin(data: xr.Dataset, relation: str) -> xr.DataArray:
    """How much more a head chosen on other documents finds than the best fixed offset."""
    return _row(data, relation).margin_replicates


def _say_relation(data: xr.Dataset, found: Found, relation: str) -> str:
    row = _row(data, relation)
    return (
        f"{row.relation}: {percent(row.accuracy.value)} in {_name(data, row)}, held out "
        f"{percent(row.held_out.value)}, baseline {percent(row.baseline)} ({row.offset:+d})"
    )


def _name(data: xr.Dataset, row: BestHead) -> str:
    return name_in_paper(layer_number(data, row.layer), row.head)


def _found_by_one_head(data: xr.Dataset) -> xr.DataArray:
    """Of all governors, seen or not, those that a head chosen on other documents finds."""
    return _row(data, ALL).of_all_replicates


def _say_parser(data: xr.Dataset, found: Found) -> str:
    row = _row(data, ALL)
    return (
        f"of all governors; {_name(data, row)} finds {percent(row.accuracy.value)} of the "
        f"{percent(row.coverage)} it could see, baseline {percent(row.baseline)}"
    )


def _direction(data: xr.Dataset) -> xr.DataArray:
    gaps = _direction_gaps(data)
    return xr.concat(gaps.values(), "relation", combine_attrs="drop").mean("relation")


def _direction_gaps(data: xr.Dataset) -> dict[str, xr.DataArray]:
    if data.attrs["is_causal"]:
        raise NotMeasured("the two directions of a causal model are asked for different words")
    gaps = direction_gaps(data, FEW)
    found = {name: gap for name, gap in gaps.items() if np.isfinite(whole(gap))}
    if not found:
        raise NotMeasured("no relation has enough words")
    return found


def _count_directions(data: xr.Dataset, found: Found) -> str:
    gaps = _direction_gaps(data)
    against = [name for name, gap in gaps.items() if float(whole(gap)) < 0]
    named = f"; not {', '.join(against)}" if against else ""
    return f"{len(gaps) - len(against)} of {len(gaps)} relations{named}"


def _nominal(data: xr.Dataset) -> xr.DataArray:
    if best_resolver(data, "words") is None:
        raise NotMeasured("no mention was scored")
    return known(nominal_strength(data), "too few nominal mentions were scored")


def _say_nominal(data: xr.Dataset, found: Found) -> str:
    best = best_resolver(data, "words")
    assert best is not None
    place = {"layer": best.layer, "head": best.head, "candidates": "words"}
    own = whole(data["coref_accuracy"]).sel(place)
    match = whole(data["coref_baseline"]).sel(system="head_match")
    said = (
        f"{kind} {percent(float(own.sel(mention=kind)))} against "
        f"{percent(float(match.sel(mention=kind)))}"
        for kind in ("nominal", "all")
    )
    return f"{name_in_paper(best.layer, best.head)}: {', '.join(said)}"


def _gap_to_system(data: xr.Dataset, system: str) -> xr.DataArray:
    if best_resolver(data, "words") is None:
        raise NotMeasured("no mention was scored")
    return known(resolver_gap(data, system), "all mentions are in one half of the documents")


def _say_resolver(data: xr.Dataset, found: Found, system: str) -> str:
    best = best_resolver(data, "words")
    assert best is not None
    baseline = float(whole(data["coref_baseline"]).sel(system=system, mention="all"))
    return (
        f"{name_in_paper(best.layer, best.head)}: held out {percent(best.held_out.value)}, "
        f"{system.replace('_', ' ')} {percent(baseline)}"
    )


def _say_near(data: xr.Dataset, found: Found) -> str:
    """Better than the rules, near to them, or not."""
    said = _say_resolver(data, found, "rules")
    return f"better than the rules; {said}" if found.low > 0 else said


def _probe_gap(data: xr.Dataset, better: str, worse: str) -> xr.DataArray:
    for name in (better, worse):
        _check_level(data, name)
    uas = data["parsing_uas"]
    return uas.sel(probe=better) - uas.sel(probe=worse)


def _check_level(data: xr.Dataset, probe: str) -> None:
    """Refuse to judge by a probe that would score otherwise after more training."""
    if "parsing_curve" not in data or probe not in data["parsing_curve"]["probe"]:
        return
    curve = data["parsing_curve"].sel(probe=probe)
    gain = float(curve.isel(share=-1) - curve.isel(share=-2))
    if gain > LEVEL:
        name = probe.replace("_", " and ")
        raise NotMeasured(
            f"the probe of {name} has not levelled off: +{percent(gain)} in the last quarter of "
            "its training"
        )


def _say_probes(data: xr.Dataset, found: Found, better: str, worse: str) -> str:
    uas = whole(data["parsing_uas"])
    return f"{percent(float(uas.sel(probe=better)))} against {percent(float(uas.sel(probe=worse)))}"


def _of_relation(relation: str) -> Finding:
    accuracy, offset, baseline = TABLE1[relation]
    return Finding(
        f"A head finds {relation} better than any fixed offset.",
        f"{accuracy} against {baseline} ({offset:+d}){REMARKS.get(relation, '')}",
        "accuracy of a head chosen on other documents, less that of the best offset, is above 0",
        ("relation_accuracy",),
        partial(_relation_margin, relation=relation),
        unit=PERCENT,
        is_signed=True,
        range=DIFFERENCE,
        words=partial(_say_relation, relation=relation),
    )


def _of_probes(better: str, worse: str, claim: str) -> Finding:
    return Finding(
        claim,
        f"{TABLE3[better]} against {TABLE3[worse]}",
        "difference above 0, of probes that gained at most 1 % in the last quarter of their "
        "training",
        ("parsing_uas",),
        partial(_probe_gap, better=better, worse=worse),
        unit=PERCENT,
        is_signed=True,
        range=DIFFERENCE,
        words=partial(_say_probes, better=better, worse=worse),
    )


FINDINGS = (
    *(_of_relation(relation) for relation in TOLD),
    Finding(
        "No single head parses the whole sentence.",
        "34.5 against 26.3 (+1)",
        "a head chosen on other documents finds fewer than half of all governors, those that it "
        "cannot see included",
        ("relation_accuracy",),
        _found_by_one_head,
        threshold=HALF,
        more="below",
        unit=PERCENT,
        range=SHARE,
        words=_say_parser,
    ),
    Finding(
        "Dependents look at their heads rather than the other way round.",
        "all rows of Table 1 but pobj",
        "mean over relations of the accuracy of the best head from dependents, less that from "
        "heads, each chosen on other documents, is above 0",
        ("relation_accuracy",),
        _direction,
        unit=PERCENT,
        is_signed=True,
        range=DIFFERENCE,
        words=_count_directions,
    ),
    Finding(
        "A head resolves coreference better than matching head words.",
        "65 against 52",
        "accuracy of a head chosen on other documents, less that of head match, is above 0",
        ("coref_accuracy", "coref_baseline"),
        partial(_gap_to_system, system="head_match"),
        unit=PERCENT,
        is_signed=True,
        range=DIFFERENCE,
        words=partial(_say_resolver, system="head_match"),
    ),
    Finding(
        "That head comes near to a system of rules.",
        "65 against 69",
        "its accuracy, less that of the rules, is above −5 %; better where it is above 0",
        ("coref_accuracy", "coref_baseline"),
        partial(_gap_to_system, system="rules"),
        threshold=-NEAR,
        unit=PERCENT,
        is_signed=True,
        range=DIFFERENCE,
        words=_say_near,
    ),
    Finding(
        "It is particularly good with nominal mentions.",
        "58 against 40, of all 65 against 52",
        "what it gains over head match on nominal mentions, less what it gains on all, is above 0",
        ("coref_accuracy", "coref_baseline"),
        _nominal,
        unit=PERCENT,
        is_signed=True,
        range=(-2.0, 2.0),
        words=_say_nominal,
    ),
    _of_probes("attention", "right_branching", "Heads together know more than the next word."),
    _of_probes("attention_words", "attention", "Knowing the words helps to read attention."),
    _of_probes("attention_words", "distances_words", "Attention says more than distances do."),
    _of_probes(
        "attention_words",
        "random_attention_words",
        "What attention says is learned, not given by the architecture.",
    ),
)
