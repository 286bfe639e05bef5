"""What the API sends about heads, as types: the list of them, one head's card, its records."""

from dataclasses import dataclass
from typing import Literal

from headscope.results.measure import BaselineValue
from headscope.results.roles import HeadRoles
from headscope.results.statements import Choice


@dataclass(frozen=True)
class HeadEntry:
    """A head in the search."""

    name: str
    layer: int
    head: int
    behaviour: str | None
    looks: str | None  # the head's sentence
    tokens: list[str]  # that it looks at more than others do


@dataclass(frozen=True)
class Heads:
    """Every head of a run."""

    heads: list[HeadEntry]


@dataclass(frozen=True)
class Line:
    """A slice of a measure at one head; rank 1 is the largest of all heads."""

    spec: str
    title: str
    unit: str
    value: float | None
    error: float | None
    rank: int | None
    of: int
    mean: float | None
    baseline: BaselineValue | None


@dataclass(frozen=True)
class LabelBar:
    """One label of a measure that has many, at one head that has a value there."""

    label: str
    value: float
    error: float | None
    rank: int
    of: int
    baseline: BaselineValue | None
    rare: bool  # too few words to say anything


@dataclass(frozen=True)
class Group:
    """The slices of a measure that has many, at one head."""

    name: str
    title: str
    axis: str
    enough: int
    bars: list[LabelBar]


@dataclass(frozen=True)
class Neighbour:
    """Another head and how far it is."""

    name: str
    distance: float


@dataclass(frozen=True)
class Neighbours:
    """The nearest heads, and what the distance is."""

    basis: str
    heads: list[Neighbour]


@dataclass(frozen=True)
class Exemplar:
    """A stored sentence: `labels` are its tokens to be shown, `spaces` join `pieces` to a text."""

    rank: int
    weight: float
    query: int
    key: int
    text: str
    tokens: list[str]
    labels: list[str]
    pieces: list[str]
    spaces: list[bool]
    rtl: bool


@dataclass(frozen=True)
class Mention:
    """A row of a stored table that names the head."""

    table: str
    row: str
    column: str


@dataclass(frozen=True)
class Bin:
    """A bar of a histogram: from `low`, which is included, to below `high`."""

    low: float
    high: float
    value: float
    error: float | None


@dataclass(frozen=True)
class Histogram:
    """How something of one head is distributed."""

    name: str
    title: str
    meaning: str
    axis: str
    bins: list[Bin]


@dataclass(frozen=True)
class Card:
    """Everything the run knows about one head."""

    name: str
    layer: int
    head: int
    behaviour: str | None
    looks: HeadRoles | None  # None where no measure of the run tells
    measures: list[Line]
    groups: list[Group]
    histograms: list[Histogram]
    mentions: list[Mention]
    choices: list[Choice]
    nearest: Neighbours
    exemplars: list[Exemplar]


@dataclass(frozen=True)
class TokenRow:
    """A token that a head looks from or at; lift: its share beside what even attention gives."""

    token: str
    share: float
    lift: float
    count: int


@dataclass(frozen=True)
class TopTokens:
    """The first tokens of one side in one order."""

    side: Literal["query", "key"]
    by: Literal["mass", "lift"]
    tokens: list[TokenRow]


@dataclass(frozen=True)
class Example:
    """An input with the largest weights of its rows.

    `rows` has one list for every query: a key and its weight in thousandths, and so on, the
    largest first.
    """

    peak: float
    input: int
    rows: list[list[int]]


@dataclass(frozen=True)
class Band:
    """Examples whose largest weight lies in one part of all inputs, low to high; last the top."""

    name: str
    examples: list[Example]


@dataclass(frozen=True)
class Samples:
    """Tokens in context, each list in one order."""

    input: list[int]
    position: list[int]
    token: list[str]


@dataclass(frozen=True)
class Space:
    """Where one of the head's spaces puts sampled tokens, each list in one order.

    `component1` and `component2` are principal components; `x` and `y` a map of queries and keys
    together, empty for the other spaces.
    """

    name: Literal["query", "key", "value", "output"]
    sample: list[int]  # places in the lists of the samples
    component1: list[float]
    component2: list[float]
    x: list[float]
    y: list[float]
    cluster: list[int]


@dataclass(frozen=True)
class WrittenToken:
    """A token whose logit the head's output raises or lowers."""

    token: str
    logit: float


@dataclass(frozen=True)
class HeadRecords:
    """What a run keeps of one head besides numbers."""

    name: str
    tops: list[TopTokens]
    bands: list[Band]
    samples: Samples
    spaces: list[Space]
    raises: list[WrittenToken]
    lowers: list[WrittenToken]
    no_writes: str | None  # why the run does not say what the head writes


@dataclass(frozen=True)
class InputText:
    """The tokens of an input, to be shown, and where they are from."""

    input: int
    document: str
    start: int
    tokens: list[str]
    rtl: bool
    pieces: bool  # WordPiece: what has no "##" begins a word
