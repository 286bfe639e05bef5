"""The tools of an agent, asked over standard input and output by the SDK's own client."""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcp import ClientSession, StdioServerParameters, stdio_client

import headscope as hs
from headscope.results.dataset import load
from headscope.results.heads import heads
from tests.references.runs import write_run

TEXT = "The cat sat on the mat because the cat was tired."
Call = tuple[str, dict[str, Any]]
CALLS: dict[str, Call] = {
    "runs": ("list_runs", {}),
    "heads": ("describe_heads", {"run": "a", "rows": 3, "sort": "explained"}),
    "head": ("describe_head", {"run": "a", "head": "L1H2"}),
    "measure": ("read_measure", {"run": "a", "measure": "entropy", "rows": 4}),
    "table": ("read_table", {"run": "a", "table": "tags", "rows": 1}),
    "difference": ("compare_runs", {"first": "a", "second": "b", "rows": 2}),
    "weights": ("trace_text", {"text": TEXT, "head": "L4H2", "rows": 5}),
    "strongest": ("trace_text", {"text": TEXT}),
    "picture": ("draw_head", {"text": TEXT, "head": "L4H2"}),
}
MISTAKES: dict[str, tuple[str, dict[str, Any], str]] = {
    "run": ("describe_heads", {"run": "c"}, "There is no run of that name; the runs are: a, b."),
    "head": ("describe_head", {"run": "a", "head": "first"}, "names no head; write it as L4H11"),
    "no head": ("describe_head", {"run": "a", "head": "L9H9"}, "The run a has no head L9H9."),
    "measure": ("read_measure", {"run": "a", "measure": "entrpy"}, "There is no measure of that"),
    "label": ("read_measure", {"run": "a", "measure": "pos_to"}, "write pos_to~"),
    "table": ("read_table", {"run": "a", "table": "none"}, "There is no table of that name; there"),
    "rows": ("read_measure", {"run": "a", "measure": "entropy", "rows": 0}, "ask for 1 to 200"),
    "model": ("trace_text", {"text": TEXT, "head": "L40H2"}, "its heads are L0H0 to L7H7"),
    "long": ("trace_text", {"text": "a" * 4001}, "The text has 4,001 characters"),
    "tokens": ("trace_text", {"text": "a b " * 400}, "tokens; the most is 256"),
    "empty": ("trace_text", {"text": ""}, "text"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    write_run(folder / "a", "vig2019", described=True)
    write_run(folder / "b", "vig2019", seed=1)
    return folder


@pytest.fixture(scope="module")
def answers(folder: Path) -> dict[str, Any]:
    """One server, asked everything that the tests look at."""
    calls = [*CALLS.values(), *((name, given) for name, given, _ in MISTAKES.values())]
    with ThreadPoolExecutor(1) as thread:  # where another test's browser has no loop of its own
        results = thread.submit(asyncio.run, ask(folder, calls)).result()
    return dict(zip([*CALLS, *(f"mistaken {name}" for name in MISTAKES)], results, strict=True))


async def ask(folder: Path, calls: Sequence[Call]) -> list[Any]:
    arguments = ["-m", "headscope", "mcp", str(folder / "a"), str(folder / "b")]
    arguments += ["--model", "mini-gpt2"]
    server = StdioServerParameters(command=sys.executable, args=arguments, env={**os.environ})
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        listed = {tool.name: tool.description for tool in (await session.list_tools()).tools}
        assert set(listed) == {name for name, _ in CALLS.values()}
        assert all(listed.values())
        return [await session.call_tool(name, given) for name, given in calls]


def told(answer: Any) -> Any:
    assert not answer.is_error, answer
    return json.loads(answer.content[0].text)


def test_runs_are_listed_with_their_measures(answers: dict[str, Any]) -> None:
    listed = told(answers["runs"])
    assert [run["run"] for run in listed["runs"]] == ["a", "b"]
    assert listed["can_trace"] is True
    assert "entropy" in listed["runs"][0]["measures"]


def test_heads_are_described_in_the_sentences_of_the_run(
    answers: dict[str, Any], folder: Path
) -> None:
    expected = heads(folder / "a", sort="explained")
    described = told(answers["heads"])
    assert described["count"] == len(expected)
    assert [head["sentence"] for head in described["heads"]] == list(expected["sentence"][:3])
    alone = expected[expected["head"] == "L1H2"]
    assert told(answers["head"])["sentence"] == alone["sentence"].item()


def test_a_measure_is_read_from_its_largest_value_on(answers: dict[str, Any], folder: Path) -> None:
    values = load(folder / "a")["entropy"].values
    largest = np.sort(values[np.isfinite(values)].ravel())[::-1][:4]
    assert [head["value"] for head in told(answers["measure"])["heads"]] == largest.tolist()


def test_a_table_is_read_in_latex(answers: dict[str, Any]) -> None:
    table = told(answers["table"])
    assert table["title"] == "The heads of each tag"
    lines = table["latex"].splitlines()
    assert lines[4] == r"\midrule" and lines[5].startswith("ADJ & 0.348 & L0H2")
    assert lines[6:] == [r"\bottomrule", r"\end{tabular}"]


def test_two_runs_are_compared_in_the_words_of_the_comparison(
    answers: dict[str, Any], folder: Path
) -> None:
    comparison = told(answers["difference"])
    assert comparison["clear"].endswith("differences are clear (q < 0.05).")
    expected = hs.compare(folder / "a", folder / "b")
    assert len(comparison["notes"]) == len(expected.notes)
    assert len(comparison["differences"]) == 2 * len(expected.kinds)


def test_weights_of_a_text_are_those_of_the_trace(answers: dict[str, Any]) -> None:
    weights = hs.load("mini-gpt2").trace(TEXT).weights[4][2].numpy()
    traced = told(answers["weights"])
    assert len(traced["weights"]) == 5
    for row in traced["weights"]:
        assert row["weight"] == pytest.approx(weights[row["query"], row["key"]], abs=1e-6)
        assert row["key"] not in (0, row["query"])
    heads_named = [row["head"] for row in told(answers["strongest"])["weights"]]
    assert len(heads_named) == len(set(heads_named)) == 20  # of every head the largest alone


def test_a_head_is_drawn_as_a_picture(answers: dict[str, Any]) -> None:
    (picture,) = answers["picture"].content
    assert picture.mime_type == "image/png"
    assert picture.data.startswith("iVBORw0KGgo")  # what every PNG begins with, in base64


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_the_sentence_of_the_command_line(answers: dict[str, Any], name: str) -> None:
    answer = answers[f"mistaken {name}"]
    assert answer.is_error
    assert MISTAKES[name][2] in answer.content[0].text
