"""The special tokens around a text, and whether the BOS token is among them.

```
tokenizer     auto              never          always
Llama         <s> The cat       The cat        <s> The cat
GPT-2         The cat           The cat        <|endoftext|> The cat
BERT          [CLS] The [SEP]   as auto        refused: it has no BOS token
```
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from headscope.errors import ModelError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Bos = Literal["auto", "never", "always"]  # auto: as the tokenizer adds it
BOS_CHOICES: tuple[Bos, ...] = get_args(Bos)


@dataclass(frozen=True)
class Frame:
    """The special tokens before and after a text."""

    before: tuple[int, ...]
    after: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.before) + len(self.after)


def find_frame(tokenizer: "PreTrainedTokenizerBase", bos: Bos = "auto") -> Frame:
    """What stands around a text: what the tokenizer adds, with or without its BOS token."""
    check_bos(tokenizer, bos)
    encoding: Any = tokenizer("a", return_special_tokens_mask=True)
    ids, special = list(encoding["input_ids"]), list(encoding["special_tokens_mask"])
    first = special.index(0)
    last = len(special) - special[::-1].index(0)
    before, after = tuple(ids[:first]), tuple(ids[last:])
    begins = before[:1] == (tokenizer.bos_token_id,)
    if bos == "never" and begins:
        return Frame(before[1:], after)
    if bos == "always" and not begins:
        return Frame((bos_id(tokenizer), *before), after)
    return Frame(before, after)


def check_bos(tokenizer: "PreTrainedTokenizerBase", bos: str) -> None:
    """Refuse what is no choice, and a BOS token where the tokenizer has none."""
    if bos not in BOS_CHOICES:
        raise ModelError(f"bos is {bos!r}; choose auto, never or always.")
    if bos == "always":
        bos_id(tokenizer)


def bos_id(tokenizer: "PreTrainedTokenizerBase") -> int:
    """The id of the BOS token; a ModelError if the tokenizer has none."""
    index = tokenizer.bos_token_id
    if not isinstance(index, int):
        raise ModelError(
            f"The tokenizer {type(tokenizer).__name__} has no BOS token to begin a text with; "
            "choose bos auto or never."
        )
    return index
