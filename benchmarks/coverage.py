"""How often 95 % intervals hold the truth on real documents: python -m benchmarks.coverage [CORPUS]

A population of documents has a true value of every statistic that the claims of a study are judged
by. Documents are drawn from it again and again, as many as a small corpus has, and each claim is
judged on the draw as the report judges it. Its interval should hold the true value in 95 of 100
draws. The sums of every document are measured once; a draw only adds them up in another way.
"""

import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

import headscope as hs
from headscope.errors import HeadscopeError
from headscope.results.claims import Replicates, judge
from headscope.results.replicates import GROUPS, sums_of
from headscope.studies import find_study
from headscope.text.corpus import Corpus
from headscope.text.sentence import Sentence

DRAWS = 300
DOCUMENTS = (20, 65)
STUDIES: dict[str, dict[str, Any]] = {
    "vig2019": {"exemplars": 1, "portrait": False, "untrained": False}
}
ENDS = ("_numerator", "_denominator")


def main(corpus: Corpus) -> None:
    """Print the coverage of the interval of every claim."""
    for study, options in STUDIES.items():
        population = measure_documents(study, "mini-gpt2", corpus, options)
        print(f"\n{study}, mini-gpt2, {population.documents} documents, {DRAWS} draws\n")
        print(f"| claim | true value |{''.join(f' {n} documents |' for n in DOCUMENTS)}")
        print("|---" * (2 + len(DOCUMENTS)) + "|")
        covered = {count: coverage(study, population, count) for count in DOCUMENTS}
        for sentence, value in true_values(study, population).items():
            shares = [covered[count].get(sentence) for count in DOCUMENTS]
            cells = ["–" if share is None else f"{100 * share:.0f} %" for share in shares]
            print(f"| {sentence} | {value:.3g} | {' | '.join(cells)} |")


@dataclass(frozen=True)
class Population:
    """The sums of every document, and a result that has the same measures."""

    sums: dict[str, xr.DataArray]  # along `document`, by NAME_numerator and NAME_denominator
    result: xr.Dataset
    documents: int

    def drawn(self, documents: np.ndarray, group_of: np.ndarray) -> xr.Dataset:
        """The result of some documents, in the order drawn, with the groups that they fall into."""
        variables: dict[str, xr.DataArray] = {}
        for name, sums in self.sums.items():
            grouped = np.zeros((GROUPS, *sums.shape[1:]))
            np.add.at(grouped, group_of, sums.values[documents])
            coords = {dim: sums[dim] for dim in sums.dims[1:] if dim in sums.coords}
            variables[name] = xr.DataArray(grouped, coords, ("group", *sums.dims[1:]))
        for name in sums_of(self.result):
            x, y = (variables[name + end].sum("group") for end in ENDS)
            variables[name] = x / y
            if f"{name}_by_layer" in self.result:
                y = y.broadcast_like(x.isel({d: 0 for d in x.dims if d not in ("layer", "head")}))
                variables[f"{name}_by_layer"] = x.sum("head") / y.sum("head")
        result = xr.Dataset(variables, attrs=self.result.attrs)
        for name in result.data_vars:
            if name in self.result:
                result[name].attrs = self.result[name].attrs
        return result


def measure_documents(
    study: str, model_name: str, corpus: Corpus, options: Mapping[str, Any]
) -> Population:
    """Run a study on every document alone."""
    model = hs.load(model_name)
    sentences: dict[str, list[Sentence]] = defaultdict(list)
    for sentence in corpus:
        sentences[sentence.document].append(sentence)
    results: list[xr.Dataset] = []
    for document in sentences.values():
        try:
            results.append(hs.study(study, model, Corpus.from_sentences(document), **options))
        except HeadscopeError:  # a document that is too short for the study is in no corpus of its
            continue
    names = [name + end for name in sums_of(results[0]) for end in ENDS]
    sums: dict[str, xr.DataArray] = {}
    for name in names:
        arrays = [result[name].sum("group") for result in results if name in result]
        # Labels that a document lacks have no sum in it.
        sums[name] = xr.concat(arrays, "document", join="outer", fill_value=0.0)
    return Population(sums, results[0], len(results))


def true_values(study: str, population: Population) -> dict[str, float]:
    """The value of every claim on all documents; of a claim that is not measured there is none."""
    everything = np.arange(population.documents)
    return {
        claim: value
        for claim, (value, _, _) in judged(
            study, population.drawn(everything, everything % GROUPS)
        ).items()
        if value is not None
    }


def coverage(study: str, population: Population, documents: int) -> dict[str, float]:
    """The share of draws in which the interval of a claim holds its true value."""
    random = np.random.default_rng(documents)
    truth = true_values(study, population)
    held: dict[str, list[bool]] = defaultdict(list)
    for _ in range(DRAWS):
        drawn = random.integers(0, population.documents, documents)
        result = population.drawn(drawn, random.integers(0, GROUPS, documents))
        for claim, (_, low, high) in judged(study, result).items():
            if claim in truth and low is not None and high is not None:
                held[claim].append(low <= truth[claim] <= high)
    return {claim: float(np.mean(hits)) for claim, hits in held.items() if len(hits) > DRAWS / 2}


def judged(
    study: str, result: xr.Dataset
) -> dict[str, tuple[float | None, float | None, float | None]]:
    """The value of every claim with the ends of its interval."""
    data = Replicates(result)
    estimates = {}
    for claim in find_study(study).claims:
        verdict = judge(claim, data)
        estimates[claim.sentence] = (verdict.value, verdict.low, verdict.high)
    return estimates


if __name__ == "__main__":
    main(hs.read_corpus(sys.argv[1]) if len(sys.argv) > 1 else hs.demo_corpus())
