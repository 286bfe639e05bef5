"""Does it matter? What the loss says of a head whose output is replaced by its mean."""

import numpy as np
import xarray as xr

from headscope.head import Head
from headscope.results.replicates import margin_of

REPLACED = "mean_replacement"


def cost_sentence(data: xr.Dataset, head: Head) -> str | None:
    """What replacing the head by its mean costs, beside the median head; None if not measured."""
    if REPLACED not in data:
        return None
    losses = data[REPLACED]
    loss, median = float(losses.sel(head._asdict())), float(np.nanmedian(losses.values))
    margins = margin_of(data, REPLACED)
    margin = float("nan") if margins is None else float(margins.sel(head._asdict()))
    if not np.isfinite(loss):
        return None
    beside = f"the median head costs {median:.2g}"
    known = f" ± {margin:.1g}" if np.isfinite(margin) else ""
    amount = f"{loss:.2g}{known} nats per predicted token"
    if np.isfinite(margin) and abs(loss) <= margin:
        change = f"replaced by its mean, the loss changes by {amount}"
        return f"Nothing is lost without it: {change}; {beside}."
    verb = "rises" if loss > 0 else "falls"
    return f"Replaced by its mean, the loss {verb} by {amount.removeprefix('-')}; {beside}."
