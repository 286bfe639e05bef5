"""What a network reads: its tokens, and the place that each of them comes from.

```
texts    "The cats sat."                       "They purred."
labels   [CLS]  the   cat  ##s   sat   .    [SEP]  they  purred  .       [SEP]
places   None   0–3   4–7  7–8   9–12 12–13 None   0–4   5–11    11–12   None
```

Neither torch nor transformers is imported here: tokens are stored with traces.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import NamedTuple

from headscope.model.inputs.labels import brief
from headscope.model.inputs.words import CharacterSpan, words_of_tokens

BY_TOKEN = ("ids", "labels", "places", "special", "segments")


class Characters(NamedTuple):
    """Some characters of one of the texts."""

    start: int
    end: int  # the one after the last
    text: int = 0


Place = Characters  # where a token comes from


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a chat in the text that the template wrote: where it begins, by characters."""

    role: str
    start: int
    content: CharacterSpan | None  # the message alone, without what the template writes around it


@dataclass(frozen=True)
class Tokens:
    """What a network reads, in order, and where each token comes from."""

    ids: tuple[int, ...]  # none where only labels are known, as beside weights from elsewhere
    labels: tuple[str, ...]  # readable: " cat", "##ing", "[CLS]"
    places: tuple[Place | None, ...]  # None for a token that no text has
    special: tuple[bool, ...]  # added by the tokenizer, or a marker within the text
    segments: tuple[int, ...]  # as the network is told them, which need not part the texts
    texts: tuple[str, ...] = ()
    turns: tuple[Turn, ...] = ()  # those of a chat

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        texts = ", ".join(repr(brief(text)) for text in self.texts)
        return f"Tokens({len(self)}: {texts})"

    def __add__(self, other: "Tokens") -> "Tokens":
        """The tokens of both, one after the other."""
        shift = len(self.texts)
        moved = other.places
        if shift:
            moved = tuple(place and place._replace(text=place.text + shift) for place in moved)
        return Tokens(
            ids=self.ids + other.ids,
            labels=self.labels + other.labels,
            places=self.places + moved,
            special=self.special + other.special,
            segments=self.segments + other.segments,
            texts=self.texts + other.texts,
            turns=self.turns or other.turns,
        )

    def __getitem__(self, span: slice) -> "Tokens":
        """Some neighbours; the texts stay whole."""
        return replace(self, **{name: getattr(self, name)[span] for name in BY_TOKEN})

    def select(self, kept: Iterable[bool]) -> "Tokens":
        """Some of the tokens; the texts stay whole."""
        mask = tuple(kept)
        parts = {name: tuple(compress(getattr(self, name), mask)) for name in BY_TOKEN}
        return replace(self, **parts)

    @cached_property
    def text(self) -> str:
        """All texts, each on a line of its own."""
        return "\n".join(self.texts)

    @cached_property
    def offsets(self) -> tuple[CharacterSpan, ...]:
        """The characters of every token in `text`; (0, 0) for one that no text has."""
        starts = [0]
        for text in self.texts:
            starts.append(starts[-1] + len(text) + 1)
        return tuple(
            (0, 0)
            if place is None
            else (starts[place.text] + place.start, starts[place.text] + place.end)
            for place in self.places
        )

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the texts that tokens spell."""
        return self._words[0]

    @property
    def word_of_token(self) -> tuple[int, ...]:
        """The word of every token; -1 for one of no word."""
        return self._words[1]

    @cached_property
    def _words(self) -> tuple[tuple[str, ...], tuple[int, ...]]:
        return words_of_tokens(self.text, self.offsets, self.special)
