"""What is decided by a model's family, because no probe of five tokens can show it.

BigBird, for one, computes dense attention on short inputs and blocks of it on long ones.
"""

from transformers import PreTrainedConfig

from headscope.errors import CaptureError
from headscope.model.attention import Stack

_BANDED = "computes attention only in a band around each token"
_BLOCKS = "computes attention in blocks and leaves out the rest"
_APPROXIMATE = "only approximates attention weights"
_NONE = "has no attention"

REASONS: dict[str, str] = {
    "longformer": _BANDED,
    "led": f"{_BANDED} in its encoder",
    "longt5": f"{_BANDED} in its encoder",
    "pegasus_x": f"{_BLOCKS} in its encoder",
    "big_bird": f"{_BLOCKS} (block_sparse; original_full is supported)",
    "bigbird_pegasus": f"{_BLOCKS} in its encoder (block_sparse; original_full is supported)",
    "canine": f"{_BANDED} and on a shortened input",
    "reformer": f"{_APPROXIMATE} by hashing",
    "yoso": f"{_APPROXIMATE} by hashing",
    "mra": f"{_APPROXIMATE} at several resolutions",
    "nystromformer": f"{_APPROXIMATE} by landmarks",
    "funnel": "pools its queries, so that later layers have fewer tokens than the input",
    "fnet": f"{_NONE}: it mixes tokens by Fourier transform",
    "mamba": f"{_NONE}: it is a state-space model",
    "mamba2": f"{_NONE}: it is a state-space model",
    "falcon_mamba": f"{_NONE}: it is a state-space model",
    "rwkv": f"{_NONE}: it is a recurrent network",
    "xlstm": f"{_NONE}: it is a recurrent network",
}

# The same family with dense attention is welcome.
_DENSE = {
    "big_bird": ("attention_type", "original_full"),
    "bigbird_pegasus": ("attention_type", "original_full"),
}


def reason_against(config: PreTrainedConfig) -> str | None:
    """Why this configuration cannot be captured, or None."""
    option = _DENSE.get(config.model_type)
    if option is not None and getattr(config, option[0], None) == option[1]:
        return None
    return REASONS.get(config.model_type)


def check_family(name: str, config: PreTrainedConfig) -> None:
    """Refuse a family whose attention is not a dense matrix, with the reason."""
    reason = reason_against(config)
    if reason is not None:
        raise CaptureError(
            f"{name} is a {config.model_type} model, which {reason}; Headscope shows dense softmax "
            "attention only, see docs/models.md."
        )


# Names of the window, of the list of layers, and of a layer that has the window.
_WINDOWS = (
    ("sliding_window", "layer_types", "sliding_attention"),
    ("window_size", "attention_layers", "local"),
)

# What these report as attention is what enters the softmax, mask included.
_REPORTS_SCORES = {"prophetnet", "squeezebert"}


def sliding_window(config: PreTrainedConfig, stack: Stack) -> tuple[int, tuple[int, ...]] | None:
    """The tokens that a window shows and the layers that have it; no layers listed means all.

    Windows are longer than the probe, so only the configuration knows of them.
    """
    if stack == "cross" or getattr(config, "use_sliding_window", True) is False:
        return None
    part = getattr(config, stack, None)
    text = part if isinstance(part, PreTrainedConfig) else config.get_text_config()
    for window, layers, kind in _WINDOWS:
        size, kinds = getattr(text, window, None), getattr(text, layers, None)
        if isinstance(size, int) and size > 0 and (kinds is None or kind in kinds):
            return size, tuple(i for i, each in enumerate(kinds or ()) if each == kind)
    return None


def reports_scores(config: PreTrainedConfig) -> bool:
    """Whether matrices that are no weights are the scores right before the softmax."""
    return config.model_type in _REPORTS_SCORES


def query_streams(config: PreTrainedConfig) -> int:
    """How often the decoder's queries hold the text.

    ProphetNet's decoder looks at the source once for the text and once more for every n-gram it
    predicts; the text comes first.
    """
    return 1 + getattr(config, "ngram", 0) if config.model_type == "prophetnet" else 1
