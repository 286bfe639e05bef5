"""Number, gender and person of a phrase: from features if the corpus has them, else from words."""

from collections.abc import Sequence
from dataclasses import dataclass

from headscope.text.sentence import Word


@dataclass(frozen=True)
class Agreement:
    """What two mentions of one entity must share; None where it is not known."""

    number: str | None = None  # Sing, Plur
    gender: str | None = None  # Masc, Fem, Neut
    person: str | None = None  # 1, 2, 3

    def allows(self, other: "Agreement") -> bool:
        """Whether nothing known of one contradicts the other."""
        pairs = (
            (self.number, other.number),
            (self.gender, other.gender),
            (self.person, other.person),
        )
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
_PLURAL = "people men women children police folks parents guys"
_GENDERS: dict[str, str] = dict.fromkeys(_MALE.split(), "Masc")
_GENDERS |= dict.fromkeys(_FEMALE.split(), "Fem")
_PLURALS = frozenset(_PLURAL.split())
_NUMBER_OF_TAG = {"NN": "Sing", "NNP": "Sing", "NNS": "Plur", "NNPS": "Plur"}
_NUMBER_OF_FEATURE = {"Sing": "Sing", "Plur": "Plur", "Ptan": "Plur"}


def agreement(inside: Sequence[Word], head: Word, place: int) -> Agreement:
    """Agreement of a phrase: its words, its head word and the place of that in the sentence."""
    features = _features(head.feats)
    known = PRONOUNS.get(head.text.lower(), Agreement())
    joined = any(word.deprel == "conj" and word.head == place for word in inside)
    return Agreement(
        number="Plur" if joined else _number(head, features) or known.number,
        gender=features.get("Gender") or known.gender or _gender(inside, head),
        person=features.get("Person") or known.person or "3",
    )


def _features(feats: str | None) -> dict[str, str]:
    """The features of a word in CoNLL-U notation."""
    pairs = (pair.partition("=") for pair in (feats or "").split("|") if "=" in pair)
    return {name: value for name, _, value in pairs}


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
