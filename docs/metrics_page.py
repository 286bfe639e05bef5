"""Print docs/metrics.md: what the docstrings of the metrics say of every variable of a result.

python docs/metrics_page.py > docs/metrics.md

The docstring of whatever makes a variable ends in one or more blocks of five fields:

    Variables: distance, distance_*
    Formula: Σ a[i, j]·|i − j| / Σ a[i, j]
    Reference: Vig & Belinkov 2019, Eq. 6, Fig. 11
    Range: 0 to the longest input, in tokens
    Cost: n², one product with the pair features that alignment shares
"""

import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

BEGIN = """# Metrics

Printed by `python docs/metrics_page.py` from the docstrings of what computes each variable.

A metric answers one question about every head of a model. It sees one layer's weights at a time,
while the forward pass runs, keeps sums that add, and turns them into variables of the result at
the end. Nothing stores the weights.

`a[i, j]` is the weight that query token *i* pays to key token *j*. Layers and heads count from 0.
A cost is that of one input of *n* tokens for one head, beyond the forward pass. In vig2019 sums
run over the whole corpus before they are divided; in clark2019 a segment is averaged first, then
all segments weigh the same.

## The null filter

Much attention goes to a token that stands for nothing: the first token of a causal model's input,
the delimiters (`[CLS]`, `[SEP]`) of a bidirectional one. Everywhere in vig2019, attention *to*
these tokens is dropped from numerator and denominator; rows are not renormalised. For a
bidirectional model the delimiters are dropped as queries too. clark2019 drops nothing before it
looks at words.

```
causal (token 0 is null)        bidirectional ([CLS] … [SEP] are null)
  key  0 1 2 3                    key  0 1 2 3
q 0    · · · ·                  q 0    · · · ·
  1    · x · ·                    1    · x x ·
  2    · x x ·                    2    · x x ·
  3    · x x x                    3    · · · ·
```

## One measure, five variables

Where the tables say `NAME_*`, the result has beside `NAME(layer, head, …)`

- `NAME_se`: its standard error over inputs,
- `NAME_by_layer`, `NAME_by_layer_se`: sums over the heads of a layer, then the ratio,
- `NAME_head_mean`: the plain mean of the head values of a layer.

**Standard errors** are those of the ratio estimator. Every input gives a numerator x and a
denominator y; with R = Σx/Σy and N inputs the variance is Σ(x − R·y)² / (Σy)² · N/(N−1). It needs
only Σx, Σy, Σx², Σxy, Σy² and N, so it adds as the values do. The error of `variability` takes ā
as known. Errors of proportions are √(p(1 − p)/N).

"""

END = """## Writing a metric

A statistic that is a ratio of sums is one pure function of an `ObservedLayer`, which gives the
sums that many metrics share: `kept` (weights under the null filter), `rows`, `columns`, `total`,
`to_null`; [extending](extending.md) has one in ten lines. Added to the metrics of a study it has
standard errors, layer values, resuming and a place in `result.nc`. Anything else implements the
protocol in `metrics/metric.py`: `zero` → `update_layer` (or `update_text`, `update_batch`,
`update_model`) → `merge` → `compute`. A state has *sums*, float64 arrays that merge exactly, and
*records*, one row per sentence, which go to disk with their shard and are read back shard by
shard in `compute` (only `variability` needs them). `tests/contracts/test_metrics.py` holds every
metric of every study to the same laws.
"""

FIELDS = ("Variables", "Formula", "Reference", "Range", "Cost")
CITED = re.compile(r" \([^()]*\d{4}[^()]*\)")
WORDS = "headscope.studies.clark2019.words"
SECTIONS = {
    "vig2019": [
        f"headscope.metrics.{name}"
        for name in ("null", "labels", "dependencies", "span", "distance", "entropy",
                     "variability", "correlation")
    ],
    "clark2019": [
        *[f"headscope.metrics.{name}"
          for name in ("surface", "sinks", "head_gradient", "head_divergence", "behaviour")],
        "headscope.probes.relations",
        "headscope.probes.coreference.metric",
        f"{WORDS}.stage",
        f"{WORDS}.examples",
    ],
    "Both studies": ["headscope.metrics.exemplars", "headscope.metrics.example_map"],
}  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """Variables that are explained together."""

    variables: tuple[str, ...]
    formula: str
    reference: str
    range: str
    cost: str


def page() -> str:
    """The whole page."""
    return BEGIN + "".join(_section(*each) for each in SECTIONS.items()) + END


def entries(module: ModuleType) -> list[Entry]:
    """What the docstrings of a module say, in the order of the file."""
    return [Entry(_names(each["Variables"]), *(each[name] for name in FIELDS[1:]))
            for text in _docstrings(module) for each in _blocks(text)]  # fmt: skip


def _section(title: str, modules: list[str]) -> str:
    return f"## {title}\n\n" + "".join(map(_table, map(import_module, modules)))


def _table(module: ModuleType) -> str:
    heading = CITED.sub("", (module.__doc__ or "").partition("\n")[0]).rstrip(".")
    file = module.__name__.removeprefix("headscope.").replace(".", "/") + ".py"
    rows = [_row(entry) for entry in entries(module)]
    head = "| variable | formula | range | cost | reference |\n|---|---|---|---|---|\n"
    return f"### {heading}\n\n`{file}`\n\n{head}" + "".join(rows) + "\n"


def _row(entry: Entry) -> str:
    names = ", ".join(f"`{name}`" for name in entry.variables)
    cells = (names, entry.formula, entry.range, entry.cost, entry.reference)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _docstrings(module: ModuleType) -> Iterator[str]:
    for member in vars(module).values():
        if getattr(member, "__module__", None) == module.__name__:
            yield inspect.getdoc(member) or ""


def _blocks(text: str) -> Iterator[dict[str, str]]:
    for paragraph in text.split("\n\n"):
        if paragraph.startswith(f"{FIELDS[0]}:"):
            yield _fields(paragraph)


def _fields(paragraph: str) -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    for line in paragraph.splitlines():
        if not line.startswith(" "):
            name, _, line = line.partition(":")
        found[name] = f"{found.get(name, '')} {line.strip()}".strip()
    if tuple(found) != FIELDS:
        raise ValueError(f"{paragraph!r} has the fields {tuple(found)}; it needs {FIELDS}.")
    return found


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


if __name__ == "__main__":
    print(page(), end="")
