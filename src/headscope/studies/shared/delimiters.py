"""Which tokens stand where BERT has [CLS] and [SEP], and token ids put between them.

```
BERT          [CLS] … [SEP]       the tokenizer's own
Llama, GPT-2  BOS … EOS           the nearest equivalent
T5            … EOS               what does not exist is left away
```
"""

from dataclasses import dataclass, replace

from headscope.model.inputs.batch import vocabulary_size
from headscope.model.inputs.encode import special_tokens
from headscope.model.inputs.tokens import Tokens
from headscope.model.model import Model


@dataclass(frozen=True)
class Delimiters:
    """The ids that count as [CLS] and [SEP], None where the tokenizer has no such token."""

    cls: int | None
    sep: int | None
    own_pair: bool  # the tokenizer knows how to put two texts between them

    @property
    def absent(self) -> tuple[str, ...]:
        """The classes that this model cannot have."""
        classes = {"cls": self.cls, "sep": self.sep}
        return tuple(name for name, index in classes.items() if index is None)


def find_delimiters(model: Model) -> Delimiters:
    """[CLS] and [SEP] where the tokenizer has both, else the tokens that begin and end a text."""
    tokenizer = model.tokenizer
    cls, sep = _id(model, tokenizer.cls_token_id), _id(model, tokenizer.sep_token_id)
    if cls is not None and sep is not None:
        return Delimiters(cls, sep, own_pair=True)
    begin, end = _id(model, tokenizer.bos_token_id), _id(model, tokenizer.eos_token_id)
    return Delimiters(begin if cls is None else cls, end if sep is None else sep, own_pair=False)


def enclose(model: Model, ids: tuple[int, ...]) -> Tokens:
    """Ids that stand for no text between the delimiters."""
    delimiters = find_delimiters(model)
    before, after = (
        special_tokens(model.tokenizer, () if index is None else (index,))
        for index in (delimiters.cls, delimiters.sep)
    )
    bare = replace(special_tokens(model.tokenizer, ids), special=(False,) * len(ids))
    return before + bare + after


def _id(model: Model, index: object) -> int | None:
    """An id that the network has an embedding for."""
    size = vocabulary_size(model.network)
    return index if isinstance(index, int) and 0 <= index < size else None
