"""Which tokens stand where BERT has [CLS] and [SEP], and a segment put between them.

```
BERT          [CLS] A [SEP] B [SEP]       the tokenizer's own pair, as the model was trained
Llama, GPT-2  BOS A EOS B EOS             the nearest equivalent, put there by us
T5            A EOS B EOS                 what does not exist is left away, and its measures too
```
"""

from dataclasses import dataclass, replace

from headscope.model.display import display
from headscope.model.encode import Encoded, encode
from headscope.model.model import Model
from headscope.text.segments import Segment


@dataclass(frozen=True)
class Delimiters:
    """The ids that count as [CLS] and [SEP], None where the tokenizer has no such token."""

    cls: int | None
    sep: int | None
    own_pair: bool  # the tokenizer knows how to put two texts between them

    @property
    def absent(self) -> tuple[str, ...]:
        """The classes that this model cannot have."""
        found = {"cls": self.cls, "sep": self.sep}
        return tuple(name for name, index in found.items() if index is None)


def find_delimiters(model: Model) -> Delimiters:
    """[CLS] and [SEP] where the tokenizer has both, else the tokens that begin and end a text."""
    tokenizer = model.tokenizer
    cls, sep = _id(model, tokenizer.cls_token_id), _id(model, tokenizer.sep_token_id)
    if cls is not None and sep is not None:
        return Delimiters(cls, sep, own_pair=True)
    begin, end = _id(model, tokenizer.bos_token_id), _id(model, tokenizer.eos_token_id)
    return Delimiters(begin if cls is None else cls, end if sep is None else sep, own_pair=False)


def encode_segment(model: Model, segment: Segment, *, segment_ids: bool) -> Encoded:
    """A and B between the delimiters; `segment_ids` false makes all of it segment 0."""
    delimiters = find_delimiters(model)
    if delimiters.own_pair:
        encoded = encode(model.tokenizer, segment.first, segment.second)
    else:
        encoded = _assemble(model, segment, delimiters)
    return encoded if segment_ids else replace(encoded, segments=(0,) * len(encoded))


def enclose(model: Model, ids: tuple[int, ...]) -> tuple[Encoded, int]:
    """Bare ids between the delimiters, and the place of the first of them."""
    delimiters = find_delimiters(model)
    before = () if delimiters.cls is None else (delimiters.cls,)
    after = () if delimiters.sep is None else (delimiters.sep,)
    special = (*(True for _ in before), *(False for _ in ids), *(True for _ in after))
    return _bare(model, (*before, *ids, *after), special), len(before)


def _assemble(model: Model, segment: Segment, delimiters: Delimiters) -> Encoded:
    first = encode(model.tokenizer, segment.first, special=False)
    second = encode(model.tokenizer, segment.second, special=False)
    begin = _delimiter(model, delimiters.cls, 0)
    middle, end = (_delimiter(model, delimiters.sep, part) for part in (0, 1))
    second = replace(second, segments=(1,) * len(second), sequence=(1,) * len(second))
    pieces = [piece for piece in (begin, first, middle, second, end) if piece is not None]
    return Encoded(
        text=segment.first,
        pair=segment.second,
        ids=sum((piece.ids for piece in pieces), ()),
        tokens=sum((piece.tokens for piece in pieces), ()),
        offsets=sum((piece.offsets for piece in pieces), ()),
        segments=sum((piece.segments for piece in pieces), ()),
        special=sum((piece.special for piece in pieces), ()),
        sequence=sum((piece.sequence for piece in pieces), ()),
    )


def _delimiter(model: Model, index: int | None, segment: int) -> Encoded | None:
    if index is None:
        return None
    return replace(_bare(model, (index,), (True,)), segments=(segment,))


def _bare(model: Model, ids: tuple[int, ...], special: tuple[bool, ...]) -> Encoded:
    """Ids that stand for no text."""
    nothing = (0,) * len(ids)
    return Encoded(
        text="",
        pair=None,
        ids=ids,
        tokens=display(model.tokenizer, ids),
        offsets=((0, 0),) * len(ids),
        segments=nothing,
        special=special,
        sequence=tuple(None if each else 0 for each in special),
    )


def _id(model: Model, index: object) -> int | None:
    """An id that the network has an embedding for."""
    return index if isinstance(index, int) and 0 <= index < embeddings(model) else None


def embeddings(model: Model) -> int:
    """How many ids the network has an embedding for."""
    return model.network.get_input_embeddings().num_embeddings  # pyright: ignore[reportAttributeAccessIssue, reportReturnType]
