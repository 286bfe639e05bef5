"""What becomes of a treebank under the three alignments, as tables for docs/corpora.md.

    python -m benchmarks.alignment TREEBANK.conllu [--model NAME …] [--study NAME …]
        [--alignment NAME …] [--sentences N] [--device cuda]

For every model and alignment: sentences kept, words split, tokens of several words, and a few
values of each study. `strict` is what earlier versions did.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import xarray as xr

import headscope as hs
from headscope.head import name_head
from headscope.model.model import Model
from headscope.results import dataset as results
from headscope.results.ranks import top_heads
from headscope.studies.clark2019 import STUDY
from headscope.studies.clark2019.metrics import SENTENCES, TREES, WINDOWS
from headscope.studies.study import Study
from headscope.text.alignment import JOINED, SEVERAL, SPLIT, WORDS
from headscope.text.corpus import Corpus

ALIGNMENTS = ("strict", "overlap", "words")
# Sections 4.2 and 4.3 of the paper without the surface, which knows no words.
WORDS_ALONE = replace(
    STUDY,
    name="clark2019 words",
    inputs=tuple(replace(kind, of_corpus=True) for kind in (TREES, SENTENCES, WINDOWS)),
    later_stages=(),
    derive=lambda result: result,
    tables=(),
    claims=(),
)
RELATIONS = ("all", "det", "obj")


@dataclass(frozen=True)
class Shown:
    """A study, where its counts of words are, and what is shown of it."""

    study: str | Study
    prefix: str
    unit: str
    values: Callable[[xr.Dataset], Iterator[tuple[str, str]]]


def of_vig(result: xr.Dataset) -> Iterator[tuple[str, str]]:
    """Means over heads, and the heads at the top."""
    for name in ("null_share", "distance", "entropy", "variability"):
        yield f"`{name}`, mean over heads", f"{float(result[name].mean()):.4f}"
    either = result["dependency_alignment"].sel(form="either")
    ((layer, head, value),) = top_heads(either, 1)
    yield "best `dependency_alignment`", f"{value:.4f} ({name_head(layer, head)})"
    for tag in ("PUNCT", "NOUN"):
        ((layer, head, value),) = top_heads(result["pos_to"].sel(tag=tag), 1)
        yield f"best `pos_to` {tag}", f"{value:.4f} ({name_head(layer, head)})"


def of_clark(result: xr.Dataset) -> Iterator[tuple[str, str]]:
    """The best head of some relations, of all words and of coreference."""
    for relation in RELATIONS:
        found = result["relation_accuracy"].sel(relation=relation)
        if "relation_coverage" in result:
            coverage = result["relation_coverage"].sel(relation=relation)
            found = found.sel(direction=coverage["direction"].values[int(coverage.values.argmax())])
        ((layer, head, value),) = top_heads(found, 1)
        yield f"`{relation}`, best head", f"{value:.4f} ({name_head(layer, head)})"
    ((layer, head, value),) = top_heads(result["tree_accuracy"], 1)
    yield "best tree (UUAS)", f"{value:.4f} ({name_head(layer, head)})"
    if "coref_accuracy" in result:
        found = result["coref_accuracy"].sel(candidates="words", mention="all")
        ((layer, head, value),) = top_heads(found, 1)
        yield "coreference, best head", f"{value:.4f} ({name_head(layer, head)})"


STUDIES = {
    "vig2019": Shown("vig2019", "", "sentences", of_vig),
    "clark2019": Shown(WORDS_ALONE, "trees: ", "trees", of_clark),
}


def measure(study: str, model: Model, corpus: Corpus, alignment: str) -> dict[str, str]:
    """One column of a table."""
    shown = STUDIES[study]
    result = hs.study(shown.study, model, corpus, alignment=alignment)
    counts = {
        name.removeprefix(shown.prefix): count
        for name, count in results.read_attribute(result, "words").items()
    }
    skipped = {
        why: count
        for why, count in results.read_attribute(result, "skipped").items()
        if "alignment" in why and why.startswith(shown.prefix)
    }
    return {
        f"{shown.unit} lost to alignment": f"{sum(skipped.values()):,}",
        "words": f"{counts[WORDS]:,}",
        "split into pieces": f"{counts[SPLIT] / counts[WORDS]:.1%}",
        "tokens of several words": f"{counts[SEVERAL]:,}",
        **({"words joined": f"{counts[JOINED]:,}"} if JOINED in counts else {}),
        **dict(shown.values(result)),
    }


def table(study: str, model: Model, corpus: Corpus, alignments: Sequence[str]) -> str:
    """The alignments side by side."""
    columns = {name: measure(study, model, corpus, name) for name in alignments}
    rows = [
        f"| {study}, {model.name.rpartition('/')[2]} | " + " | ".join(alignments) + " |",
        "|---" * (len(alignments) + 1) + "|",
    ]
    for row in columns[alignments[0]]:
        rows.append(f"| {row} | " + " | ".join(column[row] for column in columns.values()) + " |")
    return "\n".join(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("treebank")
    parser.add_argument("--model", nargs="+", default=["mini-gpt2", "mini-bert"])
    parser.add_argument("--study", nargs="+", default=list(STUDIES), choices=list(STUDIES))
    parser.add_argument("--alignment", nargs="+", default=list(ALIGNMENTS), choices=ALIGNMENTS)
    parser.add_argument("--sentences", type=int)
    parser.add_argument("--device")
    given = parser.parse_args()
    corpus = hs.read_corpus(given.treebank)
    if given.sentences is not None and given.sentences < len(corpus):
        corpus = corpus.sample(given.sentences, seed=0)
    print(f"{corpus.source.name}: {len(corpus):,} sentences\n")
    for name in given.model:
        model = hs.load(name, device=given.device)
        for study in given.study:
            print(table(study, model, corpus, given.alignment), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
