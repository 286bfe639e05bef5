"""Indicator tables: what a pair of tokens is, as a named entry of every table that has one for it.

```
key            The  cat  sat            entries of the pair sat → cat
offset          -2   -1    0            offset: -1 · tag of the key: NOUN · tags: VERB NOUN ·
tag            DET NOUN VERB            from a head to its dependent: nsubj
```

A portrait looks the entries of a pair up and adds their weights; a fact is a set of entries of one
table. Everything a pair may be is defined here and nowhere else. A table gives every pair one entry
or NONE.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from jaxtyping import Int

from headscope.portrait.texts import Text
from headscope.text.alignment import NO_WORD
from headscope.text.sentence import ROOT

Group = Literal["position", "marks", "repetition", "token", "word_class", "syntax"]
GROUPS: tuple[Group, ...] = (
    "position", "marks", "repetition", "token", "word_class", "syntax",
)  # fmt: skip
NONE = -1
REACH = 8  # offsets that have an entry of their own
FAR = (16, 32, 64)  # where the ranges beyond end
FREQUENT = (0.01, 0.002, 0.0005)  # shares of all tokens, the least of each class
FREQUENCIES = ("very frequent", "frequent", "usual", "uncommon", "rare")  # rare: met once at most
RARELY = 20  # a relation that fewer tokens have is one of the others
OTHER = "other"
# Classes of tags of Universal Dependencies.
CONTENT = ("NOUN", "PROPN", "VERB", "ADJ", "ADV", "NUM")
KINDS_OF_CLASS = {
    "nominal": ("NOUN", "PROPN"),
    "verbal": ("VERB", "AUX"),
    "modifier": ("ADJ", "ADV", "NUM"),
}
MARKS = ("comma", "end mark", "other mark", "line break", "special token")
OF_TOKENS = frozenset({"mark", "frequency", "shape", "piece", "length", "tag"})
END_MARKS = frozenset(".!?…。！？")
COMMAS = frozenset(",،、，")

Codes = Int[np.ndarray, "query key"]


@dataclass(frozen=True)
class Table:
    """A table: its name, the group of its entries, and a label for each of them."""

    name: str
    group: Group
    labels: tuple[str, ...]
    in_portrait: bool = True  # or only for facts


@dataclass(frozen=True)
class Vocabulary:
    """What the tables of a run know besides the text: labels, and how frequent tokens are."""

    is_causal: bool
    has_words: bool
    tags: tuple[str, ...] = ()
    relations: tuple[str, ...] = ()
    frequency: tuple[tuple[int, int], ...] = ()  # token and its class; all others are rare

    @classmethod
    def of(cls, texts: Sequence[Text], *, is_causal: bool) -> "Vocabulary":
        """The vocabulary of some texts."""
        tokens: Counter[int] = Counter()
        tags: set[str] = set()
        relations: Counter[str] = Counter()
        for text in texts:
            tokens.update(text.tokens.ids)
            for word in text.sentence.words:
                tags.update({tag_of(word.upos, word.xpos)} - {""})
                relations.update([word.deprel] if word.deprel else [])
        total = max(sum(tokens.values()), 1)
        frequency: list[tuple[int, int]] = []
        for token, count in sorted(tokens.items()):
            if count >= 2:
                frequency.append((token, sum(count / total < share for share in FREQUENT)))
        usual = sorted(name for name, count in relations.items() if count >= RARELY)
        has_words = any(text.sentence.words for text in texts)
        return cls(is_causal, has_words, tuple(sorted(tags)), tuple(usual), tuple(frequency))

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """All tables, in the order of their groups."""
        return tuple(self._tables())

    def _tables(self) -> Iterator[Table]:
        yield Table("offset", "position", tuple(offset_labels(self.is_causal)))
        yield Table("start", "position", ("first", "second or third"))
        if not self.is_causal:
            yield Table("end", "position", ("last",))
        yield Table("mark", "marks", MARKS)
        yield Table("nearest mark", "marks", ("before", "after")[: 1 if self.is_causal else 2])
        yield Table("same token", "repetition", ("before", "after")[: 1 if self.is_causal else 2])
        yield Table("after the same", "repetition", ("yes",))
        if not self.is_causal:
            yield Table("before the same", "repetition", ("yes",))
        yield Table("own word", "repetition", ("before", "after")[: 1 if self.is_causal else 2])
        yield Table("frequency", "token", FREQUENCIES)
        yield Table("shape", "token", ("capital", "digit", "lower case"))
        yield Table("piece", "token", ("first piece", "later piece"))
        yield Table("length", "token", ("1-2", "3-4", "5-7", "8 or more"))
        if self.tags:
            sides = ("before",) if self.is_causal else ("before", "after")
            pairs = tuple(f"{query} {key}" for query in self.tags for key in self.tags)
            yield Table("tag", "word_class", self.tags)
            yield Table("tags", "word_class", pairs)
            yield Table("same tag", "word_class", ("yes",))
            for side in sides:
                yield Table(f"nearest tag {side}", "word_class", self.tags, in_portrait=False)
            if set(self.tags) & set(CONTENT):
                for side in sides:
                    for kind in ("content", "function", *KINDS_OF_CLASS):
                        yield Table(f"nearest {kind} {side}", "word_class", ("yes",), False)
        if self.relations:
            labels = (*self.relations, OTHER)
            yield Table("to head", "syntax", labels)
            yield Table("to dependent", "syntax", labels)
            yield Table("coreference", "syntax", ("yes",))

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The number of the first entry of every table, and behind the last one of all."""
        sizes = [len(table.labels) for table in self.tables]
        return (0, *np.cumsum(sizes).tolist())

    @cached_property
    def entries(self) -> tuple[tuple[Table, str], ...]:
        """Every entry with its table, by number."""
        return tuple((table, label) for table in self.tables for label in table.labels)

    @property
    def names(self) -> list[str]:
        """The name of every entry."""
        return [f"{table.name}: {label}" for table, label in self.entries]

    def numbers(self, table: str, *labels: str) -> tuple[int, ...]:
        """The numbers of some entries of a table, or of all; those that it lacks are left out."""
        for start, known in zip(self.starts, self.tables, strict=False):
            if known.name == table:
                chosen = labels or known.labels
                return tuple(start + known.labels.index(each) for each in chosen
                             if each in known.labels)  # fmt: skip
        return ()


def tag_of(upos: str | None, xpos: str | None) -> str:
    """The tag of a word: the universal one, if it has one."""
    return upos or xpos or ""


def offset_labels(is_causal: bool) -> Iterator[str]:
    """The labels of offsets, from far behind the query to far ahead."""
    ranges = list(zip((REACH + 1, *(end + 1 for end in FAR)), (*FAR, 0), strict=True))
    for low, high in reversed(ranges):
        yield f"-{low} and more" if not high else f"-{low} to -{high}"
    for offset in range(-REACH, 1 if is_causal else REACH + 1):
        yield f"{offset:+d}" if offset else "0"
    if not is_causal:
        for low, high in ranges:
            yield f"+{low} and more" if not high else f"+{low} to +{high}"


@dataclass(frozen=True)
class Look:
    """A text as the tables see it: arrays by token, computed once."""

    text: Text
    vocabulary: Vocabulary

    @cached_property
    def distance(self) -> Codes:
        """Key − query."""
        place = np.arange(len(self.text))
        return place[None, :] - place[:, None]

    @cached_property
    def ids(self) -> Int[np.ndarray, "token"]:
        """The id of every token."""
        return np.array(self.text.tokens.ids)

    @cached_property
    def null(self) -> np.ndarray:
        """Which tokens are null."""
        return self.text.null

    @cached_property
    def letters(self) -> list[str]:
        """What every token shows of its text, without space around it."""
        text, encoded = self.text.tokens.text, self.text.tokens
        return [text[start:end].strip() for start, end in encoded.offsets]

    @cached_property
    def mark(self) -> Int[np.ndarray, "token"]:
        """The kind of mark that every token is, or NONE."""
        encoded = self.text.tokens
        rows = zip(self.letters, encoded.offsets, encoded.special, strict=True)
        return np.array([_mark(encoded.text, *row) for row in rows], dtype=np.int64)

    @cached_property
    def tag(self) -> Int[np.ndarray, "token"]:
        """The tag of every token's word, or NONE."""
        known = {tag: place for place, tag in enumerate(self.vocabulary.tags)}
        words = [known.get(tag_of(w.upos, w.xpos), NONE) for w in self.text.sentence.words]
        return self.of_word(words)

    @cached_property
    def relation(self) -> Int[np.ndarray, "token"]:
        """The relation of every token's word to its head; NONE for roots."""
        known = {name: place for place, name in enumerate(self.vocabulary.relations)}
        words: list[int] = []
        for word in self.text.sentence.words:
            is_root = word.head is None or word.head == ROOT
            words.append(NONE if is_root else known.get(word.deprel or "", len(known)))
        return self.of_word(words)

    @cached_property
    def head(self) -> Int[np.ndarray, "token"]:
        """The head of every token's word, or NONE."""
        words = self.text.sentence.words
        return self.of_word([NONE if word.head is None else word.head for word in words])

    @cached_property
    def entity(self) -> Int[np.ndarray, "token"]:
        """The entity that every token's word belongs to, or NONE; the innermost mention counts."""
        words = [NONE] * len(self.text.sentence.words)
        known: dict[str, int] = {}
        mentions = self.text.sentence.mentions
        by_length = sorted(
            mentions, key=lambda one: -sum(stop - start for start, stop in one.spans)
        )
        for mention in by_length:
            for start, stop in mention.spans:
                for word in range(start, stop):
                    words[word] = known.setdefault(mention.entity, len(known))
        return self.of_word(words)

    def of_word(self, values: Sequence[int]) -> Int[np.ndarray, "token"]:
        """Values of words, for every token that of its word; NONE for tokens of no word."""
        if not len(values):
            return np.full(len(self.text), NONE)
        word = self.text.word
        return np.where(word == NO_WORD, NONE, np.array(values)[np.maximum(word, 0)])

    @cached_property
    def same_word(self) -> np.ndarray:
        """Pairs of different tokens of one word."""
        word = self.text.word
        return (word[:, None] == word[None, :]) & (word != NO_WORD) & (self.distance != 0)

    @cached_property
    def same_token(self) -> np.ndarray:
        """Pairs of the same token at two places."""
        return (self.ids[:, None] == self.ids[None, :]) & (self.distance != 0)

    def codes_of_tokens(self) -> Iterator[Int[np.ndarray, "token"]]:
        """For the tables that look at the key alone, the entry of every token; else NONE."""
        for table in self.vocabulary.tables:
            codes = self._codes(table) if table.name in OF_TOKENS else np.full((1, 1), NONE)
            yield np.broadcast_to(codes, (1, len(self.text)))[0]

    def codes(self) -> Iterator[Codes]:
        """The entry of every pair, table by table, each counted within its table."""
        for table in self.vocabulary.tables:
            code = np.broadcast_to(self._codes(table), self.distance.shape)
            yield np.where(self.null[None, :], NONE, code)

    def _codes(self, table: Table) -> np.ndarray:
        name, distance = table.name, self.distance
        if name == "offset":
            return self._offset()
        if name == "start":
            rank = np.cumsum(~self.null)
            return np.where(rank <= 1, 0, np.where(rank <= 3, 1, NONE))[None, :]
        if name == "end":
            last = np.flatnonzero(~self.null)[-1:]
            return np.where(np.isin(np.arange(len(self.text)), last), 0, NONE)[None, :]
        if name == "mark":
            return self.mark[None, :]
        if name == "nearest mark":
            is_mark = (self.mark != NONE) & ~self.null
            before, after = nearest(is_mark, before=True), nearest(is_mark, before=False)
            return np.where(before, 0, np.where(after & (len(table.labels) > 1), 1, NONE))
        if name == "same token":
            return np.where(self.same_token, (distance > 0).astype(np.int64), NONE)
        if name == "after the same":
            follows = np.zeros_like(self.same_token)
            follows[:, 1:] = self.same_token[:, :-1]
            return np.where(follows & (distance != 0), 0, NONE)
        if name == "before the same":
            precedes = np.zeros_like(self.same_token)
            precedes[:, :-1] = self.same_token[:, 1:]
            return np.where(precedes & (distance != 0), 0, NONE)
        if name == "own word":
            return np.where(self.same_word, (distance > 0).astype(np.int64), NONE)
        if name == "frequency":
            classes = dict(self.vocabulary.frequency)
            rare = len(FREQUENCIES) - 1
            return np.array([classes.get(token, rare) for token in self.ids.tolist()])[None, :]
        if name == "shape":
            return np.array([_shape(letters) for letters in self.letters])[None, :]
        if name == "piece":
            return self._piece()[None, :]
        if name == "length":
            lengths = np.array([len(letters) for letters in self.letters])
            return np.digitize(lengths, (3, 5, 8))[None, :]
        return self._of_annotation(table)

    def _offset(self) -> Codes:
        within = np.clip(self.distance, -REACH, REACH) + REACH + len(FAR) + 1
        beyond = np.digitize(np.abs(self.distance), (REACH + 1, *(end + 1 for end in FAR)))
        middle = 2 * REACH + 1 + len(FAR)
        far = np.where(self.distance < 0, len(FAR) + 1 - beyond, middle + beyond)
        code = np.where(beyond == 0, within, far)
        return np.where((self.distance > 0) & self.vocabulary.is_causal, NONE, code)

    def _piece(self) -> Int[np.ndarray, "token"]:
        word = self.text.word
        begins = np.concatenate([[True], word[1:] != word[:-1]])
        split = self.same_word.any(1)
        return np.where(~split, NONE, np.where(begins, 0, 1))

    def _of_annotation(self, table: Table) -> np.ndarray:
        name, distance, tag = table.name, self.distance, self.tag
        if name == "tag":
            return tag[None, :]
        if name == "tags":
            is_known = (tag[:, None] != NONE) & (tag[None, :] != NONE)
            return np.where(is_known, tag[:, None] * len(self.vocabulary.tags) + tag, NONE)
        if name == "same tag":
            return np.where((tag[:, None] == tag) & (tag != NONE) & (distance != 0), 0, NONE)
        if name.startswith("nearest tag "):
            code = np.full(distance.shape, NONE)
            for label in np.unique(tag[tag != NONE]).tolist():
                code[nearest((tag == label) & ~self.null, before=name.endswith("before"))] = label
            return code
        if name.startswith("nearest "):
            _, kind, side = name.split()
            return np.where(nearest(self._is_kind(kind), before=side == "before"), 0, NONE)
        word, head, relation = self.text.word, self.head, self.relation
        if name == "to head":
            is_head = (head[:, None] == word[None, :]) & (word != NO_WORD)
            return np.where(is_head & (relation[:, None] != NONE), relation[:, None], NONE)
        if name == "to dependent":
            is_dependent = (word[:, None] == head[None, :]) & (word[:, None] != NO_WORD)
            return np.where(is_dependent & (relation != NONE), relation[None, :], NONE)
        entity = self.entity
        is_same = (entity[:, None] == entity[None, :]) & (entity != NONE)
        return np.where(is_same & (word[:, None] != word[None, :]), 0, NONE)

    def _is_kind(self, kind: str) -> np.ndarray:
        tags = self.vocabulary.tags
        if kind in KINDS_OF_CLASS:
            chosen = KINDS_OF_CLASS[kind]
        elif kind == "content":
            chosen = CONTENT
        else:
            chosen = tuple(tag for tag in tags if tag not in (*CONTENT, "PUNCT", "SYM", "X"))
        codes = [place for place, tag in enumerate(tags) if tag in chosen]
        return np.isin(self.tag, codes) & ~self.null


def nearest(chosen: np.ndarray, *, before: bool) -> np.ndarray:
    """For every query the nearest of the chosen keys that stands before it, or behind it."""
    tokens = len(chosen)
    place = np.arange(tokens)
    if before:
        last = np.maximum.accumulate(np.where(chosen, place, -1))
        key = np.concatenate([[-1], last[:-1]])
    else:
        first = np.minimum.accumulate(np.where(chosen, place, tokens)[::-1])[::-1]
        key = np.concatenate([first[1:], [tokens]])
    return key[:, None] == place[None, :]


def _mark(text: str, letters: str, span: tuple[int, int], is_special: bool) -> int:
    start, end = span
    if is_special:
        return MARKS.index("special token")
    if not letters:
        return MARKS.index("line break") if "\n" in text[start:end] else NONE
    if set(letters) <= COMMAS:
        return MARKS.index("comma")
    if set(letters) <= END_MARKS:
        return MARKS.index("end mark")
    is_mark = all(unicodedata.category(letter)[0] == "P" for letter in letters)
    return MARKS.index("other mark") if is_mark else NONE


def _shape(letters: str) -> int:
    if any(letter.isdigit() for letter in letters):
        return 1
    if letters[:1].isupper():
        return 0
    return 2 if letters[:1].isalpha() else NONE
