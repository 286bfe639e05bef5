"""Compare both studies with a plain reading of a whole treebank, no sentence left out.

python -m tests.tools.check_alignment TREEBANK.conllu [--model NAME…] [--alignment NAME…]
"""

import argparse
from collections import Counter
from typing import Any, get_args

import numpy as np
import xarray as xr

import headscope as hs
from benchmarks.alignment import WORDS_ALONE
from headscope.model.model import Model
from headscope.results import dataset as results
from headscope.text.alignment import JOINED, SEVERAL, SPLIT, WORDS, Sharing
from headscope.text.corpus import Corpus
from tests.references.documents import KINDS, read_coreference, read_trees
from tests.references.treebank import (
    Counts,
    read_relations,
    read_segments,
    read_vig,
)

QUICK: dict[str, Any] = {
    "probes": False,
    "gradients": False,
    "repeated_sequences": 1,
    "period": 4,
}
FORMS = ("attender_is_parent", "receiver_is_parent", "either")


def check_vig(model: Model, corpus: Corpus, alignment: str) -> tuple[xr.Dataset, Counts]:
    """vig2019 against loops over sentences, queries and keys."""
    result = hs.study("vig2019", model, corpus, alignment=alignment)
    wanted, counts = read_vig(model, list(corpus), alignment)
    found: dict[Any, xr.DataArray] = {
        name: result[name] for name in ("null_share", "entropy", "distance")
    }
    found |= {form: result["dependency_alignment"].sel(form=form) for form in FORMS}
    for variable, axis, kind in (
        ("pos_to", "tag", "tag"),
        ("pos_from", "tag", "from"),
        ("deprel_to", "deprel", "deprel"),
    ):
        for label in result[axis].values.tolist():
            found[kind, label] = result[variable].sel({axis: label})
    for name, values in found.items():
        expected = wanted.get(name, np.zeros(values.size))
        np.testing.assert_allclose(
            values.values.ravel(), expected, rtol=2e-6, atol=2e-6, err_msg=str(name)
        )
    assert result.attrs["sentences"] == counts.sentences
    _check_counts(Counter(results.read_attribute(result, "words")), counts)
    return result, counts


def check_words(model: Model, corpus: Corpus, alignment: str) -> tuple[xr.Dataset, Counts]:
    """Table 1, trees and Table 2 of clark2019 against loops over sentences, words and mentions."""
    result = hs.study(WORDS_ALONE, model, corpus, alignment=alignment)
    counts = check_relations(result, model, corpus, alignment)
    check_trees(result, model, corpus, alignment)
    if "coref_accuracy" in result:
        check_coreference(result, model, corpus, alignment)
    return result, counts


def check_trees(result: xr.Dataset, model: Model, corpus: Corpus, alignment: str) -> None:
    """Arcs of every head's tree, and of a chain of neighbours."""
    found, neighbours, arcs = read_trees(model, list(corpus), alignment)
    assert float(result["tree_accuracy_denominator"].sum()) == arcs
    assert float(result["tree_baseline_numerator"].sum()) == neighbours
    _check_hits(result["tree_accuracy_numerator"].sum("group"), found, arcs, "trees")


def check_coreference(result: xr.Dataset, model: Model, corpus: Corpus, alignment: str) -> None:
    """Mentions that every head resolves, by kind and by what it may choose from."""
    wanted = read_coreference(model, list(corpus), alignment)
    scored = result["coref_accuracy_denominator"].sum("group")
    np.testing.assert_array_equal(scored, wanted["scored"])
    np.testing.assert_array_equal(result["coref_count"], wanted["scored"] + wanted["unseen"])
    hits = result["coref_accuracy_numerator"].sum("group")
    for candidates in ("words", "mentions"):
        for place, kind in enumerate(KINDS):
            at = {"candidates": candidates, "mention": kind}
            expected, count = wanted[candidates][:, place], int(wanted["scored"][place])
            _check_hits(hits.sel(at), expected, count, str(at))


def _check_hits(found: xr.DataArray, wanted: np.ndarray, count: int, what: str) -> None:
    """Equal but for weights that are equal to the last bit that network and loop agree on."""
    off = np.abs(found.values.ravel() - wanted)
    assert off.max() <= max(2, 1e-3 * count) and off.mean() < 0.02 + 1e-4 * count, (what, off.max())


def check_relations(result: xr.Dataset, model: Model, corpus: Corpus, alignment: str) -> Counts:
    """Table 1 of clark2019 against loops over sentences and words."""
    right, asked, counts = read_relations(model, list(corpus), alignment)
    for (direction, relation), count in asked.items():
        at = {"direction": direction, "relation": relation}
        numerator = result["relation_accuracy_numerator"].sel(at).sum("group")
        denominator = result["relation_accuracy_denominator"].sel(at).sum("group")
        assert float(denominator) == count, at
        _check_hits(numerator, np.asarray(right[direction, relation]), count, str(at))
    own = {
        name.removeprefix("trees: "): count
        for name, count in results.read_attribute(result, "words").items()
        if name.startswith("trees: ")
    }
    _check_counts(Counter(own), counts)
    assert own[JOINED] == counts.merged
    return counts


def check_segments(model: Model, corpus: Corpus) -> tuple[xr.Dataset, int]:
    """The surface of clark2019 against loops over segments and rows."""
    result = hs.study("clark2019", model, corpus, **QUICK)
    wanted, lengths = read_segments(model, list(corpus), most=128, seed=0)
    found: dict[Any, xr.DataArray] = {
        ("offset", o): result["offset_share"].sel(offset=o) for o in (-1, 0, 1)
    }
    found |= {
        ("special", kind): result["special_share"].sel(special=kind)
        for kind in ("cls", "sep", "punct")
    }
    found["entropy"] = result["entropy"]
    for name, values in found.items():
        np.testing.assert_allclose(
            values.values.ravel(), wanted[name], rtol=2e-6, atol=2e-6, err_msg=str(name)
        )
    assert result.attrs["sentences"] == len(lengths)
    assert result.attrs["tokens"] == sum(lengths)
    return result, sum(length == max(lengths) for length in lengths)


def _check_counts(found: Counter[str], counts: Counts) -> None:
    assert found[WORDS] == counts.words
    assert found[SPLIT] == counts.split
    assert found[SEVERAL] == counts.several


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("treebank")
    parser.add_argument("--model", nargs="+", default=["mini-gpt2", "mini-bert"])
    parser.add_argument("--sentences", type=int, help="only so many, from the start")
    parser.add_argument("--alignment", nargs="+", default=["overlap"], choices=get_args(Sharing))
    given = parser.parse_args()
    corpus = hs.read_corpus(given.treebank)
    if given.sentences is not None:
        corpus = corpus.select(range(min(given.sentences, len(corpus))))
    for name in given.model:
        model = hs.load(name)
        for alignment in given.alignment:
            for check in (check_vig, check_words):
                result, counts = check(model, corpus, alignment)
                print(f"{name} {check.__name__} {alignment}: equal;", counts)
                print("   skipped:", results.read_attribute(result, "skipped"), flush=True)
        result, full = check_segments(model, corpus)
        print(f"{name} check_segments: equal; {result.attrs['sentences']} segments, {full} full")


if __name__ == "__main__":
    main()
