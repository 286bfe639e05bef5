"""The texts of every part with what their tables know, and work on them some layers at a time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch

from headscope.engine.setup import ModelWork, Setup
from headscope.engine.stage import Stage
from headscope.metrics.metric import Grid
from headscope.model.inputs.frame import Bos
from headscope.portrait.tables import Vocabulary
from headscope.portrait.texts import PARTS, Text, draw_texts

HEADS, HEADS_CUDA = 64, 512  # of a piece, at most, but for a layer that has more
TOKENS, TOKENS_CUDA = 1024, 16384  # of a batch
RECOGNISED = 60  # texts that heads are recognised from
SHOWN_PASSAGES = 10  # beside the sentences; twice as many where there are no sentences

Layers = tuple[int, ...]


@dataclass(frozen=True)
class Sample:
    """The texts of every part, and what their tables know."""

    texts: Mapping[str, Sequence[Text]]
    vocabulary: Vocabulary

    @classmethod
    def draw(cls, setup: Setup, bos: Bos, *, raw: bool = False) -> "Sample":
        """The sample of a study; the vocabulary is that of the texts that are fitted to."""
        texts = draw_texts(setup, bos, raw=raw)
        parts = {part: [text for text in texts if text.part == part] for part in PARTS}
        return cls(parts, Vocabulary.of(parts["fit"], is_causal=setup.model.is_causal))

    @property
    def is_enough(self) -> bool:
        """Whether every part has texts."""
        return all(self.texts[part] for part in PARTS)

    def recognised(self) -> list[Text]:
        """The texts that heads are recognised from: sentences, if there are any."""
        scored = self.texts["score"]
        sentences = [text for text in scored if not text.is_passage]
        return list(sentences or scored)[:RECOGNISED]

    def shown(self) -> list[Text]:
        """The texts that examples are taken from: scored sentences, and some passages."""
        scored = self.texts["score"]
        sentences = [text for text in scored if not text.is_passage]
        passages = [text for text in scored if text.is_passage]
        most = SHOWN_PASSAGES if sentences else 2 * SHOWN_PASSAGES
        return [*sentences, *passages[:most]]


def split_layers(grid: Grid, device: torch.device) -> list[Layers]:
    """The places of all layers, some at a time; more on a GPU, where a pass costs next to none."""
    layers, heads = grid.shape
    size = max(1, (HEADS_CUDA if device.type == "cuda" else HEADS) // heads)
    return [tuple(range(at, min(at + size, layers))) for at in range(0, layers, size)]


@dataclass(frozen=True)
class LayerStage(Stage[Layers]):
    """A stage of portraits, whose pieces are some layers."""

    bos: Callable[[Setup], Bos] = lambda setup: setup.bos
    raw: bool = False  # whether only raw text is read, annotated or not
    noun = "layers"

    def size(self, piece: Layers) -> int:
        """Its layers."""
        return len(piece)


@dataclass(frozen=True)
class LayerWork(ModelWork[Layers]):
    """Work on the heads of some layers."""

    bos: Bos
    raw: bool
    what: ClassVar[str]

    def describe(self, layers: Layers, /) -> str:
        """Name what is made, and the layers."""
        return f"The {self.what} of layers {layers[0]} to {layers[-1]}"

    @cached_property
    def sample(self) -> Sample:
        """The texts, drawn once in every process."""
        return Sample.draw(self.setup, self.bos, raw=self.raw)
