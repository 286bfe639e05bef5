"""What portraits explain on texts that they were not fitted to, by group of documents.

explained = (CE_even − CE_portrait) / (CE_even − H)

All three are sums over rows. By the chain rule each is a sum of two parts: whether the row rests on
null tokens, and where the rest goes, every row weighted by the mass it has left.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from headscope.portrait.fit import fit, log_portrait
from headscope.portrait.pairs import Attention, Pairs
from headscope.portrait.tables import GROUPS, Vocabulary
from headscope.results.replicates import GROUPS as DOCUMENT_GROUPS

EVEN = 0.02  # nats a row: a head that is no farther from even attention has no share
SINK = "sink"
SHARES = (SINK, *GROUPS)
STEPS_WITHOUT = 10  # of a fit that begins at the whole one


@dataclass(frozen=True)
class Weights:
    """The portraits of some heads: weights of what queries are, and of what pairs are."""

    queries: Float[Tensor, "query_entry head"]
    pairs: Float[Tensor, "entry head"]


@dataclass(frozen=True)
class Portraits:
    """The fits of some heads: the whole one, nested ones, and those without one group."""

    whole: Weights
    nested: tuple[Float[Tensor, "entry head"], ...]  # up to every group
    without: tuple[Float[Tensor, "entry head"], ...]  # without every group
    syntax_next: Float[Tensor, "entry head"]  # position and syntax alone


@dataclass(frozen=True)
class Scores:
    """Sums over the rows of every group of documents, in nats × mass."""

    total: Float[Tensor, "group head"]  # CE_even − H
    total_rest: Float[Tensor, "group head"]  # of the rest
    by_share: Float[Tensor, "share group head"]  # what the sink and every group add
    only: Float[Tensor, "share group head"]  # what is lost without each
    syntax_next: Float[Tensor, "group head"]  # what syntax adds right after position
    rows: Float[Tensor, "group"]


def entries_up_to(vocabulary: Vocabulary, groups: tuple[str, ...]) -> Bool[Tensor, "entry"]:
    """Which entries of the portrait belong to some groups."""
    return torch.tensor(
        [table.in_portrait and table.group in groups for table, _ in vocabulary.entries]
    )


def fit_portraits(pairs: Pairs, attention: Attention) -> Portraits:
    """Fit the portraits of some heads, group after group, and once more without each group."""
    design, vocabulary, device = pairs.design, pairs.vocabulary, attention.pairs.device
    heads = attention.pairs.shape[1]
    none = torch.zeros(pairs.queries.size, heads, device=device)
    queries = fit(pairs.queries, two_choices(attention), none, even_choices(pairs))
    nested: list[Tensor] = []
    weights = torch.zeros(design.size, heads, device=device)
    for stop in range(1, len(GROUPS) + 1):
        kept = entries_up_to(vocabulary, GROUPS[:stop]).to(device)
        weights = fit(design.keep(kept), attention.pairs, weights)
        nested.append(weights)
    without: list[Tensor] = []
    for group in GROUPS:
        left = tuple(other for other in GROUPS if other != group)
        kept = entries_up_to(vocabulary, left).to(device)
        if group == GROUPS[-1]:
            without.append(nested[-2])
        elif bool((kept != entries_up_to(vocabulary, GROUPS).to(device)).any()):
            start = torch.where(kept[:, None], weights, 0.0)
            fitted = fit(design.keep(kept), attention.pairs, start, steps=STEPS_WITHOUT)
            without.append(fitted)
        else:
            without.append(weights)
    kept = entries_up_to(vocabulary, ("position", "syntax")).to(device)
    syntax_next = fit(design.keep(kept), attention.pairs, nested[0])
    return Portraits(Weights(queries, weights), tuple(nested), tuple(without), syntax_next)


def score_portraits(pairs: Pairs, attention: Attention, portraits: Portraits) -> Scores:
    """What every fit explains on these texts."""
    groups = torch.from_numpy(pairs.row_groups).to(attention.pairs.device)
    of_null = by_group(information_of_null(pairs, attention), groups)
    of_rest = by_group(information_of_rest(pairs, attention), groups)
    sink = by_group(gain_of_null(pairs, attention, portraits.whole.queries), groups)
    steps = [by_group(gain_of_rest(pairs, attention, fit), groups) for fit in portraits.nested]
    without = [by_group(gain_of_rest(pairs, attention, fit), groups) for fit in portraits.without]
    increments = [after - before for before, after in zip([0 * sink, *steps], steps, strict=False)]
    lost = [steps[-1] - left for left in without]
    syntax = by_group(gain_of_rest(pairs, attention, portraits.syntax_next), groups) - steps[0]
    rows = torch.bincount(groups, minlength=DOCUMENT_GROUPS).double()
    return Scores(of_null + of_rest, of_rest, torch.stack([sink, *increments]),
                  torch.stack([sink, *lost]), syntax, rows)  # fmt: skip


def gain_of_rest(
    pairs: Pairs, attention: Attention, weights: Float[Tensor, "entry head"]
) -> Float[Tensor, "row head"]:
    """CE_even − CE_portrait of every row's rest, in nats × mass."""
    likely = log_portrait(pairs.design, weights, None)
    gained = pairs.design.row_sums(attention.pairs * likely)
    return gained.double() + attention.rest.double() * log_keys(pairs).to(gained.device)


def gain_of_null(
    pairs: Pairs, attention: Attention, weights: Float[Tensor, "entry head"]
) -> Float[Tensor, "row head"]:
    """The same for the choice between null tokens and the rest."""
    base = even_choices(pairs).to(weights.device)
    gained = two_choices(attention) * (log_portrait(pairs.queries, weights, base) - base)
    return pairs.queries.row_sums(gained).double()


def information_of_rest(pairs: Pairs, attention: Attention) -> Float[Tensor, "row head"]:
    """CE_even − H of every row's rest, in nats × mass."""
    rest = attention.rest.double()
    own = pairs.design.row_sums(torch.xlogy(attention.pairs, attention.pairs)).double()
    return own - torch.xlogy(rest, rest) + rest * log_keys(pairs).to(rest.device)


def information_of_null(pairs: Pairs, attention: Attention) -> Float[Tensor, "row head"]:
    """The same for the choice between null tokens and the rest."""
    choices = two_choices(attention)
    base = even_choices(pairs).to(choices.device)
    return pairs.queries.row_sums(torch.xlogy(choices, choices) - choices * base).double()


def log_keys(pairs: Pairs) -> Float[Tensor, "row 1"]:
    """The logarithm of the number of keys of every row."""
    return torch.from_numpy(pairs.keys).double().log()[:, None]


def even_choices(pairs: Pairs) -> Float[Tensor, "choice 1"]:
    """The logarithms of what even attention gives to null tokens and to the rest."""
    nulls, keys = torch.from_numpy(pairs.nulls).float(), torch.from_numpy(pairs.keys).float()
    share = torch.stack([nulls, keys], dim=1) / (nulls + keys)[:, None]
    return share.clamp(min=1e-6).log().reshape(-1, 1).to(pairs.design.entry.device)


def two_choices(attention: Attention) -> Float[Tensor, "choice head"]:
    """What null tokens and the rest get, row after row."""
    rest = attention.rest.clamp(min=0.0)
    return torch.stack([attention.null, rest], dim=1).flatten(0, 1)


def by_group(values: Float[Tensor, "row head"], groups: Int[Tensor, "row"]) -> Tensor:
    """Sums over the rows of every group of documents."""
    sums = torch.zeros(DOCUMENT_GROUPS, values.shape[1], dtype=torch.float64, device=values.device)
    member = torch.nn.functional.one_hot(groups, DOCUMENT_GROUPS).double()
    return sums + member.T @ values.double()  # `index_add_` has no fixed order on a GPU


def ratio_error(
    numerator: Float[Tensor, "group head"], denominator: Float[Tensor, "group head"]
) -> Float[Tensor, "head"]:
    """The standard error of Σ numerator / Σ denominator, leaving out one group at a time."""
    informed = denominator.sum(1) > 0
    x, y = numerator[informed], denominator[informed]
    count = len(x)
    if count < 2:
        return torch.full_like(numerator[0], float("nan"))
    left_out = (x.sum(0) - x) / (y.sum(0) - y).clamp(min=1e-12)
    spread = ((left_out - left_out.mean(0)) ** 2).sum(0)
    return (spread * (count - 1) / count).sqrt()


def log_likely(pairs: Pairs, weights: Weights) -> tuple[Tensor, Tensor]:
    """The logarithms of what portraits give to every pair of the rest, and to both choices."""
    base = even_choices(pairs)
    return (
        log_portrait(pairs.design, weights.pairs, None),
        log_portrait(pairs.queries, weights.queries, base),
    )
