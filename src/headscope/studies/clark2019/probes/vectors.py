"""Frozen word vectors for the probes: GloVe text files, arrays, or a model's own embeddings."""

import gzip
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from headscope.errors import CorpusError
from headscope.files import names_only
from headscope.model.model import Model
from headscope.studies.shared.words import WordTokens
from headscope.wording import is_number


@dataclass(frozen=True)
class WordVectors:
    """One vector for every known word; words are looked up in lower case, unknown ones are zero."""

    places: Mapping[str, int]
    table: Float[np.ndarray, "word dim"]
    source: str  # what the tables of a report call them

    @property
    def size(self) -> int:
        """Length of a vector."""
        return self.table.shape[1]

    def look_up(self, words: Sequence[str]) -> Float[np.ndarray, "word dim"]:
        """The vectors of some words."""
        vectors = np.zeros((len(words), self.size), dtype=np.float32)
        for row, word in enumerate(words):
            table_row = self.places.get(word.lower())
            if table_row is not None:
                vectors[row] = self.table[table_row]
        return vectors

    def of(self, words: WordTokens) -> Float[Tensor, "word dim"]:
        return torch.from_numpy(self.look_up(words.names))


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
        return cls(table.detach().float().cpu(), names_only(model.name))

    @property
    def size(self) -> int:
        return self.table.shape[1]

    @property
    def source(self) -> str:
        """Says that they are no vectors of their own."""
        return f"input embeddings of {self.name} ({self.size}-d)"

    def of(self, words: WordTokens) -> Float[Tensor, "word dim"]:
        """The mean embedding of each word's pieces."""
        pieces = self.table[list(words.tokens.ids)]
        means = [pieces[list(word)].mean(0) for word in words.tokens_of_word]
        return torch.stack(means)


VectorSource = WordVectors | InputEmbeddings


def read_vectors(path: str | Path, words: frozenset[str] | None = None) -> WordVectors:
    """Read vectors: text or .gz with one word and its numbers on a line, or .npy with the words
    beside it in a file of the same name that ends in .txt or .words.

    With `words`, only these (in lower case) are kept in memory.
    """
    path = Path(path)
    if not path.is_file():
        raise CorpusError(f"There is no vector file {path}; give a GloVe text, .gz or .npy file.")
    pairs = _array_pairs(path) if path.suffix == ".npy" else _text_pairs(path)
    places: dict[str, int] = {}
    rows: list[np.ndarray] = []
    for word, row in pairs:
        # Of "The" and "the" the first counts: files are sorted by frequency.
        if word.lower() in places or (words is not None and word.lower() not in words):
            continue
        places[word.lower()] = len(rows)
        rows.append(row)
    if not rows:
        raise CorpusError(f"{path} has no vector for any word of the corpus; give another file.")
    return WordVectors(places, np.stack(rows), f"{path.name} ({len(rows[0])}-d)")


def check_vectors(path: str | Path) -> None:
    """Refuse a malformed file; of a .npy only the shape is looked at."""
    path = Path(path)
    if path.suffix == ".npy":
        _array_pairs(path)
    elif sum(1 for _ in _text_pairs(path)) == 0:
        raise CorpusError(f"{path} has no vectors; give a GloVe text, .gz or .npy file.")


def _array_pairs(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    table = np.load(path, allow_pickle=False, mmap_mode="r")
    files = [path.with_suffix(end) for end in (".txt", ".words")]
    lists = [file for file in files if file.is_file()]
    if not lists:
        names = " or ".join(file.name for file in files)
        raise CorpusError(f"{path} has no words beside it; put them, one on a line, into {names}.")
    words = lists[0].read_text(encoding="utf-8").splitlines()
    if table.ndim != 2 or len(words) != len(table):
        raise CorpusError(
            f"{path} has the shape {table.shape} but {lists[0].name} has {len(words)} words; "
            "one row for every word is needed."
        )
    return ((word, np.asarray(row, np.float32)) for word, row in zip(words, table, strict=True))


def _text_pairs(path: Path) -> Iterator[tuple[str, np.ndarray]]:
    size = None
    for number, line in _lines(path):
        if number == 1 and _is_header(line):
            continue
        parts = line.rstrip().split(" ")
        size = len(parts) - 1 if size is None else size
        # GloVe 840B has words with spaces inside: ". . .", "at name@domain.com".
        word, inside, numbers = parts[0], parts[1:-size], parts[-size:]
        if len(parts) <= size or size == 0 or any(is_number(part) for part in inside):
            raise CorpusError(
                f"{path}:{number} has a vector of {len(parts) - 1} numbers where {size} are "
                "expected from the first line; every vector must have the same length."
            )
        yield " ".join([word, *inside]), _row(path, number, numbers)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    open_text = partial(gzip.open, mode="rt") if path.suffix == ".gz" else open
    try:
        with open_text(path, encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line.rstrip("\n")
    except (UnicodeDecodeError, OSError, EOFError) as error:
        raise CorpusError(f"{path} cannot be read as text: {error}.") from None


def _is_header(line: str) -> bool:
    """word2vec and fastText files begin with the number of words and the length of a vector."""
    parts = line.split()
    return len(parts) == 2 and all(part.isdecimal() for part in parts)


def _row(path: Path, number: int, numbers: Sequence[str]) -> np.ndarray:
    try:
        return np.array(numbers, dtype=np.float32)
    except ValueError:
        raise CorpusError(
            f"{path}:{number} is not a word and its vector: {' '.join(numbers)[:60]!r}; "
            "a vector file has one word and its numbers on a line."
        ) from None
