"""What travels between the explorer's server and its pages, as types; msgspec reads and writes it.

They are the only place where a field is declared: the OpenAPI document and the types of the pages'
JavaScript follow from them (`description.py`). msgspec writes a number that is not finite as null:
a field that may hold one says so by `float | None`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from headscope.results.evidence import HeadExample, Surprise
from headscope.results.measure import BaselineValue, Behaviour, Published, RoleGroup
from headscope.results.statements import Choice, JudgedClaim
from headscope.results.tables import Kind as ColumnKind
from headscope.views.kinds import KINDS
from headscope.wording import shorten

Values = list[float | None]
Grid = list[list[float | None]]  # layer head
Cell = str | int | float | bool | None


@dataclass(frozen=True)
class Limits:
    """Sizes, lengths and times; what exceeds them is refused with the number in the answer."""

    body: int = 768 * 1024  # bytes of a request: three texts with every character escaped
    text: int = 20_000  # characters of a text, pair or target
    generate: int = 64  # tokens
    weights: int = 64_000_000  # of one trace, over all stacks, layers, heads, queries and keys
    blocks: int = 32  # of a long text in one request
    waiting: int = 64  # texts that wait for the model, the one being traced included
    seconds: float = 60.0  # until a visitor is told to come back, and for one trace
    body_seconds: float = 20.0  # until a request must have arrived


LIMITS = Limits()


class RefusedError(Exception):
    """Becomes the answer `{"error": message}` with this status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class BusyError(RefusedError):
    """The model has too much to do: come back later."""

    def __init__(self, message: str) -> None:
        super().__init__(503, message)


def _described(**bounds: Any) -> Meta:
    """Bounds for the description; `check_request` refuses what exceeds them."""
    return Meta(extra_json_schema=bounds)


Text = Annotated[str, _described(maxLength=LIMITS.text)]


class TextRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A text to trace and how it is to be shown."""

    text: Annotated[str, _described(minLength=1, maxLength=LIMITS.text)]
    pair: Text | None = None
    target: Text | None = None
    generate: Annotated[int, _described(minimum=0, maximum=LIMITS.generate)] = 0
    kind: Annotated[str, _described(enum=list(KINDS))] = "head"
    layer: int | None = None
    head: int | None = None
    blocks: Annotated[list[int], _described(maxItems=LIMITS.blocks)] | None = None  # of a long text
    chat: bool = False  # the text is a chat: "user: …" begins a message
    # Layer, head, query and key: say why instead of showing a view.
    why: Annotated[list[int], _described(minItems=4, maxItems=4)] | None = None
    # Heads that are switched off, such as L4H2: their output is zero, or its mean over the text.
    without: Annotated[tuple[str, ...], _described(maxItems=LIMITS.blocks)] = ()
    replacement: Literal["zero", "mean"] = "zero"
    difference: bool = False  # say what changes without them instead of showing a view


def read_request(body: bytes) -> TextRequest:
    """The request in a body, or a RefusedError that says what is wrong with it."""
    try:
        given = msgspec.json.decode(body)
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, f"The body is not JSON that can be read ({error}).") from error
    if isinstance(given, dict):
        given = {name: _whole(value) for name, value in given.items()}
    try:
        return msgspec.convert(given, TextRequest)
    except msgspec.ValidationError as error:
        fields = ", ".join(TextRequest.__struct_fields__)
        said = shorten(str(error), 200)
        raise RefusedError(
            400, f"{said}; the body is an object with the fields {fields}."
        ) from error


def _whole(value: object) -> object:
    """55.0 is a whole number in JSON, as its schemas have it; a list by its members."""
    if isinstance(value, list):
        return [_whole(member) for member in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def check_request(request: TextRequest, limits: Limits) -> None:
    """Refuse what is empty, too much or unknown, before it waits for the model."""
    if not request.text.strip():
        raise RefusedError(422, "The text is empty; type at least one word.")
    for name in ("text", "pair", "target"):
        length = len(getattr(request, name) or "")
        if length > limits.text:
            raise RefusedError(
                413, f"The {name} has {length:,} characters; the explorer takes {limits.text:,}."
            )
    if not 0 <= request.generate <= limits.generate:
        raise RefusedError(422, f"generate is {request.generate}; give 0 to {limits.generate}.")
    if request.kind not in KINDS:
        kind = shorten(request.kind, 40)
        raise RefusedError(422, f"There is no kind {kind!r}; there are {', '.join(KINDS)}.")
    if request.why is not None and len(request.why) != 4:
        raise RefusedError(
            422, f"why has {len(request.why)} numbers; give layer, head, query and key."
        )
    if request.difference and not request.without:
        raise RefusedError(422, "No head is switched off; name one, such as L0H1.")
    if len(request.without) > limits.blocks:
        raise RefusedError(
            422, f"{len(request.without)} heads are switched off; the most is {limits.blocks}."
        )
    if len(request.blocks or ()) > limits.blocks:
        raise RefusedError(
            422, f"{len(request.blocks or ())} blocks are asked for; the most is {limits.blocks}."
        )


class Refusal(Struct, frozen=True):
    """Why a request is not answered as asked."""

    error: str


class RunSummary(Struct, frozen=True):
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
    described: bool  # whether it says what every head looks at
    closed: dict[str, str]  # pages that would be empty, and why


class ModelFacts(Struct, frozen=True):
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


class TextLimits(Struct, frozen=True):
    """What may be asked of the model."""

    text: int
    generate: int
    weights: int


class Session(Struct, frozen=True):
    """The runs and the model."""

    version: str
    runs: list[RunSummary]
    model: ModelFacts
    limits: TextLimits


class Axis(Struct, frozen=True):
    """A dimension of a measure beside layer and head."""

    name: str
    title: str
    labels: list[str]


class MeasureEntry(Struct, frozen=True):
    """One measure in the menus."""

    name: str
    title: str
    meaning: str
    unit: str
    errors: bool
    axes: list[Axis]


class RunDetail(RunSummary, frozen=True):
    """One run: its summary, what run.json says, and its measures."""

    about: Mapping[str, Any]
    measures: list[MeasureEntry]
    first: list[str]  # names of two measures that pages begin with
    left_out: Mapping[str, str]


class Profile(Struct, frozen=True):
    """One value for each layer: pooled over heads where the study pooled, else their mean.

    Errors are margins of error, half of a 95 % interval, here and in all that is sent.
    """

    values: Values
    errors: Values | None
    pooled: bool


class Picture(Struct, frozen=True):
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


class HeadCell(Struct, frozen=True):
    """A head on the map of heads.

    `bars` has mean weights in thousandths for every ink (null tokens, what the name is of, other),
    by place: the first null token, from 8 tokens before the query to 8 behind it, the last null
    token.
    """

    name: str
    layer: int
    head: int
    role: str  # its short name
    group: RoleGroup  # by which it is coloured
    share: float | None  # the number that belongs to the short name
    explained: float | None  # of its attention, by its portrait; None of an even head
    sentence: str
    cost: str | None  # what the loss says without the head, in a sentence
    bars: list[list[int]]


class MapFeed(Struct, frozen=True):
    """A head that makes some of the choice of a later one, by what it writes into its keys."""

    source: str
    head: str
    share: float  # of the variance of its scores over the keys of a row


class RoleCount(Struct, frozen=True):
    """How many heads have a short name."""

    role: str
    group: RoleGroup
    heads: int


class HeadMap(Struct, frozen=True):
    """What every head of a run looks at."""

    layers: list[int]
    heads: list[int]
    causal: bool
    nulls: list[str]  # what the first and the last null token are called
    summary: str
    roles: list[RoleCount]
    cells: list[HeadCell]
    feeds: list[MapFeed]  # the strongest of every head; none where they were not computed


class ExplainedShare(Struct, frozen=True):
    """What one kind of feature explains of a head's attention."""

    group: RoleGroup
    share: float
    share_of_rest: float | None  # of what null tokens leave


class HeadPortrait(Struct, frozen=True):
    """What shows that a head looks where its sentence says.

    `matrix` has mean weights for every ink, query and key, as the root of their share, 0 to 255.
    """

    cell: HeadCell
    nulls: list[str]
    causal: bool
    parts: list[ExplainedShare]
    matrix: list[int]
    examples: tuple[HeadExample, ...]
    surprises: tuple[Surprise, ...]


class MappedHead(Struct, frozen=True):
    """A head's place among those that are alike."""

    name: str
    layer: int
    x: float | None
    y: float | None
    behaviour: str | None
    looks: str | None  # the head's sentence


class Clusters(Struct, frozen=True):
    """Heads by how alike they are."""

    heads: list[MappedHead]
    behaviours: list[Behaviour]
    stress: float | None


class TableColumn(Struct, frozen=True):
    """What a column of a table holds; a margin of error is of the column that it stands behind."""

    name: str
    title: str  # a measure has the name that it has everywhere
    kind: ColumnKind
    of: str


class StoredTable(Struct, frozen=True):
    """A table as the run holds it."""

    name: str
    title: str
    caption: str
    columns: list[TableColumn]
    rows: list[list[Cell]]


class Said(Struct, frozen=True):
    """The tables, judged claims and chosen heads that are stored with a run."""

    tally: str  # how many of the claims hold
    tables: list[StoredTable]
    findings: list[JudgedClaim]
    choices: list[Choice]


class DifferenceRow(Struct, frozen=True):
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


class MatchedHeads(Struct, frozen=True):
    """Two heads that do the same; chance is the share of strangers' matches as near."""

    first: str
    second: str
    distance: float
    chance: float
    good: bool


class Comparison(Struct, frozen=True):
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


class Difference(Struct, frozen=True):
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


class HeadEntry(Struct, frozen=True):
    """A head in the search."""

    name: str
    layer: int
    head: int
    behaviour: str | None
    looks: str | None  # the head's sentence
    tokens: list[str]  # that it looks at more than others do


class Heads(Struct, frozen=True):
    """Every head of a run."""

    heads: list[HeadEntry]


class Line(Struct, frozen=True):
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


class LabelBar(Struct, frozen=True):
    """One label of a measure that has many, at one head that has a value there."""

    label: str
    value: float
    error: float | None
    rank: int
    of: int
    baseline: BaselineValue | None
    rare: bool  # too few words to say anything


class Group(Struct, frozen=True):
    """The slices of a measure that has many, at one head."""

    name: str
    title: str
    axis: str
    enough: int
    bars: list[LabelBar]


class Neighbour(Struct, frozen=True):
    """Another head and how far it is."""

    name: str
    distance: float


class Neighbours(Struct, frozen=True):
    """The nearest heads, and what the distance is."""

    basis: str
    heads: list[Neighbour]


class Exemplar(Struct, frozen=True):
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


class Bin(Struct, frozen=True):
    """A bar of a histogram: from `low`, which is included, to below `high`."""

    low: float
    high: float
    value: float
    error: float | None


class Histogram(Struct, frozen=True):
    """How something of one head is distributed."""

    name: str
    title: str
    meaning: str
    axis: str
    bins: list[Bin]


class Feed(Struct, frozen=True):
    """An earlier head that makes some of a head's choice, by its query or by the keys."""

    name: str
    side: Literal["query", "key"]
    share: float
    margin: float | None


class Card(Struct, frozen=True):
    """Everything the run knows about one head."""

    name: str
    layer: int
    head: int
    behaviour: str | None
    looks: str | None  # the head's sentence; None where the run has no portraits
    measures: list[Line]
    groups: list[Group]
    histograms: list[Histogram]
    nearest: Neighbours
    feeds: list[Feed]  # largest first; none where the run has no composition
    cost: str | None  # what the loss says without the head, in a sentence
    exemplars: list[Exemplar]


class TokenRow(Struct, frozen=True):
    """A token that a head looks from or at; lift: its share beside what even attention gives."""

    token: str
    share: float
    lift: float
    count: int


class TopTokens(Struct, frozen=True):
    """The first tokens of one side in one order."""

    side: Literal["query", "key"]
    by: Literal["mass", "lift"]
    tokens: list[TokenRow]


class Example(Struct, frozen=True):
    """An input with the largest weights of its rows.

    `rows` has one list for every query: a key and its weight in thousandths, and so on, the
    largest first.
    """

    peak: float
    input: int
    rows: list[list[int]]


class Band(Struct, frozen=True):
    """Examples whose largest weight lies in one part of all inputs, low to high; last the top."""

    name: str
    examples: list[Example]


class Samples(Struct, frozen=True):
    """Tokens in context, each list in one order."""

    input: list[int]
    position: list[int]
    token: list[str]


class Space(Struct, frozen=True):
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


class WrittenToken(Struct, frozen=True):
    """A token whose logit the head's output raises or lowers."""

    token: str
    logit: float


class HeadRecords(Struct, frozen=True):
    """What a run keeps of one head besides numbers."""

    name: str
    tops: list[TopTokens]
    bands: list[Band]
    samples: Samples
    spaces: list[Space]
    raises: list[WrittenToken]
    lowers: list[WrittenToken]
    no_writes: str | None  # why the run does not say what the head writes


class InputText(Struct, frozen=True):
    """The tokens of an input, to be shown, and where they are from."""

    input: int
    document: str
    start: int
    tokens: list[str]
    rtl: bool
    pieces: bool  # WordPiece: what has no "##" begins a word
