"""Table 3: probes trained on one corpus and tested on another, resumable.

Probes that read the same maps are trained together, so that each network passes over the corpus
once; the groups are independent of each other.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import nn

from headscope.archive import pack_arrays, unpack_arrays
from headscope.model.batch import Batch, buckets
from headscope.model.model import Model
from headscope.model.quiet import quiet
from headscope.probes.encoding import WordTokens, encode_words
from headscope.probes.gold import Classes, make_gold, tree_fault
from headscope.probes.trained.parsing import (
    ParseBatch,
    count_attached,
    make_parse_batch,
    right_branching,
)
from headscope.probes.trained.probes import (
    AttentionProbe,
    AttentionWordsProbe,
    DistanceWordsProbe,
    Seeds,
)
from headscope.probes.trained.training import (
    LEARNING_RATE,
    Learner,
    count_parameters,
    restore,
    save,
)
from headscope.probes.trained.vectors import VectorSource
from headscope.probes.words import From, all_word_maps, token_units
from headscope.text.corpus import Corpus, Shard
from headscope.text.sentence import Sentence
from headscope.workers.threads import use_threads

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
TRAIN_SHARE = 0.8
FEWEST_DOCUMENTS = 5  # with fewer, four fifths cannot be cut at documents
NO_CLASSES = Classes.of(())


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
class ProbeStream:
    """Turns sentences into the batches that probes learn from; nothing is kept."""

    model: Model  # whose tokens the sentences are cut into
    network: Model | None  # whose attention the probes read
    vectors: VectorSource
    batch_tokens: int
    row: From = "mean"

    def read(self, sentences: Sequence[Sentence]) -> Iterator[ParseBatch]:
        """Batches of the sentences that are trees and can be aligned."""
        trees = [sentence for sentence in sentences if tree_fault(sentence.words) is None]
        made = encode_words(self.model, trees)
        tokens = [each for each in made if isinstance(each, WordTokens)]
        encoded = [each.encoded for each in tokens]
        for rows in buckets([len(each) for each in encoded], self.batch_tokens):
            batch = self.model.batch(encoded, rows)
            yield self._parse_batch(batch, [tokens[row] for row in batch.rows])

    def _parse_batch(self, batch: Batch, tokens: Sequence[WordTokens]) -> ParseBatch:
        gold = make_gold([each.sentence for each in tokens], NO_CLASSES, device=batch.ids.device)
        vectors = torch.zeros(*gold.heads.shape, self.vectors.size)
        for place, each in enumerate(tokens):
            vectors[place, : len(each.sentence.words)] = self.vectors.of(each)
        maps = None
        if self.network is not None:
            maps = all_word_maps(self.network, batch, token_units(tokens, batch, self.row))
        return make_parse_batch(gold, maps, vectors.to(batch.ids.device))


@dataclass(frozen=True)
class Outcome:
    """What a group of probes learned: words attached rightly per seed, and what they relied on."""

    right: Mapping[str, np.ndarray]  # right-branching is among them
    words: int
    arc_weights: Mapping[str, np.ndarray]  # mean weight on gold arcs, "seed map"
    parameters: Mapping[str, int]
    vectors: str  # what the word vectors are

    def pack(self) -> bytes:
        """The outcome as the content of a file."""
        arrays = {"words": np.array(self.words), "vectors": np.array(self.vectors)}
        arrays |= {f"right/{name}": counts for name, counts in self.right.items()}
        arrays |= {f"arc_weights/{name}": means for name, means in self.arc_weights.items()}
        arrays |= {f"parameters/{name}": np.array(size) for name, size in self.parameters.items()}
        return pack_arrays(arrays)

    @classmethod
    def unpack(cls, content: bytes) -> "Outcome":
        """The outcome that `pack` was called on."""
        arrays = unpack_arrays(content)

        def named(kind: str) -> dict[str, np.ndarray]:
            found = {key.partition("/"): array for key, array in arrays.items()}
            return {name: array for (begin, _, name), array in found.items() if begin == kind}

        sizes = {name: int(size) for name, size in named("parameters").items()}
        return cls(
            right=named("right"),
            words=int(arrays["words"]),
            arc_weights=named("arc_weights"),
            parameters=sizes,
            vectors=str(arrays["vectors"]),
        )


def make_learners(
    group: Group, maps: int, size: int, seeds: Seeds, *, has_special: bool, rate: float
) -> dict[str, Learner]:
    """The untrained probes of a group, for `maps` attention maps and vectors of length `size`."""
    makers = {
        "distances_words": lambda: DistanceWordsProbe(size, seeds),
        "random_attention_words": lambda: AttentionWordsProbe(
            maps, size, seeds, has_special=has_special
        ),
        "attention": lambda: AttentionProbe(maps, seeds, has_special=has_special),
        "attention_words": lambda: AttentionWordsProbe(maps, size, seeds, has_special=has_special),
    }
    return {name: Learner.of(makers[name](), rate) for name in GROUPS[group]}


def train(
    learners: Mapping[str, Learner],
    stream: ProbeStream,
    corpus: Corpus,
    schedule: Schedule,
    path: Path | None = None,
) -> Iterator[Shard]:
    """Train on every chunk and yield it when it is done; continue from the checkpoint at `path`."""
    chunks = schedule.chunks(corpus)
    done = 0 if path is None else restore(path, learners)
    for number, chunk in enumerate(chunks[done:], start=done + 1):
        for batch in stream.read(_shuffled(corpus, chunk, schedule.seed)):
            # Steps on single sentences are too small to share among threads.
            with use_threads(1):
                for learner in learners.values():
                    learner.learn(batch, schedule.batch)
        is_due = number % CHUNKS_PER_CHECKPOINT == 0 or number == len(chunks)
        if path is not None and is_due:
            save(path, learners, number)
        yield chunk


def evaluate(learners: Mapping[str, Learner], stream: ProbeStream, corpus: Corpus) -> Outcome:
    """Count what the probes, and right-branching, get right."""
    right: dict[str, np.ndarray] = {}
    relied: dict[str, np.ndarray] = {}
    words = arcs = 0
    for shard in corpus.shards(CHUNK):
        for batch in stream.read(corpus.read(shard)):
            words += int(_add_counts(right, learners, batch))
            arcs += int((batch.heads >= 0).sum())
            _add_arc_weights(relied, learners, batch)
    means = {name: total / max(arcs, 1) for name, total in relied.items()}
    sizes = {name: count_parameters(learner.probe) for name, learner in learners.items()}
    return Outcome(right, words, means, sizes, stream.vectors.source)


def split_documents(corpus: Corpus, seed: int) -> tuple[Corpus, Corpus]:
    """A seeded four fifths of the documents, and the rest; of few documents, of the sentences."""
    names = [sentence.document for sentence in corpus]
    if len(set(names)) < FEWEST_DOCUMENTS:
        names = [str(place) for place in range(len(corpus))]
    documents = sorted(set(names))
    chosen = set(random.Random(seed).sample(documents, round(len(documents) * TRAIN_SHARE)))
    train = [place for place, name in enumerate(names) if name in chosen]
    test = [place for place, name in enumerate(names) if name not in chosen]
    return corpus.select(train), corpus.select(test)


def randomise(model: Model, seed: int) -> Model:
    """The same network with pretrained input embeddings and otherwise fresh random weights.

    The control for what the architecture alone gives.
    """
    network = model.network
    with quiet(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        fresh = type(network)(network.config)
    kept = {name for name in network.state_dict() if is_embedding(network, name)}
    fresh.load_state_dict({name: network.state_dict()[name] for name in kept}, strict=False)
    nn.Module.to(fresh, device=network.device, dtype=network.dtype)
    return Model(fresh, model.tokenizer, name=f"{model.name}, random weights")


def is_embedding(network: nn.Module, name: str) -> bool:
    """Whether a tensor belongs to the embeddings that turn ids into the first layer's input.

    Its module is an embedding table outside attention (T5 keeps its position bias in one), or it
    stands in a module that is called embeddings (BERT's layer norm after the sum).
    """
    parts = name.split(".")[:-1]
    if any("attention" in part.lower() or "attn" in part.lower() for part in parts):
        return False
    owner = network.get_submodule(".".join(parts))
    return isinstance(owner, nn.Embedding) or any(part == "embeddings" for part in parts)


def _shuffled(corpus: Corpus, chunk: Shard, seed: int) -> list[Sentence]:
    sentences = corpus.read(chunk)
    random.Random(f"{seed} {chunk.start}").shuffle(sentences)
    return sentences


def _add_counts(
    right: dict[str, np.ndarray], learners: Mapping[str, Learner], batch: ParseBatch
) -> float:
    attached, words = count_attached(right_branching(batch.words), batch)
    found = {RIGHT_BRANCHING: attached}
    found |= {name: learner.count(batch)[0] for name, learner in learners.items()}
    for name, counts in found.items():
        right[name] = right.get(name, 0) + counts.cpu().numpy()
    return float(words)


def _add_arc_weights(
    relied: dict[str, np.ndarray], learners: Mapping[str, Learner], batch: ParseBatch
) -> None:
    for name, learner in learners.items():
        if isinstance(learner.probe, AttentionProbe | AttentionWordsProbe):
            weights = learner.probe.arc_weights(batch).cpu().double().numpy()
            relied[name] = relied.get(name, 0) + weights
