"""What the page of statistics says of sizes is what the studies take."""

import pytest

from benchmarks.memory import state_sizes
from headscope.metrics import Grid
from tests.docs.page_module import DOCS

LARGE = Grid(tuple(range(32)), 32)


@pytest.mark.parametrize("study", ["vig2019", "clark2019", "luger2026"])
def test_the_page_says_how_large_the_sums_of_1024_heads_are(study: str) -> None:
    sizes = state_sizes(study, LARGE)
    page = (DOCS / "statistics.md").read_text(encoding="utf-8")
    largest = sorted(sizes, key=lambda name: -sizes[name])[:3]
    named = ", ".join(f"{name} {sizes[name] / 2**20:.1f}" for name in largest)
    assert f"| {study} | {sum(sizes.values()) / 2**20:.0f} MiB | {named} |" in page


def test_sums_grow_with_heads_and_labels_and_32_groups() -> None:
    sizes = state_sizes("vig2019", LARGE)
    assert sizes["distance"] == 2 * 32 * 1024 * 8
    of_even_attention = (42 + 1) * 32 * 8
    assert sizes["deprel_to"] == (42 + 1) * 32 * 1024 * 8 + of_even_attention
