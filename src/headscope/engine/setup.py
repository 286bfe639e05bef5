"""A study about to run: on which model and corpus, with which options."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic

from headscope.errors import ModelError
from headscope.metrics.metric import Grid
from headscope.model.inputs.frame import Bos, Frame, find_frame
from headscope.results.replicates import group_of
from headscope.text.corpus import count_documents
from headscope.workers import Piece, use_threads

if TYPE_CHECKING:
    from headscope.engine.forward import PathChoice
    from headscope.model.model import Model
    from headscope.model.writes import Reading
    from headscope.text.alignment import Sharing
    from headscope.text.corpus import Corpus
    from headscope.text.sentence import Sentence

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
    sentences: int | None = None  # how many were asked for; None: all of the corpus

    @property
    def grid(self) -> Grid:
        """The heads of the model's first stack."""
        return Grid(self.model.stacks[0].attending, self.model.heads)

    @property
    def context(self) -> int | None:
        """How many tokens of a document are one input; None where sentences are."""
        return self.options.get("context")

    @property
    def attention(self) -> "PathChoice":
        """The path by which layers are looked at: as chosen, or by their length and the device.

        On a CPU whole matrices suit sentences, however long.
        """
        on_cpu = self.model.device.type == "cpu"
        default = "dense" if self.context is None and on_cpu else "auto"
        return self.options.get("attention") or default

    @property
    def bos(self) -> Bos:
        """Whether inputs begin with the BOS token."""
        return self.options.get("bos", "auto")

    @cached_property
    def frame(self) -> Frame:
        """The special tokens around a text."""
        return find_frame(self.model.tokenizer, self.bos)

    @property
    def sharing(self) -> "Sharing":
        """What becomes of a token that several words share."""
        return self.options.get("alignment", "overlap")

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


@dataclass(frozen=True)
class ModelWork(Generic[Piece]):
    """Work with the model of a run, in this process or another."""

    setup: Setup
    threads: int
    fingerprint: str = field(init=False)  # of the model where the run was started

    def __post_init__(self) -> None:
        object.__setattr__(self, "fingerprint", self.setup.model.fingerprint)

    def __call__(self, piece: Piece, /) -> bytes:
        """The outcome of a piece, computed with exactly that many threads."""
        with use_threads(self.threads):
            return self.compute(piece)

    def compute(self, piece: Piece, /) -> bytes:
        """The outcome of a piece as the content of a file."""
        raise NotImplementedError

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
