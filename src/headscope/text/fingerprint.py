"""What a corpus is, whatever file it came from: a hash of its sentences, and what they carry."""

import json
from hashlib import blake2b

from headscope.text.table import Columns

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
