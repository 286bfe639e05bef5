"""View objects: pages, files, and what a notebook asks of them."""

import errno
import re
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from headscope.errors import ViewError
from headscope.model.trace import Trace
from headscope.views import head_view, model_view, neuron_view
from tests.references.tiny_models import MODELS
from tests.references.traces import HOSTILE, known_trace, random_trace, side


def test_an_unknown_ending_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(
        ViewError, match=r"'x\.gif' has the ending '\.gif'; .* \.html, \.svg, \.png, \.pdf"
    ):
        head_view(random_trace()).save(tmp_path / "x.gif")


@pytest.mark.parametrize("ending", ["html", "svg"])
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, ending: str) -> None:
    with pytest.raises(ViewError, match="cannot be written: No such file"):
        head_view(random_trace()).save(tmp_path / "missing" / f"x.{ending}")


@pytest.mark.parametrize("ending", ["html", "svg", "png", "pdf"])
def test_a_full_disk_leaves_the_old_file_and_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    path = tmp_path / f"x.{ending}"
    path.write_bytes(b"old")

    def fill(self: Path, content: bytes) -> int:
        with self.open("wb") as file:
            file.write(content[: len(content) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fill)
    with pytest.raises(ViewError, match=rf"x\.{ending} cannot be written: No space left on device"):
        head_view(random_trace()).save(path)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == b"old"


def test_the_page_may_load_nothing_and_holds_no_address() -> None:
    page = head_view(random_trace()).html()
    assert "default-src 'none'" in page
    assert not re.search(r"<(link|img|iframe)|src=|@import|url\(", page.split("<script")[0])
    addresses = set(re.findall(r"https?://[\w./]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg"}


def test_tokens_cannot_end_the_script_element() -> None:
    page = head_view(random_trace(tokens=side(HOSTILE))).html()
    assert 'onerror="window.hacked' not in page
    assert page.count("</script>") == page.count("<script")


def test_saving_html_returns_the_path(tmp_path: Path) -> None:
    path = model_view(random_trace()).save(str(tmp_path / "x.HTML"))
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_frame_is_a_string_that_a_notebook_shows() -> None:
    view = neuron_view(random_trace())
    frame = view.iframe(height=500)
    assert isinstance(frame, str)
    assert 'title="Neuron view of random-model · L0H0 · 10 tokens"' in frame
    assert "height:500px" in frame and 'data-headscope="fit"' not in frame
    assert 'srcdoc="&lt;!doctype html&gt;' in frame
    assert type(frame._repr_html_()) is str and type(view._repr_html_()) is str
    assert 'data-headscope="fit"' in view._repr_html_()


def test_a_page_without_scripts_says_what_it_would_show() -> None:
    page = head_view(known_trace(), heads=[0], hide=()).html()
    said = page.split('<div class="hs-unscripted">')[1].split("</div>")[0]
    assert "Head view of known · layer 0, head 0 · 3 tokens" in said
    assert "<tr><td>L0H0<td>two<td>two<td>0.750<tr><td>L0H0<td>three<td>three<td>0.600" in said
    assert "one<td>one" not in said  # the first token had no choice


def test_a_trace_opens_its_own_views() -> None:
    trace = random_trace()
    assert trace.head_view(layer=1).state.layer == 1
    assert trace.model_view(heads=[2]).state.heads == (2,)
    assert trace.neuron_view(head=3).state.head == 3


def test_a_trace_shows_itself_as_its_head_view(capsys: pytest.CaptureFixture[str]) -> None:
    trace = random_trace()
    assert trace._repr_html_() == trace.head_view()._repr_html_()
    trace._ipython_display_()
    assert capsys.readouterr().out.startswith("Head view of random-model")


def test_a_model_says_in_a_notebook_what_it_is() -> None:
    said = MODELS["causal"]()._repr_html_()
    assert "3 layers × 2 heads (self); every token sees only what came before" in said
    assert "<code>model.trace(text)</code>" in said


def test_a_long_text_is_shown_as_a_text_on_a_telling_word() -> None:
    words = ["The", "old", "cat", "sat", "here", "and", "saw", "the", "dog", "bark"] * 7
    trace = Trace.from_weights(np.eye(70, k=-1)[None] * 0.9 + 0.1 * np.eye(70), words)
    state = asdict(head_view(trace).state)
    assert (state["layout"], state["layer"], state["heads"]) == ("text", 0, (0,))
    assert state["pinned"] == "q2"  # the first word that looks at a word
    assert asdict(head_view(trace, layout="lines").state)["pinned"] is None
    assert asdict(head_view(random_trace()).state)["layout"] == "lines"
