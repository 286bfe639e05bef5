"""What the measures of the built-in studies are called on screen, and what they mean in a line.

A measure that is not listed shows under its own name, with the description the study gave it.
"""

from dataclasses import dataclass
from typing import Literal

Unit = Literal["share", "nats", "tokens", "divergence", ""]


@dataclass(frozen=True)
class Title:
    """How a measure is presented."""

    title: str
    meaning: str
    unit: Unit = "share"


TITLES: dict[str, Title] = {
    "null_share": Title(
        "Null attention", "Share of attention to the first token or the delimiters."
    ),
    "null_share_all_queries": Title("Null attention, all rows", "Over every query."),
    "pos_to": Title("Attention to a tag", "Share of attention that words of this tag receive."),
    "pos_from": Title("Attention from a tag", "Share of attention that words of this tag pay."),
    "deprel_to": Title("Attention to a relation", "Share received by words with this relation."),
    "deprel_from": Title("Attention from a relation", "Share paid by words with this relation."),
    "dependency_alignment": Title(
        "Dependency alignment", "Share between words of one dependency arc."
    ),
    "variability": Title(
        "Variability", "0: the same positions in every input; 1: content decides."
    ),
    "distance": Title("Distance", "Mean distance of attention in tokens.", "tokens"),
    "entropy": Title("Entropy", "How widely a token's attention is spread.", "nats"),
    "entropy_from_cls": Title(
        "Entropy from [CLS]", "Spread of the attention of [CLS] alone.", "nats"
    ),
    "offset_share": Title(
        "Attention to an offset", "Share to the token at this relative position."
    ),
    "special_share": Title("Attention to special tokens", "Share to [CLS], [SEP] or punctuation."),
    "sep_to_sep": Title("[SEP] to [SEP]", "Share of the attention of [SEP] that goes to [SEP]."),
    "other_to_sep": Title("Others to [SEP]", "Share of all other tokens' attention to [SEP]."),
    "gradient": Title("Gradient importance", "Mean |∂L/∂a| of the language-model loss.", ""),
    "gradient_mean_loss": Title("Gradient of the mean loss", "Mean |∂L/∂a|, L averaged.", ""),
    "probe_weight": Title("Probe weight", "How much a trained probe relies on the head.", ""),
    "relation_accuracy": Title(
        "Relation accuracy", "How often the head's choice is the right word."
    ),
    "coref_accuracy": Title("Coreference accuracy", "How often the head picks a true antecedent."),
    "first_token_share": Title("Weight on the first token", "Mean share of token 0."),
    "confidence": Title("Confidence", "Mean of each row's largest weight."),
    "previous_token_score": Title("Previous-token score", "On repeated random tokens."),
    "duplicate_token_score": Title("Duplicate-token score", "On repeated random tokens."),
    "induction_score": Title("Induction score", "On repeated random tokens."),
    "tree_accuracy": Title("Undirected tree accuracy", "Arcs in the head's maximum spanning tree."),
}

DIMENSIONS: dict[str, str] = {
    "tag": "Tag",
    "deprel": "Relation",
    "relation": "Relation",
    "form": "Form",
    "offset": "Offset",
    "special": "Token",
    "target": "To",
    "direction": "Direction",
    "candidates": "Candidates",
    "mention": "Mention",
    "stack": "Stack",
    "attention_probe": "Probe",
}


def title_of(name: str, description: str = "") -> Title:
    """The listed title, or one made from the name."""
    plain = Title(name.replace("_", " ").capitalize(), description, "")
    return TITLES.get(name, plain)
