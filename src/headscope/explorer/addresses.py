"""Every address of the API: what answers it, and which of its answers a site has as files.

The server, the files of a site, the OpenAPI document and the types of the pages' JavaScript are
loops over `ANSWERS`. A page that asks for something new adds one line to it.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, get_type_hints

import msgspec

from headscope.explorer import answers
from headscope.explorer.answers.card import card, head_records, input_text
from headscope.explorer.answers.portraits import head_map, is_described, portrait
from headscope.explorer.answers.runs import OpenRun, Sources
from headscope.explorer.answers.thin import thin_inputs, thinned
from headscope.results.measure import heads_of

RUNS = ("run", "a", "b")  # parts of an address that are the short name of a run
MOST_KEPT = 256  # answers about runs


@dataclass(frozen=True)
class Answer:
    """An address below /api/, its parts in braces, and the function that answers it.

    The function gets the runs that the address names and then its other part as text; where it has
    no parts, the sources of all answers. Its docstring describes the address in the OpenAPI
    document, its annotation says what is sent.

    A site has an answer for every run, or pair of runs of one study. If the address has another
    part, `each` lists the texts that it may be for these runs, and `thinned` leaves out of an
    answer what would make too large a file.
    """

    path: str
    function: Callable[..., Any]
    each: Callable[..., Iterable[str]] | None = None
    thinned: Callable[[Any], Any] = lambda answer: answer

    @property
    def parts(self) -> list[str]:
        """The names of the address's parts, in their order."""
        return re.findall(r"{(\w+)", self.path)

    @property
    def runs(self) -> int:
        """How many runs the address names."""
        return sum(part in RUNS for part in self.parts)

    @property
    def is_sliced(self) -> bool:
        """Whether it is about one slice of a measure."""
        return "spec" in self.parts

    @property
    def summary(self) -> str:
        """What is answered, in a sentence."""
        return self.function.__doc__ or ""

    @property
    def type(self) -> Any:
        """The type of what is sent."""
        return get_type_hints(self.function)["return"]

    def make(self, sources: Sources, parts: Iterable[str]) -> Any:
        """The answer to an address with these parts."""
        runs, others = self._opened(sources, parts)
        return self.function(*runs, *others) if runs else self.function(sources)

    def content(self, sources: Sources, parts: Iterable[str]) -> bytes:
        """The answer as JSON; that about runs is computed once, until one of them changes."""
        runs, others = self._opened(sources, parts)
        return _content(self, runs, others) if runs else msgspec.json.encode(self.function(sources))

    def _opened(
        self, sources: Sources, parts: Iterable[str]
    ) -> tuple[tuple[OpenRun, ...], tuple[str, ...]]:
        values = tuple(parts)
        runs = tuple(sources.library.run(slug) for slug in values[: self.runs])
        return runs, values[self.runs :]


@lru_cache(maxsize=MOST_KEPT)
def _content(answer: Answer, runs: tuple[OpenRun, ...], others: tuple[str, ...]) -> bytes:
    return msgspec.json.encode(answer.function(*runs, *others))


def _heads(run: OpenRun) -> list[str]:
    return [str(head) for head in heads_of(run.data)]


def _heads_with_records(run: OpenRun) -> list[str]:
    return _heads(run) if run.has_records else []


def _described_heads(run: OpenRun) -> list[str]:
    return _heads(run) if is_described(run.data) else []


ANSWERS = (
    Answer("session", answers.session),
    Answer("runs/{run}", answers.detail),
    Answer("runs/{run}/measures/{spec:path}", answers.measured, each=answers.specs),
    Answer("runs/{run}/map", head_map),
    Answer("runs/{run}/portraits/{head}", portrait, each=_described_heads),
    Answer("runs/{run}/heads", answers.heads),
    Answer("runs/{run}/heads/{head}", card, each=_heads),
    Answer("runs/{run}/records/{head}", head_records, each=_heads_with_records, thinned=thinned),
    Answer("runs/{run}/inputs/{input}", input_text, each=thin_inputs),
    Answer("runs/{run}/clusters", answers.map_of),
    Answer("runs/{run}/statements", answers.said),
    Answer("compare/{a}/{b}", answers.comparison),
    Answer("compare/{a}/{b}/{spec:path}", answers.difference, each=answers.compared_specs),
)
