"""What a variable of a result is: all that is said of it anywhere, declared once.

A metric declares its measures beside the code that computes them. They travel inside `result.nc`
as attributes of the variables, so that report, explorer, comparison and documentation show the same
words without knowing the study.

A slice of a measure has a number for every head, at one label of each further dimension. It is
written NAME~LABEL~LABEL with the labels in the order of the dimensions: `entropy`, `pos_to~NOUN`,
`relation_accuracy~dependent_to_head~nsubj`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from itertools import product
from typing import Any, Literal

import numpy as np
import xarray as xr

from headscope.errors import RunError
from headscope.head import Head
from headscope.results.inspection import named, read_json

Unit = Literal["share", "nats", "tokens", "divergence", ""]
# What a head does, in groups that have a colour each (`theme.ROLES`).
RoleGroup = Literal["position", "marks", "repetition", "token", "word class", "syntax", "sink",
                    "even", "unnamed"]  # fmt: skip
ATTRIBUTE = "measure"  # of a variable: everything below as JSON
GRID = ("layer", "head")
MAP, DIVERGENCE = ("unit", "axis"), ("unit", "other")  # of heads on a plane, and of how unlike
MARK = "~"  # between the name and the labels of a slice
BY_LAYER = "_by_layer"
_ALL = slice(None)
# What has these dimensions is a count, a bound, an exemplar or an example, not a value of a head.
NO_VALUE = frozenset({"group", "bound", "rank", "top", "pick", "query", "key", "source"})
# What else a metric computes of a measure; each says what the measure itself is.
DERIVED = (
    "_se",
    "_by_layer",
    "_by_layer_se",
    "_head_mean",
    "_numerator",  # sums over the inputs of every group of documents
    "_denominator",
    "_q",  # against the first baseline, over all heads and labels
    "_untrained",  # the mean over networks of random weights
)


@dataclass(frozen=True)
class Baseline:
    """What a value is compared with: another variable, or an attribute, of the same result.

    `best_over` names a dimension over which the best value counts, such as the best fixed offset;
    `means` may then hold `{}` for the label of that best value.
    """

    variable: str
    means: str
    best_over: str | None = None

    def words(self, label: str) -> str:
        """What it means, with the label of the best value; nothing in a run is a format string."""
        return self.means.replace("{}", label)


@dataclass(frozen=True)
class Published:
    """What a paper reports for a slice of the measure, in its own model."""

    says: str
    source: str  # model and paper
    value: float | None = None  # None where the paper gives no single number
    at: Mapping[str, str] = field(default_factory=dict)  # label by dimension


@dataclass(frozen=True)
class Measure:
    """A variable of a result in words."""

    name: str
    title: str
    meaning: str  # one line
    formula: str
    reference: str
    unit: Unit = "share"
    more: str = ""  # what a larger value says: "looks further"
    axes: Mapping[str, str] = field(default_factory=dict)  # titles of the further dimensions
    baselines: tuple[Baseline, ...] = ()  # the first that the result has counts
    published: tuple[Published, ...] = ()
    with_errors: bool = True  # whether the variables of DERIVED come with it
    also: tuple[str, ...] = ()  # further variables that need no words of their own
    # Of a measure whose values are names: the group of each; "" stands for any further name.
    groups: Mapping[str, RoleGroup] = field(default_factory=dict)

    def group_of(self, name: str) -> RoleGroup:
        """The group of a name, by which it is coloured."""
        return self.groups.get(name, self.groups.get("", "unnamed"))

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
        return (
            _read(name, content) if isinstance(content, str) else _read.__wrapped__(name, content)
        )


@lru_cache(maxsize=1024)  # a page asks for the same few again and again
def _read(name: str, content: object) -> Measure:
    return read_json(content, Measure, _what(name))


def _what(name: str) -> str:
    return f"The measure of {named(name)}"


def attach(result: xr.Dataset, measures: Iterable[Measure]) -> xr.Dataset:
    """The result with every measure written on its variable, if that does not say what it is."""
    found: dict[str, xr.Variable] = {}  # all have the coordinates of the result
    for measure in measures:
        if measure.name in result and ATTRIBUTE not in result.variables[measure.name].attrs:
            variable = result.variables[measure.name].copy(deep=False)
            variable.attrs.update(measure.as_attributes())
            found[measure.name] = variable
    return result.assign(found)


def measure_of(result: xr.Dataset, name: str) -> Measure:
    """What a variable of a result is."""
    return Measure.from_attributes(name, result.variables[name].attrs)


def measure_names(result: xr.Dataset) -> list[str]:
    """The variables with a declared measure that has a number for every head."""
    return [str(name) for name in result.data_vars if _is_of_heads(result.variables[name])]


def variable_along(result: xr.Dataset, *dims: str) -> str | None:
    """The variable that has exactly these dimensions, but for errors and sums of one; or None."""
    for name in map(str, result.data_vars):
        if {*result.variables[name].dims} == {*dims} and not name.endswith(DERIVED):
            return name
    return None


def _is_of_heads(array: xr.Variable) -> bool:
    dims = set(array.dims)
    declared = ATTRIBUTE in array.attrs and array.dtype.kind in "fiu"
    return declared and set(GRID) <= dims and not NO_VALUE & dims


@dataclass(frozen=True)
class Slice:
    """The values of all heads, their standard errors, and which slice of what they are."""

    measure: Measure
    at: Mapping[str, str]  # label by further dimension
    values: xr.DataArray  # layer head
    errors: xr.DataArray | None

    @property
    def spec(self) -> str:
        """The slice as it is written in commands and addresses."""
        return MARK.join((self.measure.name, *self.at.values()))

    @property
    def title(self) -> str:
        """The measure and what it is sliced at."""
        labels = ", ".join(map(plain_label, self.at.values()))
        return f"{self.measure.title}: {labels}" if labels else self.measure.title

    @property
    def published(self) -> Published | None:
        """What the paper reports for this slice."""
        fitting = (one for one in self.measure.published if one.at.items() <= self.at.items())
        return max(fitting, key=lambda one: len(one.at), default=None)


@dataclass(frozen=True)
class BaselineValue:
    """The number that a slice is compared with, and what it is in words."""

    value: float
    means: str


def heads_of(result: xr.Dataset) -> tuple[Head, ...]:
    """All heads in the order of a flattened layer × head array."""
    layers, heads = result["layer"].values, result["head"].values
    return tuple(Head(int(layer), int(head)) for layer in layers for head in heads)


def plain_label(label: str) -> str:
    """A coordinate's label for readers."""
    return label.replace("_", " ")


def further_axes(result: xr.Dataset, name: str) -> dict[str, list[str]]:
    """The dimensions beside layer and head, with the labels that have a value, as text."""
    known = result[name].notnull()
    axes: dict[str, list[str]] = {}
    for dim in (dim for dim in known.dims if dim not in GRID):
        present = known.any([other for other in known.dims if other != dim]).values
        labels = [str(label) for label in result[name][dim].values]
        axes[str(dim)] = [label for label, has in zip(labels, present, strict=True) if has]
    return axes


def cut(result: xr.Dataset, spec: str) -> Slice:
    """The slice that a spec names; an unknown name or label is refused with a list of what is."""
    name, *labels = spec.split(MARK)
    if name not in measure_names(result):
        known = ", ".join(measure_names(result))
        raise RunError(f"There is no measure of that name; there are {known}.")
    axes = further_axes(result, name)
    if len(labels) != len(axes):
        example = MARK.join([name, *(known[0] for known in axes.values())])
        raise RunError(
            f"{name} needs a label for each of: {', '.join(axes) or 'nothing'}; write {example}."
        )
    for label, (axis, known) in zip(labels, axes.items(), strict=True):
        if label not in known:
            raise RunError(f"{name} has no such {axis}; it has {', '.join(known)}.")
    return slice_at(result, name, dict(zip(axes, labels, strict=True)))


@dataclass(frozen=True)
class Behaviour:
    """A name that a study gives to heads: its group, and its number within the group."""

    name: str
    group: RoleGroup
    number: int


def behaviours_of(result: xr.Dataset) -> list[Behaviour]:
    """The names that heads of a result have, in the order of their declaration.

    Group and number, hence colour and shape, depend on the declaration and not on the run, but for
    the number of names that come from the corpus.
    """
    measure = measure_of(result, "behaviour")
    declared = [name for name in measure.groups if name]
    present = set(map(str, result.variables["behaviour"].values.ravel().tolist()))
    counted: dict[RoleGroup, int] = {}
    found: list[Behaviour] = []
    for name in [*declared, *sorted(present - set(declared))]:
        group = measure.group_of(name)
        if name in present:
            found.append(Behaviour(name, group, counted.get(group, 0)))
        counted[group] = counted.get(group, 0) + 1
    return found


def slices(result: xr.Dataset, name: str) -> Iterator[Slice]:
    """Every slice of a measure."""
    axes = further_axes(result, name)
    for labels in product(*axes.values()):
        yield slice_at(result, name, dict(zip(axes, labels, strict=True)))


def slice_at(result: xr.Dataset, name: str, at: Mapping[str, str]) -> Slice:
    """The slice of a measure at the given labels."""
    errors = select(result[f"{name}_se"], at) if f"{name}_se" in result else None
    return Slice(measure_of(result, name), at, select(result[name], at).transpose(*GRID), errors)


def select(array: xr.DataArray, at: Mapping[str, str]) -> xr.DataArray:
    """The array at labels given as text, whatever type its coordinates have; others stay."""
    places = {
        axis: _place(array[axis].values, label) for axis, label in at.items() if axis in array.dims
    }
    return array.isel({axis: place for axis, place in places.items() if place is not None})


def values_at(data: xr.Dataset, name: str, at: Mapping[str, Any]) -> xr.Variable:
    """A variable at labels of some of its axes, without coordinates, which cost most of a cut."""
    array = data.variables[name]
    places = {
        axis: _place(data.variables[axis].values, label)
        for axis, label in at.items()
        if axis in array.dims
    }
    if None in places.values():
        raise KeyError(f"{name} has no {at}")
    left = [dim for dim in array.dims if dim not in places]
    return xr.Variable(left, array.values[tuple(places.get(str(dim), _ALL) for dim in array.dims)])


def _place(labels: np.ndarray, label: Any) -> int | None:
    """Where a label stands among the labels of an axis, compared as text."""
    known = [str(each) for each in labels.tolist()]
    return known.index(str(label)) if str(label) in known else None


def number(value: Any) -> float | None:
    """A number as JSON has it: None where it is not finite."""
    plain = float(value)
    return plain if np.isfinite(plain) else None


def baseline_of(result: xr.Dataset, chosen: Slice) -> BaselineValue | None:
    """What a slice is compared with in the same run; None where the study measured nothing."""
    found = (_value(result, each, chosen.at) for each in chosen.measure.baselines)
    return next((each for each in found if each is not None), None)


def baseline_of_head(
    result: xr.Dataset, chosen: Slice, own: Baseline, head: Head
) -> BaselineValue | None:
    """What one head is compared with, of a baseline in which every head has its own value."""
    return _value(result[[own.variable]].sel(head._asdict()), own, chosen.at)


def own_baseline(result: xr.Dataset, chosen: Slice) -> Baseline | None:
    """The baseline in which every head has a value of its own; None where there is none."""
    known = (each for each in chosen.measure.baselines if each.variable in result)
    of_heads = (each for each in known if set(GRID) <= set(result.variables[each.variable].dims))
    return next(of_heads, None)


def _value(result: xr.Dataset, baseline: Baseline, at: Mapping[str, str]) -> BaselineValue | None:
    if baseline.variable in result.attrs:
        return BaselineValue(float(result.attrs[baseline.variable]), baseline.means)
    if baseline.variable not in result:
        return None
    array, label = select(result[baseline.variable], at), ""
    if baseline.best_over in array.dims and np.isfinite(array.values).any():
        best = int(np.nanargmax(array.values))
        label = signed_label(array[baseline.best_over].values[best])
        array = array.isel({baseline.best_over: best})
    if array.ndim or not np.isfinite(array):
        return None
    return BaselineValue(float(array), baseline.words(label))


def signed_label(label: object) -> str:
    """A coordinate's label for readers, offsets with their sign."""
    if isinstance(label, int | np.integer):
        return f"{label:+d}".replace("-", "−")
    return plain_label(str(label))
