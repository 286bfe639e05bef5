"""Every entry of every table, held against plain loops over queries and keys."""

import unicodedata

import numpy as np
import pytest

from headscope.portrait.tables import FAR, NONE, REACH, Look, Table
from headscope.portrait.texts import Text
from headscope.text.alignment import NO_WORD
from headscope.text.sentence import ROOT
from tests.references.portrait_sample import sample


def plain_entry(look: Look, table: Table, query: int, key: int) -> str | None:
    """The label that a pair has in a table, from the definitions alone."""
    text = look.text
    words = text.sentence.words
    ids = text.tokens.ids
    here, there = int(text.word[query]), int(text.word[key])
    distance = key - query
    side = "after" if distance > 0 else "before"
    content = [place for place in range(len(text)) if not text.null[place]]
    if text.null[key] or (text.is_causal and table.name == "offset" and distance > 0):
        return None
    if table.name == "offset":
        if abs(distance) <= REACH:
            return f"{distance:+d}" if distance else "0"
        sign = "+" if distance > 0 else "-"
        low = REACH + 1
        for high in FAR:
            if abs(distance) <= high:
                return f"{sign}{low} to {sign}{high}"
            low = high + 1
        return f"{sign}{low} and more"
    if table.name == "start":
        rank = content.index(key)
        return "first" if rank == 0 else "second or third" if rank <= 2 else None
    if table.name == "end":
        return "last" if key == content[-1] else None
    if table.name == "mark":
        return plain_mark(text, key)
    if table.name == "nearest mark":
        marks = [place for place in content if plain_mark(text, place) is not None]
        before = [place for place in marks if place < query]
        after = [place for place in marks if place > query]
        if before and key == before[-1]:
            return "before"
        return "after" if after and key == after[0] and not text.is_causal else None
    if table.name == "same token":
        return side if ids[query] == ids[key] and distance else None
    if table.name == "after the same":
        found = key > 0 and key - 1 != query and distance and ids[key - 1] == ids[query]
        return "yes" if found else None
    if table.name == "before the same":
        found = key + 1 < len(ids) and key + 1 != query and distance and ids[key + 1] == ids[query]
        return "yes" if found else None
    if table.name == "own word":
        return side if here == there != NO_WORD and distance else None
    if table.name in ("tag", "tags", "same tag"):
        tags = [words[word].upos if word != NO_WORD else None for word in (here, there)]
        if table.name == "tag":
            return tags[1]
        if None in tags:
            return None
        if table.name == "tags":
            return f"{tags[0]} {tags[1]}"
        return "yes" if tags[0] == tags[1] and distance else None
    if table.name in ("to head", "to dependent"):
        dependent, head = (here, there) if table.name == "to head" else (there, here)
        if NO_WORD in (here, there) or words[dependent].head in (None, ROOT):
            return None
        relation = words[dependent].deprel or ""
        named = relation if relation in table.labels else "other"
        return named if words[dependent].head == head else None
    raise NotImplementedError(table.name)


def plain_mark(text: Text, token: int) -> str | None:
    start, end = text.tokens.offsets[token]
    letters = text.tokens.text[start:end].strip()
    if text.tokens.special[token]:
        return "special token"
    if not letters:
        return "line break" if "\n" in text.tokens.text[start:end] else None
    if all(letter in ",،、，" for letter in letters):
        return "comma"
    if all(letter in ".!?…。！？" for letter in letters):
        return "end mark"
    is_mark = all(unicodedata.category(letter).startswith("P") for letter in letters)
    return "other mark" if is_mark else None


@pytest.mark.parametrize("name", ["mini-gpt2", "mini-bert"])
def test_tables_are_what_plain_loops_find(name: str) -> None:
    vocabulary = sample(name).vocabulary
    checked: set[str] = set()
    for text in sample(name).texts["score"][:6]:
        look = Look(text, vocabulary)
        for table, codes in zip(vocabulary.tables, look.codes(), strict=True):
            try:
                plain_entry(look, table, 1, 1)
            except NotImplementedError:
                continue
            checked.add(table.name)
            for query in range(len(text)):
                for key in range(query + 1 if text.is_causal else len(text)):
                    expected = plain_entry(look, table, query, key)
                    code = int(codes[query, key])
                    assert (None if code == NONE else table.labels[code]) == expected, (
                        table.name, query, key, text.tokens.labels)  # fmt: skip
    assert len(checked) == (12 if name == "mini-gpt2" else 14)


@pytest.mark.parametrize("name", ["mini-gpt2", "mini-bert"])
def test_the_nearest_of_a_class_is_one_key_at_most(name: str) -> None:
    vocabulary = sample(name).vocabulary
    text = sample(name).texts["score"][0]
    look = Look(text, vocabulary)
    for table, codes in zip(vocabulary.tables, look.codes(), strict=True):
        if not table.name.startswith("nearest tag"):
            continue
        for query in range(len(text)):
            found = codes[query][codes[query] != NONE]
            assert len(found) == len(np.unique(found))
            for code in found.tolist():
                (key,) = np.flatnonzero(codes[query] == code).tolist()
                between = range(key + 1, query) if key < query else range(query + 1, key)
                tagged = [place for place in between if look.tag[place] == code]
                assert [place for place in tagged if not text.null[place]] == []
