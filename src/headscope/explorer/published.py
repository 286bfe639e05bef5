"""What the papers report for the measure on screen, for their own model."""

from typing import Any

VIG = "GPT-2 small, Vig & Belinkov 2019"
CLARK = "BERT-base, Clark et al. 2019"

# study, measure, labels -> value (None where there is no single number), what it says, source
_PUBLISHED: dict[tuple[str, ...], tuple[float | None, str, str]] = {
    ("vig2019", "null_share"): (0.57, "mean over heads; some exceed 0.97", VIG),
    ("vig2019", "pos_to", "NOUN"): (0.21, "mean over heads; 0.43 in L9H0", VIG),
    ("vig2019", "dependency_alignment", "either"): (0.42, "highest, in L4H11", VIG),
    ("vig2019", "variability"): (0.004, "lowest, in L4H11", VIG),
    ("vig2019", "distance"): (14.2, "highest, in L5H1", VIG),
    ("vig2019", "entropy"): (0.41, "of L5H1, the head with the longest distance", VIG),
    ("clark2019", "entropy"): (None, "the uniform line lies at about 4.8 nats", CLARK),
    ("clark2019", "entropy_from_cls"): (3.89, "in the last layer", CLARK),
    ("clark2019", "special_share", "sep"): (None, "over half in layers 5 to 9 (0-based)", CLARK),
    ("clark2019", "sep_to_sep"): (0.9, "exceeded in layers 5 to 9 (0-based)", CLARK),
    ("clark2019", "offset_share", "-1"): (None, "over 0.5 in four heads", CLARK),
    ("clark2019", "offset_share", "1"): (None, "over 0.5 in five heads", CLARK),
}

RELATIONS = {
    "prep": 66.7, "pobj": 76.3, "det": 94.3, "nn": 70.4, "nsubj": 58.5, "amod": 75.6, "dobj": 86.8,
    "advmod": 48.8, "aux": 81.1, "poss": 80.5, "auxpass": 82.5, "ccomp": 48.8, "mark": 50.7,
    "prt": 99.1, "all": 34.5,
}  # fmt: skip
COREFERENCE = {"all": 65, "pronoun": 64, "proper": 73, "nominal": 58}
COREFERENCE_BASELINES = {
    "nearest": {"all": 27, "pronoun": 29, "proper": 29, "nominal": 19},
    "head_match": {"all": 52, "pronoun": 47, "proper": 67, "nominal": 40},
    "rules": {"all": 69, "pronoun": 70, "proper": 77, "nominal": 60},
}
PARSING = {
    "right_branching": 26, "distances_words": 58, "random_attention_words": 30, "attention": 61,
    "attention_words": 77,
}  # fmt: skip


def published_of(study: str, measure: str, at: dict[str, str]) -> dict[str, Any] | None:
    """The published value of a slice, None where the papers have none."""
    if measure == "relation_accuracy" and at.get("relation") in RELATIONS:
        value = RELATIONS[at["relation"]] / 100
        return {"value": value, "says": "the best head", "source": CLARK}
    found = _PUBLISHED.get((study, measure, *at.values()))
    if found is None:
        return None
    value, says, source = found
    return {"value": value, "says": says, "source": source}
