"""Where the vectors of words come from: a file, or the embeddings of the model itself."""

from dataclasses import dataclass
from typing import Protocol

import torch
from jaxtyping import Float
from torch import Tensor

from headscope.model.model import Model
from headscope.probes.encoding import WordTokens
from headscope.probes.trained.vectors import WordVectors


class VectorSource(Protocol):
    """A vector for every word of a sentence."""

    @property
    def size(self) -> int:
        """Length of a vector."""
        ...

    @property
    def source(self) -> str:
        """What the tables of a report call them."""
        ...

    def of(self, tokens: WordTokens) -> Float[Tensor, "word dim"]:
        """The vectors of a sentence's words."""
        ...


@dataclass(frozen=True)
class FileVectors:
    """Vectors that were read from a file."""

    vectors: WordVectors

    @property
    def size(self) -> int:
        """Length of a vector."""
        return self.vectors.size

    @property
    def source(self) -> str:
        """Name of the file and length of a vector."""
        return self.vectors.source

    def of(self, tokens: WordTokens) -> Float[Tensor, "word dim"]:
        """Looked up in lower case; unknown words are zero."""
        return torch.from_numpy(self.vectors.look_up([w.text for w in tokens.sentence.words]))


@dataclass(frozen=True)
class InputEmbeddings:
    """The model's own input embeddings: the mean over a word's pieces."""

    table: Float[Tensor, "token dim"]
    name: str

    @classmethod
    def of_model(cls, model: Model) -> "InputEmbeddings":
        """The embedding table of a model."""
        embedding = model.network.get_input_embeddings()
        table: Tensor = embedding.weight  # pyright: ignore[reportAssignmentType]
        return cls(table.detach().float().cpu(), model.name)

    @property
    def size(self) -> int:
        """Length of a vector."""
        return self.table.shape[1]

    @property
    def source(self) -> str:
        """Says that they are no vectors of their own."""
        return f"input embeddings of {self.name} ({self.size}-d)"

    def of(self, tokens: WordTokens) -> Float[Tensor, "word dim"]:
        """The mean embedding of each word's pieces."""
        ids = torch.tensor(tokens.encoded.ids)
        pieces = [self.table[ids[list(word)]] for word in tokens.alignment.tokens_of_word]
        return torch.stack([piece.mean(0) for piece in pieces])
