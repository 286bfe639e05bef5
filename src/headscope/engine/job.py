"""The work of one shard: read sentences, make inputs, observe them, pack a partial result.

What one shard contributes to a study, and its file, which holds arrays only.

On a CPU two shards are computed at once where that is safe, each with half of the threads: most
operations of a small network are too short to be divided, and what Python does between them leaves
a core without work. How many are computed at once changes no bit, only how many threads each has.
"""

import json
import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module, Parameter

from headscope.engine.forward import have_room, observe
from headscope.engine.prepare import Readers, read_inputs
from headscope.errors import RunError
from headscope.files import pack_arrays
from headscope.metrics.metric import BatchMetric, ModelMetric, State, Sums
from headscope.model.capture.plan import SOURCE_TOKENS
from headscope.model.inputs.batch import probe_batch
from headscope.model.model import Model
from headscope.studies.study import Inputs, Part, Setup, WithModel
from headscope.text.corpus import Corpus, Shard
from headscope.text.segments import documents_of
from headscope.wording import counted
from headscope.workers.threads import use_threads

SUMS, RECORDS, COUNTS = "sums", "records", "counts"
LONGEST = 16  # shards' worth of sentences after which even a document is cut
AT_ONCE = 2  # shards on a CPU
KNOWN_CODE = ("torch", "transformers")
ROTARY = ("rope_parameters", "rope_scaling")  # where configurations say what positions are
MOVING = ("dynamic", "longrope")  # kinds of them that a pass sets by its longest text
_reading = Lock()  # tokenizers may be set up anew by every call


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
    readers: Readers | None = field(default=None, compare=False)  # who makes inputs, if not we

    def __call__(self, shard: Shard, /) -> bytes:
        """The content of a shard's file."""
        with use_threads(self.threads):
            return pack(self.compute(shard))

    def describe(self, shard: Shard, /) -> str:
        """The shard by its number and its sentences, counted from 0."""
        return f"Shard {shard.index} (sentences {shard.start} to {shard.stop - 1})"

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """What is read and measured; made anew in every process."""
        return self.make_parts(self.setup)

    def _read(self, shard: Shard) -> list[Inputs]:
        if self.readers is not None:
            return self.readers.read(shard)
        with _reading:
            return read_inputs(self.setup, self.parts, shard)

    def compute(self, shard: Shard) -> Partial:
        """The partial result of one shard."""
        states: dict[str, State] = {}
        counts = Counts()
        for part, made in zip(self.parts, self._read(shard), strict=True):
            counts += Counts(skipped=Counter(made.skipped), words=made.words)
            if part.of_corpus:
                counts += Counts(len(made.examples), made.tokens)
            states |= observe(
                self.setup.model,
                made.examples,
                part.metrics,
                self.setup.batch_tokens,
                self.setup.attention,
                self.setup.reading,
                made.counts,
            )
        return Partial(states, counts)


def threads_of_shard(threads: int, *, divided: bool) -> int:
    """How many of a run's threads one shard gets: half of them where two are computed at once."""
    return threads // AT_ONCE if divided and threads >= AT_ONCE else threads


def can_divide(setup: Setup, parts: Sequence[Part]) -> bool:
    """Whether two shards may be computed at once, each with half of the threads.

    That is on a CPU, where sentences are the inputs, nothing but layers is asked of the network,
    passes leave nothing behind in it, and the memory has room for two batches.
    """
    metrics = [metric for part in parts for metric in part.metrics]
    return (
        setup.context is None
        and not any(isinstance(metric, ModelMetric | BatchMetric) for metric in metrics)
        and torch.get_float32_matmul_precision() == "highest"  # else it is set for every layer
        and have_room(setup.model, setup.batch_tokens, AT_ONCE)
        and can_share(setup.model)
    )


def can_share(model: Model) -> bool:
    """Whether two passes at once leave each other alone, as far as can be seen.

    All code must be torch's and transformers', all weights plain numbers on the CPU, attention
    captured by the interface; and after a pass over the probe every module holds what it held.
    """
    network = model.network
    modules, weights = list(network.modules()), [*network.parameters(), *network.buffers()]
    positions = [str(getattr(network.config.get_text_config(), name, "")) for name in ROTARY]
    if (
        model.plan.backend.name != "interface"
        or any(type(each).__module__.partition(".")[0] not in KNOWN_CODE for each in modules)
        or any(hasattr(each, "_hf_hook") for each in modules)  # weights come and go with a pass
        or any(type(each) not in (Tensor, Parameter) or not each.is_cpu for each in weights)
        or any(kind in said for kind in MOVING for said in positions)
    ):
        return False
    before = _held(modules)
    probe = probe_batch(network, SOURCE_TOKENS, model.device)
    with use_threads(1):
        model.forward(probe, lambda _: None, logits=False)
    after = _held(modules)
    return len(before) == len(after) and all(map(operator.is_, before, after))


def _held(modules: Iterable[Module]) -> list[object]:
    """Everything that modules refer to."""
    places = (p for each in modules for p in (vars(each), each._parameters, each._buffers))
    return [value for place in places for value in place.values()]


def balanced_size(sentences: int, most: int) -> int:
    """The size of an even number of equal shards, so that those computed at once end together."""
    if sentences <= most:
        return most
    return math.ceil(sentences / (AT_ONCE * math.ceil(sentences / (AT_ONCE * most))))


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
