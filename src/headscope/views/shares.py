"""Which part of a text looks at which: attention between spans, by layer and head.

With a[i, j] the weight from token i to token j, the share that span F gives to span T is

    Σ_{i∈F} Σ_{j∈T} a[i, j]  /  Σ_{i∈F} Σ_j a[i, j]

A long span gets more than a short one even from a head that does not care. What it would get by
its length alone is `expected`: every token of F spends the same attention, evenly over what it
sees, so that a[i, j] becomes m[i] / |S[i]| for j in S[i], where S[i] are the tokens that any head
of the layer gives any attention to, and m[i] = Σ_j a[i, j]. Hidden tokens count nowhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from headscope.errors import ViewError
from headscope.files import find_place
from headscope.model.inputs.spans import Span, check_spans
from headscope.theme import DIVERGING, GROUPS, PRINT_FAINT, PRINT_RULE
from headscope.views.figures import points, rendered, styled
from headscope.views.labels import label, short
from headscope.views.state import chosen_stack
from headscope.views.view import check_ending, write
from headscope.views.weights import checked_weights, norm_factors
from headscope.wording import model_title

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh

    from headscope.model.inputs.tokens import Tokens
    from headscope.model.trace import StackTrace, Trace

_MOST_ACROSS = 5  # maps side by side
_MAP = (1.35, 2.1)  # inches of one map
_CHART = 1.6  # inches of the chart below
_LEFT, _RIGHT, _TOP, _BOTTOM, _GAP = 0.5, 0.75, 0.85, 0.45, 0.62
_COLORS = LinearSegmentedColormap.from_list("above", DIVERGING.light)


@dataclass(frozen=True)
class Shares:
    """Attention between spans: `data` has share and expected for each layer, head, from and to."""

    trace: "Trace"
    data: xr.Dataset

    @property
    def share(self) -> xr.DataArray:
        """The attention that a span gives to another, of all that it gives."""
        return self.data["share"]

    @property
    def expected(self) -> xr.DataArray:
        """The same if every token spread its attention evenly over what it sees."""
        return self.data["expected"]

    def scores(self, source: str | None = None) -> dict[str, Float[np.ndarray, "layer head"]]:
        """A score for each span that is looked at, to order the heads of the model view by."""
        name = self.source(source)
        above = (self.share - self.expected).sel({"from": name})
        return {f"{name} → {to}": _whole(above.sel(to=to)) for to in self.targets(name)}

    def source(self, name: str | None = None) -> str:
        """The named span, or the last of those that look."""
        names = [str(one) for one in self.data["from"].values]
        if name is None:
            return names[-1]
        if name not in names:
            raise ViewError(f"No span {name!r} looks here; there are {', '.join(names)}.")
        return name

    def targets(self, source: str) -> list[str]:
        """The spans that are looked at, without the one that looks."""
        return [str(one) for one in self.data["to"].values if str(one) != source]

    def figure(self, source: str | None = None) -> Figure:
        """What one span looks at: a map of layers and heads for each other, and means by layer."""
        with styled(self.trace, ".png"):
            return _draw(self, self.source(source))

    def save(self, path: str | Path, *, source: str | None = None, **print_options: Any) -> Path:
        """Write the figure as .svg, .png or .pdf, or the numbers as .csv or .json.

        Figures take the options of `View.save` for print; a row has a layer, a head, both spans,
        share and expected.
        """
        target = find_place(path)
        if target.suffix.lower() in (".csv", ".json"):
            table = self.data[["share", "expected"]].to_dataframe().reset_index()
            is_csv = target.suffix.lower() == ".csv"
            text = table.to_csv(index=False) if is_csv else table.to_json(orient="records")
            write(target, str(text).encode())
            return target
        ending = check_ending(target)
        if ending == ".html":
            raise ViewError(
                f"{target.name!r}: shares are a figure; save them as .svg, .png or .pdf, or see "
                'them in a page by trace.model_view(unit="span", spans=…).'
            )
        name = self.source(source)
        write(target, rendered(self.trace, lambda: _draw(self, name), ending, **print_options))
        return target

    def _repr_html_(self) -> str:
        return self.data._repr_html_()

    def __repr__(self) -> str:
        return f"Shares of {self.trace.model}\n{self.data}"


def shares(
    trace: "Trace",
    spans: Sequence[Span] | None = None,
    *,
    sources: Sequence[Span] | None = None,
    hide: str | Sequence[str] = (),
    weights: str = "raw",
    stack: str | None = None,
) -> Shares:
    """How much of the attention of each span goes to each, and how much length alone explains.

    `spans` are looked at, those of the trace itself by default (`trace.segments`); `sources` look,
    the same spans by default, in cross-attention everything that looks. `hide` leaves out the
    first token or special ones ("first", "special"), on which many heads rest. `weights` are raw or
    norm.
    """
    chosen = chosen_stack(trace, stack)
    looked_at = _spans_of(trace, spans, chosen.keys)
    is_self = chosen.queries.labels == chosen.keys.labels
    everything = [Span("everything", tuple(range(len(chosen.queries))))]
    looking = check_spans(sources or (looked_at if is_self else everything), len(chosen.queries))
    left_out = (hide,) if isinstance(hide, str) else hide
    kept = _kept(chosen.keys, left_out)
    members = _masks(looking, len(chosen.queries)), _masks(looked_at, len(chosen.keys))
    found = [
        between(_weights(chosen, layer, weights), _seen(chosen, layer), *members, kept)
        for layer in chosen.layers
    ]
    share, expected = (np.stack(part) for part in zip(*found, strict=True))
    dimensions = ("layer", "head", "from", "to")
    data = xr.Dataset(
        {"share": (dimensions, share), "expected": (dimensions, expected)},
        coords={
            "layer": list(chosen.layers),
            "head": list(chosen.heads),
            "from": [span.name for span in looking],
            "to": [span.name for span in looked_at],
        },
        attrs={"model": trace.model, "weights": weights, "hide": ", ".join(left_out)},
    )
    return Shares(trace, data)


def between(
    weights: Float[np.ndarray, "head query key"],
    seen: Bool[np.ndarray, "query key"],
    looking: Bool[np.ndarray, "source query"],
    looked_at: Bool[np.ndarray, "span key"],
    kept: Bool[np.ndarray, "key"],
) -> tuple[Float[np.ndarray, "head source span"], Float[np.ndarray, "head source span"]]:
    """Share and expected share of one layer; not a number where a span gives no attention."""
    rows, columns = looking.astype(float), (looked_at & kept).astype(float)
    spent = weights[..., kept].sum(-1, dtype=float)  # head query
    total = spent @ rows.T  # head source
    given = np.einsum("fq,hqt->hft", rows, weights @ columns.T)
    visible = (seen & kept).astype(float)
    count = np.maximum(visible.sum(-1, keepdims=True), 1)
    even = visible @ columns.T / count  # query span
    expected = np.einsum("fq,hq,qt->hft", rows, spent, even, optimize=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return given / total[..., None], expected / total[..., None]


def _seen(stack: "StackTrace", layer: int) -> Bool[np.ndarray, "query key"]:
    """What any head of a layer gives any attention to: masked tokens get none."""
    return np.any(checked_weights(stack, layer) > 0, axis=0)


def _spans_of(trace: "Trace", spans: Sequence[Span] | None, side: "Tokens") -> tuple[Span, ...]:
    found = check_spans(trace.segments if spans is None else spans, len(side))
    if not found:
        raise ViewError(
            "There are no spans: the text is no chat, no pair and has no continuation. Name them, "
            'for example by trace.spans("sentence").'
        )
    return found


def _weights(stack: "StackTrace", layer: int, kind: str) -> np.ndarray:
    weights = checked_weights(stack, layer)
    if kind == "raw":
        return weights
    if kind != "norm":
        raise ViewError(f"weights is {kind!r}; choose raw or norm.")
    return weights * norm_factors(stack, layer)[:, None, :]


def _kept(side: "Tokens", hide: Sequence[str]) -> Bool[np.ndarray, "key"]:
    kept = np.ones(len(side), bool)
    for one in hide:
        if one not in ("first", "special"):
            raise ViewError(f"hide is {one!r}; choose first or special.")
        kept &= ~np.array(side.special, bool) if one == "special" else np.arange(len(side)) > 0
    return kept


def _masks(spans: Sequence[Span], tokens: int) -> Bool[np.ndarray, "span token"]:
    masks = np.zeros((len(spans), tokens), bool)
    for mask, span in zip(masks, spans, strict=True):
        mask[list(span.tokens)] = True
    return masks


def _whole(table: xr.DataArray) -> Float[np.ndarray, "layer head"]:
    """By the numbers of layers and heads, those that were not captured as not a number."""
    layers, heads = table["layer"].values, table["head"].values
    whole = np.full((int(layers.max()) + 1, int(heads.max()) + 1), np.nan)
    whole[np.ix_(layers, heads)] = table.values
    return whole


def _draw(shares: Shares, source: str) -> Figure:
    """A map for every span that is looked at: what it gets above its length's worth."""
    targets = shares.targets(source)
    across = min(len(targets), _MOST_ACROSS)
    down = -(-len(targets) // across)
    wide = max(4.2, _LEFT + across * (_MAP[0] + 0.2) + _RIGHT)
    tall = _TOP + down * (_MAP[1] + _GAP) + _CHART + _BOTTOM
    figure = Figure(figsize=(wide, tall))
    above = (shares.share - shares.expected).sel({"from": source})
    most = float(np.nanmax(np.abs(above.sel(to=targets).values), initial=1e-9))
    shown = None
    for number, to in enumerate(targets):
        row, column = divmod(number, across)
        place = (_LEFT + column * (_MAP[0] + 0.2), _TOP + row * (_MAP[1] + _GAP), *_MAP)
        axes = _axes(figure, place)
        shown = _map(axes, above.sel(to=to).values, most)
        mean = shares.data.sel({"from": source, "to": to}).mean()
        _name(axes, to, float(mean["share"]), float(mean["expected"]))
        if column == 0:
            axes.set_ylabel("layer", fontsize=points(7), color=PRINT_FAINT)
    edge = _LEFT + across * (_MAP[0] + 0.2)
    if shown is not None:
        bar = figure.colorbar(shown, cax=_axes(figure, (edge, _TOP, 0.1, _MAP[1])))
        bar.ax.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        bar.ax.tick_params(length=2, labelsize=points(6.5), colors=PRINT_FAINT)
        bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    chart = _axes(figure, (_LEFT, tall - _BOTTOM - _CHART, edge - 0.2 - _LEFT, _CHART))
    _by_layer(chart, shares, source, targets)
    _title(figure, shares, source)
    return figure


def _axes(figure: Figure, place: tuple[float, float, float, float]) -> "Axes":
    """Axes by inches from the left and from the top."""
    wide, tall = figure.get_size_inches()
    left, top, across, down = place
    return figure.add_axes((left / wide, 1 - (top + down) / tall, across / wide, down / tall))


def _map(axes: "Axes", values: np.ndarray, most: float) -> "QuadMesh":
    shown = axes.pcolormesh(values, cmap=_COLORS, vmin=-most, vmax=most, linewidth=0)
    axes.invert_yaxis()
    layers, heads = values.shape
    for axis, count in ((axes.yaxis, layers), (axes.xaxis, heads)):
        step = max(1, -(-count // 8))
        axis.set_ticks([n + 0.5 for n in range(0, count, step)])
        axis.set_ticklabels([str(n) for n in range(0, count, step)])
    axes.tick_params(length=0, labelsize=points(6), colors=PRINT_FAINT, pad=2)
    for spine in axes.spines.values():
        spine.set(color=PRINT_RULE, linewidth=0.6)
    return shown


def _name(axes: "Axes", to: str, share: float, expected: float) -> None:
    axes.set_title(short(label(to), 20), fontsize=points(8), pad=13)
    said = f"{share:.1%}, by length {expected:.1%}"
    axes.text(
        0.5, 1.02, said, transform=axes.transAxes, ha="center", va="bottom", color=PRINT_FAINT,
        fontsize=points(6.5),
    )  # fmt: skip
    axes.set_xlabel("head", fontsize=points(7), color=PRINT_FAINT, labelpad=1)


def _by_layer(axes: "Axes", shares: Shares, source: str, targets: list[str]) -> None:
    """Means over heads; dotted what length alone would give."""
    layers = shares.data["layer"].values
    for number, to in enumerate(targets):
        color = GROUPS.light[number % len(GROUPS.light)]
        where = {"from": source, "to": to}
        axes.plot(
            layers, shares.share.sel(where).mean("head"), color=color, linewidth=1.2,
            label=short(label(to), 20),
        )  # fmt: skip
        even = shares.expected.sel(where).mean("head")
        axes.plot(layers, even, color=color, linewidth=0.8, linestyle=(0, (1, 1.5)))
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylim(bottom=0)
    axes.set_xlim(layers[0], layers[-1] if len(layers) > 1 else layers[0] + 1)
    said = "layer; mean of its heads, dotted: by length alone"
    axes.set_xlabel(said, fontsize=points(7), color=PRINT_FAINT)
    axes.tick_params(length=2, labelsize=points(6.5), colors=PRINT_FAINT)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(
        frameon=False, fontsize=points(6.5), loc="lower left", bbox_to_anchor=(-0.01, 1.0),
        ncols=min(5, len(targets)), borderaxespad=0.2,
    )  # fmt: skip


def _title(figure: Figure, shares: Shares, source: str) -> None:
    wide, tall = figure.get_size_inches()
    hidden = shares.data.attrs["hide"]
    note = f" · {hidden} left out" if hidden else ""
    said = f"What “{short(label(source), 30)}” looks at · {model_title(shares.trace.model)}{note}"
    figure.text(_LEFT / wide, 1 - 0.18 / tall, said, va="center", fontsize=points(9))
    figure.text(
        _LEFT / wide, 1 - 0.36 / tall, "share of its attention above or below what length alone "
        "would give", va="center", color=PRINT_FAINT, fontsize=points(7),
    )  # fmt: skip
