"""What the papers report for their own models, typed once for tables, findings and measures.

Clark et al. 2019, Tables 1 to 3, for BERT-base, in percent.
"""

from headscope.results.measure import Published

CLARK = "BERT-base, Clark et al. 2019"

# Relation as the paper's scheme (Stanford) calls it: accuracy, best fixed offset, its accuracy.
# The paper lets the clitic's prediction count for possessors: its `poss` is our "poss with 's".
TABLE1 = {
    "all": (34.5, 1, 26.3),
    "prep": (66.7, -1, 61.8),
    "pobj": (76.3, -2, 34.6),
    "det": (94.3, 1, 51.7),
    "nn": (70.4, 1, 70.2),
    "nsubj": (58.5, 1, 45.5),
    "amod": (75.6, 1, 68.3),
    "dobj": (86.8, -2, 40.0),
    "advmod": (48.8, 1, 40.2),
    "aux": (81.1, 1, 71.5),
    "poss with 's": (80.5, 1, 47.7),
    "auxpass": (82.5, 1, 40.5),
    "ccomp": (48.8, -2, 12.4),
    "mark": (50.7, 2, 14.5),
    "prt": (99.1, -1, 91.4),
}
# Labels of other schemes that mean the same arc. Prepositions have no equal in Universal
# Dependencies, where the noun governs them.
SAME_RELATION = {
    "compound": "nn",
    "obj": "dobj",
    "nmod:poss with 's": "poss with 's",
    "aux:pass": "auxpass",
    "compound:prt": "prt",
}
MENTIONS = ("all", "pronoun", "proper", "nominal")
BEST_HEAD = "best head"
TABLE2 = {
    "nearest": (27, 29, 29, 19),
    "head_match": (52, 47, 67, 40),
    "rules": (69, 70, 77, 60),
    BEST_HEAD: (65, 64, 73, 58),
}
TABLE3 = {
    "right_branching": 26,
    "distances_words": 58,
    "random_attention_words": 30,
    "attention": 61,
    "attention_words": 77,
}


def published_relation(relation: str) -> tuple[float, int, float] | None:
    """Accuracy, offset and baseline of a relation in the paper, or of the one that equals it."""
    return TABLE1.get(SAME_RELATION.get(relation, relation))


def _of_relation(relation: str, paper: tuple[float, int, float]) -> Published:
    accuracy, offset, baseline = paper
    says = f"the best head; always the word at offset {offset:+d}: {baseline / 100:.3f}"
    return Published(says.replace("-", "−"), CLARK, accuracy / 100, {"relation": relation})


# Of the measures relation_accuracy, coref_accuracy and parsing_uas.
RELATION_ACCURACY = tuple(
    _of_relation(label, paper)
    for label in (*TABLE1, *SAME_RELATION)
    if (paper := published_relation(label)) is not None
)
COREF_ACCURACY = tuple(
    Published("the best head", CLARK, percent / 100, {"mention": mention})
    for mention, percent in zip(MENTIONS, TABLE2[BEST_HEAD], strict=True)
)
PARSING_UAS = tuple(
    Published("mean attachment", CLARK, percent / 100, {"probe": probe})
    for probe, percent in TABLE3.items()
)
