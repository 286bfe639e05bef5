"""The stage of a study that draws the portraits of all heads.

```
sampled texts ─► some layers at a time ─► fits, facts, sums by group of documents ─► a sealed file
all files ─► explained, weights, descriptions with what shows them, and which head?
```
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr
from jaxtyping import Float
from torch import Tensor

from headscope.engine.forward import Allowance
from headscope.engine.setup import Setup
from headscope.files import pack_arrays, unpack_arrays
from headscope.head import Head
from headscope.metrics.metric import GROUP, Axis, label
from headscope.portrait.evidence import Shown, expected_weights
from headscope.portrait.facts import (
    all_facts,
    column_share,
    fit_facts,
    score_facts,
)
from headscope.portrait.pairs import Attention, Pairs, attention_of, names_of_queries
from headscope.portrait.sample import (
    RECOGNISED,
    TOKENS,
    TOKENS_CUDA,
    Layers,
    LayerStage,
    LayerWork,
    Sample,
    split_layers,
)
from headscope.portrait.score import (
    EVEN,
    SHARES,
    Portraits,
    Weights,
    fit_portraits,
    information_of_null,
    information_of_rest,
    log_likely,
    score_portraits,
    two_choices,
)
from headscope.portrait.texts import FEWEST, Text, find_documents
from headscope.results.describe import (
    PORTRAIT,
    Description,
    Gains,
    HeadMeasures,
    Sink,
    as_text,
    describe,
    read_description,
)
from headscope.results.evidence import (
    EVIDENCE,
    INKS,
    MATRIX,
    NULL_NAMES,
    PLACES,
    PROFILE,
    SIDE,
)
from headscope.results.fact_words import FactName
from headscope.results.measure import Measure, RoleGroup
from headscope.results.replicates import ratio_of

VOCABULARY = "portrait_vocabulary"  # attribute: what the tables know besides the text
FEATURE = "feature"  # the axis of the weights
SHARE = "explained_with"  # the axis of the shares: the sink, and every group of features

NO_TEXTS = "too few texts of the corpus have words that match their tokens"


@dataclass(frozen=True)
class PortraitStage(LayerStage):
    """Draws the portraits of all heads, and collects what shows them."""

    name: str = "portraits"

    def pieces(self, setup: Setup, result: xr.Dataset) -> Sequence[Layers]:
        """Some layers each; none where there is no portrait."""
        if why_no_portrait(setup) is not None:
            return ()
        return split_layers(setup.grid, setup.model.device)

    def work(self, setup: Setup, result: xr.Dataset, threads: int, folder: Path) -> "Drawing":
        """What is done to some layers."""
        return Drawing(setup, threads, self.bos(setup), self.raw)

    def finish(
        self, setup: Setup, result: xr.Dataset, outcomes: Mapping[Layers, bytes], folder: Path
    ) -> xr.Dataset:
        """The result with everything that is said of the heads."""
        parts = [unpack_arrays(content) for content in outcomes.values()]
        if not parts or not parts[0]:
            missing = json.loads(result.attrs.get("left_out", "{}"))
            missing |= dict.fromkeys(NAMES, why_no_portrait(setup) or NO_TEXTS)
            return result.assign_attrs(left_out=json.dumps(missing))
        drawn = {
            name: parts[0][name]
            if name == "rows"
            else np.concatenate([part[name] for part in parts], axis=-1)
            for name in parts[0]
        }
        sample = Sample.draw(setup, self.bos(setup), raw=self.raw)
        return with_evidence(setup, with_portraits(setup, result, sample, drawn), sample, drawn)


def why_no_portrait(setup: Setup) -> str | None:
    """Why there are no portraits, or None."""
    if not setup.options.get("portrait", True):
        return "left out as asked (portrait=False)"
    if len({document.name for document in find_documents(setup.corpus)}) < FEWEST:
        return (
            f"the corpus has fewer than {FEWEST} documents (or blocks of 16 sentences), too few to "
            "hold some of them out"
        )
    return None


@dataclass(frozen=True)
class Drawing(LayerWork):
    """Draws the portraits of the heads of some layers; the weights of no other layers are held.

    Batches have a size of their own, and pairs lie in the order of the texts, so that the numbers
    depend neither on the batches of the first pass nor on where a piece is computed.
    """

    what = "portraits"

    @cached_property
    def pairs(self) -> dict[str, Pairs]:
        """The pairs of every part, where the model is."""
        return {
            part: Pairs.of(texts, self.sample.vocabulary).to(self.setup.model.device)
            for part, texts in self.sample.texts.items()
        }

    @cached_property
    def shown_pairs(self) -> Pairs:
        """Every row of the texts that are shown."""
        return Pairs.of(self.sample.shown(), self.sample.vocabulary, every_row=True)

    def compute(self, layers: Layers, /) -> bytes:
        """Everything about the heads of these layers, as the content of a file."""
        with torch.inference_mode():
            if not self.sample.is_enough:
                return pack_arrays({})
            attention = {part: self.look(pairs, layers) for part, pairs in self.pairs.items()}
            drawn = draw(self.setup, layers, self.pairs, attention)
            del attention
            weights = Weights(*(torch.from_numpy(drawn[name]) for name in WEIGHTS))
            looks = self.look(self.shown_pairs.to(self.setup.model.device), layers)
            expected = expected_weights(self.shown_pairs, weights)
        shown = Shown(self.shown_pairs, looks, expected)
        collected: list[tuple[np.ndarray, np.ndarray, str]] = []
        for place, head in enumerate(heads_of_layers(self.setup, layers)):
            description = read_description(head, "", str(drawn[PORTRAIT][place]))
            collected.append(shown.of_head(place, description))
        drawn[PROFILE] = np.stack([profile for profile, _, _ in collected], axis=-1)
        drawn[MATRIX] = np.stack([matrix for _, matrix, _ in collected], axis=-1)
        drawn[EVIDENCE] = np.array([evidence for _, _, evidence in collected])
        return pack_arrays(drawn)

    def look(self, pairs: Pairs, layers: Layers) -> Attention:
        """What the heads of some layers give to the pairs."""
        setup, tokens = self.setup, TOKENS_CUDA if self.needs_gpu else TOKENS
        return Allowance(setup.model.name, tokens).use(
            lambda most: attention_of(setup.model, pairs, layers, most, setup.reading)
        )


WEIGHTS = ("query_weights", "pair_weights")
SINK_COLUMNS = ("null", "null_first", "null_even", "null_passages")


def heads_of_layers(setup: Setup, layers: Sequence[int]) -> list[Head]:
    """The heads of some layers, which are counted by their place."""
    return [Head(setup.grid.layers[layer], head)
            for layer in layers for head in range(setup.grid.heads)]  # fmt: skip


def draw(
    setup: Setup, layers: Layers, pairs: Mapping[str, Pairs], attention: Mapping[str, Attention]
) -> dict[str, np.ndarray]:
    """The portraits of some heads and everything that is said of them; heads are the last axis."""
    portraits = fit_portraits(pairs["fit"], attention["fit"])
    scores = score_portraits(pairs["score"], attention["score"], portraits)
    found: dict[str, Tensor | np.ndarray] = {
        "query_weights": portraits.whole.queries,
        "pair_weights": portraits.whole.pairs,
        "total": scores.total,
        "total_rest": scores.total_rest,
        "by_share": scores.by_share,
        "only": scores.only,
        "syntax_next": scores.syntax_next,
        "rows": scores.rows,
    }
    facts = draw_facts(pairs, attention, portraits)
    found |= draw_unfitted(pairs, attention)
    found |= recognisable(pairs["score"], attention["score"])
    drawn = {
        name: values.cpu().numpy() if isinstance(values, Tensor) else values
        for name, values in found.items()
    }
    text = pairs["score"].texts[0]
    descriptions = describe_all(heads_of_layers(setup, layers), text, facts, drawn)
    drawn["description"] = np.array([each.sentence for each in descriptions])
    drawn["behaviour"] = np.array([each.name for each in descriptions])
    drawn[PORTRAIT] = np.array([as_text(each) for each in descriptions])
    return drawn


@dataclass(frozen=True, eq=False)
class FactGains:
    """What facts explain where they are chosen, where they are scored, and in passages."""

    names: Sequence[FactName]
    chosen: Gains
    scored: Gains
    repeated: Gains

    def of_head(self, head: int) -> HeadMeasures:
        """What is known of a head from its facts alone."""
        parts = (self.chosen, self.scored, self.repeated)
        return HeadMeasures.of_facts(self.names, *(gains.of_head(head) for gains in parts))


def draw_facts(
    pairs: Mapping[str, Pairs], attention: Mapping[str, Attention], portraits: Portraits
) -> FactGains:
    """What every fact explains."""
    facts = all_facts(pairs["fit"].vocabulary)
    weights = fit_facts(pairs["fit"], attention["fit"], facts)
    position = Weights(portraits.whole.queries, portraits.nested[0])
    gains: dict[str, Gains] = {}
    for part in ("choose", "score"):
        likely = log_likely(pairs[part], position)[0].exp()
        gains[part] = score_facts(pairs[part], attention[part], facts, weights, likely)
        if part == "score":
            gains["passages"] = score_facts(
                pairs[part], attention[part], facts, weights, likely, pairs[part].is_passage
            )
    return FactGains([fact.name for fact in facts], *gains.values())


def draw_unfitted(
    pairs: Mapping[str, Pairs], attention: Mapping[str, Attention]
) -> dict[str, np.ndarray | Tensor]:
    """What no fit is needed for, on the texts of all parts: widths, columns, and null tokens.

    A sink gets less the longer a text is, so it is read in sentences, if there are any, and in
    passages: shares of both together would be of neither.
    """
    rows: list[Tensor] = []
    for part, looks in attention.items():
        of_rest = information_of_rest(pairs[part], looks)
        of_row = of_rest + information_of_null(pairs[part], looks)
        rows.append(torch.stack([looks.null, looks.first, looks.rest, of_rest, of_row]).double())
    null, first, rest, of_rest, of_row = torch.cat(rows, 1)
    even = np.concatenate([part.nulls / (part.nulls + part.keys) for part in pairs.values()])
    is_passage = np.concatenate([part.is_passage for part in pairs.values()])
    chosen = is_passage if is_passage.all() else ~is_passage
    column, column_error = column_share(list(pairs.values()), list(attention.values()))
    is_shown, is_long = torch.from_numpy(chosen), torch.from_numpy(is_passage)
    return {
        "null": null[is_shown].mean(0),
        "null_first": first[is_shown].mean(0),
        "null_passages": null[is_long].mean(0),  # NaN where there are none
        "null_even": np.full(null.shape[1], even[chosen].mean()),
        "width": (-of_row.mean(0)).exp(),
        "width_rest": (-of_rest.sum(0) / rest.sum(0).clamp(min=1e-9)).exp(),
        "column": column,
        "column_error": column_error,
    }


def recognisable(pairs: Pairs, attention: Attention) -> dict[str, Tensor]:
    """The weights of the texts that heads are recognised from."""
    rows, of_pairs = rows_recognised(pairs)
    return {
        "recognised_pairs": attention.pairs[:of_pairs].half(),
        "recognised_null": attention.null[:rows].half(),
    }


def rows_recognised(pairs: Pairs) -> tuple[int, int]:
    """How many rows and pairs the texts have that heads are recognised from; they come first."""
    rows = int(np.searchsorted(pairs.row_text, RECOGNISED))
    return rows, int(pairs.keys[:rows].sum())


def which_head(pairs: Pairs, attention: Attention, weights: Weights) -> tuple[float, float]:
    """The share of heads whose weights are likeliest under their own portrait.

    First by one text each, on average over the texts, then by all of them.
    """
    likely, choice = log_likely(pairs, weights)
    given = two_choices(attention)
    heads = attention.pairs.shape[1]
    own = torch.arange(heads, device=likely.device)
    total = likely.new_zeros(heads, heads)
    shares: list[float] = []
    for rows, part in zip(*pairs.slices, strict=True):
        if part.start == part.stop:
            continue
        choices = slice(2 * rows.start, 2 * rows.stop)
        scores = attention.pairs[part].T @ likely[part] + given[choices].T @ choice[choices]
        total += scores
        shares.append(float((scores.argmax(1) == own).float().mean()))
    return float(np.mean(shares)), float((total.argmax(1) == own).float().mean())


def with_portraits(
    setup: Setup, result: xr.Dataset, sample: Sample, drawn: Mapping[str, np.ndarray]
) -> xr.Dataset:
    """The result with shares, weights, names and sentences."""
    grid = setup.grid
    vocabulary = sample.vocabulary
    variables = shares_of(setup, drawn, has_syntax=bool(vocabulary.relations))
    weights = np.concatenate([drawn["query_weights"], drawn["pair_weights"]]).astype(np.float32)
    features = (*names_of_queries(vocabulary), *vocabulary.names)
    variables["portrait_weight"] = grid.array(
        weights.T.reshape(*grid.shape, -1), Axis(FEATURE, tuple(features))
    )
    for name in ("description", "behaviour", PORTRAIT):
        variables[name] = grid.array(drawn[name].reshape(grid.shape))
    groups: dict[str, RoleGroup] = {}
    heads = heads_of_layers(setup, range(len(grid.layers)))
    for head, stored in zip(heads, drawn[PORTRAIT], strict=True):
        description = read_description(head, "", str(stored))
        groups[description.name] = description.group
    named = replace(BEHAVIOUR, groups=dict(sorted(groups.items(), key=lambda item: item[::-1])))
    variables["behaviour"].attrs = named.as_attributes()
    one, every = recognise(sample, drawn)
    counts = {part: len(texts) for part, texts in sample.texts.items()}
    attributes = {
        "which_head_one": one,
        "which_head_all": every,
        "portrait_texts": json.dumps(counts),
        VOCABULARY: json.dumps(asdict(vocabulary)),
    }
    return result.assign(variables).assign_attrs(attributes)


def shares_of(
    setup: Setup, drawn: Mapping[str, np.ndarray], *, has_syntax: bool
) -> dict[str, xr.DataArray]:
    """What the portraits explain, with standard errors and the sums behind them."""
    grid = setup.grid
    shares = Axis(SHARE, SHARES)
    total, by_share = drawn["total"], drawn["by_share"]
    numerators = {
        "explained": (by_share.sum(0), total),
        "explained_rest": (by_share[1:].sum(0), drawn["total_rest"]),
        "explained_by": (by_share, total),
        "explained_only": (drawn["only"], total),
    }
    if has_syntax:
        numerators["syntax_after_position"] = (drawn["syntax_next"], total)
    is_even = total.sum(0) < EVEN * drawn["rows"].sum()
    is_even = xr.DataArray(is_even.reshape(grid.shape), dims=("layer", "head"))
    variables: dict[str, xr.DataArray] = {}
    for name, (given, whole) in numerators.items():
        axes = (shares,) if given.ndim == 3 else ()
        numerator = of_groups(setup, given, *axes)
        denominator = of_groups(setup, whole)
        value, error = ratio_of(numerator, denominator)
        variables[name] = value.where(~is_even).astype(np.float32)
        variables[f"{name}_se"] = error.where(~is_even).astype(np.float32)
        variables[f"{name}_numerator"] = numerator
        variables[f"{name}_denominator"] = denominator
    return variables


def of_groups(
    setup: Setup, values: Float[np.ndarray, "*share group head"], *axes: Axis
) -> xr.DataArray:
    """Sums by group with the axes of the result."""
    grid = setup.grid
    moved = np.moveaxis(values, -2, 0)  # group share head
    shaped = moved.reshape(*moved.shape[:-1], *grid.shape)
    if axes:
        shaped = np.moveaxis(shaped, 1, -1)
    return label(np.ascontiguousarray(shaped), GROUP, *grid.axes, *axes)


def describe_all(
    heads: Sequence[Head], text: Text, facts: FactGains, drawn: Mapping[str, np.ndarray]
) -> list[Description]:
    """The descriptions of some heads; null tokens are called as in the text."""
    total = drawn["total"].sum(0)
    shares = drawn["by_share"].sum(1) / np.maximum(total, 1e-12)
    is_even = total < EVEN * drawn["rows"].sum()
    descriptions: list[Description] = []
    for place, head in enumerate(heads):
        by = dict(zip(SHARES, shares[:, place].tolist(), strict=True))
        sink = (float(drawn[name][place]) for name in SINK_COLUMNS)
        measures = replace(
            facts.of_head(place),
            head=head,
            is_causal=text.is_causal,
            sink=Sink.of(text.null_names, *sink),
            width=float(drawn["width"][place]),
            width_rest=float(drawn["width_rest"][place]),
            column=float(drawn["column"][place]),
            column_error=float(drawn["column_error"][place]),
            explained=float("nan") if is_even[place] else sum(by.values()),
            by=by,
        )
        descriptions.append(describe(measures))
    return descriptions


def with_evidence(
    setup: Setup, result: xr.Dataset, sample: Sample, drawn: Mapping[str, np.ndarray]
) -> xr.Dataset:
    """The result with what shows the portraits."""
    inks, places = Axis("ink", INKS), Axis("ink_place", PLACES)
    rows, columns = (Axis(name, range(SIDE)) for name in ("ink_query", "ink_key"))
    axes = {PROFILE: (inks, places), MATRIX: (inks, rows, columns), EVIDENCE: ()}
    variables: dict[str, xr.DataArray] = {}
    for name, further in axes.items():
        values = np.ascontiguousarray(np.moveaxis(drawn[name], -1, 0))
        shape = (*setup.grid.shape, *values.shape[1:])
        variables[name] = setup.grid.array(values.reshape(shape), *further)
    nulls = [name.removeprefix("the ") for name in sample.texts["score"][0].null_names]
    return result.assign(variables).assign_attrs({NULL_NAMES: json.dumps(nulls)})


def recognise(sample: Sample, drawn: Mapping[str, np.ndarray]) -> tuple[float, float]:
    """How many heads are recognised, from one text and from all."""
    pairs = Pairs.of(sample.recognised(), sample.vocabulary)
    null = torch.from_numpy(drawn["recognised_null"]).float()
    weights = torch.from_numpy(drawn["recognised_pairs"]).float()
    attention = Attention(weights, null, null)
    whole = Weights(*(torch.from_numpy(drawn[name]) for name in ("query_weights", "pair_weights")))
    with torch.inference_mode():
        return which_head(pairs, attention, whole)


def _measure(name: str, title: str, meaning: str, formula: str, **more: Any) -> Measure:
    return Measure(
        name, title, meaning, formula, "Headscope's own; see docs/portraits.md",
        more="is better described", **more,
    )  # fmt: skip


AXIS_TITLES = {SHARE: "features"}
MEASURES = (
    _measure("explained", "Explained by the portrait",
             "How much of the head's attention its portrait accounts for, on texts that it was not "
             "fitted to. 0: even attention; 1: all that any description could say.",
             "(CE_even − CE_portrait) / (CE_even − H), over rows that see two keys or more"),
    _measure("explained_rest", "Explained beside null tokens",
             "The same of what is left when null tokens are set aside, every row weighted by it.",
             "the same over the keys that are not null"),
    _measure("explained_by", "Explained, feature by feature",
             "What every kind of feature adds to those before it: the sink first, then position.",
             "differences of nested fits, as shares of CE_even − H", axes=AXIS_TITLES),
    _measure("explained_only", "Explained by this alone",
             "What is lost when one kind of feature is left out and all others stay.",
             "difference of the whole fit and one without it", axes=AXIS_TITLES),
    _measure("syntax_after_position", "Explained by syntax after position",
             "What relations between words add to position, if nothing else comes before them. "
             "Much of it word classes predict as well: what only syntax has is explained_only.",
             "difference of a fit by position and syntax and one by position"),
)  # fmt: skip
NAMES = tuple(measure.name for measure in MEASURES)
BEHAVIOUR = Measure(
    "behaviour", "Behaviour", "The short name of what the head looks at.",
    "the first fact of its description, or the sink where that explains half of its attention",
    "Headscope's own; see docs/portraits.md", unit="", with_errors=False,
)  # fmt: skip
