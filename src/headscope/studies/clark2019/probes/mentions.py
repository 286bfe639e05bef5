"""Mentions of entities as phrases: where they are, their head word, what kind they are, and what
they must share with other mentions of the same entity: number, gender and person, from features if
the corpus has them, else from words.

What coreference can do without a network: three systems that pick an earlier mention.

- nearest: the mention just before;
- head match: the nearest with the same head word, else the nearest;
- rules: the nearest that passes the first of four sieves which lets any through: same words, same
  head word, no clash of number, gender or person, anything (after Lee et al. 2011, as in Clark et
  al. 2019, §4.3).
"""

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from typing import Literal

from headscope.text.sentence import Mention, Sentence, Word

Kind = Literal["pronoun", "proper", "nominal"]

_PRONOUN_TAGS = ("PRP", "PRP$", "WP", "WP$", "PRON")
_PROPER_TAGS = ("NNP", "NNPS", "PROPN")
# What follows the head noun of an English noun phrase: prepositions, relative words, participles,
# infinitives, brackets, commas and colons. Used only where the corpus has no trees.
_AFTER = "IN TO WDT WP WP$ WRB VBG VBN , : -LRB- ADP PUNCT"
_AFTER_HEAD = frozenset(_AFTER.split())
_POSSESSIVE_TAG = "POS"
_MALE = (
    "mr mr. sir lord king prince duke father dad man men boy boys son sons brother brothers "
    "husband uncle nephew grandfather grandson gentleman gentlemen guy guys actor waiter monk "
    "james john robert michael william david richard joseph thomas charles daniel matthew anthony "
    "mark paul steven george kenneth andrew edward peter henry adam jack ben samuel frank jason "
    "alexander patrick simon martin tom bob jim joe bill"
)
_FEMALE = (
    "mrs mrs. ms ms. miss madam lady queen princess duchess mother mum mom woman women girl girls "
    "daughter daughters sister sisters wife aunt niece grandmother granddaughter actress waitress "
    "nun mary patricia jennifer linda elizabeth barbara susan jessica sarah karen lisa nancy "
    "margaret sandra emily anna anne laura rebecca helen amy ruth julia maria jane alice emma kate "
    "rachel claire diana sophie"
)
_GENDERS: dict[str, str] = {
    **dict.fromkeys(_MALE.split(), "Masc"),
    **dict.fromkeys(_FEMALE.split(), "Fem"),
}
_PLURAL = "people men women children police folks parents guys"
_PLURALS = frozenset(_PLURAL.split())
_NUMBER_OF_TAG = {"NN": "Sing", "NNP": "Sing", "NNS": "Plur", "NNPS": "Plur"}
_NUMBER_OF_FEATURE = {"Sing": "Sing", "Plur": "Plur", "Ptan": "Plur"}


@dataclass(frozen=True)
class Agreement:
    """What two mentions of one entity must share; None where it is not known."""

    number: str | None = None  # Sing, Plur
    gender: str | None = None  # Masc, Fem, Neut
    person: str | None = None  # 1, 2, 3

    def allows(self, other: "Agreement") -> bool:
        """Whether nothing known of one contradicts the other."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return all(a is None or b is None or a == b for a, b in pairs)


def _entries(forms: str, *values: str | None) -> dict[str, Agreement]:
    return {form: Agreement(*values) for form in forms.split()}


PRONOUNS = (
    _entries("i me my mine myself", "Sing", None, "1")
    | _entries("we us our ours ourselves", "Plur", None, "1")
    | _entries("you your yours", None, None, "2")
    | _entries("yourself", "Sing", None, "2")
    | _entries("yourselves", "Plur", None, "2")
    | _entries("he him his himself", "Sing", "Masc", "3")
    | _entries("she her hers herself", "Sing", "Fem", "3")
    | _entries("it its itself this that", "Sing", "Neut", "3")
    | _entries("they them their theirs themselves these those", "Plur", None, "3")
    | _entries("who whom whose which", None, None, "3")
)


@dataclass(frozen=True)
class Phrase:
    """One mention in one window."""

    entity: str
    start: int  # words, end exclusive; a discontinuous mention reaches from first to last word
    end: int
    head: int
    kind: Kind | None  # None where the corpus has no tags and the word is no pronoun we know
    text: str  # lower-cased
    head_text: str  # lower-cased
    agreement: Agreement


def phrases(window: Sentence) -> list[Phrase]:
    """The mentions of a window in reading order: by first word, then the shorter one first."""
    mentions = [_phrase(mention, window.words) for mention in window.mentions]
    return sorted(mentions, key=lambda phrase: (phrase.start, phrase.end))


def antecedents(mentions: Sequence[Phrase], index: int) -> list[Phrase]:
    """Earlier mentions of the same entity.

    A mention with the same head word ("[[Ada], the engineer]" as two mentions) is none: a head
    word cannot point at itself.
    """
    entity = mentions[index].entity
    return [earlier for earlier in candidates(mentions, index) if earlier.entity == entity]


def candidates(mentions: Sequence[Phrase], index: int) -> list[Phrase]:
    """Earlier mentions of any entity that have another head word."""
    return [earlier for earlier in mentions[:index] if earlier.head != mentions[index].head]


def head_word(words: Sequence[Word], spans: Sequence[tuple[int, int]]) -> int:
    """The word of a phrase whose governor lies outside it; of several the first, not punctuation.

    Without a tree: the last word before the first preposition, participle, relative word or
    punctuation, and not a possessive 's.
    """
    inside = [index for start, end in spans for index in range(start, end)]
    if any(words[index].head is None for index in inside):
        return _last_before_modifier(words, inside)
    members = set(inside)
    tops = [index for index in inside if words[index].head not in members]
    spoken = [index for index in tops if words[index].upos != "PUNCT"]
    return (spoken or tops or inside)[0]


def kind_of(word: Word) -> Kind | None:
    """Pronoun, proper noun or anything else, by the tag of the head word."""
    tag = word.upos or word.xpos
    if tag in _PRONOUN_TAGS or (tag is None and word.text.lower() in PRONOUNS):
        return "pronoun"
    if tag in _PROPER_TAGS:
        return "proper"
    # A determiner that heads a phrase stands alone: "this", "those".
    if tag in ("DT", "DET"):
        return "pronoun"
    return "nominal" if tag is not None else None


def agreement(inside: Sequence[Word], head: Word, head_index: int) -> Agreement:
    """Number, gender and person of a phrase; `head_index` is its head word in the sentence."""
    features = _features(head.feats)
    pronoun = PRONOUNS.get(head.text.lower(), Agreement())
    is_list = any(word.deprel == "conj" and word.head == head_index for word in inside)
    return Agreement(
        number="Plur" if is_list else _number(head, features) or pronoun.number,
        gender=features.get("Gender") or pronoun.gender or _gender(inside, head),
        person=features.get("Person") or pronoun.person or "3",
    )


def _phrase(mention: Mention, words: Sequence[Word]) -> Phrase:
    head = head_word(words, mention.spans)
    inside = [words[index] for start, end in mention.spans for index in range(start, end)]
    return Phrase(
        entity=mention.entity,
        start=mention.spans[0][0],
        end=mention.spans[-1][1],
        head=head,
        kind=kind_of(words[head]),
        text=" ".join(word.text.lower() for word in inside),
        head_text=words[head].text.lower(),
        agreement=agreement(inside, words[head], head),
    )


def _last_before_modifier(words: Sequence[Word], inside: Sequence[int]) -> int:
    end = len(inside)
    for position, index in enumerate(inside[1:], start=1):
        if (words[index].xpos or words[index].upos) in _AFTER_HEAD:
            end = position
            break
    before = [index for index in inside[:end] if words[index].xpos != _POSSESSIVE_TAG]
    return (before or inside)[-1]


def _features(feats: str | None) -> dict[str, str]:
    """The features of a word in CoNLL-U notation."""
    features: dict[str, str] = {}
    for pair in (feats or "").split("|"):
        name, equals, value = pair.partition("=")
        if equals:
            features[name] = value
    return features


def _number(head: Word, features: dict[str, str]) -> str | None:
    if head.text.lower() in _PLURALS:
        return "Plur"
    return _NUMBER_OF_FEATURE.get(features.get("Number", "")) or _NUMBER_OF_TAG.get(head.xpos or "")


def _gender(inside: Sequence[Word], head: Word) -> str | None:
    """The gender of the head word, or of a title or first name before it: "Mrs. Hill"."""
    if head.text.lower() in _GENDERS:
        return _GENDERS[head.text.lower()]
    is_name = (head.upos or head.xpos) in ("PROPN", "NNP")
    return _GENDERS.get(inside[0].text.lower()) if is_name else None


def resolve(system: str, mentions: Sequence[Phrase], index: int) -> Phrase | None:
    """The earlier mention that a system picks; None where there is none."""
    for passes in SIEVES[system]:
        for earlier in reversed(candidates(mentions, index)):  # the nearest first
            if passes(mentions[index], earlier):
                return earlier
    return None


def _same_words(mention: Phrase, earlier: Phrase) -> bool:
    return mention.text == earlier.text


def _same_head_word(mention: Phrase, earlier: Phrase) -> bool:
    return mention.head_text == earlier.head_text


def _no_clash(mention: Phrase, earlier: Phrase) -> bool:
    return mention.agreement.allows(earlier.agreement)


def _anything(mention: Phrase, earlier: Phrase) -> bool:
    return True


SIEVES: dict[str, tuple[Callable[[Phrase, Phrase], bool], ...]] = {
    "nearest": (_anything,),
    "head_match": (_same_head_word, _anything),
    "rules": (_same_words, _same_head_word, _no_clash, _anything),
}
SYSTEMS = tuple(SIEVES)
