"""Which head of one network does what a head of another does: matching by behaviour, not by number.

A head's profile is all that two runs both measured of it, each slice of a measure standardised over
the heads of both networks. The distance of two heads is the root mean square difference of their
profiles. Of all ways to give every head of the smaller network a partner of its own, the matching
takes the one with the smallest total distance (Kuhn 1955).

Of many heads some pair is always near. How near is told by networks that have nothing to do with
each other: the second one's heads with every principal component of their profiles dealt out anew,
matched in the same way.

Matching is for networks that were trained apart: there the number of a head means nothing, another
seed permutes them. In a network, in its fine-tuned and in its quantised copy head 3 of layer 2 is
the same head. How two runs relate says which it is, and whether they read the same texts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from headscope.errors import RunError
from headscope.head import Head
from headscope.results.dataset import read_attribute
from headscope.results.measure import GRID, Slice, heads_of, measure_names, slices
from headscope.results.replicates import q_values
from headscope.results.run import Run

CHANCE = 0.05  # a partner whose q among the matches of strangers is no smaller is none
STRANGERS = 20  # networks made up to match with
FEWEST_SLICES = 2
FEWEST_HEADS = 0.5  # share of the heads that a slice must be known of
FAR = 1e6  # distance of heads of which nothing in common is known
ALIKE = 0.5  # correlation of the embeddings' sketches; that of two strangers is about 0 ± 0.06
# What changes how a run is computed, not what is computed.
CIRCUMSTANCES = frozenset({"batch_tokens", "shard_sentences", "attention"})


@dataclass(frozen=True)
class Match:
    """A head, its partner in the other network, and how alike they are."""

    first: Head
    second: Head
    distance: float  # root mean square difference, in standard deviations over heads
    chance: float  # share of the matches of strangers at least as near, itself counted among them
    q: float  # the same after correction for all heads

    @property
    def is_good(self) -> bool:
        """Whether the pair is nearer than matched strangers are."""
        return self.q < CHANCE


@dataclass(frozen=True)
class Matching:
    """Every head of the smaller network with its partner, and the heads that have none."""

    matches: tuple[Match, ...]  # the best first
    first_alone: tuple[Head, ...]
    second_alone: tuple[Head, ...]
    columns: tuple[str, ...]
    arbitrary: float  # mean distance of arbitrary pairs: what no likeness at all looks like

    @property
    def mean_distance(self) -> float:
        return float(np.mean([match.distance for match in self.matches]))

    @property
    def contradicts_numbers(self) -> bool:
        """Whether most heads that have a good partner have one of another number."""
        good = [match for match in self.matches if match.is_good]
        return sum(match.first != match.second for match in good) > len(good) / 2


def match_heads(first: xr.Dataset, second: xr.Dataset) -> Matching:
    """The heads of two results paired by what they do, of whatever shapes the networks are."""
    columns, profiles, others = shared_profiles(first, second)
    heads, partners = heads_of(first), heads_of(second)
    distances = _distances(profiles, others)
    left, right = _cheapest(distances)
    comparable = distances[left, right] < FAR
    left, right = left[comparable], right[comparable]
    strange = _strange_distances(profiles, others)
    near = distances[left, right]
    # The match itself is counted as one of the strangers': no chance is shown as 0.
    chance = (np.searchsorted(strange, near, side="right") + 1) / (strange.size + 1)
    matches = [
        Match(heads[i], partners[j], *map(float, numbers))
        for i, j, *numbers in zip(left, right, near, chance, q_values(chance), strict=True)
    ]
    return Matching(
        tuple(sorted(matches, key=lambda match: (match.distance, match.first))),
        tuple(head for place, head in enumerate(heads) if place not in left),
        tuple(head for place, head in enumerate(partners) if place not in right),
        columns,
        float(distances[distances < FAR].mean()),
    )


def _cheapest(distances: Float[np.ndarray, "head other"]) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the pairs with the smallest total distance."""
    # Here, since few commands match heads and the import takes a fifth of a second.
    from scipy.optimize import linear_sum_assignment

    return linear_sum_assignment(distances)


def _strange_distances(
    first: Float[np.ndarray, "head column"], second: Float[np.ndarray, "other column"]
) -> Float[np.ndarray, "match"]:
    """Distances of matched heads, in order, where the second network is dealt out anew."""
    random = np.random.default_rng(STRANGERS)
    scores, sizes, directions = np.linalg.svd(np.nan_to_num(second), full_matrices=False)
    left, found = np.nan_to_num(first), []
    for _ in range(STRANGERS):
        dealt = random.permuted(scores, axis=0) * sizes @ directions
        distances = _distances(left, dealt)
        found.append(distances[_cheapest(distances)])
    return np.sort(np.concatenate(found))


def shared_profiles(
    first: xr.Dataset, second: xr.Dataset
) -> tuple[tuple[str, ...], Float[np.ndarray, "head column"], Float[np.ndarray, "other column"]]:
    """What both runs know of most heads, without slices that one lacks or that never vary.

    The slices as NAME~LABEL, and their standardised values in either run; NaN is unknown.
    """
    a, b = _table(first), _table(second)
    shared = [name for name in a if name in b]
    if not shared:
        raise _too_few()
    left, right = (np.stack([table[name] for name in shared], 1) for table in (a, b))
    both = np.concatenate([left, right])
    middle, spread = np.nanmean(both, 0), np.nanstd(both, 0)
    known = spread > 1e-12
    if known.sum() < FEWEST_SLICES:
        raise _too_few()
    middle, spread = middle[known], spread[known]
    return (
        tuple(name for name, keep in zip(shared, known, strict=True) if keep),
        (left[:, known] - middle) / spread,
        (right[:, known] - middle) / spread,
    )


def _too_few() -> RunError:
    return RunError(
        "The two runs share too few measures of heads to match them by what they do; "
        "run the same study on both models."
    )


def _table(result: xr.Dataset) -> dict[str, np.ndarray]:
    """The values of every slice over all heads, but for slices that tell heads apart by noise."""
    return {
        cut.spec: np.where(np.isfinite(cut.values.values), cut.values.values, np.nan).ravel()
        for name in measure_names(result)
        for cut in slices(result, name)
        if _tells_heads_apart(cut)
    }


def _tells_heads_apart(cut: Slice) -> bool:
    """Whether it is known of most heads, which differ by more than their errors."""
    values = cut.values.values[np.isfinite(cut.values.values)]
    if values.size < FEWEST_HEADS * cut.values.size:
        return False
    errors = np.array([]) if cut.errors is None else cut.errors.values
    errors = errors[np.isfinite(errors)]
    return not errors.size or float(values.std()) > float(np.median(errors))


def _distances(
    first: Float[np.ndarray, "head column"], second: Float[np.ndarray, "other column"]
) -> Float[np.ndarray, "head other"]:
    """Root mean square differences over what is known of both heads."""
    has, other = np.isfinite(first).astype(float), np.isfinite(second).astype(float)
    x, y = np.nan_to_num(first), np.nan_to_num(second)
    squares = x**2 @ other.T + has @ (y**2).T - 2 * x @ y.T
    count = has @ other.T
    with np.errstate(all="ignore"):
        return np.where(count > 0, np.sqrt(np.maximum(squares, 0) / count), FAR)


@dataclass(frozen=True)
class Relation:
    """What two runs have in common, with the reasons in words."""

    same_texts: bool
    one_lineage: bool
    same_shape: bool
    same_network: bool
    texts: str  # a sentence
    networks: str  # a sentence


def relate(first: Run, second: Run) -> Relation:
    """How two runs relate, from their run.json and results."""
    same_texts, texts = _texts(first, second)
    shapes = [tuple(run.data.sizes.get(dim, 0) for dim in GRID) for run in (first, second)]
    a, b = (_model(run) for run in (first, second))
    same_shape = shapes[0] == shapes[1]
    fingerprint = a.get("fingerprint")
    same_network = same_shape and bool(fingerprint) and fingerprint == b.get("fingerprint")
    alike = likeness(a.get("sketch"), b.get("sketch"))
    one_lineage = same_network or (same_shape and (alike or 0) > ALIKE)
    correlation = f"{alike or 0:.2f}".replace("-", "−")
    if not same_shape:
        sizes = [" × ".join(map(str, shape)) for shape in shapes]
        networks = (
            f"Two networks of {sizes[0]} and {sizes[1]} layers × heads: a head's number does "
            "not say which head of the other network it belongs to."
        )
    elif same_network:
        networks = "One network: compared head with head."
    elif alike is None:
        networks = (
            "Whether the networks are of one lineage is not known: their runs hold no sketch of "
            "the embeddings. Head numbers are not taken to mean the same."
        )
    elif one_lineage:
        networks = f"One lineage: the embeddings correlate {correlation}, so head with head."
    else:
        networks = (
            f"Two networks trained apart: the embeddings correlate {correlation}, and head "
            "numbers of such networks mean nothing to each other."
        )
    return Relation(same_texts, one_lineage, same_shape, same_network, texts, networks)


def _texts(first: Run, second: Run) -> tuple[bool, str]:
    a, b = _drawn(first), _drawn(second)
    if a is None or b is None:
        return False, "Which texts were read is not known of both runs: taken as independent."
    if a[0] != b[0]:
        return False, "The runs read different texts: their errors are independent."
    changed = sorted(name for name in {*a[1], *b[1]} if a[1].get(name) != b[1].get(name))
    if changed:
        return False, (
            f"The runs differ in {', '.join(changed)}: their errors are taken as independent."
        )
    return True, (
        "Both runs read the same texts: they are compared document group by document group."
    )


def _drawn(run: Run) -> tuple[str, Mapping[str, Any]] | None:
    """The corpus, and how it was drawn from and read."""
    corpus, options = run.about.get("corpus"), run.about.get("options")
    if isinstance(corpus, dict) and isinstance(options, dict) and corpus.get("fingerprint"):
        kept = {name: each for name, each in options.items() if name not in CIRCUMSTANCES}
        return str(corpus["fingerprint"]), kept
    known = {} if run.result is None else run.result.attrs
    if "corpus" not in known or "options" not in known:
        return None
    return str(known["corpus"]), read_attribute(run.data, "options")


def likeness(first: object, second: object) -> float | None:
    """Correlation of two sketches of embeddings; None where one is missing or says nothing."""
    try:
        a, b = (np.array(str(sketch).split(), dtype=float) for sketch in (first, second))
    except ValueError:
        return None
    if a.size != b.size or a.size < 2 or not np.isfinite([a, b]).all():
        return None
    return float(np.corrcoef(a, b)[0, 1]) if np.ptp(a) > 0 and np.ptp(b) > 0 else None


def _model(run: Run) -> Mapping[str, Any]:
    model = run.about.get("model")
    return model if isinstance(model, dict) else {}
