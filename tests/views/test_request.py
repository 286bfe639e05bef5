"""headscope view: from a text to a file."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from headscope.bertviz import show
from headscope.cli import app
from headscope.errors import HeadscopeError, ViewError
from headscope.views.request import parse_heads, save_view
from tests.model.tiny import tiny


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT in a directory."""
    folder = tmp_path_factory.mktemp("tiny-bert")
    model = tiny("BERT")
    model.network.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("kind", ["head", "model", "neuron"])
@pytest.mark.parametrize("ending", ["html", "pdf"])
def test_the_command_writes_every_view(place: Path, tmp_path: Path, kind: str, ending: str) -> None:
    out = tmp_path / f"view.{ending}"
    options = [
        "--model",
        str(place),
        "--kind",
        kind,
        "--layer",
        "1",
        "--heads",
        "2",
        "--out",
        str(out),
    ]
    result = CliRunner().invoke(app, ["view", "Birds sing", "--pair", "and fly", *options])
    assert result.exit_code == 0, result.output
    assert result.output == f"{out}\n"
    assert out.stat().st_size > 1000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "x.gif"], "a view can be saved as .html, .svg, .png, .pdf"),
        (["--out", "x.html", "--layer", "9"], "Layer 9 is not in this trace; it has 0 to 1."),
        (["--out", "x.html", "--heads", "a"], "Heads are 'a'; write them like 0,3 or 0-3."),
        (["--out", "x.svg", "--heads", "0,1", "--kind", "neuron"], "takes one head, not 2"),
    ],
)
def test_mistakes_end_in_one_sentence(place: Path, options: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["view", "Birds", "--model", str(place), *options])
    assert isinstance(result.exception, HeadscopeError)
    assert message in str(result.exception)


def test_heads_are_read_as_lists_and_ranges() -> None:
    assert parse_heads("0,3") == [0, 3]
    assert parse_heads("1-3, 7") == [1, 2, 3, 7]
    with pytest.raises(ViewError):
        parse_heads("1-")


def test_the_ending_is_checked_before_the_model_runs(tmp_path: Path) -> None:
    with pytest.raises(ViewError, match="the ending ''"):
        save_view(tiny("GPT-2"), "Birds", tmp_path / "view")


def test_bertvizs_neuron_view_works_for_any_model() -> None:
    model = tiny("Llama")
    view = show(model.network, "llama", model.tokenizer, "Birds sing", layer=1, head=3)
    assert (view.kind, view.state.layer, view.state.head) == ("neuron", 1, 3)
