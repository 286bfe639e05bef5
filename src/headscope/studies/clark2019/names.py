"""Heads as we number them, with the paper's number beside it."""

from headscope.report.heads import name_head


def name_both(layer: int, head: int) -> str:
    """L7H9 (paper 8-10): the paper counts layers and heads from 1."""
    return f"{name_head(layer, head)} (paper {layer + 1}-{head + 1})"
