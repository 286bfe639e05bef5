"""Log-linear models of many heads at once: p(j | i) ∝ base · exp(sum of its entries' weights).

Heads share the design and differ in their weights alone, so one pass over the pairs serves all of
them. The sums over entries and over rows are look-ups (`embedding_bag`): no dense design exists.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import embedding_bag

PENALTY = 0.5  # nats for a squared weight: where data say little, weights stay about as large as 1
STEPS = 24
ENOUGH = 3e-5  # nats a row; a step that gains a head less is its last
MEMORY = 6  # steps that the direction is made of
HALVINGS = 5
SHORTER = 0.4
WORTH = 1e-4  # share of the expected descent that a step must bring
ROUNDING = 1e-6  # nats a row
TINY = 1e-12


@dataclass(frozen=True)
class Design:
    """Which entries every pair has, and which pairs every row has, one after the other."""

    entry: Int[Tensor, "item"]
    entries_of_pair: Int[Tensor, "pair"]
    pairs_of_row: Int[Tensor, "row"]
    size: int  # how many entries there are

    @classmethod
    def of(
        cls,
        entry: Int[np.ndarray, "item"],
        entries_of_pair: Int[np.ndarray, "pair"],
        pairs_of_row: Int[np.ndarray, "row"],
        size: int,
    ) -> "Design":
        """A design from arrays."""

        def tensor(part: np.ndarray) -> Tensor:
            return torch.from_numpy(np.ascontiguousarray(part, dtype=np.int64))

        return cls(tensor(entry), tensor(entries_of_pair), tensor(pairs_of_row), size)

    def to(self, device: torch.device) -> "Design":
        """The same on a device."""
        return replace(self, entry=self.entry.to(device),
                       entries_of_pair=self.entries_of_pair.to(device),
                       pairs_of_row=self.pairs_of_row.to(device))  # fmt: skip

    @cached_property
    def pair_of_item(self) -> Int[Tensor, "item"]:
        """The pair of every item."""
        pairs = torch.arange(len(self.entries_of_pair), device=self.entry.device)
        return pairs.repeat_interleave(self.entries_of_pair)

    @cached_property
    def row_of_pair(self) -> Int[Tensor, "pair"]:
        """The row of every pair."""
        rows = torch.arange(len(self.pairs_of_row), device=self.entry.device)
        return rows.repeat_interleave(self.pairs_of_row)

    @cached_property
    def by_entry(self) -> tuple[Int[Tensor, "item"], Int[Tensor, "entry"]]:
        """The pairs of every entry, one entry after the other, and how many each has."""
        order = self.entry.argsort(stable=True)
        return self.pair_of_item[order], torch.bincount(self.entry, minlength=self.size)

    def keep(self, is_kept: "torch.Tensor") -> "Design":
        """The design with some entries only; the others keep their numbers and have no pairs."""
        items = is_kept[self.entry]
        kept = torch.bincount(self.pair_of_item[items], minlength=len(self.entries_of_pair))
        return Design(self.entry[items], kept, self.pairs_of_row, self.size)

    def logits(self, weights: Float[Tensor, "entry head"]) -> Float[Tensor, "pair head"]:
        """The sum of the weights of every pair's entries."""
        return bag_sums(self.entry, weights, self.entries_of_pair)

    def entry_sums(self, values: Float[Tensor, "pair head"]) -> Float[Tensor, "entry head"]:
        """The sum of values over the pairs of every entry."""
        pairs, counts = self.by_entry
        return bag_sums(pairs, values, counts)

    def row_sums(self, values: Float[Tensor, "pair head"]) -> Float[Tensor, "row head"]:
        """The sum of values over the pairs of every row."""
        pairs = torch.arange(len(values), device=values.device)
        return bag_sums(pairs, values, self.pairs_of_row)

    def log_softmax(self, logits: Float[Tensor, "pair head"]) -> Float[Tensor, "pair head"]:
        """Logits less the logarithm of the sum of exp over their row."""
        largest = torch.segment_reduce(logits, "max", lengths=self.pairs_of_row, axis=0)
        shifted = logits - largest[self.row_of_pair]
        total = self.row_sums(shifted.exp())
        return shifted.sub_(total.log_()[self.row_of_pair])


def bag_sums(
    index: Int[Tensor, "item"], values: Float[Tensor, "part head"], counts: Int[Tensor, "bag"]
) -> Float[Tensor, "bag head"]:
    """Sums of values over bags of items that lie one after the other."""
    if not len(index):
        return values.new_zeros(len(counts), values.shape[1])
    return embedding_bag(index, values, counts.cumsum(0) - counts, mode="sum")


def fit(
    design: Design,
    weights: Float[Tensor, "pair head"],
    start: Float[Tensor, "entry head"],
    base: Float[Tensor, "pair 1"] | None = None,
    *,
    steps: int = STEPS,
) -> Float[Tensor, "entry head"]:
    """The weights of entries under which every head's attention is likeliest, less a penalty.

    L-BFGS, scaled by the diagonal of the second derivative at the start; every head has a step
    length of its own. `base` are logits that belong to no entry.
    """
    found = start.clone()
    goes_on = torch.ones(start.shape[1], dtype=torch.bool, device=start.device)
    problem = Problem.of(design, weights, base)
    descent = Descent.start(problem, start)
    for _ in range(steps):
        gained = descent.step(problem)
        # A head ends where it ends alone: steps that it takes for the others' sake do not count.
        found[:, goes_on] = descent.place[:, goes_on]
        goes_on &= gained > ENOUGH
        if not bool(goes_on.any()):
            break
    return found


@dataclass(frozen=True)
class Problem:
    """What is minimised: the cross-entropy to the weights, by row, and the penalty."""

    design: Design
    base: Float[Tensor, "pair 1"] | None
    mass: Float[Tensor, "row head"]  # what every row has to give
    target: Float[Tensor, "entry head"]  # what all pairs of an entry get
    total: Float[Tensor, "head"]  # what all rows have to give, so that values are nats a row

    @classmethod
    def of(
        cls,
        design: Design,
        weights: Float[Tensor, "pair head"],
        base: Float[Tensor, "pair 1"] | None,
    ) -> "Problem":
        """The problem of all heads."""
        mass = design.row_sums(weights)
        return cls(design, base, mass, design.entry_sums(weights), mass.sum(0).clamp(min=1.0))

    def look(
        self, place: Float[Tensor, "entry head"]
    ) -> tuple[Float[Tensor, "head"], Float[Tensor, "entry head"], Float[Tensor, "entry head"]]:
        """Value (but for a constant) and slope there, and what all pairs of an entry would get.

        The sum over pairs of weight × logit is the sum over entries of target × weight.
        """
        likely = self.design.logits(place)
        if self.base is not None:
            likely += self.base
        likely = likely.exp_()
        total = self.design.row_sums(likely)
        likely *= (self.mass / total)[self.design.row_of_pair]
        given = self.design.entry_sums(likely)
        value = (self.mass * total.log_()).sum(0) - (self.target * place).sum(0)
        value += PENALTY * (place**2).sum(0)
        slope = given - self.target + 2 * PENALTY * place
        return value / self.total, slope / self.total, given


@dataclass
class Descent:
    """Where the search is, and what its direction is made of."""

    place: Float[Tensor, "entry head"]
    value: Float[Tensor, "head"]
    slope: Float[Tensor, "entry head"]
    scale: Float[Tensor, "entry head"]  # one over a bound of the second derivative
    moves: list[Tensor]
    turns: list[Tensor]

    @classmethod
    def start(cls, problem: Problem, place: Float[Tensor, "entry head"]) -> "Descent":
        """The beginning of a search."""
        value, slope, given = problem.look(place)
        return cls(place, value, slope, problem.total / (given + 2 * PENALTY), [], [])

    def step(self, problem: Problem) -> Float[Tensor, "head"]:
        """Go down for every head that can; a head that gets worse takes a shorter step."""
        direction = self._direction()
        expected = (direction * self.slope).sum(0)
        length = torch.ones_like(self.value)
        tried, value, slope = self.place, self.value, self.slope
        for _ in range(HALVINGS):
            tried = self.place - length * direction
            value, slope, _ = problem.look(tried)
            # Not "worse": a sum that has overflowed is neither better nor worse.
            is_good = value <= self.value - WORTH * length * expected + ROUNDING
            if bool(is_good.all()):
                break
            length = torch.where(is_good, length, SHORTER * length)
        is_better = value <= self.value
        tried = torch.where(is_better, tried, self.place)
        slope = torch.where(is_better, slope, self.slope)
        value = torch.where(is_better, value, self.value)
        gained = self.value - value
        self.moves = [*self.moves, tried - self.place][-MEMORY:]
        self.turns = [*self.turns, slope - self.slope][-MEMORY:]
        self.place, self.value, self.slope = tried, value, slope
        return gained

    def _direction(self) -> Float[Tensor, "entry head"]:
        """The two loops of L-BFGS, for every head by itself; a step that turned nothing is none."""
        direction = self.slope.clone()
        used: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
        for move, turn in zip(reversed(self.moves), reversed(self.turns), strict=True):
            curvature = (move * turn).sum(0)
            rho = torch.where(curvature > TINY, 1 / curvature.clamp(min=TINY), 0.0)
            share = rho * (move * direction).sum(0)
            used.append((move, turn, rho, share))
            direction = direction - share * turn
        direction = direction * self.scale
        for move, turn, rho, share in reversed(used):
            direction = direction + move * (share - rho * (turn * direction).sum(0))
        return direction


def log_portrait(
    design: Design, weights: Float[Tensor, "entry head"], base: Float[Tensor, "pair 1"] | None
) -> Float[Tensor, "pair head"]:
    """The logarithm of what a portrait gives to every pair, as shares of its row."""
    logits = design.logits(weights)
    return design.log_softmax(logits if base is None else logits + base)
