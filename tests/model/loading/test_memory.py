"""What a trace needs is known before the pass, and refused with numbers where it is too much."""

import re
from pathlib import Path

import pytest
import torch

import headscope as hs
from headscope.errors import ModelError
from headscope.model.loading import memory
from headscope.model.loading.memory import Need, available_memory, needed, within_memory
from tests.references.tiny_families import tiny

GB = 10**9


def free(monkeypatch: pytest.MonkeyPatch, count: int | None) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: count)


def test_all_heads_of_all_layers_are_counted() -> None:
    plan = tiny("Llama").plan  # 2 layers of 4 heads
    matrix = 1000 * 1000 * 4
    assert needed(plan, {"self": (1000, 1000)}, None, None) == Need(
        matrices=8,
        kept=2 * (4 + 1) * matrix,  # with the mask of every layer
        working=3 * 4 * matrix,
    )


def test_only_what_is_asked_for_is_counted() -> None:
    plan = tiny("Llama").plan
    need = needed(plan, {"self": (1000, 1000)}, [1], [0])
    assert (need.matrices, need.kept) == (1, 2 * 4_000_000)


def test_families_without_neuron_view_keep_no_masks() -> None:
    need = needed(tiny("GPT-J").plan, {"self": (1000, 1000)}, None, None)
    assert need.kept == 8 * 4_000_000


def test_a_network_that_hands_out_all_layers_at_once_needs_them_all() -> None:
    need = needed(tiny("XLNet").plan, {"self": (1000, 1000)}, [0], [0])
    assert need.working == (3 * 4 + 2 * 4) * 4_000_000


def test_stacks_have_lengths_of_their_own() -> None:
    lengths = {"encoder": (100, 100), "decoder": (10, 10), "cross": (10, 100)}
    need = needed(tiny("BART").plan, lengths, None, None)  # pyright: ignore[reportArgumentType]
    assert need.matrices == 4 * (3 + 2 + 2)
    assert need.kept == 4 * (3 * 5 * 100 * 100 + 2 * 5 * 10 * 10 + 2 * 5 * 10 * 100)
    assert need.working == 4 * 3 * 4 * 100 * 100


def test_too_large_a_trace_is_refused_before_the_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny("T5")
    free(monkeypatch, 50_000_000)
    monkeypatch.setattr(type(model), "forward", lambda *_, **__: pytest.fail("the network ran"))
    with pytest.raises(ModelError) as refusal:
        model.trace("x" * 998)
    # 3 layers × 4 heads, the same with a mask each, and three times a layer of 4 heads
    assert str(refusal.value) == (
        "A trace of 1,000 tokens needs 0.1 GB in memory, but only 50.0 MB is free: it keeps 12 "
        "attention matrices (60.0 MB), and computing a layer takes 48.0 MB; choose fewer layers "
        "and heads, or a text of at most about 680 tokens."
    )


def test_too_long_a_prompt_is_refused_before_it_is_continued(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = tiny("Llama")
    free(monkeypatch, 1000)
    monkeypatch.setattr(type(model), "forward", lambda *_, **__: pytest.fail("the network ran"))
    with pytest.raises(ModelError, match="A trace of 10 tokens needs"):
        model.trace("Birds", generate=3)


def test_the_same_text_fits_with_one_head(monkeypatch: pytest.MonkeyPatch) -> None:
    free(monkeypatch, 60_000_000)
    trace = tiny("T5").trace("x" * 998, layers=[2], heads=[1])
    assert {number: tuple(w.shape) for number, w in trace.weights.items()} == {2: (1, 1000, 1000)}


def test_nothing_is_refused_where_the_system_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    free(monkeypatch, None)
    assert tiny("Llama").trace("Birds").layers == (0, 1)


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    (tmp_path / "meminfo").write_text("MemTotal: 16000000 kB\nMemAvailable:  8000000 kB\n")
    return tmp_path


def test_available_memory_is_read_from_the_kernel(system: Path) -> None:
    assert available_memory() == 8_000_000 * 1024


def test_the_limit_of_a_container_counts(system: Path) -> None:
    (system / "memory.max").write_text(f"{4 * GB}\n")
    (system / "memory.current").write_text(f"{3 * GB}\n")
    (system / "memory.stat").write_text(f"anon {GB}\ninactive_file {GB // 2}\n")
    assert available_memory() == GB + GB // 2
    (system / "memory.max").write_text("max\n")
    assert available_memory() == 8_000_000 * 1024


def test_other_systems_count_free_pages(system: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (system / "meminfo").unlink()
    pages = {"SC_AVPHYS_PAGES": 1000, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr("os.sysconf", pages.__getitem__)
    assert available_memory() == 4_096_000


def test_a_system_that_tells_nothing_has_no_limit(
    system: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (system / "meminfo").unlink()
    monkeypatch.delattr("os.sysconf")
    assert available_memory() is None


def test_weights_that_do_not_fit_are_refused_before_they_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    free(monkeypatch, 1_000_000)
    with pytest.raises(ModelError) as refusal:
        hs.load("mini-gpt2", device="cpu")
    said = str(refusal.value)
    assert re.match(
        r"The weights of mini-gpt2 take [\d.]+ MB in memory in float32, but only 1\.0 MB is free; "
        "dtype=bfloat16 takes half of it, quantization=int8",
        said,
    )
    free(monkeypatch, None)
    numbers = sum(tensor.numel() for tensor in hs.load("mini-gpt2").network.parameters())
    assert f"{numbers * 4 / 1e6:.1f} MB" in said


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."),
        MemoryError(),
    ],
)
def test_memory_that_runs_out_is_one_sentence_with_a_remedy(error: Exception) -> None:
    said = r"^The memory ran out while m was traced.*; be brief\.$"
    with pytest.raises(ModelError, match=said), within_memory("m", "was traced", "be brief"):
        raise error


def test_other_failures_are_not_taken_for_missing_memory() -> None:
    with pytest.raises(RuntimeError, match="shapes"), within_memory("m", "ran", "be brief"):
        raise RuntimeError("shapes cannot be multiplied")
