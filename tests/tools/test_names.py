"""Variables are called what they are: none has a name that would fit any value."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "headscope"

# Words that name nothing; see "Names, before and after" in the house style.
EMPTY_WORDS = {
    "found", "each", "own", "said", "kept", "known", "one", "ones", "chosen", "wanted", "whole",
    "here", "place", "given", "gave", "rest", "thing", "things", "way", "ways",
}  # fmt: skip

ROOMS = (
    "observe", "metrics", "studies/clark2019/probes", "studies/luger2026", "engine", "workers",
)  # fmt: skip


@pytest.mark.parametrize("room", ROOMS)
def test_no_variable_has_a_name_that_names_nothing(room: str) -> None:
    paths = sorted((SOURCE / room).rglob("*.py"))
    assert paths, f"{room} has no Python files"
    assert [line for path in paths for line in empty_names(path)] == []


@pytest.mark.parametrize(
    "code",
    [
        "found = 1",
        "found: int = 1",
        "found += 1",
        "(first, (found, *others)) = values",
        "for found in values: pass",
        "[found for found in values]",
        "print(found := 1)",
        "with file as found: pass",
    ],
)
def test_every_kind_of_assignment_is_seen(tmp_path: Path, code: str) -> None:
    path = tmp_path / "module.py"
    path.write_text(f"\n{code}\n", encoding="utf-8")
    assert list(empty_names(path)) == [f"{path}:2: found"]


def test_kernels_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text("@triton.jit\ndef kernel():\n    found = 1\n", encoding="utf-8")
    assert list(empty_names(path)) == []


def empty_names(path: Path) -> Iterator[str]:
    """File, line and word of every assignment of a file to one of the words, in order."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    shown = path.relative_to(SOURCE) if path.is_relative_to(SOURCE) else path
    names = sorted(_assigned(tree), key=lambda name: (name.lineno, name.col_offset))
    yield from (f"{shown}:{name.lineno}: {name.id}" for name in names if name.id in EMPTY_WORDS)


def _assigned(node: ast.AST) -> Iterator[ast.Name]:
    # Only a GPU can run a Triton kernel, and so check that a rename broke nothing.
    if isinstance(node, ast.FunctionDef) and "triton.jit" in map(ast.unparse, node.decorator_list):
        return
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from _assigned(child)
