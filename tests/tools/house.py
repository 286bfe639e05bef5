"""The map of the house: the order of the packages, the doors between them, and figures about both.

python -m tests.tools.house
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import quantiles

from headscope.studies import STUDIES

SOURCE = Path(__file__).parents[2] / "src"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)

# A package imports only from those before it, also where the import is for types alone.
ORDER = (
    "errors", "wording", "progress", "files", "head", "theme", "workers",
    "text", "results",
    "model", "views", "observe", "metrics", "plots", "engine", "portrait", "studies",
    "reports",
    "exports", "explorer", "mcp", "demo", "bertviz", "cli",
)  # fmt: skip

# Imports against the order: importing module, imported package, and why.
AGAINST_THE_ORDER = {
    ("headscope.model.trace", "views"): "trace.head_view() is the public door to the views",
    ("headscope.model.difference", "plots"): "a difference draws itself",
}

# Libraries that a function may import, because they are heavy or belong to an extra.
LAZY_LIBRARIES = {
    "accelerate", "anywidget", "datasets", "IPython", "matplotlib", "mcp", "numba", "ray",
    "resource", "rich", "scipy", "sklearn", "spacy", "torch", "transformers", "triton", "upath",
    "uvicorn", "webbrowser", "xarray",
}  # fmt: skip

# Packages that any function of a command may import: `headscope --help` stays light.
LAZY_PACKAGES = {"cli"}

# Imports of our own modules inside a function: importing module, imported module, and why.
LAZY_DOORS = {
    ("headscope.model.trace", "headscope.views"): "the public door to the views",
    ("headscope.model.trace", "headscope.model.stored"): "which makes traces itself",
    ("headscope.model.difference", "headscope.plots.difference"): "imports matplotlib",
    ("headscope.mcp", "headscope.reports.tables"): "an agent that reads no table does not wait",
    (
        "headscope.model.loading.network",
        "headscope.model.loading.load",
    ): "a pickled model is loaded where it lands",
    (
        "headscope.model.loading.network",
        "headscope.model.model",
    ): "a pickled model is made where it lands",
    ("headscope.metrics.divergence", "headscope.metrics.divergence_loop"): "numba",
    ("headscope.metrics.divergence", "headscope.metrics.divergence_kernel"): "imports triton",
    ("headscope.observe.packed", "headscope.observe.packed_kernel"): "imports triton",
    (
        "headscope.model.capture.gpu.packed",
        "headscope.model.capture.gpu.packed_kernel",
    ): "imports triton",
    ("headscope.views", "headscope.views.view"): "the command line lists kinds without numpy",
    ("headscope.model.trace", "headscope.views.shares"): "the public door to the views",
    ("headscope.views.view", "headscope.views.widget"): "imports anywidget",
    ("headscope.views.view", "headscope.views.cell"): "a view shows itself, in a notebook only",
    ("headscope.views.view", "headscope.views.figures"): "imports matplotlib",
    ("headscope.studies", "headscope.studies.study"): "names of studies are listed without torch",
    ("headscope.demo", "headscope.explorer.site"): "imports xarray while the models work",
    ("headscope.demo", "headscope.results.statements"): "imports xarray, in a model's own process",
    ("headscope.explorer", "headscope.explorer.api"): "imports Starlette, an extra",
    ("headscope.explorer", "headscope.explorer.answers.runs"): "imports Starlette, an extra",
    ("headscope.explorer", "headscope.explorer.safety"): "imports Starlette, an extra",
    ("headscope.explorer", "headscope.explorer.texts"): "imports Starlette, an extra",
    (
        "headscope.explorer",
        "headscope.model.loading.load",
    ): "only a server with a model needs torch",
    (
        "headscope.explorer",
        "headscope.model.loading.source",
    ): "a server without a model needs no torch",
    (
        "headscope.bertviz.neuron_view",
        "headscope.model.loading.load",
    ): "importing it needs no torch",
    ("headscope.workers", "headscope.workers.ray"): "engines are found by name",
}


@dataclass(frozen=True)
class Import:
    """One import statement, resolved to the module that it loads."""

    importer: str
    imported: str
    line: int
    in_function: bool
    for_types: bool

    @property
    def place(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}"


@cache
def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    return {_name(path): path for path in sorted((SOURCE / "headscope").rglob("*.py"))}


def package_of(module: str) -> str:
    """The room of a module: the first name after headscope, empty for headscope itself."""
    return module.partition(".")[2].partition(".")[0]


def study_of(module: str) -> str | None:
    """The published study that a module belongs to; None outside of them and for shared parts."""
    parts = module.split(".")
    is_study = parts[1:2] == ["studies"] and ".".join(parts[:3]) in STUDIES.values()
    return parts[2] if is_study else None


@cache
def imports() -> tuple[Import, ...]:
    """All imports of all modules, those of other libraries included."""
    return tuple(found for name, path in modules().items() for found in _imports(name, path))


def own_imports() -> Iterator[Import]:
    """Imports of one module of ours by another; headscope's own lazy names are left out."""
    for found in imports():
        if found.imported in modules() and found.importer != "headscope":
            yield found


def functions() -> Iterator[tuple[str, int]]:
    """Every function with its length in lines."""
    for name, path in modules().items():
        for node in ast.walk(_tree(path)):
            if isinstance(node, FUNCTIONS):
                yield f"{name}.{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1


def single_importers() -> dict[str, str]:
    """Modules that exactly one other module imports, with that module."""
    pairs = {(found.imported, found.importer) for found in own_imports()}
    count = Counter(imported for imported, _ in pairs)
    return {
        imported: importer
        for imported, importer in sorted(pairs)
        if count[imported] == 1 and modules()[imported].name != "__init__.py"
    }


def report() -> str:
    """The figures, one per line."""
    lengths = sorted(functions(), key=lambda item: -item[1])
    cuts = quantiles((length for _, length in lengths), n=10)
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in modules().values())
    longest = ", ".join(f"{name} {length}" for name, length in lengths[:5])
    rooms = Counter(package_of(name) or "headscope" for name in modules())
    return "\n".join(
        [
            f"files {len(modules())}",
            f"lines {lines}",
            f"files with exactly one importer {len(single_importers())}",
            f"functions {len(lengths)}, median {cuts[4]:.0f} lines, 90 % up to {cuts[8]:.0f}",
            f"longest functions: {longest}",
            "files by package: " + ", ".join(f"{name} {n}" for name, n in rooms.most_common()),
        ]
    )


def _name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _imports(module: str, path: Path) -> Iterator[Import]:
    nodes = list(ast.walk(_tree(path)))
    in_functions = _below(node for node in nodes if isinstance(node, FUNCTIONS))
    for_types = _below(node for node in nodes if _is_for_types(node))
    for node in nodes:
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        for target in _targets(node):
            yield Import(module, target, node.lineno, node in in_functions, node in for_types)


def _below(roots: Iterable[ast.AST]) -> set[ast.AST]:
    return {below for root in roots for below in ast.walk(root)}


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def _targets(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """The modules that a statement imports: `from package import module` means the module."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif node.module:
        whole = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from dict.fromkeys(name if name in modules() else node.module for name in whole)


if __name__ == "__main__":
    sys.stdout.write(report() + "\n")
