"""What shows a portrait: mean attention as bars and as a matrix, examples, and what surprises it.

```
texts that portraits are scored on ─► every row of some layers ─► ink: sink · named · other
```

Weight has one of three inks: what null tokens get, what the fact gets that the head's name is of,
and everything else. The map of heads draws them in these inks.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from headscope.portrait.facts import Marked, all_facts
from headscope.portrait.pairs import Attention, Pairs
from headscope.portrait.score import Weights, log_likely
from headscope.portrait.texts import Text
from headscope.results.describe import Description
from headscope.results.evidence import (
    INKS,
    PLACES,
    SIDE,
    Evidence,
    HeadExample,
    Surprise,
    as_bytes,
)

REACH = 8  # tokens before and after the query that have a bar
EXAMPLES, SURPRISES = 3, 4
FEWEST, MOST = 8, 15  # tokens of an example, null ones included
LONGEST_EXAMPLE = 56  # characters
WINDOW = 10  # tokens of an example out of a longer text
LEAST_WEIGHT, LEAST_EVEN = 0.1, 0.04  # of an arc; of a head that looks everywhere
ARCS, ARCS_EVEN = 18, 40
STRONG, FAR_FROM = 0.2, 2.0  # of a surprise: its weight, and how many times the expected one
SPAN = 7  # tokens between the two ends of a surprise
BEFORE, BEHIND = 3, 2  # tokens around what is shown of a passage
REPEATED = frozenset({"after the same", "same token", "before the same"})
NULL_ARC, NAMED_ARC, OTHER_ARC = range(3)


def expected_weights(pairs: Pairs, weights: Weights) -> Float[np.ndarray, "pair head"]:
    """What the portraits of some heads give to every pair, as shares of whole rows."""
    rest, choices = log_likely(pairs, weights)
    left = choices.exp().unflatten(0, (-1, 2))[:, 1]
    return (rest.exp() * left[pairs.design.row_of_pair]).numpy()


@dataclass(frozen=True)
class Window:
    """Tokens of a text that an example shows: start to stop (exclusive)."""

    text: int
    start: int
    stop: int


class Shown:
    """The texts that are shown, with the weights of some heads and what was expected of them."""

    def __init__(
        self, pairs: Pairs, attention: Attention, expected: Float[np.ndarray, "pair head"]
    ) -> None:
        self.pairs = pairs
        self.weight = attention.pairs.cpu().numpy()
        self.null = attention.null.cpu().numpy()
        self.first = attention.first.cpu().numpy()
        self.expected = expected
        self.row = pairs.row_of_pair
        self.query = pairs.query[self.row]
        self.text = pairs.row_text[self.row]
        self.offset = pairs.key - self.query
        self.places = (self.text, self.query, pairs.key)
        self.windows = list(windows_of(pairs.texts))
        self.facts = {fact.name.key: fact for fact in all_facts(pairs.vocabulary)}
        self.rows_of_text, self.pairs_of_text = pairs.slices

    def of_head(self, head: int, description: Description) -> tuple[np.ndarray, np.ndarray, str]:
        """Bars, matrix and examples of a head."""
        lead = description.lead
        if lead is not None and lead.key in self.facts:
            is_named = self.marked(lead.key)
        else:
            is_named = np.full(len(self.row), description.name == "evenly")
        evidence = Evidence(
            tuple(self.examples(head, description, is_named)), tuple(self.surprises(head))
        )
        return (
            self.profile(head, is_named),
            as_bytes(self.matrix(head, is_named)),
            json.dumps(asdict(evidence), ensure_ascii=False, separators=(",", ":")),
        )

    def marked(self, key: str) -> Bool[np.ndarray, "pair"]:
        """The pairs that a fact is about."""
        marked = np.zeros(len(self.row), dtype=bool)
        marked[Marked.of(self.pairs, self.facts[key]).pairs.numpy()] = True
        return marked

    def profile(self, head: int, is_named: np.ndarray) -> Float[np.ndarray, "ink place"]:
        """Mean weight on the null tokens and by offset, of the rows that see such a token."""
        bars = np.zeros((len(INKS), len(PLACES)), dtype=np.float32)
        near = np.abs(self.offset) <= REACH
        place = self.offset[near] + REACH + 1
        counts = np.maximum(np.bincount(place, minlength=len(PLACES)), 1)
        for ink, chosen in ((NAMED_ARC, is_named[near]), (OTHER_ARC, ~is_named[near])):
            weight = self.weight[near, head] * chosen
            bars[ink] = np.bincount(place, weight, minlength=len(PLACES)) / counts
        bars[NULL_ARC, 0] = self.first[:, head].mean()
        bars[NULL_ARC, -1] = (self.null - self.first)[:, head].mean()
        return bars

    def matrix(self, head: int, is_named: np.ndarray) -> Float[np.ndarray, "ink query key"]:
        """Mean weights between the first tokens, or the first and the last ones."""
        total = np.zeros((len(INKS), SIDE, SIDE))
        texts = 0
        for number, text in enumerate(self.pairs.texts):
            if len(text) < SIDE:
                continue
            texts += 1
            place = places_in_matrix(text)
            of_pairs, of_rows = self.pairs_of_text[number], self.rows_of_text[number]
            query, key = place[self.query[of_pairs]], place[self.pairs.key[of_pairs]]
            inside = (query >= 0) & (key >= 0)
            ink = np.where(is_named[of_pairs], NAMED_ARC, OTHER_ARC)[inside]
            weight = self.weight[of_pairs, head][inside]
            np.add.at(total, (ink, query[inside], key[inside]), weight)
            row = place[self.pairs.query[of_rows]]
            nulls = np.flatnonzero(text.null)
            for column, weight in self._weights_of_nulls(of_rows, head, nulls):
                if place[column] >= 0:
                    np.add.at(total[NULL_ARC], (row[row >= 0], place[column]), weight[row >= 0])
        return total / max(texts, 1)

    def _weights_of_nulls(
        self, rows: slice, head: int, nulls: np.ndarray
    ) -> Iterator[tuple[int, np.ndarray]]:
        """What the first and the last null token of a text get in some rows."""
        if len(nulls):
            yield int(nulls[0]), self.first[rows, head]
        if len(nulls) > 1:
            yield int(nulls[-1]), (self.null - self.first)[rows, head]

    def examples(
        self, head: int, description: Description, is_named: np.ndarray
    ) -> Iterator[HeadExample]:
        """The texts that show best what the name of the head says, each of another document."""
        lead = description.lead
        if lead is not None and lead.key in REPEATED:
            yield from self.repeated(head, is_named)
            return
        scores = self.window_scores(head, description, is_named)
        is_even = description.group == "even"
        documents: set[str] = set()
        for place in np.argsort(-scores, kind="stable"):
            window = self.windows[place]
            document = self.pairs.texts[window.text].document
            if document in documents or not np.isfinite(scores[place]):
                continue
            documents.add(document)
            tokens = list(range(window.start, window.stop))
            arcs = self.arcs(head, window.text, tokens, is_named, is_even=is_even)
            yield self.example(window.text, tokens, arcs)
            if len(documents) == EXAMPLES:
                return

    def window_scores(
        self, head: int, description: Description, is_named: np.ndarray
    ) -> Float[np.ndarray, "window"]:
        """How well every window shows the head."""
        weight, scores = self.weight[:, head], np.full(len(self.windows), -np.inf)
        usual = self.null[:, head].mean()
        lead = description.lead
        fact = None if lead is None else self.facts.get(lead.key)
        needed = 2 if fact is not None and fact.name.is_special else 4
        for number, window in enumerate(self.windows):
            part = self.pairs_of_text[window.text]
            query, key = self.query[part], self.pairs.key[part]
            inside = (query >= window.start) & (query < window.stop) & (key >= window.start)
            rows = self.rows_of_text[window.text]
            is_shown = (self.pairs.query[rows] >= window.start) & (
                self.pairs.query[rows] < window.stop
            )
            if description.group == "sink":
                scores[number] = -abs(self.null[rows, head][is_shown].mean() - usual)
            elif fact is not None:
                chosen = inside & is_named[part]
                applies = len(np.unique(query[chosen]))
                if applies >= needed:
                    scores[number] = weight[part][chosen].sum() / max(applies, needed)
                    scores[number] *= min(applies, 4) / 4
            elif description.group == "even":
                scores[number] = -len(self.pairs.texts[window.text])
            elif inside.any():
                scores[number] = np.sort(weight[part][inside])[-3:].mean()
        return scores

    def repeated(self, head: int, is_named: np.ndarray) -> Iterator[HeadExample]:
        """Two places of a text: where a token stood before, and where it stands again."""
        weight = self.weight[:, head]
        candidates = np.flatnonzero(is_named & (self.offset <= -BEFORE) & (weight > LEAST_WEIGHT))
        shown: set[str] = set()
        for pair in candidates[np.argsort(-weight[candidates], kind="stable")]:
            number, query, key = (int(values[pair]) for values in self.places)
            text = self.pairs.texts[number]
            again = text.tokens.labels[query].strip().lower()
            if text.document in shown or again in shown:
                continue
            shown |= {text.document, again}
            before = [k for k in range(key - BEFORE, key + BEHIND + 1) if 0 <= k < len(text)]
            behind = [k for k in range(query - BEFORE, query + 1) if k > before[-1]]
            tokens = [*before, *behind]
            arcs = self.arcs(head, number, tokens, is_named, is_even=False)
            same = [k for k in tokens if text.tokens.ids[k] == text.tokens.ids[query]]
            yield self.example(number, tokens, arcs, same)
            if len(shown) == 2 * EXAMPLES:
                return

    def arcs(
        self, head: int, number: int, tokens: Sequence[int], is_named: np.ndarray, *, is_even: bool
    ) -> list[tuple[int, int, float, int]]:
        """The largest weights between some tokens of a text: query, key, weight and ink."""
        least, most = (LEAST_EVEN, ARCS_EVEN) if is_even else (LEAST_WEIGHT, ARCS)
        part, rows = self.pairs_of_text[number], self.rows_of_text[number]
        weight = self.weight[part, head]
        is_shown = np.isin(self.query[part], tokens) & np.isin(self.pairs.key[part], tokens)
        arcs = [
            (
                int(self.query[part][pair]),
                int(self.pairs.key[part][pair]),
                float(weight[pair]),
                NAMED_ARC if is_named[part][pair] else OTHER_ARC,
            )
            for pair in np.flatnonzero(is_shown & (weight >= least))
        ]
        nulls = np.flatnonzero(self.pairs.texts[number].null)
        for key, weights in self._weights_of_nulls(rows, head, nulls):
            for query, weight in zip(self.pairs.query[rows].tolist(), weights, strict=True):
                if weight >= least and query in tokens and key in tokens:
                    arcs.append((query, key, float(weight), NULL_ARC))
        arcs.sort(key=lambda arc: (arc[3] == NULL_ARC, -arc[2]))
        return arcs[:most]

    def example(
        self,
        number: int,
        tokens: Sequence[int],
        arcs: Sequence[tuple[int, int, float, int]],
        same: Sequence[int] = (),
    ) -> HeadExample:
        """Some tokens of a text with arcs between them, by their places among these."""
        text = self.pairs.texts[number]
        place = {token: at for at, token in enumerate(tokens)}
        return HeadExample(
            tuple(shown_token(text, token) for token in tokens),
            tuple(begins_word(text, token) for token in tokens),
            tuple(
                at for at, token in enumerate(tokens) if token != (tokens[at - 1] + 1 if at else 0)
            ),
            tuple(at for at, token in enumerate(tokens) if text.null[token]),
            tuple(place[token] for token in same),
            tuple((place[q], place[k], round(weight, 3), ink) for q, k, weight, ink in arcs),
        )

    def surprises(self, head: int) -> Iterator[Surprise]:
        """Strong weights that the portrait expects least, each of another text and words."""
        weight, expected = self.weight[:, head], np.maximum(self.expected[:, head], 1e-6)
        is_strong = (weight >= STRONG) & (weight >= FAR_FROM * expected)
        candidates = np.flatnonzero(is_strong & (np.abs(self.offset) <= SPAN))
        lead = weight[candidates] * np.log(weight[candidates] / expected[candidates])
        shown: set[object] = set()
        for pair in candidates[np.argsort(-lead, kind="stable")]:
            number, query, key = (int(values[pair]) for values in self.places)
            text = self.pairs.texts[number]
            words = tuple(text.tokens.labels[token].strip().lower() for token in (query, key))
            if number in shown or words in shown:
                continue
            shown |= {number, words}
            start = max(0, min(query, key) - 2)
            stop = min(len(text), max(query, key) + 3)
            while start > 0 and not begins_word(text, start):
                start -= 1
            tokens = range(start, stop)
            yield Surprise(
                tuple(shown_token(text, token) for token in tokens),
                tuple(begins_word(text, token) for token in tokens),
                start > 0,
                stop < len(text),
                query - start,
                key - start,
                round(float(weight[pair]), 3),
                round(float(expected[pair]), 3),
            )
            if len(shown) == 2 * SURPRISES:
                return


def windows_of(texts: Sequence[Text]) -> Iterator[Window]:
    """What examples may show: whole short texts, and the parts of longer ones if none is short."""
    short = [
        Window(number, 0, len(text))
        for number, text in enumerate(texts)
        if FEWEST <= len(text) <= MOST and len(text.sentence.text) <= LONGEST_EXAMPLE
    ]
    yield from short
    if len(short) >= EXAMPLES:
        return
    for number, text in enumerate(texts):
        for start in range(0, len(text) - WINDOW + 1, WINDOW):
            yield Window(number, start, start + WINDOW)


def places_in_matrix(text: Text) -> Int[np.ndarray, "token"]:
    """The row of every token in the mean matrix: the first ones, or the first and the last."""
    place = np.full(len(text), -1)
    if text.is_causal:
        place[:SIDE] = np.arange(SIDE)
    else:
        place[: SIDE // 2] = np.arange(SIDE // 2)
        place[-SIDE // 2 :] = np.arange(SIDE // 2, SIDE)
    return place


def shown_token(text: Text, token: int) -> str:
    """A token without the space before it and without the mark of a later piece."""
    label = text.tokens.labels[token].strip()
    return label if begins_word(text, token) else label.removeprefix("##") or label


def begins_word(text: Text, token: int) -> bool:
    """Whether a token is the first of its word, or of none."""
    word = text.word
    return bool(token == 0 or word[token] < 0 or word[token] != word[token - 1])
