"""How often 95 % intervals hold the truth, and with how many groups: python -m benchmarks.coverage

Documents are drawn again and again from a population whose truth is known: their lengths are skewed
and their values cluster (a document has a level of its own). Every interval that the results layer
makes is counted: of a ratio, of a difference of two correlated layers, of a correlation over heads,
and of a share of few counted words near 1.
"""

from collections.abc import Callable

import numpy as np

from headscope.results import replicates

TRIALS = 2000
DOCUMENTS = (20, 65, 1000)
GROUPS = (8, 16, 32, 64)
Draw = tuple[np.ndarray, np.ndarray]  # numerator and denominator: document statistic


def main() -> None:
    """Print the coverage of every kind of interval."""
    for documents in DOCUMENTS:
        rows = [
            [name, *(f"{100 * covered(kind, documents, groups):.1f} %" for groups in GROUPS)]
            for name, kind in KINDS.items()
        ]
        print(f"| {documents} documents, interval of a | {' | '.join(map(str, GROUPS))} groups |")
        print("|---" * (len(GROUPS) + 1) + "|")
        print("".join(f"| {' | '.join(row)} |\n" for row in rows))


def covered(kind: Callable[..., bool], documents: int, groups: int) -> float:
    """Share of trials in which the interval holds the truth."""
    random = np.random.default_rng(documents * 1000 + groups)
    return float(np.mean([kind(random, documents, groups) for _ in range(TRIALS)]))


def grouped(random: np.random.Generator, values: np.ndarray, groups: int) -> np.ndarray:
    """Sums over documents that fall into groups as by a hash."""
    of = random.integers(0, groups, len(values))
    sums = np.zeros((groups, *values.shape[1:]))
    np.add.at(sums, of, values)
    return sums


def draw(random: np.random.Generator, documents: int, truth: np.ndarray) -> np.ndarray:
    """Numerators and denominators of statistics that share the level of their document."""
    sentences = 1 + random.geometric(1 / 15, documents)
    weight = sentences * random.gamma(5, 1, documents)
    level = random.normal(0, 0.08, (documents, 1)) + random.normal(0, 0.03, (documents, len(truth)))
    noise = random.normal(0, 0.3, (documents, len(truth))) * np.sqrt(weight)[:, None]
    y = np.repeat(weight[:, None], len(truth), 1)
    return np.stack([y * (truth + level) + noise, y])


def ratio(random: np.random.Generator, documents: int, groups: int) -> bool:
    return holds(random, documents, groups, np.array([0.3]), lambda values: float(values[0]), 0.3)


def difference(random: np.random.Generator, documents: int, groups: int) -> bool:
    truth = np.array([0.3, 0.32])
    return holds(random, documents, groups, truth, lambda v: float(v[1] - v[0]), 0.02)


def correlation(random: np.random.Generator, documents: int, groups: int) -> bool:
    """Of two measures over sixteen heads; the truth is that of the heads' true values."""
    heads = np.random.default_rng(0).uniform(0.1, 0.9, (2, 16))
    heads[1] += heads[0]

    def r(values: np.ndarray) -> float:
        return float(np.corrcoef(values[:16], values[16:])[0, 1])

    return holds(random, documents, groups, heads.ravel(), r, r(heads.ravel()))


def holds(
    random: np.random.Generator,
    documents: int,
    groups: int,
    truth: np.ndarray,
    statistic: Callable[[np.ndarray], float],
    value: float,
) -> bool:
    x, y = draw(random, documents, truth)
    both = grouped(random, np.stack([x, y], 1), groups)
    both = both[both[:, 1, 0] > 0]
    found = replicates.ratio_replicates(both[:, 0], both[:, 1])
    got = replicates.estimate(lambda place: statistic(found[place]), len(both))
    return bool(got.low <= value <= got.high)


def share_near_one(random: np.random.Generator, documents: int, groups: int) -> bool:
    """Of two words a document, found right with 0.96."""
    right = random.binomial(2, 0.96, documents).astype(float)
    both = grouped(random, np.stack([right, np.full(documents, 2.0)], 1), groups)
    x, y = both[:, [0]], both[:, [1]]
    found, known = replicates.ratio_replicates(x, y), replicates.informed(y)
    error = replicates.standard_error(found, known)
    low, high = replicates.share_interval(found[0], error, known, y.sum(0), counted=True)
    return bool(low[0] <= 0.96 <= high[0])


KINDS: dict[str, Callable[..., bool]] = {
    "ratio": ratio,
    "difference of two layers": difference,
    "correlation over heads": correlation,
    "share near 1, two words a document": share_near_one,
}

if __name__ == "__main__":
    main()
