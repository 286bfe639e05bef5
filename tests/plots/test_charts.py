"""What the figures of both studies show: values, marks, scales, and labels inside the canvas."""

# matplotlib declares colours, offsets and paths as anything that can be read as such.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportIndexIssue=false, reportOptionalMemberAccess=false, reportOperatorIssue=false
# pyright: reportPrivateImportUsage=false

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr
from matplotlib.collections import PathCollection
from matplotlib.colors import same_color, to_rgba
from matplotlib.figure import Figure

from headscope.plots import style
from headscope.plots.charts import Plot, Series, draw_plots, draw_shares
from headscope.plots.ribbons import PITCH, Ribbon, draw_ribbons, read_ribbon
from headscope.studies.clark2019 import figures as surface
from headscope.studies.clark2019.probes import figures as words
from headscope.studies.vig2019 import figures as vig
from headscope.theme import FAINT, INK, SECOND
from tests.plots.canvas import box, draw, outside, overlapping, read_off, texts
from tests.references.results import make_result

SIZES = pytest.mark.parametrize(("layers", "heads"), [(8, 8), (6, 12), (30, 9)])


def grid(layers: int, heads: int, **axes: list) -> xr.DataArray:
    rng = np.random.default_rng(layers)
    shape = (layers, heads, *(len(labels) for labels in axes.values()))
    coords = {"layer": np.arange(layers), "head": np.arange(heads), **axes}
    return xr.DataArray(rng.random(shape), coords=coords, dims=list(coords))


def example_map(layers: int, heads: int, tokens: list[str]) -> xr.DataArray:
    named = [f"{place} {token}" for place, token in enumerate(tokens)]
    found = grid(layers, heads, query=named, key=named)
    return found / found.sum("key")


@SIZES
def test_every_label_of_every_figure_of_vig2019_is_inside_the_canvas(
    layers: int, heads: int
) -> None:
    result = make_result(layers, heads)
    for figure in vig.FIGURES:
        with style(figure.name):
            drawn = figure.draw(result)
        assert not outside(drawn), figure.name


# vig2019


def test_reference_lines_are_those_of_even_attention_not_of_frequency() -> None:
    result = make_result(4, 4)
    result["pos_to_even"] = result["tag_frequency"] * 0.5
    result["pos_from_even"] = result["tag_frequency"] * 0.25
    for variable, share in (("pos_to", 0.5), ("pos_from", 0.25)):
        figure = vig.draw_tags(result, variable, 4)
        lines = [read_off(axes, axes.get_lines()[0].get_xdata()[0]) for axes in figure.axes]
        assert lines == pytest.approx([share / 5] * 4)


def test_the_colours_of_a_tag_run_from_its_smallest_to_its_largest_head() -> None:
    result = make_result(6, 6)
    tags = vig.occurring_tags(result)
    figure = vig.draw_tags(result, "pos_from", None)
    for axes, tag in zip(figure.axes, tags, strict=True):
        own = result["pos_from"].sel(tag=tag)
        assert axes.images[0].get_clim() == (float(own.min()), float(own.max()))


def test_tags_of_every_frequency_are_drawn_and_rare_ones_named() -> None:
    result = make_result(3, 3)
    result["tag_frequency"] = ("tag", [0.5, 0.3, 0.199, 0.001, 0.0])  # PROPN rare, PUNCT absent
    titles = [axes.texts[0].get_text() for axes in vig.draw_tags(result, "pos_to", None).axes]
    assert titles == ["ADJ", "DET", "NOUN", "PROPN"]
    assert vig.rare_tags(result) == "Rare (under 0.5 % of the tokens): PROPN."


def relations(count: int) -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
    names = [f"relation:{n}" for n in range(count)]
    frequency = xr.DataArray(
        np.geomspace(0.2, 1e-5, count), coords={"deprel": names}, dims="deprel"
    )
    rng = np.random.default_rng(0)
    ratio = xr.DataArray(
        2 ** rng.normal(0, 1.2, (12, count)),
        coords={"layer": np.arange(12), "deprel": names},
        dims=("layer", "deprel"),
    )
    return frequency * ratio, frequency, frequency


def test_a_ratio_has_a_scale_centred_at_one_and_every_relation_is_shown() -> None:
    shares, even, frequency = relations(60)
    with style("shares"):
        figure = draw_shares(shares, even, frequency, "deprel")
    assert not outside(figure)
    left, _, right, bar = figure.axes
    assert [text.get_text().split(" ")[0] for text in left.get_yticklabels()] == list(
        frequency["deprel"].values
    )
    assert not list(overlapping(left.get_yticklabels()))
    low, high = right.images[0].get_clim()
    assert low == -high and 1 <= high <= 3
    wanted = np.log2((shares / even).transpose("deprel", "layer"))
    np.testing.assert_allclose(right.images[0].get_array(), wanted)
    labels = {text.get_text(): text.get_position()[1] for text in bar.get_yticklabels()}
    assert labels["1"] == 0 and labels["2"] == 1 and labels["1/2"] == -1
    assert same_color(right.images[0].to_rgba(0.0), right.images[0].get_cmap()(0.5))


def test_r_stands_above_the_points() -> None:
    figure = draw(vig.draw_correlations(make_result(8, 8)))
    for axes in figure.axes[:2]:
        said = next(t for t in texts(figure) if t.axes is axes and t.get_text().startswith("r ="))
        points = axes.transData.transform(axes.collections[0].get_offsets())
        assert box(said).y0 >= points[:, 1].max()


def test_null_tokens_have_no_lines_in_figure_4() -> None:
    result = make_result(4, 4)
    example = example_map(4, 4, ["[CLS]", "a", "b", "[SEP]"])
    result = result.drop_vars(["example_map", "query", "key"]).assign(example_map=example)
    result["example_map"].attrs |= {"null": np.array([1, 0, 0, 1]), "places": np.arange(4)}
    figure = vig.draw_examples(result)
    for axes in figure.axes:
        (lines,) = [each for each in axes.collections if isinstance(each, PathCollection)]
        ends = np.array([path.vertices[[0, -1], 1] for path in lines.get_paths()])
        assert len(ends) >= 2 and set(ends.ravel()) <= {1, 2}
        grey = {t.get_text() for t in axes.texts if t.get_color() == FAINT}
        assert {"[CLS]", "[SEP]"} <= grey and not {"a", "b"} & grey


# clark2019


def surface_result(next_token: float, cls: float) -> xr.Dataset:
    layers, heads = 4, 5
    offset = grid(layers, heads, offset=[-1, 0, 1]) * 0 + xr.DataArray(
        [0.9, 0.2, next_token], dims="offset"
    )
    special = grid(layers, heads, special=["cls", "sep", "punct"]) * 0 + xr.DataArray(
        [cls, 0.07, 0.5], dims="special"
    )
    data = {"offset_share": offset, "special_share": special}
    data["entropy"] = grid(layers, heads)
    data["sep_to_sep"], data["other_to_sep"] = grid(layers, heads), grid(layers, heads)
    data |= {f"{name}_by_layer": each.mean("head") for name, each in data.items()}
    data |= {f"{name}_se": each * 0.01 for name, each in data.items() if "by_layer" in name}
    data["example_map"] = example_map(layers, heads, ["[CLS]", "x", "y", "[SEP]", "z"])
    data["example_map"].attrs |= {"places": np.array([0, 7, 8, 9, 10]), "tokens": 30}
    even = xr.DataArray(
        [1 / 128, 1 / 64, 0.06], dims="special", coords={"special": special.special}
    )
    return xr.Dataset({**data, "special_share_even": even})


def test_a_pattern_that_no_head_shows_is_said_and_not_drawn() -> None:
    result = surface_result(next_token=0.0, cls=0.31)
    titles = [
        text.get_text().split("\n")[1]
        for text in texts(draw(surface.draw_examples(result)))
        if "\n" in text.get_text()
    ]
    assert [title.split(":")[0] for title in titles] == [
        "attends to previous", "attends broadly", "attends to [CLS]",
        "attends to periods and commas",
    ]  # fmt: skip
    said = surface.unclear_patterns(result)
    assert "to next (at most 0.00" in said and "to [SEP] (at most 0.07" in said
    assert surface.unclear_patterns(surface_result(0.4, 0.4)).count("at most") == 1


def test_chance_is_a_dashed_line_of_each_series() -> None:
    result = surface_result(next_token=0.1, cls=0.5)
    with style("special"):
        figure = draw(surface.draw_special(result))
    assert not outside(figure)
    left, right = figure.axes
    dashed = [line.get_ydata()[0] for line in left.get_lines() if line.get_linestyle() == "--"]
    assert dashed == pytest.approx([1 / 128, 1 / 64, 0.06])
    (chance,) = [line for line in right.get_lines() if line.get_linestyle() == "--"]
    assert chance.get_ydata()[0] == pytest.approx(1 / 64)
    assert surface.chance_in_words(result).startswith("Even attention would pay [CLS] 0.008, [SEP]")
    for axes in figure.axes:
        assert axes.get_legend().get_window_extent().y1 <= box(axes.xaxis.label).y0 + 1


def test_legends_are_below_the_points_and_their_axes() -> None:
    values = grid(6, 12)
    series = [Series(f"series {n}", values.mean("head"), values=values) for n in range(4)]
    with style("plots"):
        figure = draw(draw_plots([Plot("x", "y", series), Plot("y", "y", series[:2])]))
    assert not outside(figure)
    for axes in figure.axes:
        assert axes.get_legend().get_window_extent().y1 < axes.get_window_extent().y0


@SIZES
def test_the_labels_of_probe_weights_are_inside_the_canvas(layers: int, heads: int) -> None:
    weight = grid(layers, heads, attention_probe=list(words.SHOWN_PROBES),
                  direction=list(words.ARROWS)) - 0.5  # fmt: skip
    with style("probes"):
        figure = words.draw_weights(xr.Dataset({"probe_weight": weight}))
    assert not outside(figure)
    titles = [text for text in texts(figure) if "→" in text.get_text()]
    assert len(titles) == 4 and not list(overlapping(titles))
    for axes in figure.axes[0::2]:
        low, high = axes.images[0].get_clim()
        assert low == -high


# Ribbons


def ribbon(count: int, **more: object) -> Ribbon:
    rng = np.random.default_rng(count)
    weights = rng.dirichlet(np.ones(count), count)
    return Ribbon("L0H0\nx", [f"word{n}" for n in range(count)], weights, **more)  # type: ignore[arg-type]


def inches_between_tokens(figure: Figure) -> list[float]:
    draw(figure)
    found = []
    for axes in figure.axes:
        left = [t for t in axes.texts if t.get_text().startswith("word") and t.get_ha() == "right"]
        middles = [(box(text).y0 + box(text).y1) / 2 for text in left]
        found += (-np.diff(middles) / figure.dpi).tolist()
    return found


def test_every_token_has_the_same_height_in_every_panel() -> None:
    with style("ribbons"):
        figure = draw_ribbons([ribbon(5), ribbon(13), ribbon(3), ribbon(25), ribbon(4)], 4)
    assert inches_between_tokens(figure) == pytest.approx([PITCH] * (50 - 5), abs=0.02)
    assert not outside(figure)


def test_words_of_a_relation_are_marked_and_the_rest_is_grey() -> None:
    shown = ribbon(6, gold=frozenset({(2, 1), (4, 5)}))
    (axes,) = draw_ribbons([shown], 1).axes
    marked = {(t.get_text(), t.get_ha()) for t in axes.texts if same_color(t.get_color(), SECOND)}
    assert marked == {("word2", "right"), ("word4", "right"), ("word1", "left"), ("word5", "left")}
    assert not [t for t in axes.texts if t.get_text().startswith("word") and t.get_color() == INK]
    grey, orange = [each for each in axes.collections if isinstance(each, PathCollection)]
    assert {int(path.vertices[0, 1]) for path in orange.get_paths()} <= {2, 4}
    assert {int(path.vertices[0, 1]) for path in grey.get_paths()} <= {0, 1, 3, 5}
    assert all(same_color(colour[:3], to_rgba(SECOND)[:3]) for colour in orange.get_edgecolor())
    dotted = sorted(tuple(line.get_ydata()) for line in axes.get_lines())
    assert dotted == [(2, 1), (4, 5)]


def test_left_out_tokens_are_marked_where_they_are_missing() -> None:
    example = example_map(1, 1, ["a", "b", "c", "d"]).isel(layer=0, head=0)
    example.attrs |= {"places": np.array([0, 5, 6, 7]), "tokens": 20}
    shown = read_ribbon(example, "x")
    assert shown.gaps == {1, 4} and shown.rows == [0, 2, 3, 4] and shown.lines == 6
    (axes,) = draw_ribbons([shown], 1).axes
    gaps = sorted(text.get_position()[1] for text in axes.texts if text.get_text() == "⋮")
    assert gaps == [1, 1, 5, 5]
    whole = example.copy()
    whole.attrs |= {"places": np.arange(4), "tokens": 4}
    assert read_ribbon(whole, "x").gaps == frozenset()


def test_a_broad_head_can_be_seen_and_its_scale_is_written_below() -> None:
    count = 30
    broad = replace(ribbon(count), weights=np.full((count, count), 1 / count))
    assert broad.full == pytest.approx(0.12)
    (axes,) = draw_ribbons([broad], 1).axes
    (lines,) = [each for each in axes.collections if isinstance(each, PathCollection)]
    assert len(lines.get_paths()) == count**2 and lines.get_edgecolor()[:, 3].min() > 0.25
    assert "full colour: 0.12" in {text.get_text() for text in axes.texts}
    sharp = replace(ribbon(count), weights=np.eye(count))
    assert sharp.full == 1.0
