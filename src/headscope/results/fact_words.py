"""How facts are called: what a head looks at, from where, and a short name for a map.

Labels of Universal Dependencies and of spaCy's English models have words; any other tag or relation
is called by its label.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class FactName:
    """A fact by its group and its key."""

    group: str
    key: str
    is_special: bool = False  # applies to some queries only: a relation, a repeated token


@dataclass(frozen=True)
class Words:
    """A fact in words: "its object", "verb → object", "from a verb"."""

    target: str
    short: str
    origin: str = ""  # where it is looked from, if not from anywhere


# One noun of a class and several.
CLASSES = {
    "NOUN": ("noun", "nouns"), "PROPN": ("name", "names"), "VERB": ("verb", "verbs"),
    "AUX": ("auxiliary verb", "auxiliary verbs"), "ADJ": ("adjective", "adjectives"),
    "ADV": ("adverb", "adverbs"), "ADP": ("preposition", "prepositions"),
    "DET": ("determiner", "determiners"), "PRON": ("pronoun", "pronouns"),
    "CCONJ": ("conjunction", "conjunctions"), "SCONJ": ("subordinator", "subordinators"),
    "PART": ("particle", "particles"), "NUM": ("number", "numbers"),
    "content": ("content word", "content words"), "function": ("function word", "function words"),
    "nominal": ("noun or name", "nouns and names"), "verbal": ("verb", "verbs and auxiliaries"),
    "modifier": ("adjective, adverb or number", "adjectives, adverbs and numbers"),
}  # fmt: skip
SHORT_CLASSES = {"nominal": "nouns", "verbal": "verbs", "modifier": "modifiers"}
SHORT_CLASS = {"nominal": "noun", "verbal": "verb", "modifier": "modifier"}

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight")

# Of a relation: the dependent, what its head is, and the dependent as the head has it.
RELATIONS = {
    "det": ("a determiner", "noun", "determiner"),
    "amod": ("an adjective", "noun", "adjective"),
    "compound": ("the first part of a compound", "head noun", "first part"),
    "poss": ("a possessor", "noun", "possessor"),
    "nmod:poss": ("a possessor", "noun", "possessor"),
    "nummod": ("a number", "noun", "number"),
    "nmod": ("a noun that modifies", "noun", "modifying noun"),
    "prep": ("a preposition", "governor", "preposition"),
    "case": ("a preposition", "noun", "preposition"),
    "pobj": ("the object of a preposition", "preposition", "object"),
    "obj": ("an object", "verb", "object"),
    "dobj": ("an object", "verb", "object"),
    "iobj": ("an indirect object", "verb", "indirect object"),
    "obl": ("an adverbial noun", "verb", "adverbial noun"),
    "nsubj": ("a subject", "verb", "subject"),
    "nsubjpass": ("a passive subject", "verb", "subject"),
    "nsubj:pass": ("a passive subject", "verb", "subject"),
    "csubj": ("a clause as subject", "verb", "subject clause"),
    "aux": ("an auxiliary", "verb", "auxiliary"),
    "auxpass": ("a passive auxiliary", "verb", "auxiliary"),
    "aux:pass": ("a passive auxiliary", "verb", "auxiliary"),
    "cop": ("a copula", "predicate", "copula"),
    "advmod": ("an adverb", "governor", "adverb"),
    "cc": ("a conjunction", "conjunct", "conjunction"),
    "conj": ("a later conjunct", "first conjunct", "later conjunct"),
    "mark": ("a subordinator", "verb", "subordinator"),
    "acomp": ("a complement", "verb", "complement"),
    "attr": ("a predicate noun", "verb", "predicate noun"),
    "advcl": ("an adverbial clause", "verb", "adverbial clause"),
    "relcl": ("a relative clause", "noun", "relative clause"),
    "acl:relcl": ("a relative clause", "noun", "relative clause"),
    "acl": ("a clause", "noun", "clause"),
    "ccomp": ("a clausal complement", "verb", "clausal complement"),
    "xcomp": ("an open complement", "verb", "open complement"),
    "pcomp": ("a clause after a preposition", "preposition", "clause"),
    "appos": ("an apposition", "noun", "apposition"),
    "neg": ("a negation", "verb", "negation"),
    "prt": ("a verb particle", "verb", "particle"),
    "compound:prt": ("a verb particle", "verb", "particle"),
    "MODIFIER": ("a determiner or modifier", "noun", "determiner or modifier"),
    "OBJECT": ("an object", "verb or preposition", "object"),
    "AUXILIARY": ("an auxiliary", "verb", "auxiliary"),
    "SUBJECT": ("a subject", "verb", "subject"),
    "FUNCTION": ("a determiner or auxiliary", "noun or verb", "determiner or auxiliary"),
    "any": ("a word", "governor", "dependents"),
}
GOVERNORS = {"governor": "a word", "head noun": "a noun", "first conjunct": "a conjunct",
             "predicate": "a predicate"}  # fmt: skip
SHORT_DEPENDENTS = {
    "det": "det", "MODIFIER": "modifier", "FUNCTION": "det", "any": "word",
    "pobj": "object", "nsubjpass": "subject", "nsubj:pass": "subject", "auxpass": "auxiliary",
    "aux:pass": "auxiliary", "compound": "compound", "relcl": "clause", "acl:relcl": "clause",
}  # fmt: skip
SHORT_HEADS = {
    "governor": "head", "head noun": "noun", "first conjunct": "conjunct", "noun or verb": "noun",
    "verb or preposition": "head", "preposition": "prep",
}  # fmt: skip

FIXED = {
    "0": Words("itself", "itself"),
    "-1": Words("the previous token", "previous token"),
    "+1": Words("the next token", "next token"),
    "-1..0": Words("itself and the token before", "recent tokens"),
    "-3..0": Words("itself and the three tokens before", "recent tokens"),
    "-2..-1": Words("the two tokens before", "recent tokens"),
    "-4..-1": Words("the four tokens before", "recent tokens"),
    "-4..-2": Words("two to four tokens back", "a few back"),
    "-8..-3": Words("three to eight tokens back", "a few back"),
    "+1..+2": Words("the next two tokens", "next tokens"),
    "+1..+4": Words("the next four tokens", "next tokens"),
    "+2..+4": Words("two to four tokens ahead", "a few ahead"),
    "+3..+8": Words("three to eight tokens ahead", "a few ahead"),
    "±1": Words("the tokens on either side", "neighbours"),
    "±2": Words("the two tokens on either side", "neighbours"),
    "±4": Words("the four tokens on either side", "neighbours"),
    "before": Words("what stands before", "leftwards"),
    "after": Words("what comes after", "rightwards"),
    "first word": Words("the first word", "first word"),
    "first three words": Words("the first three words", "first words"),
    "punctuation": Words("punctuation", "punctuation"),
    "comma": Words("commas", "commas"),
    "end mark": Words("marks that end a sentence", "end marks"),
    "other mark": Words("brackets, quotes and dashes", "brackets and quotes"),
    "line break": Words("line breaks", "line breaks"),
    "special token": Words("special tokens", "special tokens"),
    "last mark": Words("the last punctuation mark", "last mark"),
    "next mark": Words("the next punctuation mark", "next mark"),
    "clause bounds": Words("punctuation and conjunctions", "clause bounds"),
    "same token": Words("the same token elsewhere", "same token"),
    "after the same": Words("what followed the same token before", "after the same"),
    "before the same": Words("what stood before the same token", "before the same"),
    "own word": Words("the other pieces of its word", "own word"),
    "own word before": Words("the earlier pieces of its word", "own word"),
    "own word after": Words("the later pieces of its word", "own word"),
    "rare": Words("rare tokens", "rare tokens"),
    "very frequent": Words("the most frequent tokens", "frequent tokens"),
    "capital": Words("capitalised tokens", "capitals"),
    "digit": Words("digits", "digits"),
    "coreference": Words("another mention of the same thing", "coreference"),
}


def words_of(name: FactName, *, is_causal: bool) -> Words:
    """A fact in words; in a causal model the other pieces of a word are the earlier ones."""
    key = name.key
    if key == "own word" and is_causal:
        key = "own word before"
    if key in FIXED:
        return FIXED[key]
    kind, _, rest = key.partition(" ")
    if kind == "to":
        several = CLASSES[rest][1] if rest in CLASSES else f"words tagged {rest}"
        return Words(several, SHORT_CLASSES.get(rest, several))
    if kind in ("last", "next"):
        single = CLASSES[rest][0] if rest in CLASSES else f"word tagged {rest}"
        return Words(f"the {kind} {single}", f"{kind} {SHORT_CLASS.get(rest, single)}")
    if kind in ("up", "down"):
        return _words_of_relation(kind, rest)
    distance = int(key)
    ahead = "ahead" if distance > 0 else "back"
    return Words(f"the token {NUMBERS[abs(distance)]} {ahead}", f"a few {ahead}")


def _words_of_relation(way: str, relation: str) -> Words:
    usual = (f"the dependent of a relation {relation}", "governor", f"dependent ({relation})")
    dependent, head, own = RELATIONS.get(relation, usual)
    plain = own if relation in RELATIONS else relation
    short_head = SHORT_HEADS.get(head, head)
    short = SHORT_DEPENDENTS.get(relation, plain)
    if way == "up":
        return Words(f"its {head}", f"{short} → {short_head}", f"from {dependent}")
    return Words(f"its {own}", f"{short_head} → {short}", f"from {_with_article(head)}")


def _with_article(head: str) -> str:
    return GOVERNORS.get(head, f"a {head}")
