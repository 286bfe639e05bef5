"""Tables 1 to 3 of the paper, trees and delimiters in numbers, from a result."""

import json
from typing import Any

import xarray as xr

from headscope.head import name_head, name_in_paper
from headscope.results.claims import Replicates, on_all
from headscope.results.held_out import hold_out
from headscope.results.intervals import DIFFERENCE, Interval, find_interval
from headscope.results.ranks import top_heads
from headscope.results.replicates import groups_of
from headscope.results.statements import Tabulation
from headscope.results.tables import HeadName, InPaper, Note
from headscope.studies.clark2019.best_heads import (
    ENOUGH,
    GRADIENT,
    NO_RELATION,
    NOOP,
    BestHead,
    BestResolver,
    best_resolver,
    layer_number,
    noop_names,
    pair_of,
    relation_rows,
)
from headscope.studies.clark2019.probes.coreference import CANDIDATES, KINDS
from headscope.studies.clark2019.probes.figures import ARROWS, PROBE_NAMES
from headscope.studies.clark2019.probes.relations import DIRECTIONS
from headscope.studies.clark2019.probes.trees import PUNCTUATION
from headscope.studies.clark2019.published import (
    BEST_HEAD,
    NEURAL_COREFERENCE,
    STRUCTURAL_PROBE,
    TABLE2,
    TABLE3,
    published_relation,
)

FEW = "few words"
SYSTEM_NAMES = {"nearest": "nearest mention", "head_match": "head match", "rules": "rules"}
NOT_IN_TABLE = ("root", *PUNCTUATION)  # as in the paper
NO_NUMBER = float("nan")
NO_VALUE = InPaper("nan")  # of the paper
NOT_CHOSEN = {"held out": NO_NUMBER}
NOT_PUBLISHED = {"published": NO_VALUE, "published by kind": ""}
Row = dict[str, Any]
# The paper compares itself with these systems of others, roughly.
NEURAL_ROW: Row = {
    "system": "neural system, on whole documents (as remembered)",
    "head": "",
    **dict.fromkeys(KINDS, NO_NUMBER),
    **NOT_CHOSEN,
    "published": InPaper(NEURAL_COREFERENCE / 100),
    "published by kind": "",
}
STRUCTURAL_ROW: Row = {
    "probe": "structural probe, undirected (as remembered)",
    "UAS": NO_NUMBER,
    "sd over seeds": NO_NUMBER,
    "last gain": NO_NUMBER,
    "selectivity": NO_NUMBER,
    "parameters": NO_NUMBER,
    "word vectors": "",
    "published": InPaper(STRUCTURAL_PROBE / 100),
}


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
        "head": HeadName(name_head(layer_number(result, row.layer), row.head)),
        "direction": ARROWS[row.direction],
        "accuracy": row.accuracy,
        "held out": row.held_out,
        "both halves agree": "yes" if row.same_choice else "no",
        "coverage": row.coverage,
        "baseline": row.baseline,
        "offset": row.offset,
        "margin": row.margin,
        "held out margin": row.held_out_margin,
        "published": NO_VALUE if paper is None else InPaper(paper[0] / 100),
        "published baseline": NO_NUMBER if paper is None else paper[2] / 100,
        "note": Note(FEW if row.words < few else ""),
    }


def table2_rows(result: xr.Dataset) -> list[Row]:
    """Baselines, then the best head for each set of candidates, by kind of mention."""
    systems = result["system"].values.tolist()
    heads = [best_resolver(result, candidates) for candidates in CANDIDATES]
    return [
        *(_system_row(result, name) for name in systems),
        *(_resolver_row(result, best) for best in heads if best is not None),
        NEURAL_ROW,
        _mentions_row(result),
    ]


def _system_row(result: xr.Dataset, name: str) -> Row:
    values = _kinds(result["coref_baseline"].sel(system=name))
    return {"system": SYSTEM_NAMES[name], "head": "", **values, **NOT_CHOSEN, **_published(name)}


def _resolver_row(result: xr.Dataset, best: BestResolver) -> Row:
    choice = {"layer": best.layer, "head": best.head, "candidates": best.candidates}
    return {
        "system": f"best head, candidates: {best.candidates}",
        "head": HeadName(name_head(best.layer, best.head)),
        **_kinds(result["coref_accuracy"].sel(choice)),
        "all": best.accuracy,
        "held out": best.held_out,
        **_published(BEST_HEAD),
    }


def _mentions_row(result: xr.Dataset) -> Row:
    counts = result["coref_count"] * result["coref_coverage"]
    scored = {kind: int(counts.sel(mention=kind).fillna(0)) for kind in KINDS}
    coverage = float(result["coref_coverage"].sel(mention="all"))
    name = f"mentions scored (coverage {coverage:.2f})"
    return {"system": name, "head": "", **scored, **NOT_CHOSEN, **NOT_PUBLISHED}


def _kinds(values: xr.DataArray) -> Row:
    return {kind: float(values.sel(mention=kind)) for kind in KINDS}


def _published(system: str) -> Row:
    percents = TABLE2[system]
    return {
        "published": InPaper(percents[0] / 100),
        "published by kind": " / ".join(map(str, percents)),
    }


def table3_rows(result: xr.Dataset) -> list[Row]:
    """One row per probe, and the structural probe of the paper's table."""
    names = result["probe"].values.tolist()
    rows = [_probe_row(result.sel(probe=name), name) for name in names]
    return [*rows, STRUCTURAL_ROW]


def _probe_row(probe: xr.Dataset, name: str) -> Row:
    before, end = probe["parsing_curve"].values[-2:]  # the last quarter of the training
    control = {"selectivity": "probe_selectivity"} if "probe_selectivity" in probe else {}
    return {
        "probe": PROBE_NAMES[name],
        "UAS": Interval(
            float(probe["parsing_uas"]),
            float(probe["parsing_uas_ci"].sel(bound="low")),
            float(probe["parsing_uas_ci"].sel(bound="high")),
        ),
        "sd over seeds": float(probe["parsing_uas_sd"]),
        "last gain": float(end - before),
        **{key: float(probe[variable]) for key, variable in control.items()},
        "parameters": int(probe["parsing_parameters"]),
        "word vectors": probe.attrs["parsing_vectors"] if "words" in name else "",
        "published": InPaper(TABLE3[name] / 100),
    }


def tree_rows(result: xr.Dataset) -> list[Row]:
    """The heads whose spanning trees have the most arcs, and the best of other documents."""
    baseline = result.attrs["tree_baseline"]
    accuracies = {
        "neighbours joined": Interval(baseline, NO_NUMBER, NO_NUMBER),
        "best head, held out": hold_out(result, "tree_accuracy").find(),
    }
    for layer, head, value in top_heads(result["tree_accuracy"], 10):
        accuracies[name_in_paper(layer, head)] = Interval(value, NO_NUMBER, NO_NUMBER)
    return [
        {
            "head": HeadName(name),
            "arcs in tree": accuracy,
            "margin": accuracy.value - baseline,
        }
        for name, accuracy in accuracies.items()
    ]


def noop_rows(result: xr.Dataset) -> list[Row]:
    """For the best head of every relation with enough words: both shares, and both gradients."""
    data, groups = Replicates(result), groups_of(result, noop_names(NOOP))
    rows = (row for row in relation_rows(result) if row.relation not in NO_RELATION)
    return [_noop_row(data, groups, row) for row in rows if row.words >= ENOUGH]


def _noop_row(data: Replicates, groups: int, row: BestHead) -> Row:
    applies, other = pair_of(data, row)
    difference = find_interval(other - applies, groups, DIFFERENCE)
    cells: Row = {
        "relation": row.relation,
        "words": row.words,
        "head": HeadName(name_head(data.layers[row.layer], row.head)),
        "attending": "dependent" if row.direction == DIRECTIONS[0] else "head",
        "accuracy": row.accuracy.value,
        "applies": float(on_all(applies)),
        "does not": float(on_all(other)),
        "difference": difference,
    }
    if f"{GRADIENT}_applies" not in data:
        return cells
    gradients = (float(on_all(gradient)) for gradient in pair_of(data, row, GRADIENT))
    return cells | dict(zip(("gradient applies", "gradient does not"), gradients, strict=True))


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
        narrow=("relation", "head", "accuracy", "offset", "baseline"),
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
        narrow=("system", *KINDS),
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
        narrow=("probe", "UAS", "parameters"),
    ),
    Tabulation(
        "trees",
        "Undirected trees",
        "Share of the gold arcs that the maximum spanning tree of a head has: of all words, where "
        "arcs of punctuation do not count (the UUAS of Hewitt & Manning 2019 has trees without "
        "it); the ten best heads; held out: chosen on half of the documents and scored on the "
        "other.",
        ("tree_accuracy",),
        tree_rows,
    ),
    Tabulation(
        "noop",
        "Attention to delimiters as doing nothing",
        "For the best head of each relation: the share that words pay to delimiters or the null "
        "token, where the relation applies to the attending word and where it does not, the "
        "difference with its 95 % interval, and the mean |∂L/∂a| of these weights where gradients "
        "were computed.",
        ("noop_applies", "relation_accuracy_numerator"),
        noop_rows,
    ),
)
