"""What the decoder of an encoder–decoder model reads."""

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from headscope.errors import ModelError
from headscope.model.encode import Encoded, check_length, encode, prefix_special, take


def encode_target(
    network: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    text: str,
    *,
    limit: int | None,
    truncate: bool,
) -> Encoded:
    """The start token and the target text, without the end token: that is only ever predicted."""
    encoded = encode(tokenizer, text, limit=limit, truncate=truncate)
    if encoded.special[-1]:
        encoded = take(encoded, len(encoded) - 1)
    started = start_with(network, tokenizer, encoded)
    if truncate and limit is not None:
        started = take(started, limit)
    check_length(len(started), limit)
    return started


def start_with(
    network: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, encoded: Encoded
) -> Encoded:
    """The same tokens after the decoder's start token."""
    start = decoder_start(network)
    return prefix_special(encoded, start, str(tokenizer.convert_ids_to_tokens(start)))


def decoder_start(network: PreTrainedModel) -> int:
    """The id that a decoder reads first."""
    for config in (network.config, network.generation_config):
        for name in ("decoder_start_token_id", "bos_token_id"):
            found = getattr(config, name, None)
            if isinstance(found, int):
                return found
    raise ModelError(
        f"{network.config.model_type} does not say with which token its decoder starts; set "
        "decoder_start_token_id in its config.json."
    )
