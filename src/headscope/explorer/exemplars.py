"""The sentences that a run kept for each head."""

from typing import Any

from headscope.explorer.runs import Run
from headscope.views.labels import bare, is_right_to_left, label, spaces_before


def exemplars_of(run: Run, layer: int, head: int) -> list[dict[str, Any]]:
    """The head's stored sentences, surest first."""
    own = [one for one in run.exemplars if (one["layer"], one["head"]) == (layer, head)]
    return [_shown(one) for one in sorted(own, key=lambda one: -one["weight"])]


def _shown(one: dict[str, Any]) -> dict[str, Any]:
    """With `labels`, tokens fit to be shown, and `pieces`, which `spaces` join to a sentence."""
    labels = [label(token) for token in one["tokens"]]
    return {
        **one,
        "labels": labels,
        "pieces": [label(bare(token)) for token in one["tokens"]],
        "spaces": spaces_before(one["tokens"], one["text"]),
        "rtl": is_right_to_left(labels),
    }
