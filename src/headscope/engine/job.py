"""The work of one shard: read sentences, make inputs, observe them, pack a partial result.

What one shard contributes to a study, and its file, which holds arrays only.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from headscope.engine.forward import observe
from headscope.engine.prepare import explain_dead_readers, read_ahead, read_inputs
from headscope.errors import RunError
from headscope.files import pack_arrays
from headscope.metrics.metric import State, Sums
from headscope.studies.study import Inputs, Part, Setup, WithModel
from headscope.text.corpus import Corpus, Shard
from headscope.text.segments import documents_of
from headscope.wording import counted
from headscope.workers.threads import use_threads

SUMS, RECORDS, COUNTS = "sums", "records", "counts"
LONGEST = 16  # shards' worth of sentences after which even a document is cut


@dataclass(frozen=True)
class Counts:
    """How many inputs and tokens were read, how many sentences were skipped and why, and words."""

    inputs: int = 0
    tokens: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    words: Mapping[str, int] = field(default_factory=dict)  # how words and tokens meet

    def __add__(self, other: "Counts") -> "Counts":
        skipped = dict(sorted((Counter(self.skipped) + Counter(other.skipped)).items()))
        words = {
            name: self.words.get(name, 0) + other.words.get(name, 0)
            for name in {**self.words, **other.words}
        }
        return Counts(self.inputs + other.inputs, self.tokens + other.tokens, skipped, words)


@dataclass(frozen=True)
class Partial:
    """The states of all metrics after one shard."""

    states: Mapping[str, State]
    counts: Counts


def pack(partial: Partial) -> bytes:
    """A partial result as the content of its file."""
    arrays = {COUNTS: np.array(json.dumps(vars(partial.counts)))}
    for name, state in partial.states.items():
        arrays |= {f"{SUMS}/{name}/{key}": value for key, value in state.sums.items()}
        arrays |= {f"{RECORDS}/{name}/{key}": value for key, value in state.records.items()}
    return pack_arrays(arrays)


def load_sums(path: Path) -> tuple[dict[str, Sums], Counts]:
    """The sums of every metric by name, and the counts; records stay on disk."""
    sums: dict[str, Sums] = {}
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        for key in arrays.files:
            kind, _, rest = key.partition("/")
            if kind == SUMS:
                metric, _, name = rest.partition("/")
                sums.setdefault(metric, {})[name] = arrays[key]
        return sums, Counts(**json.loads(str(arrays[COUNTS])))


def load_records(path: Path, metric: str) -> dict[str, np.ndarray]:
    """The records of one metric."""
    prefix = f"{RECORDS}/{metric}/"
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        found = [key for key in arrays.files if key.startswith(prefix)]
        return {key.removeprefix(prefix): arrays[key] for key in found}


@dataclass(frozen=True)
class Job(WithModel):
    """Everything that is needed to compute any shard of a run, in this process or another."""

    setup: Setup
    make_parts: Callable[[Setup], tuple[Part, ...]]
    threads: int
    fingerprint: str  # of the model that the run is of

    def __call__(self, shard: Shard, /) -> bytes:
        """The content of a shard's file."""
        with use_threads(self.threads):
            return pack(self.compute(read_inputs(self.setup, self.parts, shard)))

    def run_ahead(self, shards: Sequence[Shard]) -> Iterator[tuple[Shard, bytes]]:
        """Every shard with the content of its file, while other processes read the next ones."""
        self.open()
        with explain_dead_readers(), use_threads(self.threads):
            ahead = read_ahead(self.setup, self.parts, shards)
            for shard, inputs in zip(shards, ahead, strict=True):
                yield shard, pack(self.compute(inputs))

    def describe(self, shard: Shard, /) -> str:
        """The shard by its number and its sentences, counted from 0."""
        return f"Shard {shard.index} (sentences {shard.start} to {shard.stop - 1})"

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """What is read and measured; made anew in every process."""
        return self.make_parts(self.setup)

    def compute(self, inputs_of_parts: Sequence[Inputs]) -> Partial:
        """The partial result of one shard."""
        states: dict[str, State] = {}
        counts = Counts()
        for part, inputs in zip(self.parts, inputs_of_parts, strict=True):
            counts += Counts(skipped=Counter(inputs.skipped), words=inputs.words)
            if part.of_corpus:
                counts += Counts(len(inputs.examples), inputs.tokens)
            states |= observe(
                self.setup.model,
                inputs.examples,
                part.metrics,
                self.setup.batch_tokens,
                self.setup.attention,
                self.setup.reading,
            )
        return Partial(states, counts)


def make_shards(setup: Setup, size: int) -> list[Shard]:
    """The shards of a run; where documents are inputs, a shard holds whole ones."""
    if setup.context is None:
        return setup.corpus.shards(size)
    return list(_of_documents(setup.corpus, size))


def draw_documents(corpus: Corpus, count: int, seed: int) -> Corpus:
    """Whole documents drawn with the seed until they have `count` sentences, in corpus order."""
    documents = documents_of(corpus)
    chosen: list[tuple[int, int]] = []
    for document in Random(seed).sample(documents, len(documents)):
        if sum(stop - start for start, stop in chosen) >= count:
            break
        chosen.append(document)
    return corpus.select([row for document in sorted(chosen) for row in range(*document)])


def pick_documents(corpus: Corpus, count: int, seed: int) -> Corpus:
    """So many documents drawn with the seed, in corpus order; all of them if there are no more."""
    documents = documents_of(corpus)
    if count >= len(documents):
        return corpus
    chosen = sorted(Random(seed).sample(documents, count))
    return corpus.select([row for document in chosen for row in range(*document)])


def check_exemplars(options: Mapping[str, Any], sentences: int | None) -> int | None:
    """How many sentences exemplars are sought in, if not those of the numbers."""
    more = options.get("exemplar_sentences")
    if more is None:
        return None
    if options.get("context") is not None:
        raise RunError(
            "exemplar_sentences counts sentences, but with a context documents are the inputs; "
            "leave one of the two out."
        )
    if sentences is None or more <= sentences:
        given = "all of the corpus" if sentences is None else counted(sentences, "sentences")
        raise RunError(
            f"exemplar_sentences is {more:,}, but the numbers are from {given}; "
            "give fewer --sentences for the numbers."
        )
    return more


def check_counts(counts: Counts, remedy: str) -> None:
    """Refuse a corpus of which nothing could be used."""
    if counts.inputs == 0:
        reasons = ", ".join(f"{count:,} × {reason}" for reason, count in counts.skipped.items())
        raise RunError(f"No sentence of the corpus could be used ({reasons}); {remedy}.")


def check_context(setup: Setup) -> None:
    """Refuse inputs longer than the model has positions for."""
    context, limit = setup.context, setup.model.max_length
    if context is not None and limit is not None and context > limit:
        raise RunError(
            f"{setup.model.name} has positions for {limit:,} tokens, fewer than a context of "
            f"{context:,}; give --context {limit} or less."
        )


def _of_documents(corpus: Corpus, size: int) -> Iterator[Shard]:
    index = begin = end = 0
    for start, stop in documents_of(corpus):
        for cut in (*range(start + LONGEST * size, stop, LONGEST * size), stop):
            end = cut
            if end - begin >= size:
                yield Shard(index, begin, end)
                index, begin = index + 1, end
    if end > begin:
        yield Shard(index, begin, end)
