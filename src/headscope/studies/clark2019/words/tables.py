"""Tables 1 to 3 of the paper, from a result."""

import json
from typing import Any

import xarray as xr

from headscope.head import name_head, name_in_paper
from headscope.probes.coreference import CANDIDATES, KINDS
from headscope.probes.papers import BEST_HEAD, TABLE2, TABLE3, published_relation
from headscope.probes.selection import BestHead
from headscope.probes.trees import PUNCTUATION
from headscope.results.findings import hold_out
from headscope.results.heads import top_heads
from headscope.results.statements import Tabulation
from headscope.studies.clark2019.words.choices import (
    BestResolver,
    best_resolver,
    layer_number,
    relation_rows,
)

ARROWS = {"dependent_to_head": "dependent → head", "head_to_dependent": "head → dependent"}
FEW = "few words"
SYSTEM_NAMES = {
    "nearest": "nearest mention",
    "head_match": "head match",
    "rules": "rules",
}
PROBE_NAMES = {
    "right_branching": "right-branching",
    "distances_words": "distances and words",
    "random_attention_words": "random network: attention and words",
    "attention": "attention",
    "attention_words": "attention and words",
}
NOT_IN_TABLE = ("root", *PUNCTUATION)  # as in the paper
NO_NUMBER = float("nan")
CHOSEN = ("low", "high", "held out", "held out low", "held out high")
NOT_CHOSEN = dict.fromkeys(CHOSEN, NO_NUMBER)
NOT_PUBLISHED = {"published": NO_NUMBER, "published by kind": ""}
Row = dict[str, Any]


def table1_rows(result: xr.Dataset) -> list[Row]:
    """One row per relation: its best head, next to the best fixed offset."""
    options = json.loads(result.attrs["options"])
    left_out = () if options["every_relation"] else NOT_IN_TABLE
    rows = [row for row in relation_rows(result) if row.relation.lower() not in left_out]
    return [_relation_row(result, row, options["few"]) for row in rows]


def _relation_row(result: xr.Dataset, row: BestHead, few: int) -> Row:
    paper = published_relation(row.relation)
    return {
        "relation": row.relation,
        "words": row.words,
        "head": name_head(layer_number(result, row.layer), row.head),
        "direction": ARROWS[row.direction],
        "accuracy": row.accuracy.value,
        "low": row.accuracy.low,
        "high": row.accuracy.high,
        "held out": row.held_out.value,
        "held out low": row.held_out.low,
        "held out high": row.held_out.high,
        "both halves agree": "yes" if row.same_choice else "no",
        "coverage": row.coverage,
        "baseline": row.baseline,
        "offset": row.offset,
        "margin": row.margin,
        "held out margin": row.held_out_margin.value,
        "held out margin low": row.held_out_margin.low,
        "held out margin high": row.held_out_margin.high,
        "published": NO_NUMBER if paper is None else paper[0] / 100,
        "published baseline": NO_NUMBER if paper is None else paper[2] / 100,
        "note": FEW if row.words < few else "",
    }


def table2_rows(result: xr.Dataset) -> list[Row]:
    """Baselines, then the best head for each set of candidates, by kind of mention."""
    systems = result["system"].values.tolist()
    heads = [best_resolver(result, candidates) for candidates in CANDIDATES]
    return [
        *(_system_row(result, name) for name in systems),
        *(_resolver_row(result, best) for best in heads if best is not None),
        _mentions_row(result),
    ]


def _system_row(result: xr.Dataset, name: str) -> Row:
    values = _kinds(result["coref_baseline"].sel(system=name))
    return {"system": SYSTEM_NAMES[name], "head": "", **values, **NOT_CHOSEN, **_published(name)}


def _resolver_row(result: xr.Dataset, best: BestResolver) -> Row:
    place = {"layer": best.layer, "head": best.head, "candidates": best.candidates}
    return {
        "system": f"best head, candidates: {best.candidates}",
        "head": name_head(best.layer, best.head),
        **_kinds(result["coref_accuracy"].sel(place)),
        "low": best.accuracy.low,
        "high": best.accuracy.high,
        "held out": best.held_out.value,
        "held out low": best.held_out.low,
        "held out high": best.held_out.high,
        **_published(BEST_HEAD),
    }


def _mentions_row(result: xr.Dataset) -> Row:
    counts = result["coref_count"] * result["coref_coverage"]
    known = {kind: int(counts.sel(mention=kind).fillna(0)) for kind in KINDS}
    coverage = float(result["coref_coverage"].sel(mention="all"))
    name = f"mentions scored (coverage {coverage:.2f})"
    return {"system": name, "head": "", **known, **NOT_CHOSEN, **NOT_PUBLISHED}


def _kinds(values: xr.DataArray) -> Row:
    return {kind: float(values.sel(mention=kind)) for kind in KINDS}


def _published(system: str) -> Row:
    percents = TABLE2[system]
    return {"published": percents[0] / 100, "published by kind": " / ".join(map(str, percents))}


def table3_rows(result: xr.Dataset) -> list[Row]:
    """One row per probe."""
    rows = []
    for name in result["probe"].values.tolist():
        place = result.sel(probe=name)
        words = "words" in name
        rows.append(
            {
                "probe": PROBE_NAMES[name],
                "UAS": float(place["parsing_uas"]),
                "sd over seeds": float(place["parsing_uas_sd"]),
                "low": float(place["parsing_uas_ci"].sel(bound="low")),
                "high": float(place["parsing_uas_ci"].sel(bound="high")),
                "last gain": float(_last_gain(place)),
                **_of_control(place),
                "parameters": int(place["parsing_parameters"]),
                "word vectors": result.attrs["parsing_vectors"] if words else "",
                "published": TABLE3[name] / 100,
            }
        )
    return rows


def _last_gain(place: xr.Dataset) -> xr.DataArray:
    """What the last quarter of the training added."""
    curve = place["parsing_curve"]
    return curve.isel(share=-1) - curve.isel(share=-2)


def _of_control(place: xr.Dataset) -> Row:
    if "probe_selectivity" not in place:
        return {}
    return {"selectivity": float(place["probe_selectivity"])}


def tree_rows(result: xr.Dataset) -> list[Row]:
    """The heads whose spanning trees have the most arcs, and the best of other documents."""
    baseline = result.attrs["tree_baseline"]
    found = hold_out(result, "tree_accuracy").find()
    rows = [
        {"head": name_in_paper(layer, head), "UUAS": value, "margin": value - baseline}
        for layer, head, value in top_heads(result["tree_accuracy"], 10)
    ]
    return [
        _tree_row("neighbours joined", baseline, baseline, NO_NUMBER, NO_NUMBER),
        _tree_row("best head, held out", found.value, baseline, found.low, found.high),
        *({**row, "low": NO_NUMBER, "high": NO_NUMBER} for row in rows),
    ]


def _tree_row(name: str, value: float, baseline: float, low: float, high: float) -> Row:
    return {"head": name, "UUAS": value, "margin": value - baseline, "low": low, "high": high}


TABLES = (
    Tabulation(
        "relations",
        "Table 1: heads as dependency classifiers",
        "The best head for each relation: chosen on the same words as in the paper, and held out: "
        "chosen on half of the groups of documents and scored on the other. 95 % intervals; "
        "the best fixed offset on the same words; coverage: the share that the head could see; "
        "published: BERT-base. "
        "“with 's”: the clitic's prediction counts instead of the possessor's, as in the paper.",
        ("relation_accuracy_numerator",),
        table1_rows,
        file="table1",
    ),
    Tabulation(
        "coreference",
        "Table 2: heads as coreference resolvers",
        "Share of mentions for which the head word of an antecedent is found. Candidates: all "
        "other words, or only head words of earlier mentions. Interval, held-out and published "
        "value (BERT-base) are for all mentions.",
        ("coref_accuracy_numerator",),
        table2_rows,
        file="table2",
    ),
    Tabulation(
        "parsing",
        "Table 3: attention probes",
        "Unlabelled attachment without punctuation: mean over seeds, with a 95 % interval over the "
        "documents of the test set; last gain: what the last quarter of the training added; "
        "selectivity: attachment less the accuracy on the control task of Hewitt & Liang (2019); "
        "published: BERT-base.",
        ("parsing_uas",),
        table3_rows,
        file="table3",
    ),
    Tabulation(
        "trees",
        "Undirected trees",
        "Share of the gold arcs that the maximum spanning tree of a head has, without punctuation; "
        "the ten best heads; held out: chosen on half of the documents and scored on the other.",
        ("tree_accuracy",),
        tree_rows,
    ),
)
