"""Facts about single families that no probe can show."""

from transformers import PreTrainedConfig

# What these report as attention is what enters the softmax, mask included.
_REPORTS_SCORES = {"prophetnet", "squeezebert"}


def reports_scores(config: PreTrainedConfig) -> bool:
    """Whether matrices that are no weights are the scores right before the softmax."""
    return config.model_type in _REPORTS_SCORES


def query_streams(config: PreTrainedConfig) -> int:
    """How often the decoder's queries hold the text.

    ProphetNet's decoder looks at the source once for the text and once more for every n-gram it
    predicts; the text comes first.
    """
    return 1 + getattr(config, "ngram", 0) if config.model_type == "prophetnet" else 1
