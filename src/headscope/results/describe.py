"""One description per head: what it looks at, in a sentence, with a short name.

```
sink         "L4H3 leaves 28 % of its weight on the first token."
what first   "The rest goes from a verb to its subject (55 % of the weight there; position alone
             predicts 24 %)"
then         "; overall it leans towards itself and the three tokens before (47 %, evenly 23 %)."
how much     "The first token explains 26 % of it, word class 15 more, the others 16; 43 % has no
             name yet."
```

What is said is chosen on some texts and scored on others: a fact must pass its thresholds on both,
and two standard errors less than it scores must still be enough. Thresholds stand at the top, words
in `headscope.results.fact_words`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace

import numpy as np
from jaxtyping import Float

from headscope.head import Head
from headscope.results.fact_words import FactName, words_of
from headscope.results.inspection import read_json
from headscope.results.measure import RoleGroup

ERRORS = 2.0  # standard errors that a number must be above its threshold
CASES = 30  # queries that a fact must apply to
EVENLY, WIDELY = 0.85, 0.70  # width: share of the visible tokens that attention is as wide as
RESTS, LEAVES = 0.50, 0.20  # weight on a sink: it rests there, or it is worth saying
SINK_ODDS = 2.0  # times what even attention would give
SINK_NAMES = 0.40  # weight on a sink from which it gives the name
APART = 0.20  # by how much sentences and passages must differ to be told apart
NAME_GAIN = 0.15  # what a fact that applies to any query must explain of the rest
CHOSEN_GAIN = 0.10  # the same where it was chosen
NAME_GAIN_LOW = 0.10  # the same less two standard errors
NAME_SHARE, SURE_GAIN = 0.30, 0.40  # and what it must get, unless it explains so much
ODDS = 1.5  # times what even attention would give
NEAR_BEST = 0.9  # of the largest gain: the simplest of these is said
STRONG = {True: 0.40, False: 0.60}  # gain of a single place, or a range, that nothing overtakes
SPECIAL_WHEN, SPECIAL_ABOVE = 0.40, 0.25  # weight where a special fact applies, and beyond position
SPECIAL_GAIN, OVERTAKES = 0.03, 0.05  # its gain, and that with which it may come first
REPEATED, REPEATED_ODDS = 0.20, 5.0  # weight on what followed the same token, times even
WIDE_GAIN = 0.30  # of the rest, of a fact that names a head which spreads widely
ANCHORED = 0.50  # of what the other rows explain, of a fact about words that names the head
COLUMN = 0.60  # share that the other rows of a text explain
LEAN_GAIN = 0.05  # of a slight lean
TOLD_APART = 4.0  # times even, from which even attention is not mentioned
WORTH_SAYING = 0.03  # explained share of a group
LEFT = 0.10  # share without a name that is mentioned
LONGEST = 300  # characters
SLIGHTLY = ", with a slight lean to "

SINGLE = ("0", "-1", "+1")
REPETITIONS = ("after the same", "same token", "before the same")
GROUP_WORDS = {
    "position": "position", "marks": "punctuation", "repetition": "repetition",
    "token": "the kind of token", "word_class": "word class", "syntax": "syntax",
}  # fmt: skip
# Of facts that explain nearly the same the one of the first of these groups is said. Classes come
# before rare tokens: "content words" says more.
ORDER = ("position", "marks", "repetition", "word_class", "token", "syntax")


# The group of a fact as `theme.ROLES` colours it.
GROUPS: Mapping[str, RoleGroup] = {
    "position": "position", "marks": "marks", "repetition": "repetition", "token": "token",
    "word_class": "word class", "syntax": "syntax",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Gains:
    """What facts explain of heads, and how much weight they get: fact × head, or of one head."""

    weight: Float[np.ndarray, "fact *head"]
    gain: Float[np.ndarray, "fact *head"]  # share of (CE_even − H) of the rest
    gain_error: Float[np.ndarray, "fact *head"]
    share: Float[np.ndarray, "fact *head"]  # of the rest
    even: Float[np.ndarray, "fact *head"]  # of the rest, if attention were even
    when: Float[np.ndarray, "fact *head"]  # of the rest of the queries that it applies to
    when_error: Float[np.ndarray, "fact *head"]
    position: Float[np.ndarray, "fact *head"]  # there, by the head's own position portrait
    cases: Float[np.ndarray, "fact *head"]  # how many these queries are

    def of_head(self, head: int) -> "Gains":
        """The same of one head."""
        return Gains(*(getattr(self, each.name)[..., head] for each in fields(self)))

    @property
    def when_even(self) -> Float[np.ndarray, "fact *head"]:
        """What even attention gives where the fact applies."""
        return self.even * self.when / np.maximum(self.share, 1e-12)


@dataclass(frozen=True)
class Sink:
    """Where a head may rest: null tokens by name, and how much of its weight they get."""

    name: str  # "the first token", "[CLS] and [SEP]"
    short: str
    share: float
    even: float
    passages: float = float("nan")  # the same in passages, where sentences were read, too

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        share: float,
        first: float,
        even: float,
        passages: float = float("nan"),
    ) -> "Sink":
        """The sink of a head: of two null tokens the one that gets twice as much as the other."""
        name = " and ".join(names)
        if len(names) == 2:
            if first >= 2 * (share - first):
                name = names[0]
            elif share - first >= 2 * first:
                name = names[1]
        short = "delimiters" if " and " in name else name.removeprefix("the ")
        return cls(name, short, share, even, passages)


@dataclass(frozen=True, eq=False)
class HeadMeasures:
    """Everything that the description of a head follows from."""

    head: Head
    names: Sequence[FactName]
    is_causal: bool
    chosen: Gains  # on the texts that facts are chosen on
    scored: Gains  # on the texts that they are scored on
    repeated: Gains  # on passages alone
    sink: Sink
    width: float  # of all attention, as a share of the visible tokens
    width_rest: float
    column: float
    column_error: float
    explained: float  # NaN of a head that is even
    by: Mapping[str, float]  # what every group adds
    fewest: int = CASES  # queries that a fact must apply to

    def place(self, key: str) -> int | None:
        """The place of the fact of that name."""
        keys = [name.key for name in self.names]
        return keys.index(key) if key in keys else None

    @classmethod
    def of_facts(
        cls, names: Sequence[FactName], chosen: Gains, scored: Gains, repeated: Gains
    ) -> "HeadMeasures":
        """What is known of a head from its facts alone."""
        nan = float("nan")
        nowhere = Sink("the first token", "first token", 0.0, 0.0)
        return cls(Head(0, 0), names, False, chosen, scored, repeated, nowhere, nan, nan,
                   nan, nan, nan, {})  # fmt: skip


@dataclass(frozen=True)
class Fact:
    """One thing that is said of a head, with its number and what that is compared with."""

    key: str
    words: str
    value: float | None
    baseline: float | None = None
    of: str = "weight"  # what the value is a share of: weight, rest, or where it applies
    group: RoleGroup = "unnamed"  # by which it is coloured


@dataclass(frozen=True)
class Description:
    """What is said of a head: a sentence, a short name, and the facts, strongest first."""

    head: Head
    facts: tuple[Fact, ...]
    name: str
    sentence: str
    group: RoleGroup  # of the name

    @property
    def lead(self) -> Fact | None:
        """The fact that the name is of; None where that is a sink."""
        if self.group == "sink":
            return None
        return next((fact for fact in self.facts if fact.group != "sink"), None)


@dataclass(frozen=True)
class NamedFacts:
    """What a result stores of a description besides its sentence."""

    name: str
    group: RoleGroup
    facts: tuple[Fact, ...]


PORTRAIT = "portrait"  # the variable that holds descriptions as JSON


def as_text(description: Description) -> str:
    """Name and facts as JSON, as a result stores them."""
    known = NamedFacts(description.name, description.group, description.facts)
    return json.dumps(asdict(known), ensure_ascii=False)


def read_description(head: Head, sentence: str, stored: str) -> Description:
    """The description that a result has of a head."""
    known = read_json(stored, NamedFacts, f"The portrait of {head}")
    return Description(head, known.facts, known.name, sentence, known.group)


@dataclass(frozen=True)
class Clause:
    """A fact and the clause that says it of "it" or of "the rest"."""

    fact: Fact
    short: str
    verb: str  # "looks at", "leans towards", "looks from a verb to", "spreads", ""
    rest: str
    joined_by: str = ""  # to the clause before


def describe(head: HeadMeasures) -> Description:
    """The description of a head."""
    rules = Rules(head)
    sink = rules.sink()
    first, *others = rules.clauses()
    name, group = rules.name(first)
    facts = [clause.fact for clause in (first, *others)]
    sentence = ""
    for said, with_others in ((others, True), (others, False), ([], True)):
        sentence = rules.sentence(first, said, with_others)
        if len(sentence) <= LONGEST:
            break
    return Description(head.head, (*([sink] if sink else []), *facts), name, sentence, group)


@dataclass(frozen=True)
class Rules:
    """The rules for one head."""

    head: HeadMeasures

    @property
    def has_sink(self) -> bool:
        """Whether the head rests on its null tokens enough for that to be said."""
        sink = self.head.sink
        return sink.share >= max(LEAVES, SINK_ODDS * sink.even)

    @property
    def width(self) -> float:
        """The width of what is described: the rest, where a sink is set apart."""
        return self.head.width_rest if self.has_sink else self.head.width

    def sink(self) -> Fact | None:
        """The sink as a fact."""
        sink = self.head.sink
        if not self.has_sink:
            return None
        return Fact("sink", f"rests on {sink.name}", sink.share, sink.even, group="sink")

    def clauses(self) -> list[Clause]:
        """What is said: one clause or two."""
        plain, special, repeated = self.plain(), self.special(), self.repeated()
        if repeated is not None:
            return [self.say_repeated(repeated)]
        if special is not None and self.overtakes(special, plain):
            first = self.say_special(special)
            if plain is None:
                return [first]
            return [first, replace(self.say_plain(plain), joined_by="; overall it ")]
        if plain is not None and self.width < EVENLY:
            first = self.say_plain(plain)
            if special is None:
                return [first]
            return [first, replace(self.say_special(special), joined_by=", and ")]
        first, lean = self.say_width(), self.lean()
        if lean is None:
            return [first]
        return [first, replace(self.say_plain(lean), verb="", joined_by=SLIGHTLY)]

    def overtakes(self, special: int, plain: int | None) -> bool:
        """Whether a special fact comes before a plain one."""
        if plain is None:
            return True
        gains, is_single = self.head.scored.gain, self.head.names[plain].key in SINGLE
        if gains[special] >= gains[plain]:
            return True
        return bool(gains[special] >= OVERTAKES and gains[plain] < STRONG[is_single])

    def plain(self) -> int | None:
        """The fact that applies to any query and explains most, if it explains enough."""
        chosen, scored = self.head.chosen, self.head.scored
        best = self.best_plain(CHOSEN_GAIN)
        if best is None or not self.tells_more(best):
            return None
        low = scored.gain[best] - ERRORS * scored.gain_error[best]
        is_sure = scored.gain[best] >= NAME_GAIN and low >= NAME_GAIN_LOW
        is_much = scored.share[best] >= NAME_SHARE or scored.gain[best] >= SURE_GAIN
        was_much = chosen.share[best] >= NAME_SHARE or chosen.gain[best] >= SURE_GAIN
        return best if is_sure and is_much and was_much else None

    def tells_more(self, place: int) -> bool:
        """Whether a fact tells more than that the head spreads widely, or that all words look at
        the same words: both are steadier, and a weak fact is a lean beside them."""
        gain = self.head.scored.gain[place]
        if self.width >= WIDELY and gain < WIDE_GAIN:
            return False
        is_of_words = self.head.names[place].group in ("token", "word_class")
        return not (is_of_words and self.is_anchored and gain < ANCHORED * self.head.column)

    @property
    def is_anchored(self) -> bool:
        """Whether all words of a text look at the same words."""
        return self.head.column - ERRORS * self.head.column_error >= COLUMN

    def best_plain(self, least: float) -> int | None:
        """Of the facts that explain nearly most, the narrowest of the simplest group."""
        chosen, names = self.head.chosen, self.head.names
        fitting = [
            place
            for place, name in enumerate(names)
            if not name.is_special
            and chosen.weight[place] > 0
            and self.head.scored.cases[place] >= self.head.fewest
            and chosen.gain[place] >= least
            and odds_ratio(chosen.share[place], chosen.even[place]) >= ODDS
        ]
        if not fitting:
            return None
        best = max(chosen.gain[place] for place in fitting)
        near = [place for place in fitting if chosen.gain[place] >= NEAR_BEST * best]
        simplest = min(ORDER.index(names[place].group) for place in near)
        simple = [place for place in near if ORDER.index(names[place].group) == simplest]
        place = min(simple, key=lambda place: chosen.even[place])
        scored = self.head.scored
        holds = odds_ratio(scored.share[place], scored.even[place]) >= ODDS
        return place if holds else None

    def special(self) -> int | None:
        """The special fact that explains most of those that get much more weight where they apply
        than position predicts, on both sets of texts; several relations as one count less."""
        names, chosen, scored = self.head.names, self.head.chosen, self.head.scored
        best, largest = None, 0.0
        for place, name in enumerate(names):
            if (
                not name.is_special
                or name.key in REPETITIONS
                or scored.cases[place] < self.head.fewest
            ):
                continue
            beyond = min(part.when[place] - part.position[place] for part in (chosen, scored))
            surely = scored.when[place] - ERRORS * scored.when_error[place]
            if min(chosen.when[place], surely) < SPECIAL_WHEN or beyond < SPECIAL_ABOVE:
                continue
            if chosen.weight[place] <= 0 or scored.gain[place] < SPECIAL_GAIN:
                continue
            relation = name.key.partition(" ")[2]
            share = 0.5 if relation == "any" else 0.8 if relation.isupper() else 1.0
            if share * chosen.gain[place] > largest:
                best, largest = place, share * float(chosen.gain[place])
        return best

    def repeated(self) -> int | None:
        """Whether it looks back to a repeated token, or to what followed it."""
        gains = self.head.repeated
        for key in ("after the same", "same token"):
            place = self.head.place(key)
            if place is None or gains.cases[place] < self.head.fewest or gains.weight[place] <= 0:
                continue
            low = gains.when[place] - ERRORS * gains.when_error[place]
            if low >= REPEATED and gains.when[place] >= REPEATED_ODDS * gains.when_even[place]:
                return place
        return None

    def lean(self) -> int | None:
        """The fact that explains most of what is explained a little."""
        first, scored = self.best_plain(LEAN_GAIN), self.head.scored
        if first is None or scored.gain[first] < LEAN_GAIN:
            return None
        is_sure = scored.gain[first] - ERRORS * scored.gain_error[first] >= LEAN_GAIN / 2
        return first if is_sure else None

    def say_plain(self, place: int) -> Clause:
        """The clause of a fact that applies to any query."""
        scored, name = self.head.scored, self.head.names[place]
        words = words_of(name, is_causal=self.head.is_causal)
        share, even = float(scored.share[place]), float(scored.even[place])
        number = percent(share) + ("" if self.has_sink else " of its weight")
        if share < TOLD_APART * even:
            number += f", evenly {percent(even)}"
        fact = Fact(name.key, words.target, share, even, self.of, GROUPS[name.group])
        verb = "looks at" if share >= 0.5 else "leans towards"
        return Clause(fact, words.short, verb, f"{words.target} ({number})")

    @property
    def of(self) -> str:
        """What shares are shares of."""
        return "rest" if self.has_sink else "weight"

    def say_special(self, place: int) -> Clause:
        """The clause of a fact that applies to some queries."""
        scored, name = self.head.scored, self.head.names[place]
        words = words_of(name, is_causal=self.head.is_causal)
        when, position = float(scored.when[place]), float(scored.position[place])
        there = "there" if words.origin else "where there are any"
        number = (
            f"{percent(when)} of the weight {there}; position alone predicts {percent(position)}"
        )
        fact = Fact(name.key, f"{words.origin} to {words.target}".removeprefix(" to "), when,
                    position, "where it applies", GROUPS[name.group])  # fmt: skip
        verb = f"looks {words.origin} to" if words.origin else "looks at"
        return Clause(fact, words.short, verb, f"{words.target} ({number})")

    def say_repeated(self, place: int) -> Clause:
        """The clause of a head that looks back to repeated tokens."""
        gains, name = self.head.repeated, self.head.names[place]
        words = words_of(name, is_causal=self.head.is_causal)
        when, even = float(gains.when[place]), float(gains.when_even[place])
        of = "what is left" if self.has_sink else "its weight"
        target = "what followed it" if name.key == "after the same" else "that place"
        text = (f"where the same token stood before, {percent(when)} of {of} goes to {target} "
                f"(evenly {percent(even)})")  # fmt: skip
        fact = Fact(name.key, words.target, when, even, "where it applies", GROUPS[name.group])
        return Clause(fact, words.short, "", text)

    def say_width(self) -> Clause:
        """The clause of a head of which nothing special can be said."""
        width, column = self.width, self.head.column
        if width >= EVENLY:
            return Clause(Fact("evenly", "evenly", width, None, "visible tokens", "even"), "evenly",
                          "spreads", "evenly over the tokens it sees")  # fmt: skip
        if width >= WIDELY:
            return Clause(Fact("widely", "widely", width, None, "visible tokens", "even"), "widely",
                          "spreads", "widely")  # fmt: skip
        if self.is_anchored:
            of = "the rest" if self.has_sink else "it"
            text = (f"the same words from everywhere ({percent(column)} of {of} follows from where "
                    "the others look)")  # fmt: skip
            fact = Fact("anchor words", "the same words from everywhere", column, None, "attention",
                        "token")  # fmt: skip
            return Clause(fact, "anchor words", "looks at", text)
        fact = Fact("unnamed", "nothing that has a name", None)
        return Clause(fact, "unnamed", "looks at", "nothing that has a name")

    def name(self, first: Clause) -> tuple[str, RoleGroup]:
        """The short name and its group: of what is said first, or of a sink that gets much."""
        sink = self.head.sink
        special = [name.key for name in self.head.names if name.is_special]
        if self.has_sink and sink.share >= SINK_NAMES and first.fact.key not in special:
            return sink.short, "sink"
        return first.short, first.fact.group

    def sentence(self, first: Clause, others: Sequence[Clause], with_others: bool) -> str:
        """The head, its sink, what is said of the rest, and how much is explained."""
        if self.has_sink:
            said = f" {self.say_sink()}. {of_the_rest(first)}"
        else:
            said = f" {first.verb} {first.rest}" if first.verb else f": {first.rest}"
        for clause in others:
            verb = of_what_is_left(clause.verb) if self.has_sink else clause.verb
            if clause.joined_by == ", and " and first.verb.startswith("looks"):
                verb = verb.partition(" ")[2]
            said += clause.joined_by + f"{verb} {clause.rest}".strip()
        tail = self.tail(with_others)
        return f"{self.head.head}{said}.{f' {tail}' if tail else ''}"

    def say_sink(self) -> str:
        """How much rests where; in sentences and in passages, where these differ."""
        sink = self.head.sink
        where = others = ""
        if abs(sink.share - sink.passages) >= APART:
            where, others = " in sentences", f", {percent(sink.passages)} in passages"
        of_weight = f"{percent(sink.share)} of its weight"
        if sink.share >= RESTS:
            return f"rests on {sink.name} ({of_weight}{where}{others})"
        return f"leaves {of_weight} on {sink.name}{where}{others}"

    def tail(self, with_others: bool) -> str:
        """How much of all attention is explained by what, and what is left."""
        head = self.head
        if not np.isfinite(head.explained):
            return ""
        sink = head.sink.name
        if self.width >= EVENLY:
            return f"That explains {percent(head.by['sink'])} of it." if self.has_sink else ""
        by = {group: max(0.0, share) for group, share in head.by.items()}
        largest = sorted((group for group in by if by[group] >= WORTH_SAYING),
                         key=lambda group: -by[group])[:2]  # fmt: skip
        if not largest or head.explained < 0.05:
            return "Nothing measured here explains it."
        words = {**GROUP_WORDS, "sink": sink}
        verb = "explain" if largest[0] == "sink" and " and " in sink else "explains"
        said = f"{words[largest[0]]} {verb} {percent(by[largest[0]])} of it"
        if len(largest) > 1:
            said += f", {words[largest[1]]} {100 * by[largest[1]]:.0f} more"
        others = head.explained - sum(by[group] for group in largest)
        if with_others and others >= 0.05:
            said += f", the others {100 * others:.0f}"
        left = 1 - head.explained
        said = said[0].upper() + said[1:]
        return f"{said}; {percent(left)} has no name yet." if left >= LEFT else f"{said}."


def of_the_rest(clause: Clause) -> str:
    """A first clause about what a sink leaves."""
    if not clause.verb:
        return clause.rest[0].upper() + clause.rest[1:]
    if clause.verb == "spreads":
        return f"The rest is spread {clause.rest}".removesuffix(" over the tokens it sees")
    if clause.short == "unnamed":
        return "The rest has no name"
    return f"The rest {of_what_is_left(clause.verb)} {clause.rest}"


def of_what_is_left(verb: str) -> str:
    """The verb of a clause whose subject is not the head but what its sink leaves."""
    return verb.replace("looks at", "goes to").replace("looks from", "goes from")


def odds_ratio(share: float, even: float) -> float:
    """The odds of a share over those of another."""
    low, high = 1e-6, 1 - 1e-6
    share, even = min(max(share, low), high), min(max(even, low), high)
    return share / (1 - share) / (even / (1 - even))


def offsets_of(key: str) -> tuple[int, int] | None:
    """The first and last offset that a key names."""
    first, _, last = key.partition("..")
    try:
        return int(first), int(last or first)
    except ValueError:
        return None


def percent(share: float) -> str:
    """A share in per cent, as a sentence has it."""
    return f"{100 * share:.0f} %"
