"""Encoders that fill masked words."""

from tests.contracts.family import Family

MASKED: tuple[Family, ...] = (
    Family("BERT", "bert", "masked"),
    Family("RoBERTa", "roberta", "masked", note="positions counted from the padding id"),
    Family("XLM-RoBERTa", "xlm-roberta", "masked"),
    Family(
        "DistilBERT",
        "distilbert",
        "masked",
        {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 40},
    ),
    Family("ELECTRA", "electra", "masked", {"embedding_size": 32}),
    Family(
        "ALBERT",
        "albert",
        "masked",
        {"num_hidden_layers": 3, "embedding_size": 16},
        "one module for all layers",
        layers=(0, 1, 2),
    ),
    Family(
        "ModernBERT",
        "modernbert",
        "masked",
        {"num_hidden_layers": 3, "global_attn_every_n_layers": 3, "local_attention": 4},
        "sliding window",
        layers=(0, 1, 2),
    ),
    Family("EuroBERT", "eurobert", "masked", {"num_key_value_heads": 2}),
    Family("CamemBERT", "camembert", "masked"),
    Family(
        "RemBERT", "rembert", "masked", {"input_embedding_size": 16, "output_embedding_size": 16}
    ),
    Family("MegatronBERT", "megatron-bert", "masked"),
    Family("ESM", "esm", "masked", {"position_embedding_type": "rotary", "mask_token_id": 299}),
    Family("ERNIE", "ernie", "masked"),
    Family("XMOD", "xmod", "masked", {"default_language": "en_XX"}),
    Family(
        "MobileBERT",
        "mobilebert",
        "masked",
        {"embedding_size": 32, "intra_bottleneck_size": 32, "true_hidden_size": 32},
        "cannot be padded",
        pads=(),
        spread=0.1,
    ),
    Family(
        "SqueezeBERT",
        "squeezebert",
        "masked",
        {"embedding_size": 32},
        "reports scores",
        scores=("self",),
    ),
    Family("ConvBERT", "convbert", "masked", {"embedding_size": 32}, "cannot be padded", pads=()),
    Family("I-BERT", "ibert", "masked"),
    Family("LayoutLM", "layoutlm", "masked"),
    Family("BigBird (full)", "big_bird", "masked", {"attention_type": "original_full"}),
    Family(
        "DeBERTa", "deberta", "masked", {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
    ),
    Family(
        "DeBERTa-v2",
        "deberta-v2",
        "masked",
        {
            "relative_attention": True,
            "pos_att_type": ["c2p", "p2c"],
            "position_biased_input": False,
        },
    ),
    Family("MPNet", "mpnet", "masked", note="position bias"),
    Family("RoFormer", "roformer", "masked", {"embedding_size": 32}),
    Family("XLM", "xlm", "masked", {"emb_dim": 32, "n_layers": 2, "n_heads": 4, "n_langs": 1}),
    Family(
        "FlauBERT", "flaubert", "masked", {"emb_dim": 32, "n_layers": 2, "n_heads": 4, "n_langs": 1}
    ),
    Family("Nomic BERT", "nomic_bert", "masked"),
    Family(
        "Luke",
        "luke",
        "masked",
        {"entity_vocab_size": 8, "entity_emb_size": 8, "use_entity_aware_attention": False},
    ),
)
