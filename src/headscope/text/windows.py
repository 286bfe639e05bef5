"""Documents cut into windows of whole sentences, each window one text with one list of words."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from headscope.text.sentence import Mention, Sentence, Word

GAP = " "  # between consecutive sentences


def join(sentences: Sequence[Sentence]) -> Sentence:
    """Consecutive sentences as one: spans, governors and mentions are moved along.

    Every sentence keeps its own root, so the result has as many roots as sentences.
    """
    words: list[Word] = []
    mentions: list[Mention] = []
    text = ""
    for sentence in sentences:
        text += GAP if text else ""
        mentions += [_move_mention(mention, len(words)) for mention in sentence.mentions]
        words += [_move_word(word, len(text), len(words)) for word in sentence.words]
        text += sentence.text
    first = sentences[0]
    return replace(first, text=text, words=tuple(words), mentions=tuple(mentions))


def cut(lengths: Iterable[int], size: int) -> tuple[list[list[int]], list[int]]:
    """Pack sentences of these lengths, in order, into windows of at most `size` tokens.

    Returns the windows and the sentences that are too long for any window. A window never reaches
    over a sentence that was left out: what precedes it is no context of what follows.
    """
    windows: list[list[int]] = [[]]
    too_long: list[int] = []
    used = 0
    for index, length in enumerate(lengths):
        if length > size:
            too_long.append(index)
            windows.append([])
            used = 0
            continue
        if used + length > size:
            windows.append([])
            used = 0
        windows[-1].append(index)
        used += length
    return [window for window in windows if window], too_long


def _move_word(word: Word, characters: int, words: int) -> Word:
    head = word.head + words if word.head is not None and word.head >= 0 else word.head
    return replace(word, start=word.start + characters, end=word.end + characters, head=head)


def _move_mention(mention: Mention, words: int) -> Mention:
    spans = tuple((start + words, end + words) for start, end in mention.spans)
    return replace(mention, spans=spans)
