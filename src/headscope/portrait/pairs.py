"""The rows and pairs of many texts, the entries of every pair, and the weights of some layers.

```
rows     queries that are not null and see three keys or more besides null tokens
pairs    such a query with every key that it sees and that is not null
```

Of passages only some rows are read, of bidirectional models, whose rows are twice as long, half as
many.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from headscope.engine.forward import choose_path, show_layers
from headscope.model.loading.network import evaluating
from headscope.model.model import Model
from headscope.model.writes import Reading
from headscope.observe.batch import Columns, Example
from headscope.observe.layer import Layer
from headscope.portrait.fit import Design
from headscope.portrait.tables import FREQUENCIES, NONE, OTHER, Look, Vocabulary
from headscope.portrait.texts import Text

STRIDES = {False: 1, True: 4}  # of rows: of a sentence, of a passage
FEWEST_KEYS = 3


@dataclass(frozen=True)
class Pairs:
    """The pairs of some texts, row by row, and the rows text by text."""

    texts: Sequence[Text]
    vocabulary: Vocabulary
    row_text: Int[np.ndarray, "row"]
    query: Int[np.ndarray, "row"]
    keys: Int[np.ndarray, "row"]  # how many a row has
    nulls: Int[np.ndarray, "row"]  # how many null tokens a row sees
    key: Int[np.ndarray, "pair"]
    design: Design
    queries: Design  # what the queries are, two choices a row: the null tokens, or the rest

    @classmethod
    def of(
        cls, texts: Sequence[Text], vocabulary: Vocabulary, *, every_row: bool = False
    ) -> "Pairs":
        """Lay out the pairs of some texts: of the rows that are read, or of every row."""
        rows: list[tuple[int, int, int, int]] = []
        key: list[np.ndarray] = []
        entry: list[np.ndarray] = []
        entries_of_pair: list[np.ndarray] = []
        of_queries: list[list[int]] = []
        for number, text in enumerate(texts):
            look = Look(text, vocabulary)
            codes = np.stack(list(look.codes()))
            starts = np.array(vocabulary.starts[:-1])[:, None]
            query_entries = entries_of_queries(look)
            for query, keys, nulls in rows_of(text, number, every_row=every_row):
                rows.append((number, query, len(keys), nulls))
                key.append(keys)
                found = codes[:, query, keys]
                numbered = np.where(found == NONE, NONE, found + starts).T  # pair table
                entry.append(numbered[numbered != NONE])
                entries_of_pair.append((numbered != NONE).sum(1))
                of_queries.append(query_entries[query])
        row_text, query, keys, nulls = np.array(rows, dtype=np.int64).reshape(-1, 4).T
        design = Design.of(_joined(entry), _joined(entries_of_pair), keys, vocabulary.starts[-1])
        return cls(texts, vocabulary, row_text, query, keys, nulls, _joined(key), design,
                   design_of_queries(of_queries, vocabulary))  # fmt: skip

    def __len__(self) -> int:
        return len(self.query)

    def to(self, device: torch.device) -> "Pairs":
        """The same with its designs on a device."""
        return replace(self, design=self.design.to(device), queries=self.queries.to(device))

    @cached_property
    def row_groups(self) -> Int[np.ndarray, "row"]:
        """The group of every row's document."""
        groups = np.array([text.group for text in self.texts], dtype=np.int64)
        return groups[self.row_text]

    @cached_property
    def is_passage(self) -> np.ndarray:
        """Which rows are of passages."""
        return np.array([text.is_passage for text in self.texts], dtype=bool)[self.row_text]

    @cached_property
    def row_of_pair(self) -> Int[np.ndarray, "pair"]:
        """The row of every pair."""
        return np.repeat(np.arange(len(self)), self.keys)

    @cached_property
    def slices(self) -> tuple[list[slice], list[slice]]:
        """The rows of every text, and its pairs."""
        rows = np.searchsorted(self.row_text, np.arange(len(self.texts) + 1))
        stops = np.concatenate([[0], np.cumsum(self.keys)])[rows]
        of_rows, of_pairs = (
            [slice(*ends) for ends in pairwise(values.tolist())] for values in (rows, stops)
        )
        return of_rows, of_pairs


@dataclass(frozen=True)
class Attention:
    """What some heads give to the pairs: shares of rows that sum to 1, null tokens included."""

    pairs: Float[Tensor, "pair head"]
    null: Float[Tensor, "row head"]
    first: Float[Tensor, "row head"]  # of `null`, what the first null token gets

    @property
    def rest(self) -> Float[Tensor, "row head"]:
        """What is left beside the null tokens."""
        return 1 - self.null


def rows_of(
    text: Text, number: int, *, every_row: bool = False
) -> list[tuple[int, np.ndarray, int]]:
    """The rows of a text: query, keys, and how many null tokens it sees."""
    null = text.null
    place = np.arange(len(text))
    stride = STRIDES[text.is_passage] * (1 if text.is_causal else 2)
    rows: list[tuple[int, np.ndarray, int]] = []
    for query in place[~null].tolist():
        if query % stride != number % stride and not every_row:
            continue
        is_visible = place <= query if text.is_causal else place >= 0
        keys = place[is_visible & ~null]
        if len(keys) >= (1 if every_row else FEWEST_KEYS):
            rows.append((query, keys, int((is_visible & null).sum())))
    return rows


# What a query is, for whether it rests on null tokens; the tags and relations of the corpus, and
# the relations of words whose head it sees, come behind these.
PLACES = (2, 4, 8, 16, 32)  # where ranges of places begin, counted from 0
QUERY_ENTRIES = (
    "any", "capital", "digit", "first piece", "later piece", "a mark", "stood before",
    *FREQUENCIES, *(f"from place {place}" for place in (0, *PLACES)),
)  # fmt: skip


def entries_of_queries(look: Look) -> list[list[int]]:
    """The entries of every token of a text as a query."""
    number = {name: place for place, name in enumerate(QUERY_ENTRIES)}
    codes = dict(
        zip((table.name for table in look.vocabulary.tables), look.codes_of_tokens(), strict=True)
    )
    place = np.arange(len(look.text))
    behind_tags = len(QUERY_ENTRIES) + len(look.vocabulary.tags)
    behind_relations = behind_tags + 1 + len(look.vocabulary.relations)
    is_earlier = place[None, :] < place[:, None]
    is_head = (look.text.word[None, :] == look.head[:, None]) & (look.head[:, None] >= 0)
    sees_head = (is_head & (is_earlier | (not look.text.is_causal))).any(1)
    stood_before = (look.same_token & is_earlier).any(1)
    capital_or_digit = np.where(codes["shape"] < 2, codes["shape"], NONE)
    is_related = look.relation != NONE
    columns = [
        np.full(len(place), number["any"]),
        number["from place 0"] + np.digitize(place, PLACES),
        number[FREQUENCIES[0]] + codes["frequency"],
        _from(number["capital"], capital_or_digit),
        _from(number["first piece"], codes["piece"]),
        np.where(look.mark != NONE, number["a mark"], NONE),
        np.where(stood_before, number["stood before"], NONE),
        _from(len(QUERY_ENTRIES), look.tag),
        _from(behind_tags, look.relation),
        np.where(is_related & sees_head, behind_relations + look.relation, NONE),
    ]
    return [row[row != NONE].tolist() for row in np.stack(columns, axis=1)]


def _from(start: int, codes: Int[np.ndarray, "token"]) -> Int[np.ndarray, "token"]:
    """Codes counted from a number on; NONE stays."""
    return np.where(codes == NONE, NONE, start + codes)


def names_of_queries(vocabulary: Vocabulary) -> list[str]:
    """The name of every entry of queries."""
    relations = (*vocabulary.relations, OTHER)
    seen = tuple(f"{relation} of a word before" for relation in relations)
    if not vocabulary.is_causal:
        seen = tuple(f"{relation} of a word there" for relation in relations)
    labels = (*QUERY_ENTRIES, *vocabulary.tags, *relations, *seen)
    return [f"query: {name}" for name in labels]


def design_of_queries(rows: Sequence[Sequence[int]], vocabulary: Vocabulary) -> Design:
    """Rows of two choices: the null tokens have the entries of the query, the rest has none."""
    counts = np.zeros((len(rows), 2), dtype=np.int64)
    counts[:, 0] = [len(entries) for entries in rows]
    flat = np.array([entry for entries in rows for entry in entries], dtype=np.int64)
    size = len(names_of_queries(vocabulary))
    return Design.of(flat, counts.ravel(), np.full(len(rows), 2), size)


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def attention_of(
    model: Model,
    pairs: Pairs,
    layers: Sequence[int],
    tokens: int,
    reading: Reading = "raw",
) -> Attention:
    """What all heads of some layers give to the pairs: layer by layer, head by head."""
    device = model.device
    width = len(layers) * model.heads
    weights = torch.zeros(len(pairs.key), width, device=device)
    null = torch.zeros(len(pairs), width, device=device)
    first = torch.zeros(len(pairs), width, device=device)
    texts = pairs.texts
    columns = Columns.of(
        [
            Example(number, text.tokens, text.null.tolist(), group=text.group)
            for number, text in enumerate(texts)
        ]
    )
    of_rows, of_pairs = pairs.slices
    place = {layer: index for index, layer in enumerate(layers)}
    query_of_pair = torch.from_numpy(pairs.query[pairs.row_of_pair]).to(device)
    key, query = torch.from_numpy(pairs.key).to(device), torch.from_numpy(pairs.query).to(device)

    with torch.inference_mode(), evaluating(model.network):
        for bucket in model.buckets(columns.lengths.tolist(), tokens):
            cut = columns.cut(bucket, pad=model.pad, is_causal=model.is_causal).to(device)

            def show(layer: Layer, numbers: Sequence[int] = tuple(bucket)) -> None:
                if layer.index not in place:
                    return
                at = place[layer.index] * model.heads
                heads = slice(at, at + model.heads)
                shown = layer.weights(0, layer.batch.mask.shape[1])
                for row, number in enumerate(numbers):
                    rows, part = of_rows[number], of_pairs[number]
                    matrix = shown[row]  # head query key
                    weights[part, heads] = matrix[:, query_of_pair[part], key[part]].T
                    columns_null = np.flatnonzero(texts[number].null)
                    of_null = matrix[:, query[rows]][..., torch.from_numpy(columns_null).to(device)]
                    null[rows, heads] = of_null.sum(-1).T
                    first[rows, heads] = of_null[..., :1].sum(-1).T

            path = choose_path(model, cut.batch.ids.shape[1], "auto", reading=reading)
            show_layers(model, cut.batch, cut.annotated, path, show, reading)
    # A learned sink drops a part of every row, and float16 rounds its sum.
    total = (null + pairs.design.row_sums(weights)).clamp(min=TINY)
    row = torch.from_numpy(pairs.row_of_pair).to(device)
    return Attention(weights / total[row], null / total, first / total)


TINY = 1e-9
