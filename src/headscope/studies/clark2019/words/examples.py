"""Figure 5: sentences of the corpus on which the best heads can be watched."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from threading import Lock

import numpy as np
import xarray as xr

from headscope.archive import pack_arrays, unpack_arrays
from headscope.head import name_in_paper
from headscope.metrics.metric import Axis, Variables, label
from headscope.probes.coreference.metric import make_queries
from headscope.probes.encoding import WordTokens, encode_words
from headscope.probes.gold import tree_fault
from headscope.probes.selection import BestHead
from headscope.probes.words import all_word_maps, token_units
from headscope.results.measure import Measure
from headscope.studies.clark2019.words.choices import best_resolver, clear_relations, layer_number
from headscope.studies.study import Setup
from headscope.text.segments import join
from headscope.text.sentence import Sentence
from headscope.workers.threads import use_threads

Pairs = frozenset[tuple[int, int]]  # query word, key word

TRIED = 24  # sentences that are looked at for each head
SHOWN = 2
RELATIONS = 5
WORDS = range(5, 15)
WINDOW_WORDS = range(8, 27)


FIGURE5 = Measure(
    name="figure5_weights",
    title="Heads on sentences",
    meaning="Attention of the best heads between the words of a few sentences, the words, and the "
    "pairs to be found.",
    formula="a[i, j] between words",
    reference="Clark et al. 2019, Fig. 5",
    cost="a forward pass of at most 24 sentences for every head shown",
    with_errors=False,
    also=("figure5_words", "figure5_gold"),
)
MEASURES = (FIGURE5,)

# On a GPU the engine has several pieces in progress in one process, but a network is captured by
# one of them at a time.
_one_at_a_time = Lock()


@dataclass(frozen=True)
class HeadExample:
    """One head on one sentence, with the pairs it should find."""

    title: str
    words: tuple[str, ...]
    weights: np.ndarray
    gold: Pairs


@dataclass(frozen=True)
class Shown:
    """A head and what it is shown for: a relation in one direction, or coreference."""

    title: str
    place: int  # of the head among all heads of all layers
    relation: str | None = None
    direction: str = ""


@dataclass(frozen=True)
class Watching:
    """Finds the sentences on which a head finds most of what it should."""

    setup: Setup
    threads: int
    fingerprint: str  # of the model that the run is of

    @property
    def needs_gpu(self) -> bool:
        """Whether the model is on a GPU."""
        return self.setup.model.device.type == "cuda"

    def open(self) -> None:
        """Check the model."""
        self.setup.check_model(self.fingerprint)

    def __call__(self, shown: Shown, /) -> bytes:
        """The examples of a head as the content of a file."""
        with _one_at_a_time, use_threads(self.threads):
            return _pack(_watch(self.setup, shown))

    def describe(self, shown: Shown, /) -> str:
        """The head by its title."""
        return f"The examples of {shown.title}"


@dataclass(frozen=True)
class ExampleStage:
    """Makes Figure 5: one piece for every head that is shown."""

    name: str = "examples"

    def pieces(self, setup: Setup, result: xr.Dataset) -> tuple[Shown, ...]:
        """The clearest heads for relations, and the best one for coreference."""
        found: list[Shown] = []
        if "relation_accuracy_numerator" in result:
            clear = clear_relations(result, setup.options["few"])
            found += [_for_relation(setup, result, row) for row in clear[:RELATIONS]]
        best = best_resolver(result, "words") if "coref_accuracy_numerator" in result else None
        if best is not None:
            layer = result["layer"].values.tolist().index(best.layer)
            title = f"{name_in_paper(best.layer, best.head)}: coreference"
            found.append(Shown(title, layer * setup.grid.heads + best.head))
        # A relation under two names (poss, with and without the clitic) may be shown for one head.
        return tuple(dict.fromkeys(found))

    def work(
        self, setup: Setup, result: xr.Dataset, threads: int, folder: Path | None = None
    ) -> Watching:
        """The search for the examples of a head."""
        return Watching(setup, threads, setup.model.fingerprint)

    def finish(
        self, setup: Setup, result: xr.Dataset, outcomes: Mapping[Shown, bytes]
    ) -> xr.Dataset:
        """The result with the examples of Figure 5."""
        pieces = self.pieces(setup, result) if outcomes else ()
        found = [each for shown in pieces for each in _unpack(shown.title, outcomes[shown])]
        return result.assign(_variables(found)) if found else result


def _for_relation(setup: Setup, result: xr.Dataset, row: BestHead) -> Shown:
    name = row.relation.removesuffix(" with 's")
    head = name_in_paper(layer_number(result, row.layer), row.head)
    place = row.layer * setup.grid.heads + row.head
    return Shown(f"{head}: {name}", place, name, row.direction)


def _watch(setup: Setup, shown: Shown) -> list[HeadExample]:
    """The sentences on which the head finds most of what it should."""
    made = encode_words(setup.model, _sentences(setup, shown), setup.sharing)
    pairs = [(each, _wanted(each.sentence, shown)) for each in made if isinstance(each, WordTokens)]
    found = [
        HeadExample(
            shown.title,
            tuple(word.text for word in tokens.sentence.words),
            _head_map(setup, tokens, shown.place),
            wanted,
        )
        for tokens, wanted in pairs
        if wanted  # words that were joined may have held all there was to find
    ]
    return sorted(found, key=_clarity, reverse=True)[:SHOWN]


def _sentences(setup: Setup, shown: Shown) -> list[Sentence]:
    """Sentences with something for the head to find."""
    found = _windows(setup) if shown.relation is None else _with_relation(setup, shown.relation)
    return list(islice(found, TRIED))


def _wanted(sentence: Sentence, shown: Shown) -> Pairs:
    """What the head should find."""
    if shown.relation is None:
        return _coreferent(sentence)
    return _arcs(sentence, shown.relation, shown.direction)


def _with_relation(setup: Setup, relation: str) -> Iterator[Sentence]:
    for sentence in setup.corpus:
        is_short = len(sentence.words) in WORDS and tree_fault(sentence.words) is None
        if is_short and any(word.deprel == relation for word in sentence.words):
            yield sentence


def _windows(setup: Setup) -> Iterator[Sentence]:
    """Pairs of consecutive sentences of a document with something to resolve."""
    for first, second in pairwise(setup.corpus):
        if first.document == second.document and len(first.words + second.words) in WINDOW_WORDS:
            window = join([first, second])
            if len(make_queries([window], is_causal=setup.model.is_causal)):
                yield window


def _arcs(sentence: Sentence, relation: str, direction: str) -> Pairs:
    arcs = [
        (index, word.head)
        for index, word in enumerate(sentence.words)
        if word.deprel == relation and word.head is not None and word.head >= 0
    ]
    is_forward = direction == "dependent_to_head"
    return frozenset(arc if is_forward else (arc[1], arc[0]) for arc in arcs)


def _coreferent(window: Sentence) -> Pairs:
    queries = make_queries([window])
    mention, target = queries.targets.nonzero(as_tuple=True)
    heads = queries.head[mention]
    return frozenset(zip(heads.tolist(), target.tolist(), strict=True))


def _head_map(setup: Setup, tokens: WordTokens, place: int) -> np.ndarray:
    batch = setup.model.batch([tokens.encoded])
    units = token_units([tokens], batch, setup.options["row"])
    maps = all_word_maps(setup.model, batch, units, setup.reading)
    size = len(tokens.sentence.words)
    return maps[0, place, :size, :size].cpu().numpy()


def _clarity(example: HeadExample) -> float:
    """Mean weight on what should be found."""
    return float(np.mean([example.weights[pair] for pair in example.gold]))


def _pack(found: Sequence[HeadExample]) -> bytes:
    arrays: dict[str, np.ndarray] = {"count": np.array(len(found))}
    for place, example in enumerate(found):
        arrays[f"words/{place}"] = np.array(example.words)
        arrays[f"weights/{place}"] = example.weights
        arrays[f"gold/{place}"] = np.array(sorted(example.gold))
    return pack_arrays(arrays)


def _unpack(title: str, content: bytes) -> list[HeadExample]:
    arrays = unpack_arrays(content)
    return [
        HeadExample(
            title,
            tuple(arrays[f"words/{place}"].tolist()),
            arrays[f"weights/{place}"],
            frozenset((query, key) for query, key in arrays[f"gold/{place}"].tolist()),
        )
        for place in range(int(arrays["count"]))
    ]


def _variables(shown: Sequence[HeadExample]) -> Variables:
    size = max(len(example.words) for example in shown)
    weights = np.full((len(shown), size, size), np.nan)
    gold = np.zeros((len(shown), size, size), dtype=np.int8)
    words = np.full((len(shown), size), "", dtype="<U40")
    for place, example in enumerate(shown):
        count = len(example.words)
        weights[place, :count, :count] = example.weights
        words[place, :count] = example.words
        for pair in example.gold:
            gold[(place, *pair)] = 1
    titles = tuple(f"{place} {example.title}" for place, example in enumerate(shown))
    axes = (
        Axis("figure5", titles),
        Axis("figure5_query", range(size)),
        Axis("figure5_key", range(size)),
    )
    return {
        "figure5_weights": label(weights, *axes),
        "figure5_gold": label(gold, *axes),
        "figure5_words": label(words, *axes[:2]),
    }
