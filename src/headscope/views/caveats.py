"""What a picture leaves out, in words that go along wherever the picture is taken.

The same sentences as in `static/kinds/shared/caveats.js`; a test compares the two.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from headscope.views.kinds import all_settings

if TYPE_CHECKING:
    from headscope.views.state import ViewState


def caveats(state: "ViewState", hidden: float, lines: tuple[int, int] | None) -> list[str]:
    """One sentence for each thing that is left out.

    `hidden` is the share of the attention that goes to hidden tokens; of `lines` so many are drawn
    and so many there are.
    """
    sentences = []
    if state.hide:
        share = f"{100 * hidden:.1f} %"
        sentences.append(f"{hidden_names(state.hide)} hidden: {share} of the attention goes there.")
    if state.attending is not None:
        sentences.append(f"Only what “{state.attending}” looks at.")
    if state.attended is not None:
        sentences.append(f"Only what looks at “{state.attended}”.")
    if state.pair != "all":
        sentences.append(f"Only {all_settings()['pair'].choices[state.pair]}.")
    if lines is not None and state.mass < 1:
        share = f"{100 * state.mass:.0f} %"
        sentences.append(f"Of every row the strongest lines that hold {share} of it.")
    if lines is not None and lines[0] < lines[1]:
        sentences.append(f"The strongest {lines[0]:,} of {lines[1]:,} lines.")
    return sentences


def hidden_names(hide: Sequence[str]) -> str:
    """First token and special tokens."""
    choices = all_settings()["hide"].choices
    names = " and ".join(choices[one].removeprefix("Hide ") for one in hide)
    return names[:1].upper() + names[1:]
