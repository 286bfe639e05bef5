"""Figures without a browser: vector, real text, and the lines the weights ask for."""

import re
import warnings
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib import rc_context
from matplotlib.collections import PathCollection, QuadMesh
from PIL import Image

from headscope.errors import ViewError
from headscope.views import View, head_view, model_view, neuron_view
from headscope.views.figures import families, figure
from headscope.views.weights import neurons_of, take_apart
from tests.references.traces import (
    HOSTILE,
    WORDS,
    encoder_decoder_trace,
    known_trace,
    pair_side,
    random_trace,
    side,
)

SVG = "{http://www.w3.org/2000/svg}"
VIEWS = {
    "head": head_view(random_trace(prompt_length=4), heads=[0, 2]),
    "head, pair": head_view(
        random_trace(tokens=pair_side(), causal=False), unit="word", hide="special"
    ),
    "model": model_view(random_trace(), order="entropy", ranked=True),
    "model, matrix": model_view(random_trace(), thumbnail="matrix", weights="norm"),
    "model, rollout": model_view(random_trace(), weights="rollout"),
    "neuron": neuron_view(random_trace(softcap=5.0, sink=True), neurons="contribution"),
    "cross": head_view(encoder_decoder_trace(), stack="cross"),
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("ending", ["svg", "pdf", "png"])
def test_every_view_saves_in_every_format(tmp_path: Path, name: str, ending: str) -> None:
    path = VIEWS[name].save(tmp_path / f"x.{ending}")
    start = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}[ending]
    assert path.read_bytes().startswith(start)
    if ending == "png":
        colors = Image.open(path).convert("RGB").getcolors(1 << 24)
        assert colors is not None and len(colors) > 10


def svg_texts(view: View, folder: Path) -> list[str]:
    root = ElementTree.parse(view.save(folder / "x.svg")).getroot()
    return ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]


@pytest.mark.parametrize("name", ["head", "neuron"])
def test_svg_holds_the_tokens_as_text(tmp_path: Path, name: str) -> None:
    assert set(WORDS) <= set(svg_texts(VIEWS[name], tmp_path))


def test_pdf_holds_text_in_embedded_true_type_fonts(tmp_path: Path) -> None:
    data = VIEWS["head"].save(tmp_path / "x.pdf").read_bytes()
    assert b"/CIDFontType2" in data and b"/FontFile2" in data
    assert b"/Subtype /Image" not in data


def test_the_same_view_gives_the_same_file(tmp_path: Path) -> None:
    first = VIEWS["head"].save(tmp_path / "a.pdf").read_bytes()
    assert VIEWS["head"].save(tmp_path / "b.pdf").read_bytes() == first


def test_a_figure_draws_one_curve_for_each_line_with_its_opacity() -> None:
    view = head_view(known_trace(), mass=1.0)
    (curves,) = figure(view.trace, "head", view.state).axes[0].collections
    alphas = np.asarray(curves.get_edgecolor())[:, 3]
    expected = [weight**0.5 for weight in (0.1, 0.25, 0.3, 0.6, 0.75, 1.0)]
    assert alphas.tolist() == pytest.approx(expected)
    assert len(curves.get_paths()) == 6


def test_a_pinned_token_keeps_only_its_lines() -> None:
    view = head_view(known_trace(), mass=1.0, pinned="k1")
    (curves,) = figure(view.trace, "head", view.state).axes[0].collections
    assert len(curves.get_paths()) == 2


def test_the_neuron_figure_prints_the_weights(tmp_path: Path) -> None:
    trace = random_trace()
    texts = svg_texts(neuron_view(trace, layer=1, head=2, pinned=3), tmp_path)
    for weight in trace.weights[1][2][3].tolist():
        assert f"{weight:.3f}" in texts
    assert texts.count("masked") == 6


def test_the_neuron_figure_has_every_query_lines_and_sums() -> None:
    trace = random_trace(causal=False)
    view = neuron_view(trace, layer=1, head=2, pinned=3)
    axes = figure(trace, "neuron", view.state).axes[0]
    (links,) = (one for one in axes.collections if isinstance(one, PathCollection))
    weights = trace.weights[1][2][3].numpy()
    assert np.asarray(links.get_edgecolor())[:, 3] == pytest.approx(np.sort(np.sqrt(weights)))
    strips = [one for one in axes.collections if isinstance(one, QuadMesh)]
    assert len(strips) == 10 + 1 + 10 + 10  # queries, the query, keys, products
    sums = [line for line in axes.lines if len(np.asarray(line.get_xdata())) > 2]
    parts = take_apart(neurons_of(trace.default, 1, 2), 3)
    ends = [
        float(np.asarray(line.get_ydata())[0] - np.asarray(line.get_ydata())[-1]) for line in sums
    ]
    assert np.corrcoef(ends, -np.sort(-parts.scaled))[0, 1] == pytest.approx(1.0)


def test_several_heads_are_printed_by_weight_over_their_number() -> None:
    view = head_view(random_trace(), layer=0, heads=[0, 1, 2, 3], mass=1.0)
    (curves,) = figure(view.trace, "head", view.state).axes[0].collections
    alphas = np.asarray(curves.get_edgecolor())[:, 3]
    weights = np.sort(view.trace.weights[0].numpy().ravel())
    assert alphas == pytest.approx(weights[weights > 0] / 4, abs=1e-6)


def test_hostile_tokens_are_printed_as_text(tmp_path: Path) -> None:
    view = head_view(random_trace(tokens=side([*HOSTILE[:6], *HOSTILE[7:]])))
    texts = svg_texts(view, tmp_path)
    assert HOSTILE[0][:21] + "…" in texts
    assert "$\\frac{1}{0}$" in texts
    assert max(map(len, texts)) < 80


def test_what_is_not_there_is_refused_in_print_too(tmp_path: Path) -> None:
    with pytest.raises(ViewError, match="without values"):
        head_view(known_trace(), weights="norm").save(tmp_path / "x.svg")
    with pytest.raises(ViewError, match="joins two"):
        head_view(encoder_decoder_trace(), stack="cross", weights="rollout").save(
            tmp_path / "x.svg"
        )
    with pytest.raises(ViewError, match="There is no score 'mine'"):
        model_view(random_trace(), order="mine").save(tmp_path / "x.svg")


def test_plain_text_needs_one_font_and_unknown_letters_are_reported() -> None:
    assert families("The quick brown fox") == ["DejaVu Sans"]
    with pytest.warns(UserWarning, match="No font here has"):
        families("\ue0f1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert families("\ue0f1", embedded=False) == ["DejaVu Sans"]


def width_of(svg: Path) -> float:
    """The width of a figure in inches."""
    return float(ElementTree.parse(svg).getroot().attrib["width"].removesuffix("pt")) / 72


def sizes_of(svg: Path) -> set[float]:
    """The sizes of its texts in points."""
    return {float(size) for size in re.findall(r"font-size: ([\d.]+)px", svg.read_text("utf-8"))}


@pytest.mark.parametrize("name", ["head", "model", "neuron"])
def test_a_figure_has_the_width_that_was_asked_for(tmp_path: Path, name: str) -> None:
    usual = VIEWS[name].save(tmp_path / "usual.svg")
    narrow = VIEWS[name].save(tmp_path / "narrow.svg", width=width_of(usual) / 2)
    assert width_of(narrow) == pytest.approx(width_of(usual) / 2)
    assert max(sizes_of(narrow)) == pytest.approx(max(sizes_of(usual)) / 2, rel=0.01)


def test_font_and_size_are_chosen(tmp_path: Path) -> None:
    text = VIEWS["head"].save(tmp_path / "x.svg", font="DejaVu Serif", size=11).read_text("utf-8")
    assert "font-size: 11px; font-family: 'DejaVu Serif', 'DejaVu Sans'" in text
    pdf = VIEWS["head"].save(tmp_path / "x.pdf", font="DejaVu Serif").read_bytes()
    assert b"DejaVuSerif" in pdf


def test_dpi_is_that_of_a_picture(tmp_path: Path) -> None:
    usual = Image.open(VIEWS["head"].save(tmp_path / "a.png")).width
    assert Image.open(VIEWS["head"].save(tmp_path / "b.png", dpi=150)).width == usual // 2


def test_the_users_own_rcparams_are_respected(tmp_path: Path) -> None:
    with rc_context({"font.family": ["DejaVu Sans Mono"], "font.size": 12.0, "savefig.dpi": 150}):
        text = VIEWS["head"].save(tmp_path / "x.svg").read_text("utf-8")
        small = Image.open(VIEWS["head"].save(tmp_path / "x.png")).width
    assert "font-size: 12px; font-family: 'DejaVu Sans Mono', 'DejaVu Sans'" in text
    assert small == Image.open(VIEWS["head"].save(tmp_path / "y.png")).width // 2


@pytest.mark.parametrize(
    ("ending", "options", "message"),
    [
        ("html", {"width": 3}, "width: for print only"),
        ("pdf", {"font": "DejaVu Sanz"}, "is not installed here; did you mean 'DejaVu Sans'"),
        ("pdf", {"width": 0}, "width is 0; give a number above 0"),
        ("png", {"size": -1}, "size is -1"),
    ],
)
def test_options_that_cannot_be_followed_are_refused(
    tmp_path: Path, ending: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ViewError, match=message):
        VIEWS["head"].save(tmp_path / f"x.{ending}", **options)
    assert list(tmp_path.iterdir()) == []


def test_spans_and_summaries_are_named_in_print(tmp_path: Path) -> None:
    trace = random_trace()
    marked = trace.head_view(layer=0, spans=["1-3 subject", "5+7 rest & more"], hide=())
    text = marked.save(tmp_path / "marked.svg").read_text(encoding="utf-8")
    assert ">subject<" in text and text.count(">rest &amp; more<") == 2  # one for each run
    by_span = trace.head_view(unit="span", spans=["1-3 subject"], summary="max", hide=())
    text = by_span.save(tmp_path / "spans.svg").read_text(encoding="utf-8")
    assert text.count(">subject<") == text.count(">everything else<") == 2  # both sides
    assert ">maximum of heads 0 to 3<" in text and "layers 0 to 2" in text
