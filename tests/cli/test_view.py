"""headscope view: from a text to a file."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from headscope.bertviz import show
from headscope.cli import app
from headscope.cli.view import parse_heads, read_text
from headscope.errors import HeadscopeError
from headscope.model.loading.load import load
from tests.references.chats import chat_model
from tests.references.tiny_families import tiny


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


def test_heads_are_read_as_lists_and_ranges() -> None:
    assert parse_heads("0,3") == [0, 3]
    assert parse_heads("1-3, 7") == [1, 2, 3, 7]


def run(place: Path, *arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["view", *arguments, "--model", str(place)], input=stdin)


def shown_in(page: Path) -> dict[str, Any]:
    """The header that a page carries."""
    text = page.read_text(encoding="utf-8")
    found = re.search(r'id="headscope-header">(.*?)</script>', text)
    assert found is not None
    return json.loads(found[1])


def test_a_file_and_standard_input_are_read(place: Path, tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text("Birds sing\nand fly\n", encoding="utf-8")
    for number, (text, *options, stdin) in enumerate(
        [(str(tmp_path / "s.txt"), "--whole", None), ("-", "Birds sing\nand fly\n")]
    ):
        out = tmp_path / f"{number}.html"
        assert run(place, text, *options, "--out", str(out), stdin=stdin).exit_code == 0
        words = shown_in(out)["stacks"][0]["queries"]["words"]
        assert "".join(words).lower() == "birdssingandfly"


def test_the_lines_of_a_file_are_texts_of_one_page(place: Path, tmp_path: Path) -> None:
    (tmp_path / "lesson.txt").write_text("Birds sing\n\nBirds fly\n", encoding="utf-8")
    out = tmp_path / "x.html"
    assert run(place, str(tmp_path / "lesson.txt"), "--out", str(out)).exit_code == 0
    page = out.read_text(encoding="utf-8")
    found = re.search(r'id="headscope-gallery">(.*?)</script>', page)
    assert found is not None
    said = json.loads(found[1])
    assert said["title"] == "lesson"
    assert [one["text"] for one in said["texts"]] == ["Birds sing", "Birds fly"]


@pytest.mark.parametrize("text", ["The cat sat.", "Mr. Smith", "-x", "No file.txt here", "a.b"])
def test_a_text_stays_a_text(text: str) -> None:
    assert read_text(text) == text


def test_only_the_asked_layer_and_heads_are_kept(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.html"
    assert run(place, "Birds", "--layer", "1", "--heads", "0", "--out", str(out)).exit_code == 0
    (stack,) = shown_in(out)["stacks"]
    assert (stack["layers"], stack["heads"]) == ([1], [0])
    assert list(stack["sets"]["raw"]["layers"]) == ["1"]


def test_hide_theme_and_dtype_are_options(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.html"
    options = (
        "--hide",
        "first,special",
        "--theme",
        "dark",
        "--dtype",
        "bfloat16",
        "--device",
        "cpu",
    )
    assert run(place, "Birds sing", *options, "--out", str(out)).exit_code == 0
    state = shown_in(out)["state"]
    assert (state["hide"], state["theme"]) == (["first", "special"], "dark")


def test_a_text_too_long_for_the_model_is_cut_on_request(tmp_path: Path) -> None:
    out = tmp_path / "x.svg"
    text = "word " * 600
    options = ("--layer", "0", "--heads", "0", "--out", str(out))
    assert isinstance(run(Path("mini-bert"), text, *options).exception, HeadscopeError)
    assert run(Path("mini-bert"), text, *options, "--truncate").exit_code == 0


def test_bertvizs_neuron_view_works_for_any_model() -> None:
    model = tiny("Llama")
    view = show(model.network, "llama", model.tokenizer, "Birds sing", "", "light", 1, 3, "return")
    assert view is not None
    assert (view.kind, view.state.layer, view.state.head) == ("neuron", 1, 3)


def test_bertvizs_neuron_view_refuses_a_pair_where_the_model_reads_none() -> None:
    model = load("mini-gpt2")
    with pytest.raises(HeadscopeError, match="takes no pairs of texts"):
        show(model.network, "gpt2", model.tokenizer, "Birds", "Birds")


@pytest.fixture(scope="module")
def chat_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model with a chat template in a directory."""
    folder = tmp_path_factory.mktemp("tiny-chat")
    model = chat_model("Llama")
    model.network.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_chat_is_shown_with_its_turns(chat_place: Path, tmp_path: Path, wrapped: bool) -> None:
    said = [{"role": "user", "content": "Two and two?"}, {"role": "assistant", "content": "Four."}]
    chat, out = tmp_path / "chat.json", tmp_path / "chat.html"
    chat.write_text(json.dumps({"messages": said, "tools": None} if wrapped else said))
    command = ["view", "--chat", str(chat), "--model", str(chat_place), "--out", str(out)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    header = re.search(r'id="headscope-header">(.*?)</script>', out.read_text(encoding="utf-8"))
    assert header is not None
    assert json.loads(header[1])["state"]["spans"][1].endswith(" assistant")


def test_a_summary_is_written_as_shaded_text(place: Path, tmp_path: Path) -> None:
    out = tmp_path / "text.svg"
    command = ["view", "Birds sing", "--model", str(place), "--out", str(out)]
    result = CliRunner().invoke(app, [*command, "--summary", "mean", "--layout", "text"])
    assert result.exit_code == 0, result.output
    drawn = out.read_text(encoding="utf-8")
    assert "layers 0, 1 · mean of heads 0 to 3" in drawn
    assert "what all tokens look at, on average" in drawn
