"""Sentences as flat Arrow columns, and back.

Every annotation is a column of its own, one list per sentence, because building and reading flat
columns costs far less than lists of records: no Python object is touched per word but the Word.
"""

import json
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import accumulate, islice, starmap
from operator import attrgetter

import numpy as np
import pyarrow as pa

from headscope.text.sentence import Mention, Sentence, Word

SENTENCE_FIELDS = ("text", "document", "paragraph", "id")
WORD_FIELDS = ("form", "start", "end", "upos", "xpos", "feats", "head", "deprel")
MENTION_FIELDS = ("entity", "parts")  # parts: how many spans a mention has
SPAN_FIELDS = ("span_start", "span_end")
NEEDED_FIELDS = ("form", "start", "end", *MENTION_FIELDS, *SPAN_FIELDS)  # no item is missing
TAG_FIELDS = ("upos", "xpos", "feats", "deprel")  # few different values, each repeated often

_INTEGERS = {"paragraph", "start", "end", "head", "parts", "span_start", "span_end"}

Columns = dict[str, list]


def _type_of(name: str) -> pa.DataType:
    return pa.int32() if name in _INTEGERS else pa.string()


SCHEMA = pa.schema(
    [pa.field(name, _type_of(name)) for name in SENTENCE_FIELDS]
    + [
        pa.field(name, pa.list_(_type_of(name)))
        for name in (*WORD_FIELDS, *MENTION_FIELDS, *SPAN_FIELDS)
    ]
)


def to_columns(sentences: Sequence[Sentence]) -> Columns:
    """The flat values of every column, with how many words, mentions and spans a sentence has."""
    words = [word for sentence in sentences for word in sentence.words]
    mentions = [mention for sentence in sentences for mention in sentence.mentions]
    spans = [span for mention in mentions for span in mention.spans]
    columns: Columns = {}
    for name in SENTENCE_FIELDS:
        columns[name] = list(map(attrgetter(name), sentences))
    for name in WORD_FIELDS:
        columns[name] = list(map(attrgetter("text" if name == "form" else name), words))
    columns["entity"] = [mention.entity for mention in mentions]
    columns["parts"] = [len(mention.spans) for mention in mentions]
    columns["span_start"] = [start for start, _ in spans]
    columns["span_end"] = [end for _, end in spans]
    columns["words"] = [len(sentence.words) for sentence in sentences]
    columns["mentions"] = [len(sentence.mentions) for sentence in sentences]
    columns["spans"] = [
        sum(len(mention.spans) for mention in sentence.mentions) for sentence in sentences
    ]
    return columns


def to_table(columns: Columns) -> pa.Table:
    """The Arrow table of flat columns: one row per sentence."""
    arrays = [pa.array(columns[name], _type_of(name)) for name in SENTENCE_FIELDS]
    for names, lengths in (
        (WORD_FIELDS, columns["words"]),
        (MENTION_FIELDS, columns["mentions"]),
        (SPAN_FIELDS, columns["spans"]),
    ):
        offsets = pa.array(accumulate(lengths, initial=0), pa.int32())
        for name in names:
            values = pa.array(columns[name], _type_of(name))
            arrays.append(pa.ListArray.from_arrays(offsets, values))
    return pa.Table.from_arrays(arrays, schema=SCHEMA)


def check_table(table: pa.Table) -> None:
    """Raise a ValueError if the columns cannot be put together as sentences."""
    columns = _columns(table)
    for name, column in columns.items():
        is_complete = column.null_count == 0
        if name in NEEDED_FIELDS:
            is_complete = is_complete and column.flatten().null_count == 0
        if not is_complete:
            raise ValueError(f'"{name}" lacks a value')
    for first, *others in (WORD_FIELDS, MENTION_FIELDS, SPAN_FIELDS):
        for name in others:
            if not np.array_equal(_offsets(columns[name]), _offsets(columns[first])):
                raise ValueError(f'"{name}" and "{first}" have different lengths')
    parts = _values(columns["parts"].flatten())
    spans = np.cumsum([0, *parts])[_offsets(columns["entity"])]
    if min(parts, default=0) < 0 or not np.array_equal(spans, _offsets(columns["span_start"])):
        raise ValueError('the "parts" of the mentions are not as many as the spans')


def to_sentences(table: pa.Table) -> Iterator[Sentence]:
    """The sentences of the rows of a table that was checked."""
    columns = _columns(table)
    words = starmap(Word, zip(*_flat(columns, WORD_FIELDS), strict=True))
    spans = zip(*_flat(columns, SPAN_FIELDS), strict=True)
    mentions = (
        Mention(entity, tuple(islice(spans, parts)))
        for entity, parts in zip(*_flat(columns, MENTION_FIELDS), strict=True)
    )
    texts, documents, paragraphs, ids = (_values(columns[name]) for name in SENTENCE_FIELDS)
    word_counts = np.diff(_offsets(columns["form"])).tolist()
    mention_counts = np.diff(_offsets(columns["entity"])).tolist()
    for text, word_count, mention_count, document, paragraph, id in zip(
        texts, word_counts, mention_counts, documents, paragraphs, ids, strict=True
    ):
        yield Sentence(
            text,
            tuple(islice(words, word_count)),
            tuple(islice(mentions, mention_count)),
            document,
            paragraph,
            id,
        )


def _columns(table: pa.Table) -> dict[str, pa.Array]:
    return {name: table.column(name).combine_chunks() for name in SCHEMA.names}


def _flat(columns: dict[str, pa.Array], names: Sequence[str]) -> list[list]:
    return [_values(columns[name].flatten()) for name in names]


def _offsets(lists: pa.ListArray) -> np.ndarray:
    """Where the items of each row begin, and where those of the last end."""
    offsets = lists.offsets.to_numpy()
    return offsets - offsets[0]


def _values(array: pa.Array) -> list:
    """Python values of an array; whole columns are converted at once, missing ones are None."""
    if isinstance(array, pa.DictionaryArray):
        return _tags(array)
    if pa.types.is_integer(array.type) and array.null_count:
        return _integers(array)
    return array.to_numpy(zero_copy_only=False).tolist()


def _tags(array: pa.DictionaryArray) -> list:
    tags = np.array([*array.dictionary.to_pylist(), None], dtype=object)
    return tags[array.indices.fill_null(len(tags) - 1).to_numpy()].tolist()


def _integers(array: pa.Array) -> list:
    values = array.fill_null(0).to_numpy().astype(object)
    values[array.is_null().to_numpy(zero_copy_only=False)] = None
    return values.tolist()


_ANNOTATIONS = ("upos", "xpos", "feats", "head", "deprel")


class Fingerprint:
    """Sees the columns of a corpus batch by batch; the cut into batches leaves no trace.

    Each column is hashed as one long JSON array in a stream of its own, so that the same
    sentences give the same hash however they were read, batched and stored.
    """

    def __init__(self) -> None:
        self._hashes: dict[str, blake2b] = {}
        self._fields: set[str] = set()

    def update(self, columns: Columns) -> None:
        """Take in one batch."""
        for name, values in columns.items():
            stream = self._hashes.setdefault(name, blake2b(digest_size=16))
            if values:
                stream.update(json.dumps(values, separators=(",", ":"))[1:-1].encode() + b",")
        self._fields.update(_fields_of(columns))

    def hexdigest(self) -> str:
        """32 hexadecimal digits for all sentences seen."""
        parts = (f"{name}={self._hashes[name].hexdigest()}" for name in sorted(self._hashes))
        return blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()

    @property
    def fields(self) -> tuple[str, ...]:
        """What at least one sentence has, sorted by name."""
        return tuple(sorted(self._fields))


def derive(fingerprint: str, *choices: object) -> str:
    """The fingerprint of a selection made from another corpus by the given choices."""
    return blake2b(repr((fingerprint, *choices)).encode(), digest_size=16).hexdigest()


def _fields_of(columns: Columns) -> set[str]:
    fields = {name for name in _ANNOTATIONS if any(value is not None for value in columns[name])}
    if columns["form"]:
        fields.add("words")
    if columns["entity"]:
        fields.add("mentions")
    if any(columns["paragraph"]):
        fields.add("paragraphs")
    return fields
