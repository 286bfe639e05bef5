"""Named spans of tokens: turns of a chat, paragraphs, sentences, or what a pattern finds.

Spans are found in the text, by characters, and hold the tokens that touch it there. A token that
is only a marker of the template or the tokenizer belongs to no span but a turn.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from headscope.errors import ModelError
from headscope.model.inputs.tokens import Tokens
from headscope.model.inputs.words import CharacterSpan
from headscope.text.boundaries import sentence_ends
from headscope.wording import shorten

By = Literal["turn", "message", "role", "paragraph", "sentence"]

_PARAGRAPH = re.compile(r"\S(?:.|\n(?!\s*\n))*\S|\S")
_LINE = re.compile(r".+")
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_LONGEST_NAME = 40


@dataclass(frozen=True, slots=True)
class Span:
    """Some tokens under a name."""

    name: str
    tokens: tuple[int, ...]  # ascending

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"Span({self.name!r}, tokens {ranges(self.tokens)})"

    def __str__(self) -> str:
        """As settings of views have it: "12-45 Document 1"."""
        return f"{ranges(self.tokens)} {self.name}"

    @classmethod
    def parse(cls, text: str) -> "Span":
        """The span that `str` wrote."""
        where, _, name = text.partition(" ")
        if not name.strip():
            raise ModelError(f'{text!r} is no span; write its tokens and its name: "12-45 answer".')
        return cls(name.strip(), parse_ranges(where))


def ranges(tokens: Sequence[int]) -> str:
    """Ascending numbers, neighbours as a range: "3-7+9"."""
    runs: list[list[int]] = []
    for token in tokens:
        if runs and token == runs[-1][1] + 1:
            runs[-1][1] = token
        else:
            runs.append([token, token])
    return "+".join(f"{first}-{last}" if last > first else str(first) for first, last in runs)


def parse_ranges(text: str) -> tuple[int, ...]:
    """The numbers that `ranges` wrote, ascending and once each."""
    numbers: set[int] = set()
    for part in text.split("+"):
        match = _RANGE.fullmatch(part)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise ModelError(f"{text!r} are no tokens; write them like 3, 3-7 or 3-7+9.")
        numbers.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(sorted(numbers))


def spans_by(side: Tokens, by: By) -> tuple[Span, ...]:
    """The spans that a text has of itself."""
    if by not in get_args(By):
        raise ModelError(f"There are no spans by {by!r}; choose {', '.join(get_args(By))}.")
    if by in ("turn", "message", "role") and not side.turns:
        raise ModelError(
            f"There are no spans by {by}: the text is no chat. Trace it with messages=, or take "
            "paragraphs, sentences or a pattern."
        )
    if by == "turn":
        return turns(side)
    if by in ("message", "role"):
        return _messages(side, numbered=by == "message")
    places: list[CharacterSpan] = []
    for region in _contents(side) if side.turns else [(0, len(side.text))]:
        if by == "paragraph":
            places += [match.span() for match in _PARAGRAPH.finditer(side.text, *region)]
        else:
            places += _sentences(side.text, *region)
    spans: list[Span] = []
    for place in places:
        tokens = tokens_within(side, place)
        if tokens:
            spans.append(Span(f"{by} {len(spans) + 1}", tokens))
    return tuple(spans)


def _sentences(text: str, start: int, end: int) -> Iterator[CharacterSpan]:
    """The sentences between two characters; the end of a line ends one, too."""
    for line in _LINE.finditer(text, start, end):
        first = line.start()
        for last in sentence_ends(line[0]):
            yield first, line.start() + last
            first = line.start() + last


def turns(side: Tokens) -> tuple[Span, ...]:
    """The turns of a chat, markers and headers included; a role that comes twice is numbered."""
    starts = [turn.start for turn in side.turns]
    tokens: list[list[int]] = [[] for _ in starts]
    for token, (start, _) in enumerate(side.offsets):
        number = max((n for n, first in enumerate(starts) if first <= start), default=0)
        if starts:
            tokens[number].append(token)
    names = _numbered([turn.role for turn in side.turns])
    return tuple(Span(name, tuple(own)) for name, own in zip(names, tokens, strict=True) if own)


def spans_of_characters(side: Tokens, places: Mapping[str, CharacterSpan]) -> tuple[Span, ...]:
    """Spans by name and by their first character and the one after their last."""
    return tuple(Span(name, _tokens_at(side, place, name)) for name, place in places.items())


def spans_of_pattern(side: Tokens, pattern: str | re.Pattern[str]) -> tuple[Span, ...]:
    """One span for every match; its first group names it, where it has one, else its own text.

    The span is the group `span` where the pattern has that, else the whole match.
    """
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ModelError(f"{pattern!r} is no regular expression: {error}.") from error
    matches = [match for match in compiled.finditer(side.text) if match[0]]
    if not matches:
        raise ModelError(
            f"{compiled.pattern!r} finds nothing in {shorten(side.text, _LONGEST_NAME)!r}; "
            "every span needs at least one character."
        )
    inner = "span" if "span" in compiled.groupindex else 0
    names = _numbered([_name(match) for match in matches])
    return tuple(
        Span(name, _tokens_at(side, match.span(inner), name))
        for name, match in zip(names, matches, strict=True)
    )


def tokens_within(side: Tokens, place: CharacterSpan) -> tuple[int, ...]:
    """The tokens of what is written there, from its first to its last letter; no markers."""
    written = side.text[slice(*place)]
    start = place[0] + len(written) - len(written.lstrip())
    end = start + len(written.strip())
    return tuple(
        token
        for token, (first, last) in enumerate(side.offsets)
        if not side.special[token] and max(start, first) < min(end, last)
    )


def check_spans(spans: Iterable[Span], tokens: int) -> tuple[Span, ...]:
    """The spans, or an error for one that is empty, lies outside or has the name of another."""
    checked = tuple(spans)
    for span in checked:
        if not span.tokens:
            raise ModelError(f"The span {span.name!r} has no tokens; leave it out.")
        if span.tokens[-1] >= tokens or span.tokens[0] < 0:
            raise ModelError(
                f"The span {span.name!r} lies outside the text: it has token {span.tokens[-1]}, "
                f"but there are only tokens 0 to {tokens - 1}."
            )
    twice = [name for name, count in Counter(span.name for span in checked).items() if count > 1]
    if twice:
        raise ModelError(f"Two spans have the name {twice[0]!r}; give each its own.")
    return checked


def _tokens_at(side: Tokens, place: CharacterSpan, name: str) -> tuple[int, ...]:
    start, end = place
    if not 0 <= start < end <= len(side.text):
        raise ModelError(
            f"The span {name!r} lies outside the text: it is {start} to {end}, but the text has "
            f"characters 0 to {len(side.text)}."
        )
    tokens = tokens_within(side, place)
    if not tokens:
        said = shorten(side.text[start:end], _LONGEST_NAME)
        raise ModelError(f"The span {name!r} has no tokens: {said!r} is a marker or blank.")
    return tokens


def _messages(side: Tokens, *, numbered: bool) -> tuple[Span, ...]:
    """What the messages say, without the template; those of a role together if not numbered."""
    contents = [
        (turn.role, tokens_within(side, (start, end)))
        for turn, (start, end) in zip(side.turns, _contents(side), strict=True)
    ]
    messages = [(role, tokens) for role, tokens in contents if tokens]
    if numbered:
        names = _numbered([role for role, _ in messages])
        return tuple(Span(name, tokens) for name, (_, tokens) in zip(names, messages, strict=True))
    together: dict[str, list[int]] = {}
    for role, tokens in messages:
        together.setdefault(role, []).extend(tokens)
    return tuple(Span(role, tuple(sorted(tokens))) for role, tokens in together.items())


def _contents(side: Tokens) -> Iterator[CharacterSpan]:
    """The text of each turn; of one whose message is not placed exactly, all of the turn.

    An answer that was begun goes on to the end: there the model has written.
    """
    ends = [*(turn.start for turn in side.turns[1:]), len(side.text)]
    for turn, end in zip(side.turns, ends, strict=True):
        if turn.content is None:
            yield turn.start, end
        elif turn is side.turns[-1] and turn.content[1] <= turn.content[0]:
            yield turn.content[0], end
        else:
            yield turn.content


def _name(match: re.Match[str]) -> str:
    given = match.groupdict().get("name") or next(filter(None, match.groups()), None)
    return shorten(given or match[0], _LONGEST_NAME)


def _numbered(names: Sequence[str]) -> list[str]:
    """The names, those that come more than once with a number."""
    total, seen = Counter(names), Counter[str]()
    result = []
    for name in names:
        seen[name] += 1
        result.append(f"{name} {seen[name]}" if total[name] > 1 else name)
    return result
