"""Table 3: train every probe in one pass over a corpus and test it on another, resumable."""

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from headscope.probes.stream import ProbeStream
from headscope.probes.trained import checkpoint
from headscope.probes.trained.attention_probe import AttentionProbe, AttentionWordsProbe
from headscope.probes.trained.distance_probe import DistanceWordsProbe
from headscope.probes.trained.parsing import ParseBatch, count_attached, right_branching
from headscope.probes.trained.seeds import Seeds
from headscope.probes.trained.training import LEARNING_RATE, Learner
from headscope.text.corpus import Corpus, Shard

PROBES = (
    "right_branching",
    "distances_words",
    "random_attention_words",
    "attention",
    "attention_words",
)
NETWORK, RANDOM = 0, 1  # places in the stream's networks
READS = {
    "distances_words": NETWORK,  # its maps are not looked at
    "random_attention_words": RANDOM,
    "attention": NETWORK,
    "attention_words": NETWORK,
}
CHUNK = 256  # sentences between two looks at the clock
CHUNKS_PER_CHECKPOINT = 4


@dataclass(frozen=True)
class Schedule:
    """How long and in which steps the probes are trained."""

    epochs: int = 1
    batch: int = 1  # sentences per step
    rate: float = LEARNING_RATE
    seed: int = 0

    def chunks(self, corpus: Corpus) -> list[Shard]:
        """Every epoch's pieces of the corpus, each epoch in an order of its own."""
        found: list[Shard] = []
        for epoch in range(self.epochs):
            shards = corpus.shards(CHUNK)
            random.Random(f"{self.seed} {epoch}").shuffle(shards)
            found += shards
        return found


@dataclass(frozen=True)
class Outcome:
    """How many words every probe attaches rightly, per seed, and what it relied on."""

    right: Mapping[str, np.ndarray]
    words: int
    arc_weights: Mapping[str, np.ndarray]  # mean weight on gold arcs, "seed map"


def make_learners(
    maps: int, size: int, seeds: Seeds, *, has_special: bool, rate: float
) -> dict[str, Learner]:
    """All probes that learn, untrained."""
    probes = {
        "distances_words": DistanceWordsProbe(size, seeds),
        "random_attention_words": AttentionWordsProbe(maps, size, seeds, has_special=has_special),
        "attention": AttentionProbe(maps, seeds, has_special=has_special),
        "attention_words": AttentionWordsProbe(maps, size, seeds, has_special=has_special),
    }
    return {name: Learner.of(probe, rate) for name, probe in probes.items()}


def train(
    learners: Mapping[str, Learner],
    stream: ProbeStream,
    corpus: Corpus,
    schedule: Schedule,
    path: Path,
) -> Iterator[Shard]:
    """Train on every chunk and yield it when it is done; goes on from the checkpoint at `path`."""
    chunks = schedule.chunks(corpus)
    done = checkpoint.restore(path, learners)
    for number, chunk in enumerate(chunks[done:], start=done + 1):
        for batches in stream.read(_shuffled(corpus, chunk, schedule.seed)):
            with one_thread():
                for name, learner in learners.items():
                    learner.learn(batches[READS[name]], schedule.batch)
        if number % CHUNKS_PER_CHECKPOINT == 0 or number == len(chunks):
            checkpoint.save(path, learners, number)
        yield chunk


def evaluate(learners: Mapping[str, Learner], stream: ProbeStream, corpus: Corpus) -> Outcome:
    """Count what the probes, and right-branching, get right."""
    right: dict[str, np.ndarray] = {}
    relied: dict[str, np.ndarray] = {}
    words = arcs = 0
    for shard in corpus.shards(CHUNK):
        for batches in stream.read(corpus.read(shard)):
            words += int(_add_counts(right, learners, batches))
            arcs += int((batches[NETWORK].heads >= 0).sum())
            _add_arc_weights(relied, learners, batches)
    means = {name: total / max(arcs, 1) for name, total in relied.items()}
    return Outcome(right, words, means)


@contextmanager
def one_thread() -> Iterator[None]:
    """Steps on single sentences are too small to share: more threads only wait for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _shuffled(corpus: Corpus, chunk: Shard, seed: int) -> list:
    sentences = corpus.read(chunk)
    random.Random(f"{seed} {chunk.start}").shuffle(sentences)
    return sentences


def _add_counts(
    right: dict[str, np.ndarray],
    learners: Mapping[str, Learner],
    batches: tuple[ParseBatch, ...],
) -> float:
    first = batches[NETWORK]
    attached, words = count_attached(right_branching(first.words), first)
    found = {"right_branching": attached}
    found |= {name: each.count(batches[READS[name]])[0] for name, each in learners.items()}
    for name, counts in found.items():
        right[name] = right.get(name, 0) + counts.cpu().numpy()
    return float(words)


def _add_arc_weights(
    relied: dict[str, np.ndarray],
    learners: Mapping[str, Learner],
    batches: tuple[ParseBatch, ...],
) -> None:
    for name, learner in learners.items():
        if isinstance(learner.probe, AttentionProbe | AttentionWordsProbe):
            weights = learner.probe.arc_weights(batches[READS[name]]).cpu().double().numpy()
            relied[name] = relied.get(name, 0) + weights
