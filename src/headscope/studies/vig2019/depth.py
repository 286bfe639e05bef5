"""What the paper says of layer depth in words beside its figures, held against a result."""

from functools import partial

import numpy as np
import xarray as xr

from headscope.results.findings import Finding, Found, NotMeasured
from headscope.results.heads import layers_between, name_layers, whole

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


def _deep_less_low(data: xr.Dataset, names: tuple[str, ...]) -> xr.DataArray:
    """Share of some relations in the deeper half of the layers, less that in the lower half."""
    by_layer = _share(data, names)
    low = layers_between(data, 0, 1 / 2)
    deep = [layer for layer in data["layer"].values.tolist() if layer not in low]
    return _mean(by_layer, deep) - _mean(by_layer, low)


def _share(data: xr.Dataset, names: tuple[str, ...]) -> xr.DataArray:
    known = [name for name in names if name in data["deprel"]]
    occurring = [name for name in known if float(whole(data["deprel_frequency"]).sel(deprel=name))]
    if not occurring:
        raise NotMeasured("the corpus has no such relation")
    return data["deprel_to_by_layer"].sel(deprel=occurring).sum("deprel")


def _say_shares(data: xr.Dataset, found: Found, names: tuple[str, ...]) -> str:
    by_layer = whole(_share(data, names))
    low = layers_between(data, 0, 1 / 2)
    deep = [layer for layer in data["layer"].values.tolist() if layer not in low]
    even = whole(data["deprel_to_even"])
    expected = sum(float(even.sel(deprel=name)) for name in names if name in even["deprel"])
    return (
        f"{float(_mean(by_layer, low)):.3f} in {name_layers(low)}, "
        f"{float(_mean(by_layer, deep)):.3f} above; even attention {expected:.3f}"
    )


def _uneven(data: xr.Dataset) -> xr.DataArray:
    """How far attention from tags is from their frequency: in the first layers − in the rest."""
    first, rest = _split(data)
    distance = _from_frequency(data)
    return _mean(distance, first) - _mean(distance, rest)


def _from_frequency(data: xr.Dataset) -> xr.DataArray:
    """Mean over the heads of a layer of ½ Σ |share from a tag − frequency of the tag|."""
    shares, frequency = data["pos_from"], data["tag_frequency"]
    return 0.5 * abs(shares - frequency).sum("tag").mean("head")


def _say_uneven(data: xr.Dataset, found: Found) -> str:
    first, rest = _split(data)
    distance = whole(_from_frequency(data))
    near, far = (float(_mean(distance, layers)) for layers in (first, rest))
    return f"{near:.3f} from the frequencies in {name_layers(first)}, {far:.3f} in the rest"


def _first_entropy(data: xr.Dataset) -> xr.DataArray:
    first, rest = _split(data)
    by_layer = data["entropy_by_layer"]
    return _mean(by_layer, first) - _mean(by_layer, rest)


def _say_entropy(data: xr.Dataset, found: Found) -> str:
    first, rest = _split(data)
    by_layer = whole(data["entropy_by_layer"])
    here, there = (float(_mean(by_layer, layers)) for layers in (first, rest))
    return f"{here:.2f} in {name_layers(first)}, {there:.2f} in the rest"


def _first_distance(data: xr.Dataset) -> xr.DataArray:
    first, following = layers_between(data, *FIRST), _following(data)
    by_layer = data["distance_by_layer"]
    return _mean(by_layer, first) - _mean(by_layer, following)


def _say_distance(data: xr.Dataset, found: Found) -> str:
    first, following = layers_between(data, *FIRST), _following(data)
    by_layer = whole(data["distance_by_layer"])
    here, there = (float(_mean(by_layer, layers)) for layers in (first, following))
    return f"{here:.2f} in {name_layers(first)}, {there:.2f} in {name_layers(following)}"


def _following(data: xr.Dataset) -> list[int]:
    first = layers_between(data, *FIRST)
    found = [layer for layer in layers_between(data, *NEXT) if layer not in first]
    if not found:
        raise NotMeasured(FEW_LAYERS)
    return found


def _split(data: xr.Dataset) -> tuple[list[int], list[int]]:
    """The first layers and all others."""
    first = layers_between(data, *FIRST)
    rest = [layer for layer in data["layer"].values.tolist() if layer not in first]
    if not rest:
        raise NotMeasured(FEW_LAYERS)
    return first, rest


def _mean(by_layer: xr.DataArray, layers: list[int]) -> xr.DataArray:
    found = by_layer.sel(layer=layers).mean("layer")
    if not layers or not np.isfinite(whole(found)):
        raise NotMeasured(FEW_LAYERS)
    return found


def _of_relations(claim: str, names: tuple[str, ...], *, is_deep: bool) -> Finding:
    return Finding(
        claim,
        f"more in {'deeper' if is_deep else 'lower'} layers",
        "mean share of the deeper half of the layers, less that of the lower half, is "
        f"{'above' if is_deep else 'below'} 0",
        ("deprel_to", "deprel_to_by_layer", "deprel_frequency", "deprel_to_even"),
        partial(_deep_less_low, names=names),
        more="above" if is_deep else "below",
        is_signed=True,
        words=partial(_say_shares, names=names),
    )


FINDINGS = (
    _of_relations("Subjects are attended to in deep layers.", SUBJECTS, is_deep=True),
    *(
        _of_relations(f"{name.capitalize()} are attended to in low layers.", labels, is_deep=False)
        for name, labels in LOW.items()
    ),
    Finding(
        "In the first layers attention comes from all tags as often as they occur.",
        "roughly uniform in the initial layers, which pay little to the null token",
        "mean over heads of ½ Σ |share − frequency| in the first sixth of the layers, less that in "
        "the rest, is below 0",
        ("pos_from", "tag_frequency"),
        _uneven,
        more="below",
        is_signed=True,
        words=_say_uneven,
    ),
    Finding(
        "The first layers spread their attention widely.",
        "many heads of layers 0 and 1 have high entropy",
        "mean entropy of the first sixth of the layers, less that of the rest, is above 0",
        ("entropy", "entropy_by_layer"),
        _first_entropy,
        unit="nats",
        is_signed=True,
        words=_say_entropy,
    ),
    Finding(
        "So they look further than the layers after them.",
        "layers 0 and 1 further than layers 2–4",
        "mean distance of the first sixth of the layers, less that of the next quarter, is above 0",
        ("distance", "distance_by_layer"),
        _first_distance,
        unit="tokens",
        is_signed=True,
        words=_say_distance,
    ),
)
