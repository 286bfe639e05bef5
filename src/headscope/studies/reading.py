"""How studies read a corpus: the options and reasons they share, and how a report says it."""

from typing import get_args

import xarray as xr

from headscope.results import dataset as results
from headscope.studies.option import Option
from headscope.text.sharing import BARE, JOINED, SEVERAL, SPLIT, WORDS, Sharing
from headscope.wording import counted

ALIGNMENT = Option(
    "alignment",
    str,
    "overlap",
    "overlap: a token of several words is kept; strict: its sentence is skipped; words: each word "
    "is encoded on its own",
    choices=get_args(Sharing),
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


def say_words(result: xr.Dataset, prefix: str = "") -> str:
    """How words and tokens met in a run, in sentences; nothing where words were not looked at."""
    counts = {
        name.removeprefix(prefix): count
        for name, count in results.words(result).items()
        if name.startswith(prefix)
    }
    total = counts.get(WORDS, 0)
    if not total:
        return ""
    said = [f"{counts[SPLIT] / total:.1%} of {counted(total, 'words')} are split into pieces."]
    if counts.get(SEVERAL):
        said.append(f"{_tokens(counts[SEVERAL])} {_what_became(counts)}")
    return " ".join(said)


def _tokens(count: int) -> str:
    verb = "covers" if count == 1 else "cover"
    return f"{counted(count, 'tokens')} {verb} characters of several words:"


def _what_became(counts: dict[str, int]) -> str:
    if JOINED in counts:
        joined = counted(counts[JOINED], "words")
        verb = "was" if counts[JOINED] == 1 else "were"
        return f"{joined} that share one {verb} joined, each as its syntactic head."
    bare = counts.get(BARE, 0)
    left = f", which leaves {counted(bare, 'words')} without one" if bare else ""
    return f"each belongs to the word with which it shares the most characters{left}."
