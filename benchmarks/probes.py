"""Table 1 of clark2019 on ready attention weights: ours against a straightforward numpy version.

python -m benchmarks.probes

Both read the same token-level weights of 12 × 12 heads, make word-level maps, predict in both
directions and count by relation. The numpy version goes sentence by sentence, head by head and word
by word, as the definition reads. One core; the counts of both are compared.
"""

import random
import time
from collections import Counter
from dataclasses import dataclass

import numpy as np
import torch

from headscope.studies.clark2019.probes.relations import count_correct, predict, scored_words
from headscope.studies.clark2019.probes.trees import Classes, make_gold
from headscope.studies.shared.words import make_units, word_maps
from headscope.text.sentence import ROOT, Sentence, Word

LAYERS, HEADS = 12, 12
SENTENCES, BATCH, REPEATS = 64, 16, 3
LABELS = [f"relation{n:02d}" for n in range(40)]
CLASSES = Classes.of([*LABELS, "root"])


@dataclass(frozen=True)
class Item:
    """One sentence with the word of every token and the weights of all layers."""

    sentence: Sentence
    pieces: list[int]
    weights: torch.Tensor  # layer head token token


def make_item(rng: random.Random, generator: torch.Generator) -> Item:
    size = rng.randint(12, 32)
    root = rng.randrange(size)
    words = [
        Word(f"w{i}", 0, 1, head=ROOT, deprel="root")
        if i == root
        else Word(f"w{i}", 0, 1, head=_other(rng, size, i), deprel=rng.choice(LABELS))
        for i in range(size)
    ]
    pieces = [-1, *(w for w in range(size) for _ in range(rng.choice([1, 1, 1, 2]))), -1]
    scores = torch.randn(LAYERS, HEADS, len(pieces), len(pieces), generator=generator) * 2
    return Item(Sentence(f"s{rng.random()}", tuple(words)), pieces, scores.softmax(-1))


def _other(rng: random.Random, size: int, own: int) -> int:
    return rng.choice([j for j in range(size) if j != own])


def padded(items: list[Item], layer: int) -> torch.Tensor:
    width = max(len(item.pieces) for item in items)
    batch = torch.zeros(len(items), HEADS, width, width)
    for row, item in enumerate(items):
        size = len(item.pieces)
        batch[row, :, :size, :size] = item.weights[layer]
    return batch


def ours(batches: list[tuple[list[Item], list[torch.Tensor]]]) -> np.ndarray:
    """Correct words by layer, head, direction and class."""
    total = np.zeros((LAYERS, HEADS, 2, len(CLASSES)))
    for items, layers in batches:
        gold = make_gold([item.sentence for item in items], CLASSES)
        counts = [len(item.sentence.words) for item in items]
        units = make_units([item.pieces for item in items], counts)
        scored = scored_words(gold.heads, gold.words, is_causal=False)
        for layer, weights in enumerate(layers):
            maps = word_maps(weights, units)[..., : units.width, : units.width]
            correct = count_correct(predict(maps, gold.words), gold, scored)
            total[layer] += correct.sum(0).numpy()
    return total


def plain(items: list[Item]) -> dict[tuple[int, int, int, str], int]:
    """The same, as it is usually written."""
    correct: Counter[tuple[int, int, int, str]] = Counter()
    for item in items:
        words = item.sentence.words
        tokens = [[t for t, w in enumerate(item.pieces) if w == i] for i in range(len(words))]
        for layer in range(LAYERS):
            for head in range(HEADS):
                attention = word_map(item.weights[layer, head].numpy(), tokens)
                for direction, directed in enumerate((attention, attention.T)):
                    for i, word in enumerate(words):
                        if int(np.argmax(directed[i])) == word.head:
                            correct[layer, head, direction, word.deprel or ""] += 1
    return correct


def word_map(weights: np.ndarray, tokens: list[list[int]]) -> np.ndarray:
    """Sum over key pieces, mean over query pieces, nothing on the diagonal."""
    columns = np.stack([weights[:, pieces].sum(1) for pieces in tokens], axis=1)
    rows = np.stack([columns[pieces].mean(0) for pieces in tokens])
    np.fill_diagonal(rows, 0)
    return rows


def check(found: np.ndarray, expected: dict[tuple[int, int, int, str], int]) -> None:
    for (layer, head, direction, relation), count in expected.items():
        place = CLASSES.names.index(relation)
        assert abs(found[layer, head, direction, place] - count) <= 1, "the counts differ"


def main() -> None:
    torch.set_num_threads(1)
    rng, generator = random.Random(0), torch.Generator().manual_seed(0)
    items = sorted(
        (make_item(rng, generator) for _ in range(SENTENCES)), key=lambda item: len(item.pieces)
    )
    groups = [items[start : start + BATCH] for start in range(0, SENTENCES, BATCH)]
    batches = [(group, [padded(group, layer) for layer in range(LAYERS)]) for group in groups]
    words = sum(len(item.sentence.words) for item in items)
    fast, slow = [], []
    for _ in range(REPEATS):
        start = time.perf_counter()
        found = ours(batches)
        fast.append(time.perf_counter() - start)
        start = time.perf_counter()
        expected = plain(items)
        slow.append(time.perf_counter() - start)
        check(found, expected)
    size = f"{SENTENCES} sentences, {words:,} words, {LAYERS} × {HEADS} heads"
    print(f"{size}, one core, best of {REPEATS}")
    print(f"{'':14}{'words/s':>10}{'seconds':>10}")
    for name, taken in (("ours", min(fast)), ("numpy loop", min(slow))):
        print(f"{name:14}{words / taken:>10,.0f}{taken:>10.3f}")
    print(f"ratio {min(slow) / min(fast):.1f}")


if __name__ == "__main__":
    main()
