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
LEAD_WHEN, LEAD_ABOVE, LEAD_GAIN = 0.40, 0.25, 0.05  # of a special fact that comes first
SAID_WHEN, SAID_ABOVE, SAID_GAIN = 0.25, 0.15, 0.03  # of one that is said at all
ALONE_GAIN = 0.10  # of one that is said where nothing else is
REPEATED, REPEATED_ODDS = 0.20, 5.0  # weight on what followed the same token, times even
WIDE_GAIN = 0.30  # of the rest, of a fact that names a head which spreads widely
ANCHORED = 0.50  # of what the other rows explain, of a fact about words that names the head
COLUMN = 0.60  # share that the other rows of a text explain
LEAN_GAIN, SECOND_GAIN = 0.05, 0.08  # of a slight lean, and of a second fact
LEAST_SHARE = 0.20  # what a second fact must get
TOLD_APART = 4.0  # times even, from which even attention is not mentioned
WORTH_SAYING = 0.03  # explained share of a group
LEFT = 0.10  # share without a name that is mentioned
LONGEST = 300  # characters
# How many clauses and leans are said, and whether smaller groups are: less and less until it fits.
SHORTER = ((2, 2, True), (2, 1, True), (2, 1, False), (2, 0, False), (1, 0, True))

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
    passages: float | None = None  # the same in passages, where sentences were read, too


@dataclass(frozen=True, eq=False)
class HeadMeasures:
    """Everything that the description of a head follows from."""

    head: Head
    names: Sequence[FactName]
    is_causal: bool
    chosen: Gains  # on the texts that facts are chosen on
    scored: Gains  # on the texts that they are scored on
    repeated: Gains  # on passages alone
    second: Float[np.ndarray, "fact"]  # what each adds to the first one, where it was chosen
    sink: Sink
    width: float  # of all attention, as a share of the visible tokens
    width_rest: float
    column: float
    column_error: float
    explained: float  # NaN of a head that is even
    by: Mapping[str, float]  # what every group adds

    @classmethod
    def of_facts(
        cls, names: Sequence[FactName], chosen: Gains, scored: Gains, repeated: Gains
    ) -> "HeadMeasures":
        """What is known of a head from its facts alone."""
        nan = float("nan")
        second = np.full(len(names), -1.0)
        nowhere = Sink("the first token", "first token", 0.0, 0.0)
        return cls(Head(0, 0), names, False, chosen, scored, repeated, second, nowhere, nan, nan,
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

    @property
    def text(self) -> str:
        """The clause with its verb."""
        return f"{self.verb} {self.rest}".strip()


def describe(head: HeadMeasures) -> Description:
    """The description of a head."""
    rules = Rules(head)
    sink = rules.sink()
    clauses, joined_by, leans = rules.clauses()
    name, group = rules.name(clauses[0] if clauses else None)
    facts = [*([sink] if sink else []), *(clause.fact for clause in (*clauses, *leans))]
    sentence = ""
    for many, with_leans, with_others in SHORTER:
        sentence = rules.sentence(clauses[:many], joined_by, leans[:with_leans], with_others)
        if len(sentence) <= LONGEST:
            break
    return Description(head.head, tuple(facts), name, sentence, group)


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

    def place(self, key: str) -> int | None:
        """The place of the fact of that name."""
        keys = [name.key for name in self.head.names]
        return keys.index(key) if key in keys else None

    def clauses(self) -> tuple[list[Clause], str, list[Clause]]:
        """What is said, at most two clauses, how they are joined, and slight leans."""
        plain, lead, special, repeated = self.plain(), self.lead(), self.special(), self.repeated()
        if repeated is not None:
            return [self.say_repeated(repeated)], "", []
        gains = self.head.scored.gain
        if lead is not None and self.overtakes(lead, plain):
            first = [self.say_special(lead)]
            if plain is None:
                return first, "", []
            return [*first, self.say_plain(plain)], "; overall it ", []
        if plain is not None and self.width < EVENLY:
            other = lead if lead is not None else special
            first = [self.say_plain(plain)]
            if other is not None:
                return [*first, self.say_special(other)], ", and ", []
            second = self.second(plain, SECOND_GAIN, LEAST_SHARE)
            said = first if second is None else [*first, self.say_plain(second)]
            return said, ", and ", []
        if special is not None and plain is None and gains[special] >= ALONE_GAIN:
            return [self.say_special(special)], "", []
        return [self.say_width()], "", self.leans()

    def overtakes(self, lead: int, plain: int | None) -> bool:
        """Whether a special fact comes before a plain one."""
        if plain is None:
            return True
        gains, is_single = self.head.scored.gain, self.head.names[plain].key in SINGLE
        if gains[lead] >= gains[plain]:
            return True
        return bool(gains[lead] >= LEAD_GAIN and gains[plain] < STRONG[is_single])

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
            and self.head.scored.cases[place] >= CASES
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

    def specials(self, when: float, above: float) -> list[int]:
        """The special facts that get so much weight where they apply, on both sets of texts."""
        fitting: list[int] = []
        chosen, scored = self.head.chosen, self.head.scored
        for place, name in enumerate(self.head.names):
            if not name.is_special or name.key in REPETITIONS or scored.cases[place] < CASES:
                continue
            low = scored.when[place] - ERRORS * scored.when_error[place]
            beyond = scored.when[place] - scored.position[place]
            was = (
                chosen.when[place] >= when and chosen.when[place] - chosen.position[place] >= above
            )
            gains = chosen.weight[place] > 0 and scored.gain[place] >= SAID_GAIN
            if was and gains and low >= when and beyond >= above:
                fitting.append(place)
        return fitting

    def lead(self) -> int | None:
        """The special fact that may come first."""
        return self.best_special(self.specials(LEAD_WHEN, LEAD_ABOVE))

    def special(self) -> int | None:
        """The special fact that is worth saying."""
        return self.best_special(self.specials(SAID_WHEN, SAID_ABOVE))

    def best_special(self, fitting: Sequence[int]) -> int | None:
        """The one that explains most where it was chosen; several relations as one count less."""

        def value(place: int) -> float:
            relation = self.head.names[place].key.partition(" ")[2]
            share = 0.5 if relation == "any" else 0.8 if relation.isupper() else 1.0
            return share * float(self.head.chosen.gain[place])

        return max(fitting, key=value, default=None)

    def repeated(self) -> int | None:
        """Whether it looks back to a repeated token, or to what followed it."""
        gains = self.head.repeated
        for key in ("after the same", "same token"):
            place = self.place(key)
            if place is None or gains.cases[place] < CASES or gains.weight[place] <= 0:
                continue
            low = gains.when[place] - ERRORS * gains.when_error[place]
            if low >= REPEATED and gains.when[place] >= REPEATED_ODDS * gains.when_even[place]:
                return place
        return None

    def second(self, first: int, least: float, share: float) -> int | None:
        """The plain fact that adds most to the first, of another group or another range."""
        names, scored = self.head.names, self.head.scored
        added = self.head.second.copy()
        for place, name in enumerate(names):
            is_alike = name.group == names[first].group and not apart(name.key, names[first].key)
            is_weak = odds_ratio(scored.share[place], scored.even[place]) < ODDS
            is_sure = scored.gain[place] >= ERRORS * scored.gain_error[place]
            if is_alike or is_weak or scored.share[place] < share or not is_sure:
                added[place] = -1.0
            if scored.cases[place] < CASES or self.head.chosen.weight[place] <= 0:
                added[place] = -1.0
        place = int(added.argmax())
        return place if added[place] >= least else None

    def leans(self) -> list[Clause]:
        """Facts that explain a little, where nothing has a name."""
        first = self.first_lean()
        if first is None:
            return []
        second = self.second(first, LEAN_GAIN, 0.0)
        return [self.say_plain(place) for place in (first, second) if place is not None]

    def first_lean(self) -> int | None:
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
        fact = Fact(name.key, words.target, share, even, self.of, role_group(name))
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
                    position, "where it applies", role_group(name))  # fmt: skip
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
        fact = Fact(name.key, words.target, when, even, "where it applies", role_group(name))
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

    def name(self, first: Clause | None) -> tuple[str, RoleGroup]:
        """The short name and its group: of what is said first, or of a sink that gets much."""
        sink = self.head.sink
        if first is None:
            return "unnamed", "unnamed"
        names = {name.key: name for name in self.head.names}
        known = names.get(first.fact.key)
        is_telling = known is not None and known.is_special
        if self.has_sink and sink.share >= SINK_NAMES and not is_telling:
            return sink.short, "sink"
        return first.short, first.fact.group

    def sentence(
        self, clauses: Sequence[Clause], joined_by: str, leans: Sequence[Clause], with_others: bool
    ) -> str:
        """The whole description, beginning with the name of the head."""
        said = self.say_all(clauses, joined_by, leans)
        tail = self.tail(with_others)
        return f"{self.head.head}{said}.{f' {tail}' if tail else ''}"

    def say_all(self, clauses: Sequence[Clause], joined_by: str, leans: Sequence[Clause]) -> str:
        """The sink, and what is said of the rest."""
        first, *others = clauses
        if self.has_sink:
            said = f" {self.say_sink()}. {of_the_rest(first)}"
            others = [replace(each, verb=of_what_is_left(each.verb)) for each in others]
        elif first.verb:
            said = f" {first.text}"
        else:
            said = f": {first.text}"
        verb = of_what_is_left(first.verb) if self.has_sink else first.verb
        for clause in others:
            same, more = verb.partition(" ")[0], clause.verb.partition(" ")[2]
            goes_on = joined_by == ", and " and clause.verb.partition(" ")[0] == same
            said += joined_by + (f"{more} {clause.rest}" if goes_on else clause.text)
        if leans:
            said += ", with a slight lean to " + " and to ".join(lean.rest for lean in leans)
        return said

    def say_sink(self) -> str:
        """How much rests where; in sentences and in passages, where these differ."""
        sink = self.head.sink
        where = others = ""
        if sink.passages is not None and abs(sink.share - sink.passages) >= APART:
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


def role_group(name: FactName) -> RoleGroup:
    """The group by which a fact is coloured."""
    return GROUPS[name.group]


def of_the_rest(clause: Clause) -> str:
    """A first clause about what a sink leaves."""
    if not clause.verb:
        return clause.text[0].upper() + clause.text[1:]
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


def apart(key: str, other: str) -> bool:
    """Whether two keys are ranges of offsets that have none in common."""
    span, other_span = offsets_of(key), offsets_of(other)
    if span is None or other_span is None:
        return False
    return span[0] > other_span[1] or other_span[0] > span[1]


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
