"""What Vig & Belinkov (2019) report of GPT-2 small."""

from headscope.results.measure import Published
from headscope.studies.shared.published import DISTANCE_ENTROPY

SOURCE = "GPT-2 small, Vig & Belinkov 2019"

NULL_SHARE = 0.57  # mean over heads
LARGEST_NULL_SHARE = 0.97  # some heads exceed it
NOUN_HEAD, NOUN_SHARE, MEAN_NOUN_SHARE = "L9H0", 0.43, 0.21
TAGS, TAGS_TO, TAGS_FROM = 16, 13, 7  # with a head of more than twice the mean share
ALIGNED_LAYERS = "layers 2–4"
ALIGNED_HEAD, ALIGNMENT, VARIABILITY = "L4H11", 0.42, 0.004
FARTHEST_HEAD, DISTANCE, ENTROPY = "L5H1", 14.2, 0.41
DISTANCE_DEVIATION = 3.6  # over heads
DISTANCE_ALIGNMENT = -0.73  # correlation over heads
PROBABILITY = {1: 0.42, 5: 0.07, 10: 0.02}  # of a relation, by distance in tokens
MEAN_SPAN = 3.89
FAR, WITHIN_FAR = 18, 0.998  # share of the relations that span at most so many tokens
MEAN_TOKENS = 27.7

OF_MEASURES = {
    "null_share": (
        Published(f"mean over heads; some exceed {LARGEST_NULL_SHARE}", SOURCE, NULL_SHARE),
    ),
    "pos_to": (
        Published(
            f"mean over heads; {NOUN_SHARE} in {NOUN_HEAD}",
            SOURCE,
            MEAN_NOUN_SHARE,
            {"tag": "NOUN"},
        ),
    ),
    "distance": (Published(f"highest, in {FARTHEST_HEAD}", SOURCE, DISTANCE),),
    "entropy": (
        Published(f"of {FARTHEST_HEAD}, the head with the longest distance", SOURCE, ENTROPY),
    ),
    "variability": (Published(f"lowest, in {ALIGNED_HEAD}", SOURCE, VARIABILITY),),
    "dependency_alignment": (
        Published(f"highest, in {ALIGNED_HEAD}", SOURCE, ALIGNMENT, {"form": "either"}),
    ),
    "dependency_probability": (
        Published("of neighbours", SOURCE, PROBABILITY[1], {"separation": "1"}),
        Published("of tokens 5 apart", SOURCE, PROBABILITY[5], {"separation": "5"}),
        Published("of tokens 10 apart", SOURCE, PROBABILITY[10], {"separation": "10"}),
    ),
    "dependency_within": (
        Published("of all relations", SOURCE, WITHIN_FAR, {"separation": f"{FAR}"}),
    ),
    "mean_dependency_span": (Published("mean span", SOURCE, MEAN_SPAN),),
    "correlation": (
        Published("distance and entropy", SOURCE, DISTANCE_ENTROPY, {"pair": "distance~entropy"}),
        Published(
            "distance and alignment", SOURCE, DISTANCE_ALIGNMENT, {"pair": "distance~alignment"}
        ),
    ),
}
