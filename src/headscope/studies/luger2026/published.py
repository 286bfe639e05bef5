"""What papers report of the measures of this study, in models of their own."""

from headscope.studies.shared.published import DISTANCE_ENTROPY, NEXT_HEADS

RETRIEVAL_SHARE = 0.05  # fewer of the heads, in four families of models: Wu et al. 2024

__all__ = ["DISTANCE_ENTROPY", "NEXT_HEADS", "RETRIEVAL_SHARE"]
