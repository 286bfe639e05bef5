"""Where a sentence has spaces between its tokens, so that it reads as it was written."""

from collections.abc import Iterator, Sequence

CONTINUES = "##"  # how WordPiece marks a piece that goes on with a word


def spaces_before(tokens: Sequence[str], text: str) -> tuple[bool, ...]:
    """For every token whether a space stands before it in `text`.

    Tokens are looked for in the text one after the other. One that is not there, such as [CLS] or
    half a character, is judged by its own mark: a leading space, or the lack of "##".
    """
    return tuple(_spaces(tokens, text))


def bare(token: str) -> str:
    """A token without the marks that tell whether it begins a word."""
    shown = token.strip(" ").removeprefix(CONTINUES)
    return shown or token


def _spaces(tokens: Sequence[str], text: str) -> Iterator[bool]:
    marks_spaces = any(token.startswith(" ") for token in tokens)
    text = text.lower() if len(text.lower()) == len(text) else text
    at, follows = 0, True  # follows: the token before was found, so this one is next to it
    for place, token in enumerate(tokens):
        found = text.find(bare(token).lower(), at)
        there = found >= 0 and (not follows or not text[at:found].strip())
        if there:
            yield place > 0 and (found == 0 or text[found - 1].isspace())
            at = found + len(bare(token))
        else:
            yield place > 0 and (token.startswith(" ") if marks_spaces else token[:2] != CONTINUES)
        follows = there
