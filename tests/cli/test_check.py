"""`headscope check` prints what the probe found, or one sentence."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import headscope as hs
from headscope.cli import app
from tests.references.tiny_families import save


def run(directory: Path) -> str:
    result = CliRunner().invoke(app, ["check", str(directory)], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    return result.output


def row(output: str, stack: str) -> list[str]:
    line = next(line for line in output.splitlines() if f"│ {stack} " in line)
    return [cell.strip() for cell in line.strip("│ ").split("│")]


def test_one_row_per_stack(tmp_path: Path) -> None:
    output = run(save("T5", tmp_path))
    assert row(output, "encoder") == ["encoder", "3", "4", "4", "interface", "yes", "yes"]
    assert row(output, "cross") == ["cross", "2", "4", "4", "interface", "yes", "yes"]


def test_key_value_heads_and_limits_are_shown(tmp_path: Path) -> None:
    output = run(save("Llama", tmp_path))
    assert row(output, "self") == ["self", "2", "4", "2", "interface", "yes", "yes"]
    assert "sees only what came before; at most 64 tokens" in output


def test_what_is_missing_is_explained(tmp_path: Path) -> None:
    output = run(save("GPT-J", tmp_path))
    assert row(output, "self")[-3:] == ["hooks", "no", "no"]
    assert "no neuron view, because this family computes attention outside" in output


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("Mistral", "self: in all layers a token sees only a sliding window of 4 tokens;"),
        ("Gemma 3", "self: in layers 0, 1 a token sees only a sliding window of 4 tokens;"),
        ("GPT-Neo", "self: in layers 1 a token sees only a sliding window of 4 tokens;"),
        ("T5Gemma", "encoder: in layers 0, 2 a token sees only a sliding window of 4 tokens;"),
    ],
)
def test_sliding_windows_are_explained(name: str, line: str, tmp_path: Path) -> None:
    assert line in run(save(name, tmp_path))


@pytest.mark.parametrize("name", ["Llama", "Qwen 2"])
def test_models_without_windows_do_not_mention_them(name: str, tmp_path: Path) -> None:
    assert "sliding window" not in run(save(name, tmp_path))


def test_a_legend_explains_the_columns(tmp_path: Path) -> None:
    lines = run(save("GPT-J", tmp_path)).splitlines()
    below = lines[next(i for i, line in enumerate(lines) if line.startswith("└")) + 1 :]
    assert below[0].startswith("backend hooks: what the modules that compute weights return")
    assert below[1].startswith(
        "plain: the weights are softmax(scaling · q·k + mask and position bias)"
    )
    assert not any(line.startswith("backend interface") for line in below)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("Llama", "Long texts can be measured without whole matrices, by rows and fused (see"),
        ("Gemma 2", "Long texts can be measured without whole matrices, by rows (see"),
        ("GPT-J", "Long texts need whole matrices: this family computes attention outside"),
    ],
)
def test_long_texts_are_mentioned(name: str, line: str, tmp_path: Path) -> None:
    assert line in run(save(name, tmp_path))


def test_hybrid_layers_are_listed(tmp_path: Path) -> None:
    assert "only these layers have attention: 1, 3." in run(save("Jamba", tmp_path))


def test_sinks_are_mentioned(tmp_path: Path) -> None:
    assert "rows sum to less than 1" in run(save("gpt-oss", tmp_path))


def test_a_family_that_cannot_be_padded_says_so(tmp_path: Path) -> None:
    assert "only texts of equal length" in run(save("ConvBERT", tmp_path))


def test_check_describes_the_model_for_programs() -> None:
    done = CliRunner().invoke(app, ["check", "mini-bert", "--json"])
    found, model = json.loads(done.stdout), hs.load("mini-bert")
    assert (found["model"], found["is_causal"]) == ("mini-bert", False)
    [stack] = found["stacks"]
    assert (stack["layers"], stack["heads"]) == (model.layers, model.heads)
    assert stack["backend"] == "interface" and stack["no_neurons"] is None
