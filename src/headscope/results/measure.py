"""What a variable of a result is: all that is said of it anywhere, declared once.

A metric declares its measures beside the code that computes them. They travel inside `result.nc`
as attributes of the variables, so that report, explorer, comparison and documentation show the same
words without knowing the study.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any, Literal

import xarray as xr

from headscope.errors import RunError
from headscope.results.inspection import parse, read_as
from headscope.wording import plain, shorten

Unit = Literal["share", "nats", "tokens", "divergence", ""]
RoleKind = Literal[
    "position", "special", "tag", "relation", "coreference", "detector", "spread", "null"
]
ATTRIBUTE = "measure"  # of a variable: everything below as JSON
GRID = ("layer", "head")
# What has these dimensions is a count, a bound, an exemplar or an example, not a value of a head.
NO_VALUE = frozenset({"group", "bound", "rank", "top", "pick", "query", "key"})
# What else a metric computes of a measure; each says what the measure itself is.
DERIVED = (
    "_se",
    "_by_layer",
    "_by_layer_se",
    "_head_mean",
    "_numerator",  # sums over the inputs of every group of documents
    "_denominator",
    "_q",  # against the first baseline, over all heads and labels
)


@dataclass(frozen=True)
class Baseline:
    """What a value is held against: another variable, or an attribute, of the same result.

    `best_over` names a dimension over which the best value counts, such as the best fixed offset;
    `means` may then hold `{}` for the label of that best value.
    """

    variable: str
    means: str
    best_over: str | None = None


@dataclass(frozen=True)
class Published:
    """What a paper reports for a slice of the measure, in its own model."""

    says: str
    source: str  # model and paper
    value: float | None = None  # None where the paper gives no single number
    at: Mapping[str, str] = field(default_factory=dict)  # label by dimension


@dataclass(frozen=True)
class Role:
    """What a head does whose value in the measure is large, in words for a sentence about it."""

    kind: RoleKind
    words: str  # may hold {dimension} for the label of the slice
    names: Mapping[str, str] = field(default_factory=dict)  # words of single labels
    of: Literal["attention", "rest", ""] = ""  # of what it is a share; rest: all but null tokens
    without: tuple[str, ...] = ()  # labels that are no role of their own, such as a sum of others
    needs_baseline: bool = True  # False where even attention gives next to nothing
    beyond: str = ""  # the baseline that it must exceed where the result has it; else the first


@dataclass(frozen=True)
class Measure:
    """A variable of a result in words."""

    name: str
    title: str
    meaning: str  # one line
    formula: str
    reference: str
    unit: Unit = "share"
    range: str = "0 to 1"
    cost: str = ""  # of one input of n tokens for one head, beyond the forward pass
    more: str = ""  # what a larger value says: "looks further"
    axes: Mapping[str, str] = field(default_factory=dict)  # titles of the further dimensions
    baselines: tuple[Baseline, ...] = ()  # the first that the result has counts
    published: tuple[Published, ...] = ()
    with_errors: bool = True  # whether the variables of DERIVED come with it
    also: tuple[str, ...] = ()  # further variables that need no words of their own
    role: Role | None = None  # of heads with large values

    def as_attributes(self) -> dict[str, str]:
        """The measure as attributes of its variable; xarray's plots know the first two."""
        content = json.dumps(asdict(self), ensure_ascii=False)
        return {"long_name": self.title, "units": self.unit, ATTRIBUTE: content}

    @classmethod
    def from_attributes(cls, name: str, attributes: Mapping[str, Any]) -> "Measure":
        """What a variable says of itself; one that says nothing goes by its name."""
        if ATTRIBUTE not in attributes:
            return cls(name, name.replace("_", " ").capitalize(), "", "", "", unit="")
        content = attributes[ATTRIBUTE]
        if not isinstance(content, str):
            raise RunError(f"{_what(name)} is not a text.")
        return _read(name, content)


@lru_cache(maxsize=1024)  # a page asks for the same few again and again
def _read(name: str, content: str) -> Measure:
    return read_as(Measure, parse(content, _what(name)), _what(name))


def _what(name: str) -> str:
    return f"The measure of {shorten(plain(name), 60)}"


def attach(result: xr.Dataset, measures: Iterable[Measure]) -> xr.Dataset:
    """The result with every measure written on its variable."""
    named = {measure.name: measure for measure in measures}
    return result.assign(
        {
            name: result[name].assign_attrs(measure.as_attributes())
            for name, measure in named.items()
            if name in result
        }
    )


def measure_of(result: xr.Dataset, name: str) -> Measure:
    """What a variable of a result is."""
    return Measure.from_attributes(name, result.variables[name].attrs)


def measure_names(result: xr.Dataset) -> list[str]:
    """The variables with a declared measure that has a number for every head."""
    return [str(name) for name in result.data_vars if _is_of_heads(result.variables[name])]


def _is_of_heads(array: xr.Variable) -> bool:
    dims = set(array.dims)
    declared = ATTRIBUTE in array.attrs and array.dtype.kind in "fiu"
    return declared and set(GRID) <= dims and not NO_VALUE & dims
