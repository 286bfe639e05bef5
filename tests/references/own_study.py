"""A study of one's own with a stage, as a user would write it: kept small and quick."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import xarray as xr

from headscope.engine import Inputs, Setup, Stage
from headscope.engine.question import InputKind, Question
from headscope.errors import RunError
from headscope.files import write_text
from headscope.metrics import Metric, Ratio, Terms
from headscope.observe import Example, Layer
from headscope.results.measure import Measure
from headscope.studies.option import Option
from headscope.studies.study import Study
from headscope.text.sentence import Sentence
from tests.references.small_works import Add

FILE = "sums.json"
SELF_SHARE = Measure(
    "self_share",
    title="Attention to the token itself",
    meaning="Share of its attention that a token pays to itself.",
    formula="Σ a[i, i] / Σ a[i, j]",
    reference="none",
)


def sentence_inputs(setup: Setup, sentences: Sequence[Sentence], first: int) -> Inputs:
    """One example for every sentence."""
    examples: list[Example] = []
    for number, sentence in enumerate(sentences, start=first):
        encoded = setup.model.encode(sentence.text)
        group = setup.group(sentence, number)
        examples.append(Example(number, encoded, (False,) * len(encoded), group=group))
    return Inputs(examples)


def self_terms(layer: Layer) -> Terms:
    """Σ a[i, i] and Σ a[i, j] of every sentence."""
    return layer.self_weight.sum(-1)[..., None], layer.total[..., None]


def self_metrics(setup: Setup) -> list[Metric]:
    """The one metric."""
    return [Ratio(SELF_SHARE, setup.grid, self_terms)]


@dataclass(frozen=True)
class Sums(Stage[int]):
    """Sums the first numbers, each sum by itself, and writes a file of all of them."""

    name: str = "sums"

    def pieces(self, setup: Setup, result: xr.Dataset) -> tuple[int, ...]:
        return tuple(range(setup.options["sums"]))

    def work(self, setup: Setup, result: xr.Dataset, threads: int, folder: Path) -> Add:
        return Add(folder, setup.options["deadly"], threads)

    def finish(
        self, setup: Setup, result: xr.Dataset, outcomes: Mapping[int, bytes], folder: Path
    ) -> xr.Dataset:
        sums = json.dumps([int(outcomes[piece]) for piece in sorted(outcomes)])
        write_text(folder / FILE, sums)
        return result.assign_attrs(sums=sums)

    def check_files(self, result: xr.Dataset, folder: Path) -> None:
        file = folder / FILE
        if not file.exists() or file.read_text() != result.attrs["sums"]:
            raise RunError(f"{FILE} is missing or damaged.")


STUDY = Study(
    name="own",
    title="",
    citation="",
    question="",
    inputs=(InputKind(sentence_inputs, (Question(("self_share",), self_metrics),)),),
    options=(
        Option("sums", int, 5, "pieces of the stage", least=0),
        Option("deadly", int, None, "piece that kills its process"),
    ),
    later_stages=(Sums(),),
)
NO_STUDY = "a text"
