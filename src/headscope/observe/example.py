"""One input of a study and its annotation per token."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headscope.model.encode import Encoded
from headscope.text.sentence import Sentence

NO_LABEL = -1
Arcs = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Example:
    """One input: its tokens, which of them are null, their labels, and arcs between tokens."""

    number: int  # of the sentence in the corpus (the first one, if an input has several)
    encoded: Encoded
    null: Sequence[bool]
    labels: Mapping[str, Sequence[int]] = field(default_factory=dict)
    arcs: Arcs | None = None  # (token of the parent, token of the dependent)
    sentence: Sentence | None = None  # where a metric needs all of it
