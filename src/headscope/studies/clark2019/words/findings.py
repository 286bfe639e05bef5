"""What the paper found in BERT-base about syntax and coreference, held against a result.

And its no-op reading of attention to delimiters (§3.2): what the best heads do with other words.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import xarray as xr

from headscope.head import name_in_paper
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
from headscope.studies.clark2019.probes.relations import SAME_RELATION, TABLE1
from headscope.studies.clark2019.probes.trees import ALL
from headscope.studies.clark2019.words.choices import (
    ENOUGH,
    GRADIENT,
    NOOP,
    BestHead,
    BestResolver,
    Pair,
    best_resolver,
    clear_relations,
    direction_gaps,
    layer_number,
    nominal_strength,
    noop_names,
    pair_of,
    relation_row,
    resolver_gap,
)
from headscope.studies.clark2019.words.probing import TABLE3

HALF = 0.5
NEAR = 0.05  # how much less than the rules still comes near to them; the paper's head: 0.04
LEVEL = 0.01  # a probe that gains more in the last quarter of its training has not levelled off
# The paper's row looks shifted.
REMARKS = {"auxpass": "; the released notebook prints 94.1 against 82.5"}
OBJECTS = {"obj", "dobj"}
NO_HEAD = "no head finds a relation clearly better than a fixed offset"
TOLD = ("det", "dobj", "nsubj", "poss with 's", "auxpass", "prep", "pobj", "amod", "mark", "prt")


def _row(data: xr.Dataset, relation: str) -> BestHead:
    names = {relation, *(label for label, same in SAME_RELATION.items() if same == relation)}
    row = relation_row(data, names)
    if row is None:
        raise NotMeasured("the corpus has no such relation")
    if not np.isfinite(row.held_out.value):
        raise NotMeasured(f"the {row.words} words with it are in one half of the documents")
    return row


def _say_relation(data: xr.Dataset, found: Found, relation: str) -> str:
    row = _row(data, relation)
    return (
        f"{row.relation}: {percent(row.accuracy.value)} in {_name(data, row)}, held out "
        f"{percent(row.held_out.value)}, baseline {percent(row.baseline)} ({row.offset:+d})"
    )


def _name(data: xr.Dataset, row: BestHead) -> str:
    return name_in_paper(layer_number(data, row.layer), row.head)


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
    gaps = direction_gaps(data, ENOUGH)
    found = {name: gap for name, gap in gaps.items() if np.isfinite(whole(gap))}
    if not found:
        raise NotMeasured("no relation has enough words")
    return found


def _count_directions(data: xr.Dataset, found: Found) -> str:
    gaps = _direction_gaps(data)
    against = [name for name, gap in gaps.items() if float(whole(gap)) < 0]
    named = f"; not {', '.join(against)}" if against else ""
    return f"{len(gaps) - len(against)} of {len(gaps)} relations{named}"


def _resolver(data: xr.Dataset) -> BestResolver:
    best = best_resolver(data, "words")
    if best is None:
        raise NotMeasured("no mention was scored")
    return best


def _nominal(data: xr.Dataset) -> xr.DataArray:
    _resolver(data)
    return known(nominal_strength(data), "too few nominal mentions were scored")


def _say_nominal(data: xr.Dataset, found: Found) -> str:
    best = _resolver(data)
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
    _resolver(data)
    return known(resolver_gap(data, system), "all mentions are in one half of the documents")


def _say_resolver(data: xr.Dataset, found: Found, system: str) -> str:
    best = _resolver(data)
    baseline = float(whole(data["coref_baseline"]).sel(system=system, mention="all"))
    return (
        f"{name_in_paper(best.layer, best.head)}: held out {percent(best.held_out.value)}, "
        f"{system.replace('_', ' ')} {percent(baseline)}"
    )


def _say_near(data: xr.Dataset, found: Found) -> str:
    """Better than the rules, near to them, or not."""
    said = _say_resolver(data, found, "rules")
    return f"better than the rules; {said}" if found.low > 0 else said


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


def _of_relation(relation: str) -> Finding:
    accuracy, offset, baseline = TABLE1[relation]
    return Finding(
        f"A head finds {relation} better than any fixed offset.",
        f"{accuracy} against {baseline} ({offset:+d}){REMARKS.get(relation, '')}",
        "accuracy of a head chosen on other documents, less that of the best offset, is above 0",
        ("relation_accuracy",),
        lambda data: _row(data, relation).margin_replicates,
        unit=PERCENT,
        is_signed=True,
        range=DIFFERENCE,
        words=partial(_say_relation, relation=relation),
    )


def _of_probes(better: str, worse: str, claim: str) -> Finding:
    def find(data: xr.Dataset) -> xr.DataArray:
        for name in (better, worse):
            _check_level(data, name)
        uas = data["parsing_uas"]
        return uas.sel(probe=better) - uas.sel(probe=worse)

    def say(data: xr.Dataset, found: Found) -> str:
        uas = whole(data["parsing_uas"])
        return " against ".join(percent(float(uas.sel(probe=each))) for each in (better, worse))

    return Finding(
        claim,
        f"{TABLE3[better]} against {TABLE3[worse]}",
        "difference above 0, of probes that gained at most 1 % in the last quarter of their "
        "training",
        ("parsing_uas",),
        find,
        unit=PERCENT,
        is_signed=True,
        range=DIFFERENCE,
        words=say,
    )


FINDINGS = (
    *(_of_relation(relation) for relation in TOLD),
    Finding(
        "No single head parses the whole sentence.",
        "34.5 against 26.3 (+1)",
        "a head chosen on other documents finds fewer than half of all governors, those that it "
        "cannot see included",
        ("relation_accuracy",),
        lambda data: _row(data, ALL).of_all_replicates,
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


def _clear(data: xr.Dataset, prefix: str) -> list[Pair]:
    rows = _clear_rows(data)
    if not rows:
        raise NotMeasured(NO_HEAD)
    return [pair_of(data, row, prefix) for row in rows]


def _clear_rows(data: xr.Dataset) -> list[BestHead]:
    """The relations that a head clearly finds, each once."""
    return [row for row in clear_relations(data, ENOUGH) if not row.relation.endswith(" with 's")]


def _mean_of_clear(values: Sequence[xr.DataArray]) -> xr.DataArray:
    found = xr.concat(values, "clear", coords="minimal", compat="override").mean("clear")
    return found.reset_coords(drop=True)


def _say_clear(data: xr.Dataset, found: Found) -> str:
    rows = _clear_rows(data)
    pairs = [pair_of(data, row) for row in rows]
    applies, other = (float(np.mean([whole(pair[n]) for pair in pairs])) for n in range(2))
    named = ", ".join(row.relation for row in rows[:5]) + (" …" if len(rows) > 5 else "")
    return f"{applies:.2f} where it applies, {other:.2f} elsewhere; {named}"


def _objects(data: xr.Dataset) -> xr.DataArray:
    applies, other = pair_of(data, _object_row(data))
    return (other - applies).reset_coords(drop=True)


def _object_row(data: xr.Dataset) -> BestHead:
    row = relation_row(data, OBJECTS)
    if row is None or row.words < ENOUGH:
        raise NotMeasured("the corpus has too few direct objects")
    return row


def _say_objects(data: xr.Dataset, found: Found) -> str:
    row = _object_row(data)
    applies, other = (float(whole(each)) for each in pair_of(data, row))
    return f"{_name(data, row)}: {applies:.2f} where it applies, {other:.2f} elsewhere"


NOOP_FINDINGS = (
    Finding(
        "Heads look at delimiters where the relation they find does not apply.",
        "words that a head has nothing to do for attend to [SEP]",
        "mean over the relations that a head clearly finds: share to delimiters of words to which "
        "the relation does not apply, less that of the others, is above 0",
        (*noop_names(NOOP), "relation_accuracy"),
        lambda data: _mean_of_clear([other - applies for applies, other in _clear(data, NOOP)]),
        is_signed=True,
        range=DIFFERENCE,
        words=_say_clear,
    ),
    Finding(
        "So it is with the head that finds direct objects.",
        "8-10: words that are no direct object attend to [SEP]",
        "the same for its best head alone is above 0",
        (*noop_names(NOOP), "relation_accuracy"),
        _objects,
        is_signed=True,
        range=DIFFERENCE,
        words=_say_objects,
    ),
    Finding(
        "There the loss depends less on it.",
        "expected of a no-op; the paper shows gradients by layer",
        "mean over the same relations of the gradient to delimiters elsewhere / where the relation "
        "applies, below 1",
        (*noop_names(GRADIENT), "relation_accuracy"),
        lambda data: _mean_of_clear([other / applies for applies, other in _clear(data, GRADIENT)]),
        threshold=1.0,
        more="below",
        unit="×",
        range=(0.0, np.inf),
        words=lambda data, found: (
            f"of {len(_clear_rows(data))} relations, elsewhere relative to where it applies"
        ),
    ),
)
