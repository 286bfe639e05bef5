"""Measures in the words of the studies, for the made-up runs."""

from headscope.results.measure import Baseline, Measure, Published

VIG = "Vig & Belinkov 2019"
CLARK = "Clark et al. 2019"
EVEN = Baseline("pos_to_even", "even attention")
TAGS = (EVEN, Baseline("tag_frequency", "frequency of the tag"))
UNIFORM = (Baseline("uniform_entropy", "uniform attention"),)
BEST_OFFSET = (Baseline("offset_accuracy", "always the word at offset {}", "offset_word"),)
BEST_SYSTEM = (Baseline("coref_baseline", "{}", "system"),)


def _measure(name: str, title: str, **more: object) -> Measure:
    said = {"meaning": f"{title} of a head.", "formula": "Σ a / Σ 1", "reference": VIG}
    return Measure(name, title, **{**said, **more})  # pyright: ignore[reportArgumentType]


MEASURES = (
    _measure(
        "null_share",
        "Null attention",
        published=(Published("mean over heads", f"GPT-2 small, {VIG}", 0.57),),
    ),
    _measure("variability", "Variability", more="content decides"),
    _measure("distance", "Distance", unit="tokens", more="looks further"),
    _measure("entropy", "Entropy", unit="nats", baselines=UNIFORM),
    _measure(
        "pos_to",
        "Attention to a tag",
        axes={"tag": "Tag"},
        baselines=TAGS,
        published=(Published("mean over heads", f"GPT-2 small, {VIG}", 0.21, {"tag": "NOUN"}),),
    ),
    _measure("pos_from", "Attention from a tag", axes={"tag": "Tag"}, baselines=TAGS),
    _measure("deprel_to", "Attention to a relation", axes={"deprel": "Relation"}),
    _measure(
        "dependency_alignment",
        "Dependency alignment",
        axes={"form": "Form"},
        baselines=(Baseline("dependency_baseline", "every pair weighs the same"),),
    ),
    _measure("offset_share", "Attention to an offset", axes={"offset": "Offset"}, reference=CLARK),
    _measure("special_share", "Attention to special tokens", axes={"special": "Token"}),
    _measure("sep_to_sep", "[SEP] to [SEP]", reference=CLARK),
    _measure("other_to_sep", "Others to [SEP]", reference=CLARK),
    _measure("entropy_from_cls", "Entropy from [CLS]", unit="nats", baselines=UNIFORM),
    _measure("gradient", "Gradient importance", axes={"target": "To"}, unit=""),
    _measure(
        "relation_accuracy",
        "Relation accuracy",
        axes={"direction": "Direction", "relation": "Relation"},
        baselines=BEST_OFFSET,
        reference=CLARK,
    ),
    _measure(
        "coref_accuracy",
        "Coreference accuracy",
        axes={"candidates": "Candidates", "mention": "Mention"},
        baselines=BEST_SYSTEM,
        reference=CLARK,
    ),
    _measure(
        "behaviour",
        "Behaviour",
        unit="",
        groups={
            "next": "position",
            "previous": "position",
            "broad": "even",
            "sep": "marks",
            "other": "unnamed",
        },
        reference=CLARK,
    ),
)
