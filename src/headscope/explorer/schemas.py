"""Everything the API sends and receives, as types.

They are the only place where a field is declared: the OpenAPI document, the checks of what is
received, the JSON that is sent and the types of the pages' JavaScript follow from them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from headscope.results.measure import Published
from headscope.results.roles import HeadRoles
from headscope.results.slices import BaselineValue
from headscope.results.statements import Choice, JudgedClaim
from headscope.views.state import Kind

PAGES = (  # names in addresses
    "overview", "finder", "head", "embed", "clusters", "findings", "tables", "text", "compare",
)  # fmt: skip
Values = list[float | None]
Grid = list[list[float | None]]  # layer head
Cell = str | int | float | bool | None


@dataclass(frozen=True)
class AtMost:
    """Bounds the size of a field by the entry of that name in `Limits`."""

    limit: str
    least: int = 0


Text = Annotated[str, AtMost("text")]


@dataclass(frozen=True)
class TextRequest:
    """A text to trace and how it is to be shown."""

    text: Annotated[str, AtMost("text", least=1)]
    pair: Text | None = None
    target: Text | None = None
    generate: Annotated[int, AtMost("generate")] = 0
    kind: Kind = "head"
    layer: int | None = None
    head: int | None = None
    blocks: Annotated[list[int], AtMost("blocks")] | None = None  # of a long text
    chat: bool = False  # the text is a chat: "user: …" begins a message


RECEIVED = (TextRequest,)  # fields with a default may be left out; what is sent has every field


@dataclass(frozen=True)
class Refusal:
    """Why a request is not answered as asked."""

    error: str


@dataclass(frozen=True)
class RunSummary:
    """One run in the menus; layers and heads are their numbers, not how many there are."""

    slug: str
    study: str
    state: Literal["complete", "unfinished", "damaged"]
    notes: list[str]
    model: str | None
    corpus: str | None
    layers: list[int]
    heads: list[int]
    records: bool  # whether tokens, examples, maps or writes are kept of every head
    closed: dict[str, str]  # pages that would be empty, and why


@dataclass(frozen=True)
class ModelFacts:
    """What the pages need to know about the model."""

    name: str
    state: Literal["none", "loading", "ready", "failed"]
    reason: str | None = None
    layers: int | None = None
    heads: int | None = None
    causal: bool | None = None
    encoder_decoder: bool | None = None
    max_length: int | None = None
    chat: bool | None = None  # whether it has a chat template


@dataclass(frozen=True)
class TextLimits:
    """What may be asked of the model."""

    text: int
    generate: int
    weights: int


@dataclass(frozen=True)
class Session:
    """The runs and the model."""

    version: str
    runs: list[RunSummary]
    model: ModelFacts
    limits: TextLimits


@dataclass(frozen=True)
class Axis:
    """A dimension of a measure beside layer and head."""

    name: str
    title: str
    labels: list[str]


@dataclass(frozen=True)
class MeasureEntry:
    """One measure in the menus."""

    name: str
    title: str
    meaning: str
    unit: str
    errors: bool
    axes: list[Axis]


@dataclass(frozen=True)
class RunDetail(RunSummary):
    """One run: its summary, what run.json says, and its measures."""

    about: Mapping[str, Any]
    measures: list[MeasureEntry]
    left_out: Mapping[str, str]


@dataclass(frozen=True)
class Profile:
    """One value for each layer: pooled over heads where the study pooled, else their mean."""

    values: Values
    errors: Values | None
    pooled: bool


@dataclass(frozen=True)
class Picture:
    """One slice of a measure over layers and heads."""

    spec: str
    title: str
    meaning: str
    unit: str
    formula: str
    reference: str
    more: str
    layers: list[int]
    heads: list[int]
    values: Grid
    errors: Grid | None
    profile: Profile
    baseline: BaselineValue | None
    published: Published | None


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
class WrittenToken:
    """A token whose logit the head's output raises or lowers."""

    token: str
    logit: float


@dataclass(frozen=True)
class EdgeAdds:
    """What an edge adds to the logits at its query: most to the tokens that it raises and lowers.

    `token` is the one that is predicted there, None at the end of an input.
    """

    query: int
    key: int
    weight: float
    token: str | None
    logit: float | None
    raises: list[str]
    raises_logit: list[float]
    lowers: list[str]
    lowers_logit: list[float]


@dataclass(frozen=True)
class Example:
    """An input with the largest weights of its rows.

    `rows` has one list for every query: a key and its weight in thousandths, and so on, the
    largest first.
    """

    peak: float
    input: int
    rows: list[list[int]]
    edges: list[EdgeAdds]  # the strongest, if that is known


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
    no_edges: str | None  # why the run does not say what single edges add
    causal: bool  # whether a token predicts the next one, and not the one in its place


@dataclass(frozen=True)
class InputText:
    """The tokens of an input, to be shown, and where they are from."""

    input: int
    document: str
    start: int
    tokens: list[str]
    rtl: bool
    pieces: bool  # WordPiece: what has no "##" begins a word


@dataclass(frozen=True)
class MappedHead:
    """A head's place on the map."""

    name: str
    layer: int
    x: float | None
    y: float | None
    behaviour: str | None
    looks: str | None  # the head's sentence


@dataclass(frozen=True)
class Clusters:
    """The map of heads."""

    heads: list[MappedHead]
    behaviours: list[str]
    stress: float | None


@dataclass(frozen=True)
class StoredTable:
    """A table as the run holds it."""

    name: str
    title: str
    caption: str
    columns: list[str]
    titles: list[str]  # of the columns; a measure has the name that it has everywhere
    rows: list[list[Cell]]


@dataclass(frozen=True)
class Said:
    """The tables, judged claims and chosen heads that are stored with a run."""

    tables: list[StoredTable]
    findings: list[JudgedClaim]
    choices: list[Choice]


@dataclass(frozen=True)
class DifferenceRow:
    """One slice at a head, a pair of heads or a pair of layers in two runs."""

    measure: str
    title: str
    spec: str
    first_at: str  # the head or layer of the first run
    second_at: str
    clear: bool  # stands after correction for everything that is listed
    first: float | None
    second: float | None
    difference: float | None
    low: float | None
    high: float | None
    q: float | None
    effect: float | None


@dataclass(frozen=True)
class MatchedHeads:
    """Two heads that do the same; chance is the share of strangers' matches as near."""

    first: str
    second: str
    distance: float
    chance: float
    good: bool


@dataclass(frozen=True)
class Comparison:
    """How two runs relate, matched heads, and the largest differences of heads and of layers."""

    confidence: float
    by: list[Literal["auto", "index", "matched", "depth"]]
    notes: list[str]  # how they relate comes first
    measures: list[str]
    clear: int
    intervals: int
    rows: list[DifferenceRow]
    layers: list[DifferenceRow]
    matches: list[MatchedHeads]
    alone: list[str]  # heads of the larger network without a partner


@dataclass(frozen=True)
class Difference:
    """One slice of a measure in two runs, head with head."""

    spec: str
    title: str
    confidence: float
    layers: list[int]
    heads: list[int]
    first: Grid
    second: Grid
    difference: Grid
    low: Grid
    high: Grid
    effect: Grid
