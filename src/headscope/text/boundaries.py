"""Where sentences end in running text, by rules alone: no model, any script that marks the end.

```
Dr. Ito said, "Wait!" and left at 3.30 p.m. Then it rained... 雨停了。他们走了。 वह आया। हम गए।
   -                -                     |               |       |         |       |      |
```

A mark of the Latin kind ends a sentence when space follows and nothing speaks against it: an
abbreviation, an initial, the number of a list, a small letter behind it. Marks that mean nothing
else (。 । ؟ …) end one wherever they stand. Closing quotes and brackets stay with the sentence.
"""

import re
from collections.abc import Iterator
from unicodedata import category

_CLOSING = "”’»›)]}」』】）〉》〕］｝｣"
_EITHER = "\"'“"  # opens or closes, “ as German closes with it
_AHEAD = 80  # characters that are looked at on either side
_QUOTED = 2000  # characters within which a quote is closed
_OPENING = "\"'“‘„«‹([{「『【（〈《¿¡-–—"
_LATIN = ".!?…‼⁇⁈⁉"
# Chinese and Japanese, Devanagari, Arabic and Urdu, Armenian, Ethiopic, Burmese, Khmer, Tibetan.
_PLAIN = "。！？｡．।॥؟۔։።፧။។༎"
_MARKS = re.compile(f"[{re.escape(_LATIN + _PLAIN)}]+")
_WORD = re.compile(rf"[^\s{re.escape(_OPENING)}]*$")


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


# Never at the end of a sentence: something always follows them.
_TITLES = _words(
    "mr mrs ms dr prof st rev hon gen col capt lt sgt maj cmdr gov sen rep pres mt sr sra srta mme "
    "mlle mm hr frl vs cf viz eg ie e.g i.e fig figs eq eqs vol nos pp eds approx ca z.b d.h u.a "
    "bzw vgl evtl ggf inkl nr esim vrt p.ej p.ex"
)
# At the end of a sentence when a capital follows.
_SHORT = _words(
    "etc al inc ltd co corp jr llc dept univ assn bros est jan feb apr jun jul aug sep sept oct "
    "nov dec mon tue wed thu fri sat sun ave blvd rd a.m p.m a.d b.c usw jne ym ecc"
)
_NUMBERED = _words("no p ch sec art")  # no end before a number
_MONTHS = _words(
    "januar februar märz april mai juni juli august september oktober november dezember"
)
# Begin a sentence more often than a name behind an acronym.
_STARTERS = _words(
    "the a an he she it they we i you this that these those there but and in on at as if when "
    "however after before his her its their our my for to by with from"
)
_ACRONYM = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")  # U.S, e.g, z.B


def cut_sentences(text: str) -> Iterator[str]:
    """The sentences of a paragraph without the space around them."""
    start = 0
    for end in sentence_ends(text):
        sentence = text[start:end].strip()
        if sentence:
            yield sentence
        start = end


def sentence_ends(text: str) -> Iterator[int]:
    """Where the sentences of a paragraph end, by characters; the last is the end of the text."""
    start = 0
    for mark in _MARKS.finditer(text):
        end = _closed(text, start, mark.end())
        if _ends_here(text, start, mark, end):
            yield end
            start = end
    yield len(text)


def _closed(text: str, start: int, end: int) -> int:
    """Where the quotes and brackets end that close behind a mark."""
    while end < len(text) and (text[end] in _CLOSING or _closes(text, start, end)):
        end += 1
    return end


def _closes(text: str, start: int, place: int) -> bool:
    """Whether a quote of either kind closes: one was opened, or space follows."""
    quote = text[place]
    if quote not in _EITHER:
        return False
    before = text[max(start, place - _QUOTED) : place]
    if quote == "“":
        return "„" in before
    return before.count(quote) % 2 == 1 or not text[place + 1 : place + 2].strip()


def _ends_here(text: str, start: int, mark: re.Match[str], end: int) -> bool:
    rest = text[end : end + _AHEAD]
    if mark.group()[-1] in _PLAIN:
        return not _goes_on(rest)
    if not rest[:1].isspace() or not rest.strip():
        return not rest.strip()
    after = rest.lstrip().lstrip(_OPENING)
    if _goes_on(after):
        return False
    is_stop = mark.group() == "." and end == mark.end()  # "(cf. p. 3.)" is over
    before = text[max(start, mark.start() - _AHEAD) : mark.start()]
    return not is_stop or not _is_short(before, after)


def _goes_on(after: str) -> bool:
    """Whether a sentence cannot begin like this: a small letter, a mark that belongs to before."""
    return bool(after) and (category(after[0]) in ("Ll", "Pf", "Pe") or after[0] in ",;:，、；：،؛")


def _is_short(before: str, after: str) -> bool:
    """Whether a full stop marks a short form of a word instead of the end."""
    word, following = _last_word(before), _first_word(after)
    small = word.lower()
    if small in _TITLES or (small in _NUMBERED and following[:1].isdigit()):
        return True
    if word.isdigit():
        return before.strip() == word or (len(word) < 3 and following in _MONTHS)
    if small in _SHORT:
        return not after[:1].isupper()
    if _ACRONYM.fullmatch(word):
        return after[:1].isupper() and following not in _STARTERS
    return len(word) == 1 and word.isupper() and word != "I"


def _last_word(text: str) -> str:
    word = _WORD.search(text)
    return word.group() if word else ""


def _first_word(text: str) -> str:
    word = re.match(r"\w*", text)
    return word.group().lower() if word else ""
