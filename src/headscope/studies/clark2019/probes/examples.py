"""Figure 5: sentences of the corpus on which the best heads can be watched."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import xarray as xr
from msgspec import Struct, msgpack, structs

from headscope.engine.setup import ModelWork, Setup
from headscope.engine.stage import Stage
from headscope.head import name_in_paper
from headscope.metrics.metric import Axis, Variables, label
from headscope.results.measure import Measure
from headscope.studies.clark2019.best_heads import (
    BestHead,
    best_resolver,
    clear_relations,
    layer_number,
)
from headscope.studies.clark2019.probes.coreference import make_queries
from headscope.studies.clark2019.probes.inputs import bos_of_words
from headscope.studies.clark2019.probes.trees import tree_fault
from headscope.studies.shared.words import (
    END,
    START,
    WordTokens,
    all_word_maps,
    encode_words,
    token_units,
)
from headscope.text.segments import join
from headscope.text.sentence import Sentence

Pairs = frozenset[tuple[int, int]]  # query word, key word

TRIED = 24  # sentences among which the clearest is looked for
POOL = 400  # sentences among which one is drawn
CLEAREST, DRAWN = "clearest of {}", "drawn at random"
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
    with_errors=False,
    also=("figure5_words", "figure5_gold"),
)
MEASURES = (FIGURE5,)


class HeadExample(Struct, frozen=True):
    """One head on one sentence, with the pairs it should find.

    The words may stand between the special tokens around them.
    """

    title: str  # the head, what it is shown for, and how the sentence was chosen
    words: tuple[str, ...]
    weights: list[list[float]]  # by query, by key
    gold: Pairs


@dataclass(frozen=True)
class Shown:
    """A head and what it is shown for: a relation in one direction, or coreference."""

    title: str
    head: int  # its number among all heads of all layers
    relation: str | None = None
    direction: str = ""


@dataclass(frozen=True)
class Watching(ModelWork[Shown]):
    """Finds the sentence on which a head finds most of what it should, and draws another."""

    def compute(self, shown: Shown, /) -> bytes:
        """The examples of a head as the content of a file."""
        return msgpack.encode(_watch(self.setup, shown))

    def describe(self, shown: Shown, /) -> str:
        """The head by its title."""
        return f"The examples of {shown.title}"


@dataclass(frozen=True)
class ExampleStage(Stage[Shown]):
    """Makes Figure 5: one piece for every head that is shown."""

    name: str = "figure5"

    def pieces(self, setup: Setup, result: xr.Dataset) -> tuple[Shown, ...]:
        """The clearest heads for relations, and the best one for coreference."""
        shown: list[Shown] = []
        if "relation_accuracy_numerator" in result:
            clear: dict[tuple[int, int], BestHead] = {}  # of a head the relation it finds best
            for row in clear_relations(result, setup.options["few"]):
                clear.setdefault((row.layer, row.head), row)
            shown += [_for_relation(setup, result, row) for row in [*clear.values()][:RELATIONS]]
        best = best_resolver(result, "words") if "coref_accuracy_numerator" in result else None
        if best is not None:
            layer = result["layer"].values.tolist().index(best.layer)
            head, right = name_in_paper(best.layer, best.head), best.accuracy.value
            systems = result["coref_baseline"].sel(mention="all")
            system = str(systems["system"].values[systems.values.argmax()]).replace("_", " ")
            title = (
                f"{head}: coreference\naccuracy {right:.2f}, {system}: {float(systems.max()):.2f}"
            )
            shown.append(Shown(title, layer * setup.grid.heads + best.head))
        return tuple(shown)

    def work(self, setup: Setup, result: xr.Dataset, threads: int, folder: Path) -> Watching:
        """The search for the examples of a head."""
        return Watching(setup, threads)

    def finish(
        self, setup: Setup, result: xr.Dataset, outcomes: Mapping[Shown, bytes], folder: Path
    ) -> xr.Dataset:
        """The result with the examples of Figure 5."""
        pieces = self.pieces(setup, result) if outcomes else ()
        examples: list[HeadExample] = []
        for shown in pieces:
            examples += msgpack.decode(outcomes[shown], type=list[HeadExample])
        return result.assign(_variables(examples)) if examples else result


def _for_relation(setup: Setup, result: xr.Dataset, row: BestHead) -> Shown:
    name = row.relation.removesuffix(" with 's")
    head = name_in_paper(layer_number(result, row.layer), row.head)
    number = row.layer * setup.grid.heads + row.head
    right, offset = row.accuracy.value, f"{row.offset:+d}".replace("-", "−")
    title = f"{head}: {name}\naccuracy {right:.2f}, offset {offset}: {row.baseline:.2f}"
    return Shown(title, number, name, row.direction)


def _watch(setup: Setup, shown: Shown) -> list[HeadExample]:
    """The head on the sentence on which it finds most of what it should, and on one drawn."""
    relation = shown.relation
    sentences = _windows(setup) if relation is None else _with_relation(setup, relation)
    pool = list(islice(sentences, POOL))
    examples = [
        (number, _show(setup, shown, pool[number])) for number in range(min(TRIED, len(pool)))
    ]
    clear = max(
        ((number, example) for number, example in examples if example), key=_clarity, default=None
    )
    if clear is None:
        return []
    about = zlib.crc32(f"{shown.head} {shown.relation} {shown.direction}".encode())
    order = np.random.default_rng([setup.seed, about]).permutation(len(pool)).tolist()
    others = (_show(setup, shown, pool[number]) for number in order if number != clear[0])
    drawn = next((example for example in others if example), None)
    return [
        structs.replace(example, title=f"{example.title}\n{how}")
        for example, how in ((clear[1], CLEAREST.format(len(examples))), (drawn, DRAWN))
        if example is not None
    ]


def _show(setup: Setup, shown: Shown, sentence: Sentence) -> HeadExample | None:
    """The head on a sentence; None where the model or the words leave nothing to find."""
    (made,) = encode_words(setup.model, [sentence], setup.sharing, bos_of_words(setup))
    if not isinstance(made, WordTokens):
        return None
    if shown.relation is None:
        pairs = _coreferent(made.sentence)
    else:
        pairs = _arcs(made.sentence, shown.relation, shown.direction)
    if not pairs:  # words that were joined may have held all there was to find
        return None
    texts, units = _texts(made, with_special=setup.options["figure5_special"])
    before = units.index(0)
    batch = setup.model.batch([made.tokens])
    pieces = token_units([made], batch, setup.options["row"])
    maps = all_word_maps(setup.model, batch, pieces, setup.reading)
    weights = maps[0, shown.head].cpu().numpy()[np.ix_(units, units)].tolist()
    gold = frozenset((query + before, key + before) for query, key in pairs)
    return HeadExample(shown.title, texts, weights, gold)


def _texts(made: WordTokens, *, with_special: bool) -> tuple[tuple[str, ...], list[int]]:
    """What is shown, and the unit of each: the words, and the special tokens around them."""
    words, tokens = made.sentence.words, made.tokens
    texts, units = [word.text for word in words], list(range(len(words)))
    if with_special and tokens.special[0]:
        texts, units = [tokens.labels[0], *texts], [len(words) + START, *units]
    if with_special and tokens.special[-1]:
        texts, units = [*texts, tokens.labels[-1]], [*units, len(words) + END]
    return tuple(texts), units


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


def _clarity(tried: tuple[int, HeadExample]) -> float:
    """Mean weight on what should be found."""
    example = tried[1]
    return float(np.mean([example.weights[query][key] for query, key in example.gold]))


def _variables(shown: Sequence[HeadExample]) -> Variables:
    size = max(len(example.words) for example in shown)
    weights = np.full((len(shown), size, size), np.nan)
    gold = np.zeros((len(shown), size, size), dtype=np.int8)
    words = np.full((len(shown), size), "", dtype="<U40")
    for number, example in enumerate(shown):
        count = len(example.words)
        weights[number, :count, :count] = example.weights
        words[number, :count] = example.words
        for pair in example.gold:
            gold[(number, *pair)] = 1
    titles = tuple(f"{number} {example.title}" for number, example in enumerate(shown))
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
