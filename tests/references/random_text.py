"""Random sentences with trees and mentions, and random attention over their tokens."""

import numpy as np
import torch

from headscope.observe import AnnotatedBatch, BlockLayer
from headscope.results.replicates import GROUPS
from headscope.studies.shared.words import WORD
from headscope.text.sentence import ROOT, Mention, Sentence, Word
from tests.references.random_attention import matrix_layer

LABELS = ("det", "nmod:poss", "nsubj", "punct")
FORMS = ("the", "Ada", "she", "dogs", "'s", "engine", "it", ",")
TAGS = {
    "the": "DET",
    "Ada": "PROPN",
    "she": "PRON",
    "dogs": "NOUN",
    "'s": "PART",
    "engine": "NOUN",
    "it": "PRON",
    ",": "PUNCT",
}


def random_heads(rng: np.random.Generator, size: int) -> list[int]:
    """A random tree: every word but the first hangs on one that comes earlier in a random order."""
    order = rng.permutation(size)
    heads = [ROOT] * size
    for place in range(1, size):
        heads[int(order[place])] = int(order[rng.integers(0, place)])
    return heads


def random_sentence(
    rng: np.random.Generator, longest: int = 8, document: str = "d", mentions: int = 0
) -> Sentence:
    """Up to `longest` words from a small vocabulary."""
    size = int(rng.integers(1, longest + 1))
    forms = [str(rng.choice(FORMS)) for _ in range(size)]
    heads = random_heads(rng, size)
    words, text = [], ""
    for form, head in zip(forms, heads, strict=True):
        text += " " if text else ""
        label = "root" if head == ROOT else str(rng.choice(LABELS))
        start, end = len(text), len(text) + len(form)
        words.append(Word(form, start, end, upos=TAGS[form], head=head, deprel=label))
        text += form
    found = tuple(random_mention(rng, size) for _ in range(mentions))
    return Sentence(text, tuple(words), found, document, id=str(rng.integers(1 << 30)))


def random_mention(rng: np.random.Generator, size: int) -> Mention:
    """One to three words of one of three entities."""
    start = int(rng.integers(0, size))
    end = int(rng.integers(start + 1, min(start + 3, size) + 1))
    return Mention(str(rng.integers(3)), ((start, end),))


def random_pieces(rng: np.random.Generator, words: int, special: bool) -> list[int]:
    """The word of every token: one to three pieces each, now and then a token of no word."""
    pieces = [word for word in range(words) for _ in range(rng.choice([1, 1, 2, 3]))]
    if rng.random() < 0.3:
        pieces.insert(int(rng.integers(1, len(pieces) + 1)), -1)
    return [-1, *pieces, -1] if special else pieces


def random_weights(
    rng: np.random.Generator, heads: int, length: int, *, is_causal: bool = False
) -> np.ndarray:
    """Rows that sum to one, rounded coarsely so that equal weights occur."""
    scores = rng.normal(size=(heads, length, length)) * rng.choice([0.5, 3.0])
    if is_causal:
        scores[:, ~np.tri(length, dtype=bool)] = -np.inf
    weights = torch.from_numpy(scores).float().softmax(-1).numpy()
    return np.round(weights, 2) if rng.random() < 0.5 else weights


def padded(arrays: list[np.ndarray]) -> torch.Tensor:
    """Square maps of several sizes as one batch, zero beyond each."""
    size = max(array.shape[-1] for array in arrays)
    rows = [np.pad(a, [(0, 0), (0, size - a.shape[-1]), (0, size - a.shape[-1])]) for a in arrays]
    return torch.from_numpy(np.stack(rows))


def make_batch(
    sentences: list[Sentence], pieces: list[list[int]], *, is_causal: bool
) -> AnnotatedBatch:
    """Sentences as the engine annotates them; null are special tokens, or the first one."""
    size = max(map(len, pieces))
    null = torch.zeros(len(pieces), size, dtype=torch.bool)
    words = torch.full((len(pieces), size), -1)
    mask = torch.zeros_like(null)
    for row, tokens in enumerate(pieces):
        words[row, : len(tokens)] = torch.tensor(tokens)
        mask[row, : len(tokens)] = True
        null[row, 0] = is_causal or tokens[0] < 0
        null[row, len(tokens) - 1] |= not is_causal and tokens[-1] < 0
    places = np.arange(len(pieces))
    return AnnotatedBatch(
        numbers=places,
        rows=places,
        groups=torch.from_numpy(places % GROUPS),
        mask=mask,
        null=null,
        is_causal=is_causal,
        labels={WORD: words},
        sentences=tuple(sentences),
    )


def make_layer(weights: list[np.ndarray], batch: AnnotatedBatch, index: int = 0) -> BlockLayer:
    """One layer of a batch; rows of padding hold rubbish, as they may in real models."""
    size = batch.mask.shape[1]
    filled = torch.zeros(len(weights), len(weights[0]), size, size)
    for row, maps in enumerate(weights):
        length = maps.shape[-1]
        filled[row, :, :length, :length] = torch.from_numpy(maps)
        filled[row, :, length:] = torch.nan
    return matrix_layer(index, batch, filled)
