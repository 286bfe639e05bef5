"""A trace comes back from its file as it was, without the model and without torch."""

import hashlib
import json
import subprocess
import sys
import zlib
from dataclasses import fields, replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from typer.testing import CliRunner

import headscope as hs
from headscope.cli import app
from headscope.errors import HeadscopeError, RunError, ViewError
from headscope.model.inputs.tokens import Turn
from headscope.model.stored import FORMAT, _decoded, _encoded
from headscope.model.trace import Precision, StackTrace, Trace
from tests.references.tiny_families import tiny

PARTS = ("weights", "query", "key", "value", "bias", "sink", "value_norms")
TEXT = "Birds sing."


def traced(name: str) -> Trace:
    model = tiny(name)
    return model.trace(TEXT, target="Vögel" if model.is_encoder_decoder else None)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("traces") / "llama.hst"
    traced("Llama").save(file)
    return file


# With sinks, position bias, soft-cap, without queries: each stores something else.
@pytest.mark.parametrize("name", ["gpt-oss", "T5", "Gemma 2", "GPT-J", "Llama"])
def test_an_exact_trace_comes_back_as_it_was(name: str, tmp_path: Path) -> None:
    trace = traced(name)
    trace.save(tmp_path / "x.hst")
    again = hs.open_trace(tmp_path / "x.hst")
    assert list(again.stacks) == list(trace.stacks)
    for field in ("model", "is_causal", "prompt_length", "no_neurons", "notes", "tokens"):
        assert getattr(again, field) == getattr(trace, field)
    for one, other in zip(again.stacks.values(), trace.stacks.values(), strict=True):
        assert_same(one, other)


def assert_same(one: StackTrace, other: StackTrace) -> None:
    for field in fields(StackTrace):
        mine, own = getattr(one, field.name), getattr(other, field.name)
        if field.name not in PARTS or own is None:
            assert mine == own, field.name
        else:
            assert list(mine) == list(own)
            assert all(torch.equal(mine[layer], own[layer]) for layer in own), field.name


@pytest.mark.parametrize("precision", ["uint8", "uint16"])
def test_rounded_weights_are_off_by_no_more_than_is_said(
    precision: Precision, tmp_path: Path
) -> None:
    trace = traced("Llama")
    trace.save(tmp_path / "x.hst", precision=precision)
    again = hs.open_trace(tmp_path / "x.hst")
    said = float(again.notes[-1].rpartition("at most ")[2].removesuffix("."))
    worst = max(float((again.weights[n] - trace.weights[n]).abs().max()) for n in trace.layers)
    assert 0 < worst <= said <= 1.02 / 2 / {"uint8": 255, "uint16": 65535}[precision]
    assert (tmp_path / "x.hst").stat().st_size < 0.8 * size_of(trace, tmp_path)


def size_of(trace: Trace, folder: Path) -> int:
    trace.save(folder / "exact.hst")
    return (folder / "exact.hst").stat().st_size


def test_codes_are_those_of_a_plain_loop() -> None:
    array = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
    codes, fact = _encoded(array, "uint8")
    for head in range(3):
        low, high = float(array[head].min()), float(array[head].max())
        for i in range(4):
            for j in range(5):
                code = round((float(array[head, i, j]) - low) / (high - low) * 255)
                assert codes[head, i, j] == code
                assert _decoded(codes, fact)[head, i, j] == pytest.approx(
                    low + code * (high - low) / 255, abs=1e-6
                )
    assert _encoded(np.full((1, 2, 2), 0.5), "uint8")[0].max() == 0  # all alike


def test_a_trace_can_be_stored_without_its_neurons(tmp_path: Path) -> None:
    trace = traced("Llama")
    trace.save(tmp_path / "x.hst", neurons=False)
    again = hs.open_trace(tmp_path / "x.hst")
    assert again.query is None and again.no_neurons == (
        "the trace was stored without queries and keys"
    )
    assert torch.equal(again.weights[1], trace.weights[1])
    assert (tmp_path / "x.hst").stat().st_size < size_of(trace, tmp_path) / 2
    again.save(tmp_path / "y.hst")  # what was opened can be saved again
    assert torch.equal(hs.open_trace(tmp_path / "y.hst").weights[1], trace.weights[1])


def test_turns_of_a_chat_are_kept(tmp_path: Path) -> None:
    trace = traced("Llama")
    stack = trace.default
    side = replace(stack.keys, turns=(Turn("user", 0, (1, 4)), Turn("assistant", 5, None)))
    chat = replace(trace, stacks={"self": replace(stack, queries=side, keys=side)})
    chat.save(tmp_path / "x.hst")
    assert hs.open_trace(tmp_path / "x.hst").default.keys == side


def test_weights_of_ones_own_are_stored_with_their_labels(tmp_path: Path) -> None:
    weights = np.array([[1.0, 0.0], [0.25, 0.75]])
    Trace.from_weights(weights, ["one", "two"], model="mine").save(tmp_path / "own.hst")
    again = hs.open_trace(str(tmp_path / "own.hst"))
    assert (again.model, again.tokens) == ("mine", ("one", "two"))
    assert again.weights[0].tolist() == [weights.tolist()]


def test_a_stored_trace_is_shown_without_torch_and_transformers(llama: Path) -> None:
    script = (
        "import sys, headscope as hs\n"
        f"trace = hs.open_trace({str(llama)!r})\n"
        "page = trace.head_view(layer=1).html()\n"
        "trace.neuron_view(layer=1, head=2).html(); trace.model_view().html()\n"
        "heavy = {'torch', 'transformers', 'tokenizers'} & set(sys.modules)\n"
        "print(len(page), heavy)"
    )
    made = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert made.stdout.endswith(" set()\n"), made.stderr
    own = traced("Llama").head_view(layer=1).html()
    assert abs(len(own) - int(made.stdout.split()[0])) < 50


def test_the_command_keeps_and_shows_traces(tmp_path: Path) -> None:
    kept, page = tmp_path / "x.hst", tmp_path / "x.html"
    assert run("Birds", "--model", "mini-gpt2", "--out", str(kept), "--precision", "uint8") == 0
    assert run(str(kept), "--kind", "model", "--out", str(page)) == 0
    assert "mini-gpt2" in page.read_text(encoding="utf-8")
    with pytest.raises(ViewError, match="which is only shown; leave --model out"):
        run(str(kept), "--model", "mini-gpt2", "--out", str(page))
    with pytest.raises(ViewError, match="Say which model reads the text"):
        run("Birds", "--out", str(page))


def run(*arguments: str) -> int:
    result = CliRunner().invoke(app, ["view", *arguments])
    if isinstance(result.exception, HeadscopeError):
        raise result.exception
    return result.exit_code


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.99])
def test_a_file_that_is_cut_short_is_refused(llama: Path, tmp_path: Path, share: float) -> None:
    content = llama.read_bytes()
    (tmp_path / "cut.hst").write_bytes(content[: int(share * len(content))])
    with pytest.raises(ViewError, match=r"cut\.hst is no trace, or cut short \(.*copy it again"):
        hs.open_trace(tmp_path / "cut.hst")


def test_a_bit_that_changed_is_noticed_when_its_array_is_read(llama: Path, tmp_path: Path) -> None:
    content = bytearray(llama.read_bytes())
    content[-3] ^= 1
    (tmp_path / "rot.hst").write_bytes(content)
    trace = hs.open_trace(tmp_path / "rot.hst")
    parts = [getattr(trace.default, part) for part in PARTS]
    with pytest.raises(ViewError, match="has another checksum"):
        [part[layer] for part in parts if part is not None for layer in part]


def test_no_bit_of_a_file_changes_anything_in_silence(llama: Path, tmp_path: Path) -> None:
    content, random = llama.read_bytes(), Random(7)
    header = 8 + int.from_bytes(content[:8], "little")
    expected = everything(hs.open_trace(llama))
    refused = 0
    for number in range(200):  # half of them in the header
        spoilt = bytearray(content)
        spoilt[random.randrange(header if number % 2 else len(content))] ^= 1 << random.randrange(8)
        (tmp_path / "rot.hst").write_bytes(spoilt)
        try:
            assert everything(hs.open_trace(tmp_path / "rot.hst")) == expected
        except ViewError:
            refused += 1
    assert refused > 180  # the rest are blanks, or names that nothing reads


def everything(trace: Trace) -> list[object]:
    stack = trace.default
    parts = [getattr(stack, part) for part in PARTS]
    numbers = [part[n].tolist() for part in parts if part is not None for n in part]
    return [trace.model, trace.notes, stack.queries, stack.keys, stack.scaling, numbers]


def changed(llama: Path, folder: Path, **metadata: str) -> Path:
    with safe_open(llama, framework="np") as opened:
        own = {**opened.metadata(), **metadata}
    own["sha256"] = hashlib.sha256(own["trace"].encode()).hexdigest()  # a stranger can do that too
    save_file(load_file(llama), folder / "changed.hst", metadata=own)
    return folder / "changed.hst"


def test_a_file_of_version_1_still_opens(tmp_path: Path) -> None:
    """Written plainly, as that version was: one text with all offsets, words stored beside."""
    side = {
        "text": "the cats\nsat",
        "tokens": ["[CLS]", "the", "cat", "##s", "[SEP]", "sat", "[SEP]"],
        "special": [True, False, False, False, True, False, True],
        "segments": [0, 0, 0, 0, 0, 1, 1],
        "offsets": [[0, 0], [0, 3], [4, 7], [7, 8], [0, 0], [9, 12], [0, 0]],
        "word_of_token": [-1, 0, 1, 1, -1, 2, -1],
        "words": ["the", "cats", "sat"],
        "turns": [{"role": "user", "start": 0, "content": [0, 8]}],
        "word_pieces": True,
    }
    weights = np.eye(7, dtype=np.float32)[None]
    stack = {
        "name": "self",
        "layers": [0],
        "heads": [0],
        "queries": 0,
        "keys": 0,
        "key_head_of": [],
        "scaling": None,
        "softcap": None,
        "no_norms": "none",
        "parts": {"weights": [0]},
    }
    described = {
        "model": "old",
        "is_causal": False,
        "prompt_length": None,
        "no_neurons": "none",
        "notes": ["a note"],
        "stacks": [stack],
        "sides": [side],
        "arrays": {"self/weights/0": {"crc32": zlib.crc32(weights.tobytes())}},
    }
    metadata = {"format": FORMAT, "version": "1", "trace": json.dumps(described)}
    save_file({"self/weights/0": weights}, tmp_path / "old.hst", metadata=metadata)
    trace = hs.open_trace(tmp_path / "old.hst")
    tokens = trace.default.keys
    assert trace.weights[0].tolist() == weights.tolist()
    assert (tokens.labels, tokens.text) == (tuple(side["tokens"]), side["text"])
    assert tokens.offsets == tuple(map(tuple, side["offsets"]))
    assert (list(tokens.words), list(tokens.word_of_token)) == (
        side["words"],
        side["word_of_token"],
    )
    assert tokens.turns == (Turn("user", 0, (0, 8)),)
    assert trace.word_pieces is True and trace.bos is None
    assert [span.name for span in trace.segments] == ["user"]
    trace.save(tmp_path / "new.hst")
    assert hs.open_trace(tmp_path / "new.hst").default.keys == tokens


def test_another_version_is_named(llama: Path, tmp_path: Path) -> None:
    with pytest.raises(ViewError, match=r"version 3 of the format, .* versions up to 2; update"):
        hs.open_trace(changed(llama, tmp_path, version="3"))


def test_arrays_that_are_no_trace_are_refused(tmp_path: Path) -> None:
    save_file({"a": np.zeros(2)}, tmp_path / "other.hst")
    with pytest.raises(ViewError, match=r"other\.hst holds arrays, but no trace"):
        hs.open_trace(tmp_path / "other.hst")


@pytest.mark.parametrize(
    "change",
    [
        lambda told: told.pop("tokens"),
        lambda told: told["tokens"][0]["labels"].append("x"),
        lambda told: told["tokens"].clear(),
        lambda told: told["stacks"][0]["layers"].append(9),
        lambda told: told["stacks"][0].update(parts=None),
        lambda told: told["stacks"].clear(),
        lambda told: told["arrays"].clear(),
        lambda told: told["stacks"][0]["heads"].pop(),
    ],
)
def test_a_description_that_does_not_fit_is_refused(
    llama: Path, tmp_path: Path, change: object
) -> None:
    with safe_open(llama, framework="np") as opened:
        told = json.loads(opened.metadata()["trace"])
    change(told)  # pyright: ignore[reportCallIssue]
    file = changed(llama, tmp_path, format=FORMAT, trace=json.dumps(told))
    with pytest.raises(ViewError, match=r"The trace .* is damaged \("):
        hs.open_trace(file)


def test_wrong_names_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ViewError, match=r"There is no file nowhere\.hst"):
        hs.open_trace("nowhere.hst")
    with pytest.raises(ViewError, match=r"ends in \.hst, not x\.html; to draw it, save one"):
        traced("Llama").save(tmp_path / "x.html")
    with pytest.raises(ViewError, match="no precision 'uint3'; choose one of exact"):
        traced("Llama").save(tmp_path / "x.hst", precision="uint3")  # pyright: ignore[reportArgumentType]
    with pytest.raises(RunError, match="cannot be written"):
        traced("Llama").save(tmp_path / "no" / "folder.hst")


def test_a_failed_save_leaves_the_old_file(llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = llama.read_bytes()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("headscope.model.stored.save_file", full)
    with pytest.raises(RunError, match="No space left"):
        traced("Llama").save(llama)
    assert llama.read_bytes() == before and len(list(llama.parent.iterdir())) == 1
