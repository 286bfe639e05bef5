"""Encoders with a decoder: three encoder layers, two decoder layers each."""

from typing import Any

from tests.contracts.family import COMMON, IDS, VOCABULARY, Family

BART: dict[str, Any] = {
    **IDS,
    "d_model": 32,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 40,
    "decoder_ffn_dim": 40,
    "decoder_start_token_id": 3,
    "forced_eos_token_id": None,
    "max_position_embeddings": 64,
}
T5 = {
    **IDS,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 40,
    "num_layers": 3,
    "num_decoder_layers": 2,
    "num_heads": 4,
    "decoder_start_token_id": 1,
}
GEMMA = {
    **COMMON,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "sliding_window": 4,
    "attn_logit_softcapping": 2.0,
}

SEQ2SEQ: tuple[Family, ...] = (
    Family("T5", "t5", "seq2seq", T5, "position bias", common=False, spread=0.1),
    Family("mT5", "mt5", "seq2seq", T5, "position bias", common=False, spread=0.1),
    Family("UMT5", "umt5", "seq2seq", T5, "position bias", common=False, spread=0.1),
    Family("BART", "bart", "seq2seq", BART, common=False, pads=("right",)),
    Family("mBART", "mbart", "seq2seq", BART, common=False, pads=("right",)),
    Family("Marian", "marian", "seq2seq", BART, common=False, pads=("right",)),
    Family("Pegasus", "pegasus", "seq2seq", BART, common=False, pads=("right",)),
    Family("M2M-100", "m2m_100", "seq2seq", BART, common=False),
    Family("Blenderbot", "blenderbot", "seq2seq", BART, common=False, pads=("right",)),
    Family("PLBart", "plbart", "seq2seq", BART, common=False, pads=("right",)),
    Family(
        "FSMT",
        "fsmt",
        "seq2seq",
        {
            **BART,
            "langs": ["en", "de"],
            "src_vocab_size": VOCABULARY,
            "tgt_vocab_size": VOCABULARY,
        },
        common=False,
    ),
    Family(
        "ProphetNet",
        "prophetnet",
        "seq2seq",
        {
            **IDS,
            "hidden_size": 32,
            "encoder_ffn_dim": 40,
            "decoder_ffn_dim": 40,
            "max_position_embeddings": 64,
            "decoder_start_token_id": 3,
            "num_encoder_layers": 3,
            "num_decoder_layers": 2,
            "num_encoder_attention_heads": 4,
            "num_decoder_attention_heads": 4,
            "ngram": 2,
        },
        "reports scores for encoder and cross-attention",
        common=False,
        pads=("right",),
        scores=("encoder", "cross"),
    ),
    Family(
        "T5Gemma",
        "t5gemma",
        "seq2seq",
        {
            "encoder": {**GEMMA, "num_hidden_layers": 3},
            "decoder": {**GEMMA, "is_decoder": True, "cross_attention_hidden_size": 32},
            "vocab_size": VOCABULARY,
        },
        "soft-cap, sliding window",
        common=False,
    ),
    Family(
        "Switch",
        "switch_transformers",
        "seq2seq",
        {**T5, "num_experts": 2, "num_sparse_encoder_layers": 0, "num_sparse_decoder_layers": 0},
        "position bias",
        common=False,
        spread=0.1,
    ),
)
