"""Options of a study: type, range, default and meaning, declared once, and what studies share.

The Python check, `--option NAME=VALUE`, the help of the command and docs/cli.md all read the same
declaration. Several studies have the options below, give the same reasons for what they leave out,
and say in the same words how words and tokens met.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, get_args

import xarray as xr

from headscope.errors import RunError
from headscope.model.inputs.frame import BOS_CHOICES
from headscope.results import dataset as results
from headscope.text.alignment import BARE, JOINED, SEVERAL, SPLIT, WORDS, Sharing
from headscope.wording import counted, shorten

FEW_DOCUMENTS = 20  # below which intervals hold less often than they say: docs/statistics.md
YES, NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
NOTHING = ("none", "null")
NOUNS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


@dataclass(frozen=True)
class Option:
    """One setting of a study; one whose default is None may also be None."""

    name: str
    type: Any  # bool, int, float, str, list[int] or dict[str, float]
    default: Any
    meaning: str
    least: float | None = None  # the smallest number allowed
    above: float | None = None  # a number must be larger than this
    most: float | None = None
    choices: tuple[str, ...] = ()  # of a text, or the keys that a dict may have

    def read(self, value: Any) -> Any:
        """A value of the right type from what was given in Python or written as text."""
        if isinstance(value, str):
            value = self._from_text(value)
        if value is None and self.default is None:
            return None
        if self.type in (int, float):
            return self._check_number(value, self.type)
        if self.type is bool and (text := str(value).lower()) in (*YES, *NO):
            return text in YES
        allowed = set(self.choices)
        if isinstance(value, str):
            if self.type is str and value and value in (allowed or {value}):
                return value
        elif self.type == list[int] and isinstance(value, Sequence):
            return [self._check_number(number, int) for number in value]
        elif self.type == dict[str, float] and isinstance(value, Mapping) and allowed >= set(value):
            return {key: self._check_number(number, float) for key, number in value.items()}
        raise self._refusal(value)

    @property
    def expected(self) -> str:
        """The values allowed, in words."""
        if self.choices and self.type is str:
            return _listed((*self.choices, *(("none",) if self.default is None else ())))
        return self._words() + (" or none" if self.default is None else "")

    @property
    def shown_default(self) -> str:
        """The default as it would be written on the command line."""
        if isinstance(self.default, str):
            return self.default
        return "none" if self.default is None else json.dumps(self.default)

    def _words(self) -> str:
        if self.type == dict[str, float]:
            return f"a dictionary from {_listed(self.choices)} to numbers{self._range()}"
        if self.type == list[int]:
            return f"a list of whole numbers{self._range()} such as {json.dumps(self.default)}"
        return NOUNS[self.type] + self._range()

    def _range(self) -> str:
        if self.least is not None:
            if self.most is None:
                return f" of at least {self.least:g}"
            return f" from {self.least:g} to {self.most:g}"
        bounds = {"above": self.above, "up to": self.most}
        given = [f"{word} {bound:g}" for word, bound in bounds.items() if bound is not None]
        return " " + " and ".join(given) if given else ""

    def _from_text(self, text: str) -> Any:
        if self.default is None and text.lower() in NOTHING:
            return None
        if self.type in (str, bool):
            return text
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise self._refusal(shorten(text, 60)) from None

    def _check_number(self, value: Any, kind: Any) -> Any:
        wanted: Any = Integral if kind is int else Real
        if isinstance(value, bool) or not isinstance(value, wanted) or not math.isfinite(value):
            raise self._refusal(value)
        too_small = self.least is not None and value < self.least
        too_small |= self.above is not None and value <= self.above
        if too_small or (self.most is not None and value > self.most):
            raise self._refusal(value)
        return kind(value)

    def _refusal(self, value: Any) -> RunError:
        return RunError(f"The option {self.name} must be {self.expected}, not {value!r}.")


def read_pairs(pairs: Iterable[str]) -> dict[str, str]:
    """Options written as NAME=VALUE, the values still as text."""
    given: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise RunError(f"{pair!r} is no option; write it as NAME=VALUE.")
        if name in given:
            raise RunError(f"The option {name} is given twice; give it once.")
        given[name] = value
    return given


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


ALIGNMENT = Option(
    "alignment",
    str,
    "overlap",
    "overlap: a token of several words is kept; strict: its sentence is skipped; words: each word "
    "is encoded on its own",
    choices=get_args(Sharing),
)
BOS = Option(
    "bos",
    str,
    "auto",
    "whether inputs begin with the BOS token; auto: as the tokenizer adds it",
    choices=BOS_CHOICES,
)
ATTENTION = Option(
    "attention",
    str,
    None,
    "how layers are observed; by the length of the inputs if none",
    choices=("dense", "rows", "fused"),
)
DOCUMENTS = Option(
    "documents", int, None, "documents drawn first; a sample is drawn from these", least=1
)

NO_TREES = (
    "the corpus has no dependency relations; "
    "make them with `headscope annotate INPUT --out CORPUS.parquet --spacy NAME`"
)
NO_NEXT = "a causal model cannot see the next token"


def say_errors(result: xr.Dataset) -> str:
    """What errors are over, in how many groups, and what they do not tell."""
    documents, groups = result.attrs.get("documents", 0), result.attrs.get("groups", 0)
    if result.attrs.get("unit_of_error") == "sentence":
        few = counted(documents, "documents") if documents else "no documents"
        said = (
            f"Errors are over sentences in {counted(groups, 'groups')}, for the corpus has {few}: "
            "they say how these texts vary, nothing of others."
        )
    else:
        said = f"Errors are over {counted(documents, 'documents')} in {counted(groups, 'groups')}."
        if documents < FEW_DOCUMENTS:
            said += (
                f" With fewer than {FEW_DOCUMENTS} documents, intervals are too narrow for some."
            )
    copies = results.read_attribute(result, "copies")
    return f"{said} {say_copies(copies)}".strip()


def say_copies(copies: Mapping[str, int]) -> str:
    """How many sentences and documents repeat an earlier one; nothing where none does."""
    sentences, documents = copies.get("sentences", 0), copies.get("documents", 0)
    if not sentences and not documents:
        return ""
    texts = counted(sentences, "sentences")
    if documents:
        texts += f" and {counted(documents, 'documents')}"
    verb = "repeats" if sentences == 1 and not documents else "repeat"
    return (
        f"{texts} {verb} an earlier one word for word: errors and intervals count them as texts "
        "of their own, and are too narrow."
    )


def say_words(result: xr.Dataset, prefix: str = "") -> str:
    """How words and tokens met in a run, in sentences; nothing where words were not looked at."""
    counts = {
        name.removeprefix(prefix): count
        for name, count in results.read_attribute(result, "words").items()
        if name.startswith(prefix)
    }
    total = counts.get(WORDS, 0)
    if not total:
        return ""
    said = [f"{counts[SPLIT] / total:.1%} of {counted(total, 'words')} are split into pieces."]
    if counts.get(SEVERAL):
        verb = "covers" if counts[SEVERAL] == 1 else "cover"
        several = f"{counted(counts[SEVERAL], 'tokens')} {verb} characters of several words:"
        said.append(f"{several} {_what_became(counts)}")
    return " ".join(said)


def _what_became(counts: dict[str, int]) -> str:
    if JOINED in counts:
        joined = counted(counts[JOINED], "words")
        verb = "was" if counts[JOINED] == 1 else "were"
        return f"{joined} that share one {verb} joined, each as its syntactic head."
    bare = counts.get(BARE, 0)
    left = f", which leaves {counted(bare, 'words')} without one" if bare else ""
    return f"each belongs to the word with which it shares the most characters{left}."
