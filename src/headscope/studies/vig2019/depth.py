"""What the paper says of layer depth in words beside its figures, held against a result."""

from collections.abc import Callable
from typing import Literal

import numpy as np
import xarray as xr

from headscope.results.findings import (
    Finding,
    Found,
    NotMeasured,
    layers_between,
    name_layers,
    split_layers,
    whole,
)

FIRST = (0.0, 2 / 12)  # layers 0 and 1 of GPT-2's 12
NEXT = (2 / 12, 5 / 12)  # layers 2 to 4
# Names of one thing in the scheme of the paper and in Universal Dependencies.
SUBJECTS = ("csubj", "csubjpass", "csubj:pass", "csubj:outer", "nsubj", "nsubjpass", "nsubj:pass",
            "nsubj:outer")  # fmt: skip
LOW = {
    "auxiliaries": ("aux", "auxpass", "aux:pass"),
    "conjunctions": ("cc", "cc:preconj"),
    "determiners": ("det", "det:predet"),
    "expletives": ("expl",),
    "negations": ("neg",),
}
FEW_LAYERS = "the model has too few layers to compare"
Values = Callable[[xr.Dataset], xr.Variable]  # by layer
Layers = Callable[[xr.Dataset], list[int]]


def _share(data: xr.Dataset, names: tuple[str, ...]) -> xr.Variable:
    """What some relations receive together in every layer."""
    often = whole(data.variables["deprel_frequency"]).values
    occurring = [place for place in _places(data, names) if often[place]]
    if not occurring:
        raise NotMeasured("the corpus has no such relation")
    return data.variables["deprel_to_by_layer"].isel(deprel=occurring).sum("deprel")


def _places(data: xr.Dataset, names: tuple[str, ...]) -> list[int]:
    """Where the relations stand that the result has."""
    labels = data.variables["deprel"].values.tolist()
    return [labels.index(name) for name in names if name in labels]


def _from_frequency(data: xr.Dataset) -> xr.Variable:
    """Mean over the heads of a layer of ½ Σ |share from a tag − frequency of the tag|."""
    shares, frequency = data.variables["pos_from"], data.variables["tag_frequency"]
    return 0.5 * abs(shares - frequency).sum("tag").mean("head")


def _by_layer(name: str) -> Values:
    return lambda data: data.variables[f"{name}_by_layer"]


def _rest(data: xr.Dataset) -> list[int]:
    """All but the first layers."""
    return split_layers(data, *FIRST, FEW_LAYERS)[1]


def _following(data: xr.Dataset) -> list[int]:
    """The layers after the first ones."""
    first = layers_between(data, *FIRST)
    found = [layer for layer in layers_between(data, *NEXT) if layer not in first]
    if not found:
        raise NotMeasured(FEW_LAYERS)
    return found


def _mean(data: xr.Dataset, by_layer: xr.Variable, layers: list[int]) -> xr.Variable:
    every = data.variables["layer"].values.tolist()
    found = by_layer.isel(layer=[every.index(layer) for layer in layers]).mean("layer")
    if not layers or not np.isfinite(whole(found)):
        raise NotMeasured(FEW_LAYERS)
    return found


def _of_relations(claim: str, names: tuple[str, ...], *, is_deep: bool) -> Finding:
    """The share of some relations in the deeper half of the layers, less that in the lower half."""

    def halves(data: xr.Dataset, by_layer: xr.Variable) -> tuple[xr.Variable, xr.Variable]:
        low = layers_between(data, 0, 1 / 2)
        deep = [layer for layer in data.variables["layer"].values.tolist() if layer not in low]
        return _mean(data, by_layer, deep), _mean(data, by_layer, low)

    def find(data: xr.Dataset) -> xr.Variable:
        deep, low = halves(data, _share(data, names))
        return deep - low

    def say(data: xr.Dataset, found: Found) -> str:
        deep, low = map(float, halves(data, whole(_share(data, names))))
        even = whole(data.variables["deprel_to_even"]).values
        expected = sum(float(even[place]) for place in _places(data, names))
        where = name_layers(layers_between(data, 0, 1 / 2))
        return f"{low:.3f} in {where}, {deep:.3f} above; even attention {expected:.3f}"

    return Finding(
        claim,
        f"more in {'deeper' if is_deep else 'lower'} layers",
        "mean share of the deeper half of the layers, less that of the lower half, is "
        f"{'above' if is_deep else 'below'} 0",
        ("deprel_to", "deprel_to_by_layer", "deprel_frequency", "deprel_to_even"),
        find,
        more="above" if is_deep else "below",
        is_signed=True,
        words=say,
    )


def _of_first_layers(
    claim: str,
    published: str,
    rule: str,
    needs: tuple[str, ...],
    values: Values,
    form: str,
    *,
    others: Layers = _rest,
    more: Literal["above", "below"] = "above",
    unit: str = "",
) -> Finding:
    """A value by layer: in the first layers, less that in others."""

    def find(data: xr.Dataset) -> xr.Variable:
        by_layer, there = values(data), others(data)
        return _mean(data, by_layer, layers_between(data, *FIRST)) - _mean(data, by_layer, there)

    def say(data: xr.Dataset, found: Found) -> str:
        first, rest = layers_between(data, *FIRST), others(data)
        here, there = (float(_mean(data, whole(values(data)), layers)) for layers in (first, rest))
        return form.format(here, name_layers(first), there, name_layers(rest))

    return Finding(
        claim, published, rule, needs, find, more=more, unit=unit, is_signed=True, words=say
    )


FINDINGS = (
    _of_relations("Subjects are attended to in deep layers.", SUBJECTS, is_deep=True),
    *(
        _of_relations(f"{name.capitalize()} are attended to in low layers.", labels, is_deep=False)
        for name, labels in LOW.items()
    ),
    _of_first_layers(
        "In the first layers attention comes from all tags as often as they occur.",
        "roughly uniform in the initial layers, which pay little to the null token",
        "mean over heads of ½ Σ |share − frequency| in the first sixth of the layers, less that in "
        "the rest, is below 0",
        ("pos_from", "tag_frequency"),
        _from_frequency,
        "{:.3f} from the frequencies in {}, {:.3f} in the rest",
        more="below",
    ),
    _of_first_layers(
        "The first layers spread their attention widely.",
        "many heads of layers 0 and 1 have high entropy",
        "mean entropy of the first sixth of the layers, less that of the rest, is above 0",
        ("entropy", "entropy_by_layer"),
        _by_layer("entropy"),
        "{:.2f} in {}, {:.2f} in the rest",
        unit="nats",
    ),
    _of_first_layers(
        "So they look further than the layers after them.",
        "layers 0 and 1 further than layers 2–4",
        "mean distance of the first sixth of the layers, less that of the next quarter, is above 0",
        ("distance", "distance_by_layer"),
        _by_layer("distance"),
        "{:.2f} in {}, {:.2f} in {}",
        others=_following,
        unit="tokens",
    ),
)
