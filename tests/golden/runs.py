"""Eight small runs whose numbers and claims are stored, and how to compute them.

Only the public names of Headscope are used, so that the runs of another commit can be computed with
its `src` on the path.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import xarray as xr

import headscope as hs

# Variables that moved on purpose, and why. Add a line with every change of the stored numbers;
# `record` prints them. They are compared like all others.
_EVEN_ROWS = "even attention of vig2019 is 1 / the number of tokens that a query sees, as elsewhere"
MOVED: dict[str, str] = {
    "null_share_even, pos_to_even, pos_from_even, deprel_to_even": _EVEN_ROWS,
    "null_share_q, pos_to_q, pos_from_q, deprel_to_q": _EVEN_ROWS,
    "dependency_alignment_even, dependency_alignment_q": "even attention in the place of the share "
    "of pairs, which stays as dependency_baseline",
    "dependency_expected": "the chance of an arc at an offset is that of the input, no longer one "
    "over inputs of all lengths; the claims of syntax beyond distance follow",
    "*_q": "one-sided: whether the value lies above its baseline by more than 0.01",
    "special_share_even": "NaN for tokens that the model lacks",
    "top_token*": "tokens whose share is the same to four digits are in the order of their ids",
    "exemplar_*, kind_exemplar_*": "example_* in all studies; pairs of a kind are sought in "
    "examples.parquet",
    "clusters": "k-means from the clusters of Ward, not from random starts",
    "head_position": "laid out from the classical solution, not from random starts",
    "parsing_curve": "probes are remembered after shares of their steps, not of their batches",
    "documents, groups, unit_of_error": "every result says what its errors are over",
    "verdicts": "a least effect in every rule; ranks and counts by draws of groups, correlations "
    "and factors on their own scales; no interval below eight groups with data",
    "behaviour": "heads of a relation are chosen on both halves in the direction of its row; the "
    "claims on relations and on delimiters follow",
    "sink_texts*": "new: the share of texts in which the first token is a sink",
    "figure5": "every head is shown once, and coreference beside the best system without a network",
    "claims": "a claim whose measure has no sums, no such label or no values is not measured; it "
    "was a KeyError, or the sum of no values: 0, unclear",
}

BATCH_TOKENS = 512  # small, so that every run has several batches


@dataclass(frozen=True)
class GoldenRun:
    """A study of a bundled model on the first sentences of some documents of the demo corpus."""

    name: str
    study: str
    model: str
    documents: int
    sentences_each: int  # of every document, from its beginning
    options: Mapping[str, Any] = field(default_factory=dict)


RUNS = (
    GoldenRun("vig2019-gpt2", "vig2019", "mini-gpt2", 60, 5),  # enough sentences for two shards
    GoldenRun(
        "vig2019-bert",
        "vig2019",
        "mini-bert",
        14,
        8,
        {
            "sentences": 48,
            "seed": 1,
            "exemplar_sentences": 90,
            "self_exemplars": True,
            "alignment": "words",
        },
    ),
    GoldenRun("vig2019-rows", "vig2019", "mini-gpt2", 12, 4, {"attention": "rows"}),
    GoldenRun(
        "vig2019-long", "vig2019", "mini-gpt2", 12, 12, {"attention": "fused", "context": 96}
    ),
    GoldenRun(
        "vig2019-both", "vig2019", "mini-bert", 10, 3, {"weights": "both", "alignment": "strict"}
    ),
    GoldenRun(
        "vig2019-norm", "vig2019", "mini-gpt2", 3, 1, {"weights": "norm", "importance": True}
    ),
    GoldenRun(
        "clark2019-bert",
        "clark2019",
        "mini-bert",
        12,
        4,
        {"max_tokens": 64, "repeated_sequences": 2, "period": 8, "probe_seeds": 1, "epochs": 1},
    ),
    GoldenRun(
        "luger2026-gpt2",
        "luger2026",
        "mini-gpt2",
        12,
        10,
        {
            "context": 64,
            "rest": True,
            "repeated_sequences": 2,
            "period": 8,
            "needles": 1,
            "depths": [10, 90],
        },
    ),
)


def compute(run: GoldenRun, out: Path | None = None) -> xr.Dataset:
    """The result of a run; `out` keeps its directory."""
    corpus = _select(run.documents, run.sentences_each)
    with one_thread():
        return hs.study(
            run.study,
            _load(run.model),
            corpus,
            out,
            batch_tokens=BATCH_TOKENS,
            portrait=False,  # a fit ends where rounding lets it: no two machines agree to 2e-5
            untrained=False,  # judged in tests/studies/test_untrained.py
            **run.options,
        )


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use a single thread: how many add up a sum decides its last bits."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@cache
def _load(name: str) -> hs.Model:
    return hs.load(name, device="cpu")


def _select(documents: int, sentences_each: int) -> hs.Corpus:
    corpus = hs.demo_corpus()
    chosen: list[int] = []
    start = 0
    for document in islice(corpus.documents(), documents):
        chosen += range(start, start + min(sentences_each, len(document)))
        start += len(document)
    return corpus.select(chosen)
