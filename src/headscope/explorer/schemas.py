"""Everything the API sends and receives, as types; how much may be asked, and how it is refused.

They are the only place where a field is declared: the OpenAPI document, the checks of what is
received, the JSON that is sent and the types of the pages' JavaScript follow from them. What is
sent about heads is in `head_schemas`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from headscope.results.measure import BaselineValue, Behaviour, Published
from headscope.results.statements import Choice, JudgedClaim
from headscope.results.tables import Kind as ColumnKind
from headscope.views.state import Kind

PAGES = (  # names in addresses
    "overview", "finder", "head", "embed", "clusters", "findings", "tables", "text", "compare",
)  # fmt: skip
POLICY = (  # what a browser may do with a page; the page that prints a view brings its paper size
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'"
)
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
    waiting: int = 64  # texts in the queue, the one being traced included
    seconds: float = 60.0  # until a visitor is told to come back, and for one trace
    body_seconds: float = 20.0  # until a request must have arrived
    kept: int = 64 * 1024 * 1024  # bytes of answers that are kept for the next visitor


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
    """One value for each layer: pooled over heads where the study pooled, else their mean.

    Errors are margins of error, half of a 95 % interval, here and in all that is sent.
    """

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
    behaviours: list[Behaviour]
    stress: float | None


@dataclass(frozen=True)
class TableColumn:
    """What a column of a table holds; a margin of error is of the column that it stands behind."""

    name: str
    title: str  # a measure has the name that it has everywhere
    kind: ColumnKind
    of: str


@dataclass(frozen=True)
class StoredTable:
    """A table as the run holds it."""

    name: str
    title: str
    caption: str
    columns: list[TableColumn]
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
