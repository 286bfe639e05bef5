"""Table 3: probes trained on one corpus and tested on another, resumable.

Probes that read the same maps are trained together, so that each network passes over the corpus
once; the groups are independent of each other.
"""

import math
import random
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.files import pack_arrays, unpack_arrays
from headscope.model.inputs.batch import Batch, buckets
from headscope.model.inputs.frame import Bos
from headscope.model.model import Model
from headscope.model.writes import Reading
from headscope.results.replicates import GROUPS as REPLICATE_GROUPS
from headscope.studies.clark2019.probes.trained_probes import (
    LEARNING_RATE,
    AttentionProbe,
    AttentionWordsProbe,
    DistanceWordsProbe,
    Learner,
    Probe,
    Seeds,
    count_parameters,
    count_right,
    restore,
    save,
)
from headscope.studies.clark2019.probes.trees import (
    Classes,
    GoldTrees,
    ParseBatch,
    count_attached,
    make_gold,
    make_parse_batch,
    right_branching,
    take_sentences,
    tree_fault,
)
from headscope.studies.clark2019.probes.vectors import VectorSource
from headscope.studies.shared.words import (
    From,
    WordTokens,
    all_word_maps,
    encode_words,
    token_units,
)
from headscope.text.alignment import Sharing
from headscope.text.corpus import Corpus, Shard
from headscope.text.sentence import Sentence
from headscope.workers import use_threads

Group = Literal["text", "random network", "network"]

RIGHT_BRANCHING = "right_branching"
PROBES = (
    RIGHT_BRANCHING,
    "distances_words",
    "random_attention_words",
    "attention",
    "attention_words",
)
# The probes that learn, by what they read: no attention, that of a random network, the model's.
GROUPS: dict[Group, tuple[str, ...]] = {
    "text": ("distances_words",),
    "random network": ("random_attention_words",),
    "network": ("attention", "attention_words"),
}
CHUNK = 256  # sentences that are read, shuffled and trained on together
CHUNKS_PER_CHECKPOINT = 4
LEAST_STEPS = 1000  # of a training whose passes over the corpus are not fixed
MOST_EPOCHS = 5  # of such a training
TRAIN_SHARE = 0.8
FEWEST_DOCUMENTS = 5  # with fewer, four fifths cannot be cut at documents
NO_CLASSES = Classes.of(())
SHARES = (0.25, 0.5, 0.75, 1.0)  # of the training after which the probes are tested
BY_PROBE = ("curve", "right", "arc_weights", "parameters")  # of an outcome
CONTROL = " control"  # ends the name of a probe that learns the control task


@dataclass(frozen=True)
class Schedule:
    """How long and in which steps the probes are trained."""

    epochs: int | None = None  # one, or as many as LEAST_STEPS takes
    batch: int = 1  # sentences per step
    rate: float = LEARNING_RATE
    seed: int = 0

    def chunks(self, corpus: Corpus) -> list[Shard]:
        """Every epoch's pieces of the corpus, each epoch in an order of its own."""
        chunks: list[Shard] = []
        few = math.ceil(LEAST_STEPS * self.batch / max(len(corpus), 1))
        for epoch in range(self.epochs or min(few, MOST_EPOCHS)):
            shards = corpus.shards(CHUNK)
            random.Random(f"{self.seed} {epoch}").shuffle(shards)
            chunks += shards
        return chunks


@dataclass(frozen=True)
class ProbeStream:
    """Turns sentences into the batches that probes learn from; nothing is kept."""

    model: Model  # whose tokens the sentences are cut into
    network: Model | None  # whose attention the probes read
    vectors: VectorSource
    batch_tokens: int
    row: From = "mean"
    sharing: Sharing = "overlap"  # what becomes of a token of several words
    control_seed: int | None = None  # of the control task, if it is wanted
    reading: Reading = "raw"  # of the network's weights
    bos: Bos = "auto"  # whether a sentence begins with the BOS token

    def read(
        self, sentences: Sequence[Sentence], order: random.Random | None = None
    ) -> Iterator[tuple[ParseBatch, list[int]]]:
        """Batches of the sentences that are trees and can be aligned, and the places of these.

        The shortest come first, or a random order if one is given.
        """
        trees = [index for index, s in enumerate(sentences) if tree_fault(s.words) is None]
        parsed = [sentences[index] for index in trees]
        encodings = encode_words(self.model, parsed, self.sharing, self.bos)
        usable = [
            (index, tokens)
            for index, tokens in zip(trees, encodings, strict=True)
            if isinstance(tokens, WordTokens)
        ]
        encoded = [words.tokens for _, words in usable]
        batches = buckets([len(tokens) for tokens in encoded], self.batch_tokens)
        if order is not None:
            order.shuffle(batches)
        for rows in batches:
            batch = self.model.batch(encoded, rows)
            places, tokens = zip(*(usable[row] for row in batch.rows), strict=True)
            yield self._parse_batch(batch, tokens), list(places)

    def _parse_batch(self, batch: Batch, tokens: Sequence[WordTokens]) -> ParseBatch:
        sentences = [words.sentence for words in tokens]
        gold = make_gold(sentences, NO_CLASSES, device=batch.ids.device)
        vectors = torch.zeros(*gold.heads.shape, self.vectors.size)
        for row, words in enumerate(tokens):
            vectors[row, : len(words.sentence.words)] = self.vectors.of(words)
        maps = None
        if self.network is not None:
            units = token_units(tokens, batch, self.row)
            maps = all_word_maps(self.network, batch, units, self.reading)
        control = None
        if self.control_seed is not None:
            control = control_heads(sentences, gold, self.control_seed)
        return make_parse_batch(gold, maps, vectors.to(batch.ids.device), control)


def control_heads(
    sentences: Sequence[Sentence], gold: GoldTrees, seed: int
) -> Int[Tensor, "batch word"]:
    """Governors that say nothing of syntax: of each word type always by the same random rule.

    A word hangs on itself, on the first or on the last word of its sentence, as a seeded hash of
    the word says. What a probe gains here it gains by memory (Hewitt & Liang 2019).
    """
    heads = gold.heads.clone()
    for row, sentence in enumerate(sentences):
        last = len(sentence.words) - 1
        governors: list[int] = []
        for position, word in enumerate(sentence.words):
            rule = zlib.crc32(f"{seed} {word.text.lower()}".encode()) % 3
            governors.append((position, 0, last)[rule])
        heads[row, : last + 1] = torch.tensor(governors, device=heads.device)
    return heads


@dataclass(frozen=True)
class Outcome:
    """What a group of probes learned: words attached rightly, and what they relied on."""

    right: Mapping[str, np.ndarray]  # "group seed"; right-branching is among them
    words: np.ndarray  # "group": words asked for
    curve: Mapping[str, np.ndarray]  # "share seed": words attached after shares of the training
    arc_weights: Mapping[str, np.ndarray]  # mean weight on gold arcs, "seed map"
    parameters: Mapping[str, int]
    vectors: str  # what the word vectors are

    def pack(self) -> bytes:
        """The outcome as the content of a file."""
        arrays = {"words": self.words, "vectors": np.array(self.vectors)}
        for kind in BY_PROBE:
            for name, value in getattr(self, kind).items():
                arrays[f"{kind}/{name}"] = np.asarray(value)
        return pack_arrays(arrays)

    @classmethod
    def unpack(cls, content: bytes) -> "Outcome":
        """The outcome that `pack` was called on."""
        arrays = unpack_arrays(content)
        by_probe: dict[str, Any] = {kind: {} for kind in BY_PROBE}
        for key, array in arrays.items():
            kind, _, name = key.partition("/")
            if name:
                by_probe[kind][name] = int(array) if kind == "parameters" else array
        return cls(words=arrays["words"], vectors=str(arrays["vectors"]), **by_probe)


def make_learners(
    group: Group,
    maps: int,
    size: int,
    seeds: Seeds,
    *,
    has_special: bool,
    rate: float,
    has_control: bool = False,
) -> dict[str, Learner]:
    """The untrained probes of a group, for `maps` attention maps and vectors of length `size`.

    With `has_control` each has a twin that learns the control task.
    """

    def make(name: str) -> Probe:
        if name == "distances_words":
            return DistanceWordsProbe(size, seeds)
        if name == "attention":
            return AttentionProbe(maps, seeds, has_special=has_special)
        return AttentionWordsProbe(maps, size, seeds, has_special=has_special)

    learners = {name: Learner.of(make(name), rate) for name in GROUPS[group]}
    if has_control:
        for name in GROUPS[group]:
            learners[f"{name}{CONTROL}"] = Learner.of(make(name), rate, is_control=True)
    return learners


def train(
    learners: Mapping[str, Learner],
    stream: ProbeStream,
    corpus: Corpus,
    schedule: Schedule,
    path: Path | None = None,
    owner: str = "",
) -> Iterator[Shard]:
    """Train on every chunk and yield it when it is done; continue from its own checkpoint."""
    chunks = schedule.chunks(corpus)
    done = 0 if path is None else restore(path, learners, owner)
    total, seen = sum(map(len, chunks)), sum(map(len, chunks[:done]))
    for number, chunk in enumerate(chunks[done:], start=done + 1):
        start, order = seen, random.Random(f"{schedule.seed} {number}")
        sentences = corpus.read(chunk)
        random.Random(f"{schedule.seed} {chunk.start}").shuffle(sentences)
        for batch, _ in stream.read(sentences, order):
            # Steps on single sentences are too small to share among threads.
            with use_threads(1):
                for rows in torch.arange(len(batch.heads)).split(schedule.batch):
                    step = take_sentences(batch, rows.to(batch.heads.device))
                    for learner in learners.values():
                        learner.learn(step)
                    seen += len(rows)
                    _remember(learners, seen / total)
        seen = start + len(chunk)  # with the sentences that were no trees
        _remember(learners, seen / total)
        is_due = number % CHUNKS_PER_CHECKPOINT == 0 or number == len(chunks)
        if path is not None and is_due:
            save(path, learners, number, owner)
        yield chunk


def _remember(learners: Mapping[str, Learner], share: float) -> None:
    """Keep what the probes have learned at each of SHARES but the last."""
    for learner in learners.values():
        while not learner.is_control and share >= SHARES[len(learner.earlier)] < 1:
            learner.remember()


def evaluate(
    learners: Mapping[str, Learner],
    stream: ProbeStream,
    corpus: Corpus,
    group: Callable[[Sentence, int], int] = lambda sentence, number: number % REPLICATE_GROUPS,
) -> Outcome:
    """Count what the probes, and right-branching, get right; `group` says that of a sentence."""
    right: dict[str, np.ndarray] = {}
    curve: dict[str, np.ndarray] = {}
    arc_weights: dict[str, np.ndarray] = {}
    words, arcs = np.zeros(REPLICATE_GROUPS), 0

    def add_right(name: str, attached: Float[Tensor, "seed batch"], groups: np.ndarray) -> None:
        total = right.setdefault(name, np.zeros((REPLICATE_GROUPS, len(attached))))
        np.add.at(total, groups, attached.T.cpu().numpy())

    for shard in corpus.shards(CHUNK):
        sentences = corpus.read(shard)
        for batch, places in stream.read(sentences):
            groups = np.array([group(sentences[index], shard.start + index) for index in places])
            attached, asked = count_attached(right_branching(batch.words), batch)
            np.add.at(words, groups, asked.cpu().numpy())
            arcs += int((batch.heads >= 0).sum())
            add_right(RIGHT_BRANCHING, attached, groups)
            for name, learner in learners.items():
                attached, _ = learner.count(batch)
                add_right(name, attached, groups)
                if learner.is_control:
                    continue
                points = [count_right(probe, batch)[0].sum(1) for probe in learner.earlier]
                points.append(attached.sum(1))
                curve[name] = curve.get(name, 0) + torch.stack(points).cpu().numpy()
                if isinstance(learner.probe, AttentionProbe | AttentionWordsProbe):
                    weights = learner.probe.arc_weights(batch).cpu().double().numpy()
                    arc_weights[name] = arc_weights.get(name, 0) + weights
    return Outcome(
        right=right,
        words=words,
        curve=curve,
        arc_weights={name: total / max(arcs, 1) for name, total in arc_weights.items()},
        parameters={
            name: count_parameters(learner.probe)
            for name, learner in learners.items()
            if not learner.is_control
        },
        vectors=stream.vectors.source,
    )


def split_documents(corpus: Corpus, seed: int) -> tuple[Corpus, Corpus]:
    """A seeded four fifths of the documents, and the rest; of few documents, of the sentences."""
    names = [sentence.document for sentence in corpus]
    if len(set(names)) < FEWEST_DOCUMENTS:
        names = [str(index) for index in range(len(corpus))]
    documents = sorted(set(names))
    drawn = set(random.Random(seed).sample(documents, round(len(documents) * TRAIN_SHARE)))
    train = [index for index, name in enumerate(names) if name in drawn]
    test = [index for index, name in enumerate(names) if name not in drawn]
    return corpus.select(train), corpus.select(test)
