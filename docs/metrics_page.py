"""Print docs/metrics.md: what the measures of all metrics, probes and studies say of themselves.

python docs/metrics_page.py > docs/metrics.md
python docs/metrics_page.py MODULE …    with the measures of your own modules

Every module-level `Measure` of the package is found, in the section of the study that uses it.
"""

import ast
import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

import headscope
from headscope.results.measure import DERIVED, Measure
from headscope.studies import STUDIES

BEGIN = """# Metrics

Printed by `python docs/metrics_page.py` from the `Measure` that is declared beside each metric.

`a[i, j]` is the weight that query token *i* pays to key token *j*. Layers and heads count from 0.
Values are shares from 0 to 1 unless their formula says otherwise. In vig2019
and luger2026 sums run over the whole corpus before they are divided; in clark2019 a segment is
averaged first, then all segments weigh the same.

## The null filter

Much attention goes to a token that stands for nothing: the first token of a causal model's input,
the delimiters (`[CLS]`, `[SEP]`) of a bidirectional one. Everywhere in vig2019, attention *to*
these tokens is dropped from numerator and denominator; rows are not renormalised. For a
bidirectional model the delimiters are dropped as queries too. clark2019 drops nothing before it
looks at words, luger2026 nothing at all: there the first token is left out only where the largest
weight of an input is sought.

```
causal (token 0 is null)        bidirectional ([CLS] … [SEP] are null)
  key  0 1 2 3                    key  0 1 2 3
q 0    · · · ·                  q 0    · · · ·
  1    · x · ·                    1    · x x ·
  2    · x x ·                    2    · x x ·
  3    · x x x                    3    · · · ·
```

## One measure and what comes with it

A measure with a star has, beside `NAME(layer, head, …)`

- `NAME_se`: its standard error,
- `NAME_by_layer`, `NAME_by_layer_se`: sums over the heads of a layer, then the ratio,
- `NAME_head_mean`: the plain mean of the head values of a layer,
- `NAME_numerator(group, …)`, `NAME_denominator(group, …)`: the sums of every group of documents,
- `NAME_q`: where it has a baseline, the q-value of every head and label lying above it,
- `NAME_even`: where even attention is its baseline, the value of rows that pay every token they see
  the same: the formula with a[i, j] := 1 / the number of tokens that i sees,
- `NAME_untrained`: where a claim reads it, the mean over networks of random weights.

Measures of the corpus alone have no heads and no layers, and so only the error and the sums.

**Standard errors** are over documents: [statistics](statistics.md) says how and how well. The error
of `variability` takes ā as known.

"""

END = """## Writing a metric

[Extending](extending.md) has one in ten lines. Its `Measure` says what it is: in the report, the
explorer, `compare` and, by `python docs/metrics_page.py YOUR_MODULE`, on this page.
`tests/contracts/test_metrics.py` holds every metric of every study to the same laws.
"""

PACKAGES = ("headscope.metrics", "headscope.portrait", "headscope.studies")
OF_TEXT = ("_se", "_numerator", "_denominator")  # what is computed of a measure without heads
SEVERAL, NEITHER, OWN = "Several studies", "Other measures", "Your own"
CITED = re.compile(r" \([^()]*\d{4}[^()]*\)")


def page(own: Sequence[str] = ()) -> str:
    """The whole page; `own` names further modules."""
    sections = {title: list(modules) for title, modules in _sections().items()}
    sections[OWN] = [import_module(name) for name in own]
    shown = (_section(title, modules) for title, modules in sections.items() if modules)
    return BEGIN + "".join(shown) + END


def measures_of(module: ModuleType) -> list[Measure]:
    """The measures that a module declares, not those it imports, in the order of the file."""
    declared = _assigned(ast.parse(inspect.getsource(module)))
    values = (vars(module).get(name) for name in declared)
    found = [each for value in values for each in _flat(value) if isinstance(each, Measure)]
    return list({each.name: each for each in found}.values())


def variables_of(measure: Measure) -> list[str]:
    """Every variable that a measure explains."""
    derived = [measure.name + suffix for suffix in DERIVED] if measure.with_errors else []
    even = f"{measure.name}_even"
    if any(baseline.variable == even for baseline in measure.baselines):
        derived += [even, *(even + suffix for suffix in OF_TEXT)]
    return [measure.name, *derived, *measure.also]


def explained(study: str) -> set[str]:
    """Every variable that the page explains for a study."""
    sections = _sections()
    modules = [*sections[study], *sections[SEVERAL], *sections[NEITHER]]
    return {
        name
        for module in modules
        for measure in measures_of(module)
        for name in variables_of(measure)
    }


def _flat(value: object) -> Iterable[object]:
    return value if isinstance(value, tuple) else (value,)


def _assigned(tree: ast.Module) -> Iterator[str]:
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else ()
        if isinstance(statement, ast.AnnAssign):
            targets = (statement.target,)
        names = (node for target in targets for node in ast.walk(target))
        yield from (node.id for node in names if isinstance(node, ast.Name))


def _sections() -> dict[str, list[ModuleType]]:
    """The modules with measures by the study that imports them."""
    sections: dict[str, list[ModuleType]] = {name: [] for name in (*STUDIES, SEVERAL, NEITHER)}
    users = {study: _imported(home) for study, home in STUDIES.items()}
    for module in _modules():
        if measures_of(module):
            found = [study for study in STUDIES if module.__name__ in users[study]]
            title = found[0] if len(found) == 1 else SEVERAL if found else NEITHER
            sections[title].append(module)
    return sections


def _modules() -> Iterator[ModuleType]:
    """The modules that declare a measure; others may need what is not installed here."""
    for package in PACKAGES:
        for name, text in _sources(package):
            if "Measure(" in text:
                yield import_module(name)


def _sources(package: str) -> Iterator[tuple[str, str]]:
    """Name and text of every module of a package."""
    folder = Path(headscope.__file__).parent.joinpath(*package.split(".")[1:])
    for file in sorted(folder.rglob("*.py")):
        parts = file.relative_to(folder).with_suffix("").parts
        name = ".".join((package, *parts)).removesuffix(".__init__")
        yield name, file.read_text(encoding="utf-8")


def _imported(home: str) -> set[str]:
    """The modules of a study, and those that it imports or what it shares with others does."""
    found: set[str] = set()
    for name, text in _sources(home):
        found |= {name, *_imports(text)}
    for name, text in _sources("headscope.studies.shared"):
        if name in found:
            found |= _imports(text)
    return found


def _imports(text: str) -> set[str]:
    """What a module imports from others: their names, and those of what may be modules."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return found


def _section(title: str, modules: Sequence[ModuleType]) -> str:
    return f"## {title}\n\n" + "".join(map(_table, modules))


def _table(module: ModuleType) -> str:
    heading = CITED.sub("", (module.__doc__ or "").partition("\n")[0]).rstrip(".")
    end = "/__init__.py" if hasattr(module, "__path__") else ".py"
    file = module.__name__.removeprefix("headscope.").replace(".", "/") + end
    rows = "".join(_row(measure) for measure in measures_of(module))
    columns = ("variable", "what it says", "formula", "reference")
    head = f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}\n"
    return f"### {heading}\n\n`{file}`\n\n{head}{rows}\n"


def _row(measure: Measure) -> str:
    star = "\\*" if measure.with_errors else ""
    also = "".join(f", `{name}`" for name in measure.also if not name.endswith(OF_TEXT))
    cells = (f"`{measure.name}`{star}{also}", _says(measure), measure.formula, measure.reference)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _says(measure: Measure) -> str:
    against = " or ".join(
        f"{each.means.replace('{}', '…')} (`{each.variable}`)" for each in measure.baselines
    )
    said = f"**{measure.title}.** {measure.meaning}".strip()
    return f"{said} Beside {against}." if against else said


if __name__ == "__main__":
    print(page(sys.argv[1:]), end="")
