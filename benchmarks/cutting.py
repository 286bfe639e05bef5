"""How well rules find the ends of sentences, held against a treebank, and how fast they are.

    python -m benchmarks.cutting [TREEBANK.conllu]

Every paragraph is written as one line, cut by `headscope.text.boundaries`, and the ends are
compared with the treebank's. The end of a paragraph is no achievement and is not counted.
"""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, groupby

from headscope import read_corpus
from headscope.text.boundaries import cut_sentences
from headscope.text.corpus import Corpus


@dataclass
class Score:
    """Ends of sentences inside paragraphs."""

    gold: int = 0
    found: int = 0
    both: int = 0

    def add(self, gold: set[int], found: set[int]) -> None:
        self.gold += len(gold)
        self.found += len(found)
        self.both += len(gold & found)

    def __str__(self) -> str:
        precision, recall = self.both / self.found, self.both / self.gold
        balanced = 2 * precision * recall / (precision + recall)
        return f"precision {precision:.3f}, recall {recall:.3f}, F1 {balanced:.3f}"


def paragraphs(corpus: Corpus) -> Iterator[list[str]]:
    """The sentences of every paragraph of several."""
    for _, run in groupby(corpus, key=lambda each: (each.document, each.paragraph)):
        texts = [sentence.text for sentence in run]
        if len(texts) > 1:
            yield texts


def ends(texts: list[str]) -> set[int]:
    """How many characters other than space lie before each end but the last."""
    return set(list(accumulate(len("".join(text.split())) for text in texts))[:-1])


def main(treebank: str = "demo") -> None:
    score, characters, seconds = Score(), 0, 0.0
    for gold in paragraphs(read_corpus(treebank)):
        line = " ".join(gold)
        start = time.perf_counter()
        found = list(cut_sentences(line))
        seconds += time.perf_counter() - start
        characters += len(line)
        score.add(ends(gold), ends(found))
    rate = characters / seconds / 1e6
    print(f"{score.gold:,} ends inside paragraphs: {score}; {rate:.1f} million characters a second")


if __name__ == "__main__":
    main(*sys.argv[1:2])
