"""What a release says in several places is said once; what it promises is tested somewhere."""

import ast
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import headscope
from docs.site.stage import repository

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Extras whose packages no environment here has in its lowest version.
UNTRIED = ("hub", "torchao", "bitsandbytes")
WORKFLOWS = {file.stem: file for file in (ROOT / ".github" / "workflows").glob("*.yml")}


def read_yaml(name: str) -> dict[str, Any]:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def test_the_version_is_written_in_one_place_and_repeated_rightly() -> None:
    citation = read_yaml("CITATION.cff")
    assert PROJECT["dynamic"] == ["version"]
    assert citation["version"] == headscope.__version__
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", changelog, re.MULTILINE)
    assert released[0] == (headscope.__version__, str(citation["date-released"]))
    assert "## [Unreleased]" in changelog
    assert citation["repository-code"] == repository()


def test_the_versions_of_python_are_those_that_the_workflow_tests() -> None:
    claimed = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    matrix = read_yaml(".github/workflows/test.yml")["jobs"]["newest"]["strategy"]["matrix"]
    assert claimed == matrix["python"]
    assert PROJECT["requires-python"] == f">={claimed[0]}"
    assert {"macos-latest", "windows-latest"} <= {each["os"] for each in matrix["include"]}


def test_the_lowest_versions_are_those_that_the_package_allows() -> None:
    extras = [*PROJECT["optional-dependencies"].items()]
    tried = [each for name, needs in extras if name not in UNTRIED for each in needs]
    lowest = pins("constraints-lowest.txt")
    for needed in [*PROJECT["dependencies"], *tried]:
        name, floor = re.match(r"([\w-]+)>=([\d.]+)", needed).groups()  # type: ignore[union-attr]
        if name != "torch":  # see docs/releasing.md
            assert re.fullmatch(rf"{re.escape(floor)}(\.0)*", lowest[name]), needed


def test_the_hooks_have_the_version_that_is_pinned() -> None:
    hooks = read_yaml(".pre-commit-config.yaml")["repos"][0]["hooks"]
    asked = {each for hook in hooks for each in hook.get("additional_dependencies", ())}
    prettier = json.loads((ROOT / "package.json").read_text("utf-8"))["devDependencies"]["prettier"]
    assert asked == {f"ruff=={pins('constraints.txt')['ruff']}", f"prettier@{prettier}"}


def test_publishing_needs_no_password_and_waits_for_the_tests() -> None:
    jobs = read_yaml(".github/workflows/release.yml")["jobs"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["needs"] == "test"
    assert "secrets." not in WORKFLOWS["release"].read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(WORKFLOWS))
def test_a_workflow_names_targets_that_the_makefile_has(name: str) -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    asked = re.findall(r"run: make ([\w-]+)", WORKFLOWS[name].read_text(encoding="utf-8"))
    assert set(asked) <= targets


@pytest.mark.parametrize("name", sorted(WORKFLOWS))
def test_a_workflow_names_an_action_by_its_commit(name: str) -> None:
    """A tag can be moved to other code by whoever owns the action; a commit cannot."""
    used = re.findall(r"uses: (\S+)(.*)", WORKFLOWS[name].read_text(encoding="utf-8"))
    others = [each for each in used if not each[0].startswith("./")]
    assert others
    for action, comment in others:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r"  # v\d+\.\d+\.\d+", comment), action


@pytest.mark.parametrize("form", ["bug", "model", "idea"])
def test_a_form_asks_something(form: str) -> None:
    fields = read_yaml(f".github/ISSUE_TEMPLATE/{form}.yml")
    assert {"name", "description", "body"} <= set(fields)
    names = [field["id"] for field in fields["body"]]
    assert len(names) == len(set(names)) > 1


def test_the_tests_that_security_names_exist() -> None:
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(tests/[\w./]+)`", text))
    assert named and [name for name in named if not (ROOT / name).exists()] == []


def test_the_metric_of_the_guide_passes_its_own_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """CONTRIBUTING.md: the module and its test, as a newcomer would type them."""
    import sys
    from types import ModuleType

    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    metric, test = re.findall(r"^```python\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    module = ModuleType("headscope.metrics.self_share")
    exec(metric, vars(module))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    names: dict[str, Any] = {}
    exec(test, names)
    [function] = [each for each in ast.parse(test).body if isinstance(each, ast.FunctionDef)]
    for kind in names["LAYERS"]:
        names[function.name](kind)
