"""Does it matter? What the loss says of a head whose output is replaced by its mean."""

import numpy as np
import xarray as xr

from headscope.head import Head
from headscope.results.measure import GRID, heads_of
from headscope.results.replicates import margin_of

REPLACED = "mean_replacement"
SAID = "cost_sentence"  # the sentences, which another run of the model has measured
WHERE = "replacement_where"  # the same at the tokens that the head's name applies to, and elsewhere
PLACES = ("applies", "elsewhere")
LEAST = 0.01  # nats per predicted token; less is nothing


def cost_sentence(data: xr.Dataset, head: Head) -> str | None:
    """What replacing the head by its mean costs, beside the median head; None if not measured."""
    if SAID in data:
        return str(data[SAID].sel(head._asdict()).item()) or None
    if REPLACED not in data:
        return None
    losses = data[REPLACED]
    loss, median = float(losses.sel(head._asdict())), float(np.nanmedian(losses.values))
    margins = margin_of(data, REPLACED)
    margin = float("nan") if margins is None else float(margins.sel(head._asdict()))
    if not np.isfinite(loss):
        return None
    amount = f"{_with_margin(loss, margin)} nats per predicted token"
    change = f"replaced by its mean, the loss changes by {amount}"
    if not np.isfinite(margin) or abs(loss) > margin:
        verb = "rises" if loss > 0 else "falls"
        text = f"Replaced by its mean, the loss {verb} by {amount.removeprefix('-')}"
    elif abs(loss) + margin <= LEAST and not _matters_where_it_applies(data, head):
        text = f"Nothing is lost without it: {change}"
    else:
        text = f"It is unclear what is lost without it: {change}"
    text += f"; the median head costs {median:.2g}."
    return f"{text}{_where(data, head)}"


def said_costs(data: xr.Dataset) -> xr.DataArray:
    """The sentences of all heads, for other runs of the model; empty where there is none."""
    sentences = [cost_sentence(data, head) or "" for head in heads_of(data)]
    losses = data[REPLACED].transpose(*GRID)
    return losses.copy(data=np.array(sentences).reshape(losses.shape)).drop_attrs()


def _where(data: xr.Dataset, head: Head) -> str:
    """The cost where the head's name applies, and elsewhere; nothing where either is unknown."""
    parts = _costs_by_place(data, head)
    if not np.isfinite(parts).all():
        return ""
    here, elsewhere = (_with_margin(loss, margin) for loss, margin in parts)
    return f" Where its name applies {here}, elsewhere {elsewhere}."


def _matters_where_it_applies(data: xr.Dataset, head: Head) -> bool:
    (loss, margin), _ = _costs_by_place(data, head)
    return loss > margin


def _costs_by_place(data: xr.Dataset, head: Head) -> list[tuple[float, float]]:
    """Loss and margin where the head's name applies, and elsewhere; NaN where unknown."""
    if WHERE not in data:
        return [(float("nan"), float("nan"))] * len(PLACES)
    losses, margins = data[WHERE], margin_of(data, WHERE)
    assert margins is not None
    cells = [{**head._asdict(), "where": place} for place in PLACES]
    return [(float(losses.sel(at)), float(margins.sel(at))) for at in cells]


def _with_margin(loss: float, margin: float) -> str:
    return f"{loss:.2g} ± {margin:.1g}" if np.isfinite(margin) else f"{loss:.2g}"
