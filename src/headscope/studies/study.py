"""What a study is: its inputs, metrics, figures, tables and published values, declared together."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

from headscope.errors import ModelError
from headscope.metrics.metric import Grid, Metric
from headscope.results.replicates import group_of
from headscope.studies.option import Option, fill
from headscope.text.corpus import count_documents
from headscope.text.readers.lines import Layout
from headscope.text.segments import Excerpt, read_around
from headscope.workers import Piece, Work

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure as Drawing

    from headscope.model.model import Model
    from headscope.model.writes import Reading
    from headscope.observe.inputs import Columns, Example
    from headscope.observe.show import Attention
    from headscope.results.findings import Finding
    from headscope.results.measure import Measure
    from headscope.results.statements import Choice, Tabulation
    from headscope.text.corpus import Corpus, Shard
    from headscope.text.sentence import Sentence
    from headscope.text.sharing import Sharing

FEWEST_DOCUMENTS = 8  # that vary enough to tell a standard error


@dataclass(frozen=True)
class Setup:
    """A study about to run: on which model and corpus, with which options and labels."""

    model: "Model"
    corpus: "Corpus"
    options: Mapping[str, Any]
    labels: Mapping[str, tuple[str, ...]]
    batch_tokens: int
    seed: int = 0
    sampled: int | None = None  # sentences that the numbers are from, where exemplars have more

    @property
    def grid(self) -> Grid:
        """The heads of the model's first stack."""
        return Grid(self.model.stacks[0].attending, self.model.heads)

    @property
    def context(self) -> int | None:
        """How many tokens of a document are one input; None where sentences are."""
        return self.options.get("context")

    @property
    def attention(self) -> "Attention":
        """The way of looking at layers: as chosen, or by what suits their length and the device.

        On a CPU whole matrices suit sentences, however long.
        """
        on_cpu = self.model.device.type == "cpu"
        usual = "dense" if self.context is None and on_cpu else "auto"
        return self.options.get("attention") or usual

    @property
    def sharing(self) -> "Sharing":
        """What becomes of a token that several words share."""
        return self.options.get("alignment", "overlap")

    @cached_property
    def numbers(self) -> frozenset[int] | None:
        """The sentences that the numbers are from; None if all of them."""
        if self.sampled is None:
            return None
        draw = Random(f"{self.seed} numbers")
        return frozenset(draw.sample(range(len(self.corpus)), self.sampled))

    @property
    def reading(self) -> "Reading":
        """How weights are read: as they are, by the norms of what they give, or both."""
        return self.options.get("weights", "raw")

    @cached_property
    def has_documents(self) -> bool:
        """Whether the corpus has enough documents for these to be the units of all errors."""
        return count_documents(self.corpus, FEWEST_DOCUMENTS) == FEWEST_DOCUMENTS

    def group(self, first: "Sentence", number: int) -> int:
        """The group of an input by its document, or by its first sentence where there are none."""
        if first.document and self.has_documents:
            return group_of(first.document)
        return group_of(f"{first.document} {first.id}" if first.id else str(number))


class WithModel:
    """What all work with the model of a run has in common, in this process or another."""

    setup: Setup
    fingerprint: str  # of the model that the run is of

    @property
    def needs_gpu(self) -> bool:
        """Whether the model is on a GPU."""
        return self.setup.model.device.type == "cuda"

    def open(self) -> None:
        """Refuse to compute with other weights than those of the run."""
        model = self.setup.model
        if model.fingerprint != self.fingerprint:
            raise ModelError(
                f"{model.name} has other weights here ({model.fingerprint}) than where the run was "
                f"started ({self.fingerprint}); give every node the same files, or give a network "
                "that you changed as load(network, tokenizer=…)."
            )


@dataclass(frozen=True)
class Inputs:
    """What was made of some sentences: examples, and how many were skipped for which reason."""

    examples: Sequence["Example"]
    skipped: Mapping[str, int] = field(default_factory=dict)
    words: Mapping[str, int] = field(default_factory=dict)  # how words and tokens meet

    @cached_property
    def columns(self) -> "Columns":
        """The examples as flat arrays."""
        from headscope.observe.inputs import columns_of

        return columns_of(self.examples)

    @property
    def tokens(self) -> int:
        """How many tokens all examples have."""
        return int(self.columns.lengths.sum())


@dataclass(frozen=True)
class Part:
    """Metrics that read the same inputs."""

    inputs: Callable[[Setup, Excerpt, int], Inputs]  # of sentences, the first with that number
    metrics: tuple[Metric, ...]
    of_corpus: bool = True  # whether the inputs are counted as sentences of the corpus
    # First and last (exclusive) sentence that the inputs of a shard depend on, if not its own.
    reach: Callable[[Setup, "Shard"], tuple[int, int]] | None = None
    # The inputs of these numbers once more, where some of them are looked at a second time.
    again: Callable[[Setup, Sequence[int]], Inputs] | None = None

    def read(self, setup: Setup, shard: "Shard", sentences: Sequence["Sentence"]) -> Inputs:
        """The inputs of a shard; what it lacks of them is read from the corpus."""
        if self.reach is None:
            excerpt = Excerpt(sentences)
        else:
            excerpt = read_around(setup.corpus, shard, sentences, self.reach(setup, shard))
        return self.inputs(setup, excerpt, shard.start)


class Stage(Protocol[Piece]):
    """Work on top of the merged result, such as training probes on it.

    The engine runs it as it runs shards: every piece by any worker in any order, its bytes kept in
    the run directory, only what is missing computed when a run is continued. Pieces are hashable
    and always the same for the same setup and result. `finish` may get no pieces at all.
    """

    @property
    def name(self) -> str:
        """A name for the folder of its files."""
        ...

    def pieces(self, setup: Setup, result: "xr.Dataset") -> Sequence[Piece]:
        """What can be computed independently; nothing where the stage does not apply."""
        ...

    def work(
        self, setup: Setup, result: "xr.Dataset", threads: int, folder: Path
    ) -> Work[Piece, bytes]:
        """What is done to every piece, with exactly that many threads.

        `folder` is the run directory: a long piece may leave checkpoints there where it can.
        """
        ...

    def finish(
        self, setup: Setup, result: "xr.Dataset", outcomes: Mapping[Piece, bytes]
    ) -> "xr.Dataset":
        """The result with what follows from the outcomes of all pieces."""
        ...


def draw_sentences(corpus: "Corpus", count: int, seed: int, options: Mapping[str, Any]) -> "Corpus":
    """A sample of `count` sentences, or the corpus itself if it has no more."""
    return corpus if count >= len(corpus) else corpus.sample(count, seed)


@dataclass(frozen=True)
class Figure:
    """A figure of the report; drawn if the result has all the variables it needs."""

    name: str  # figure05, figureA1
    title: str
    caption: str
    needs: tuple[str, ...]
    draw: Callable[["xr.Dataset"], "Drawing"]
    note: Callable[["xr.Dataset"], str] = lambda result: ""  # what is to be said of this result


@dataclass(frozen=True)
class Study:
    """One published study, ready to run on any captured model."""

    name: str
    title: str
    citation: str
    question: str  # one sentence for the head of the report
    options: Sequence[Option]
    labels: Callable[["Corpus"], dict[str, tuple[str, ...]]]
    left_out: Callable[[Setup], dict[str, str]]
    parts: Callable[[Setup], tuple[Part, ...]]
    derive: Callable[["xr.Dataset"], "xr.Dataset"]
    figures: tuple[Figure, ...]
    tables: tuple["Tabulation", ...]
    findings: tuple["Finding", ...]
    choices: Callable[["xr.Dataset"], "list[Choice]"]
    # A sample of inputs: of a corpus, how many, with which seed and options.
    draw: Callable[["Corpus", int, int, Mapping[str, Any]], "Corpus"] = draw_sentences
    notes: Callable[["xr.Dataset"], str] = lambda result: ""  # how to read the numbers
    unit: str = "sentences"  # what its inputs are
    check: Callable[[Setup], None] = lambda setup: None  # refuses what cannot work, before a run
    # The options of a run with those filled in that depend on the model.
    settle: Callable[["Model", Mapping[str, Any]], Mapping[str, Any]] = lambda model, options: (
        options
    )
    # How raw text becomes sentences unless it is said; see `headscope.read_corpus`.
    layout: Layout | None = None
    # What to do about a corpus that no input could be made of.
    remedy: str = "see docs/studies.md for what each reason means"
    stages: tuple[Stage[Any], ...] = ()  # in this order, before `derive`
    measures: tuple["Measure", ...] = ()  # of the variables that no metric makes

    def with_options(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """All options of a run: the defaults, and what was given instead, checked."""
        return fill(self.name, self.options, given)

    def metrics(self, setup: Setup) -> dict[str, Metric]:
        """All metrics of all parts by name."""
        return {metric.name: metric for part in self.parts(setup) for metric in part.metrics}
