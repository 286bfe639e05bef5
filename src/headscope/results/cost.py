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
    beside = f"the median head costs {median:.2g}"
    amount = f"{_with_margin(loss, margin)} nats per predicted token"
    if np.isfinite(margin) and abs(loss) <= margin:
        change = f"replaced by its mean, the loss changes by {amount}"
        text = f"Nothing is lost without it: {change}; {beside}."
    else:
        verb = "rises" if loss > 0 else "falls"
        change = f"the loss {verb} by {amount.removeprefix('-')}"
        text = f"Replaced by its mean, {change}; {beside}."
    return f"{text}{_where(data, head)}"


def said_costs(data: xr.Dataset) -> xr.DataArray:
    """The sentences of all heads, for other runs of the model; empty where there is none."""
    sentences = [cost_sentence(data, head) or "" for head in heads_of(data)]
    losses = data[REPLACED].transpose(*GRID)
    return losses.copy(data=np.array(sentences).reshape(losses.shape)).drop_attrs()


def _where(data: xr.Dataset, head: Head) -> str:
    """The cost where the head's name applies, and elsewhere; nothing where either is unknown."""
    if WHERE not in data:
        return ""
    losses, margins = data[WHERE], margin_of(data, WHERE)
    assert margins is not None
    here, elsewhere = (
        (float(losses.sel(at)), float(margins.sel(at)))
        for at in ({**head._asdict(), "where": place} for place in PLACES)
    )
    if not np.isfinite([*here, *elsewhere]).all():
        return ""
    return f" Where its name applies {_with_margin(*here)}, elsewhere {_with_margin(*elsewhere)}."


def _with_margin(loss: float, margin: float) -> str:
    return f"{loss:.2g} ± {margin:.1g}" if np.isfinite(margin) else f"{loss:.2g}"
