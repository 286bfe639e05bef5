"""The sentences that a run kept for each head."""

from typing import Any

from headscope.server.runs import Run
from headscope.views.label import label


def exemplars_of(run: Run, layer: int, head: int) -> list[dict[str, Any]]:
    """The head's stored sentences, surest first; `labels` are the tokens fit to be shown."""
    own = [one for one in run.exemplars if (one["layer"], one["head"]) == (layer, head)]
    ordered = sorted(own, key=lambda one: -one["weight"])
    return [{**one, "labels": [label(token) for token in one["tokens"]]} for one in ordered]
