"""What coreference can do without a network: three systems that pick an earlier mention.

- nearest: the mention just before;
- head match: the nearest with the same head word, else the nearest;
- rules: the nearest that passes the first of four sieves which lets any through: same words, same
  head word, no clash of number, gender or person, anything (after Lee et al. 2011, as in Clark et
  al. 2019, §4.3).
"""

from collections.abc import Callable, Sequence

from headscope.probes.coreference.mentions import Phrase, candidates

SYSTEMS = ("nearest", "head_match", "rules")

Test = Callable[[Phrase, Phrase], bool]


def same_text(mention: Phrase, earlier: Phrase) -> bool:
    """Word for word the same, whatever the case."""
    return mention.text == earlier.text


def same_head(mention: Phrase, earlier: Phrase) -> bool:
    """The same head word, whatever the case."""
    return mention.head_text == earlier.head_text


def agrees(mention: Phrase, earlier: Phrase) -> bool:
    """Number, gender and person do not clash."""
    return mention.agreement.allows(earlier.agreement)


def anything(mention: Phrase, earlier: Phrase) -> bool:
    """Every earlier mention will do."""
    return True


SIEVES: dict[str, tuple[Test, ...]] = {
    "nearest": (anything,),
    "head_match": (same_head, anything),
    "rules": (same_text, same_head, agrees, anything),
}


def resolve(system: str, found: Sequence[Phrase], index: int) -> int | None:
    """The place of the earlier mention that a system picks; None where there is none."""
    near_first = candidates(found, index)[::-1]
    for test in SIEVES[system]:
        for place in near_first:
            if test(found[index], found[place]):
                return place
    return None
