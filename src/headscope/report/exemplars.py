"""Exemplar sentences: the attending token bold, the attended token italic, every piece shown."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from headscope.heads import name_head
from headscope.studies.study import Choice
from headscope.views.labels import bare, spaces_before

Exemplar = dict[str, Any]


def of_choice(choice: Choice, exemplars: Iterable[Exemplar]) -> list[Exemplar]:
    """The exemplars of one head, the surest first."""
    own = [
        each for each in exemplars if (each["layer"], each["head"]) == (choice.layer, choice.head)
    ]
    return sorted(own, key=lambda each: each["rank"])


def sentence_html(exemplar: Exemplar) -> str:
    """The tokens of a sentence with the pair marked."""
    shown = []
    for place, token in enumerate(_spaced(exemplar)):
        text = escape(token)
        if place == exemplar["query"]:
            text = f"<b>{text}</b>"
        if place == exemplar["key"]:
            text = f"<i>{text}</i>"
        shown.append(f"<span>{text}</span>")
    return "".join(shown)


def head_html(choice: Choice, exemplars: Sequence[Exemplar]) -> str:
    """One head: its name, why it is shown, and its exemplars."""
    items = "".join(
        f'<li><span class="weight">{each["weight"]:.2f}</span>'
        f'<span class="sentence">{sentence_html(each)}</span></li>'
        for each in exemplars
    )
    title = f"<h4>{name_head(choice.layer, choice.head)} <small>{escape(choice.why)}</small></h4>"
    return f'<article class="exemplar">{title}<ol>{items}</ol></article>'


def csv_rows(choices: Sequence[Choice], exemplars: Sequence[Exemplar]) -> list[dict[str, Any]]:
    """The same as plain rows, the pair marked as **attending** and *attended*."""
    return [
        {
            "head": name_head(choice.layer, choice.head),
            "why": choice.why,
            "rank": each["rank"] + 1,
            "weight": round(each["weight"], 4),
            "attending": each["tokens"][each["query"]].strip(),
            "attended": each["tokens"][each["key"]].strip(),
            "sentence": _marked(each),
            "id": each["id"],
        }
        for choice in choices
        for each in of_choice(choice, exemplars)
    ]


def _marked(exemplar: Exemplar) -> str:
    return "".join(
        _mark(token, place == exemplar["query"], place == exemplar["key"])
        for place, token in enumerate(_spaced(exemplar))
    )


def _spaced(exemplar: Exemplar) -> list[str]:
    """The tokens with their spaces, so that together they read as the sentence does."""
    tokens = exemplar["tokens"]
    spaces = spaces_before(tokens, exemplar["text"])
    return [" " * space + bare(token) for token, space in zip(tokens, spaces, strict=True)]


def _mark(token: str, attending: bool, attended: bool) -> str:
    stars = "*" * (2 * attending + attended)
    lead = token[: len(token) - len(token.lstrip())]
    return f"{lead}{stars}{token.lstrip()}{stars}"
