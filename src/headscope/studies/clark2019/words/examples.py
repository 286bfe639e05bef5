"""Figure 5: sentences of the corpus on which the best heads can be watched."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

import numpy as np
import xarray as xr

from headscope.heads import name_in_paper
from headscope.metrics.metric import Axis, Variables, label
from headscope.probes.coreference.queries import make_queries
from headscope.probes.encoding import WordTokens, encode_words
from headscope.probes.gold import tree_fault
from headscope.probes.selection import BestHead
from headscope.probes.stream import all_word_maps, token_units
from headscope.studies.clark2019.words.best import best_resolver, clear_relations, layer_number
from headscope.studies.study import Setup
from headscope.text.sentence import Sentence
from headscope.text.windows import join

Pairs = frozenset[tuple[int, int]]  # query word, key word

TRIED = 24  # sentences that are looked at for each head
SHOWN = 2
RELATIONS = 5
WORDS = range(5, 15)
WINDOW_WORDS = range(8, 27)


@dataclass(frozen=True)
class HeadExample:
    """One head on one sentence, with the pairs it should find."""

    title: str
    words: tuple[str, ...]
    weights: np.ndarray
    gold: Pairs


@dataclass(frozen=True)
class Wanted:
    """What a head is shown for: where it is, and which sentences have something for it to find."""

    title: str
    place: int  # of the head among all heads of all layers
    sentences: Sequence[Sentence]
    gold: Sequence[Pairs]


def add_examples(setup: Setup, result: xr.Dataset) -> xr.Dataset:
    """Store the examples of the heads worth showing.

    Variables: figure5_weights, figure5_words, figure5_gold
    Formula: a[i, j] between the words of a few sentences, the words, and the pairs to be found
    Reference: Clark et al. 2019, Fig. 5
    Range: 0 to 1
    Cost: a forward pass of at most 24 sentences for every head shown
    """
    shown = [example for wanted in _wanted(setup, result) for example in _watch(setup, wanted)]
    return result.assign(_variables(shown)) if shown else result


def _wanted(setup: Setup, result: xr.Dataset) -> list[Wanted]:
    found: list[Wanted] = []
    if "relation_correct" in result:
        clear = clear_relations(result, setup.options["few"])
        found += [_for_relation(setup, result, row) for row in clear[:RELATIONS]]
    best = best_resolver(result, "words") if "coref_correct" in result else None
    if best is not None:
        layer = result["layer"].values.tolist().index(best.layer)
        title = f"{name_in_paper(best.layer, best.head)}: coreference"
        windows = list(islice(_windows(setup), TRIED))
        place = layer * setup.grid.heads + best.head
        found.append(Wanted(title, place, windows, [_coreferent(w) for w in windows]))
    return found


def _for_relation(setup: Setup, result: xr.Dataset, row: BestHead) -> Wanted:
    name = row.relation.removesuffix(" with 's")
    sentences = list(islice(_with_relation(setup, name), TRIED))
    head = name_in_paper(layer_number(result, row.layer), row.head)
    gold = [_arcs(sentence, name, row.direction) for sentence in sentences]
    return Wanted(f"{head}: {name}", row.layer * setup.grid.heads + row.head, sentences, gold)


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


def _watch(setup: Setup, wanted: Wanted) -> list[HeadExample]:
    """The sentences on which the head finds most of what it should."""
    made = encode_words(setup.model, wanted.sentences)
    pairs = zip(made, wanted.gold, strict=True)
    usable = [(tokens, gold) for tokens, gold in pairs if isinstance(tokens, WordTokens)]
    found = [
        HeadExample(
            wanted.title,
            tuple(word.text for word in tokens.sentence.words),
            _head_map(setup, tokens, wanted.place),
            gold,
        )
        for tokens, gold in usable
    ]
    return sorted(found, key=_clarity, reverse=True)[:SHOWN]


def _head_map(setup: Setup, tokens: WordTokens, place: int) -> np.ndarray:
    batch = setup.model.batch([tokens.encoded])
    maps = all_word_maps(setup.model, batch, token_units([tokens], batch, setup.options["row"]))
    size = len(tokens.sentence.words)
    return maps[0, place, :size, :size].cpu().numpy()


def _clarity(example: HeadExample) -> float:
    """Mean weight on what should be found."""
    return float(np.mean([example.weights[pair] for pair in example.gold]))


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
