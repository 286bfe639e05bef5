"""The benchmark's crowd with a few wishes each: good and bad requests mixed, nothing breaks."""

import os

from headscope.explorer.answers.runs import Library
from headscope.explorer.api import create_app
from headscope.explorer.texts import Texts
from tests.explorer import own_loop
from tests.explorer.crowd import crowd, resident
from tests.explorer.live import live
from tests.references.explorer_models import tiny_model


def test_a_crowd_is_served_refused_or_asked_to_come_back_and_memory_stays_flat(
    library: Library,
) -> None:
    with live(create_app(library, Texts("tiny-gpt2", tiny_model))) as place:
        own_loop.run(crowd(place, "vig", visitors=20, wishes=4))
        before = resident(os.getpid())
        tally = own_loop.run(crowd(place, "vig", visitors=20, wishes=12))
        grown = resident(os.getpid()) - before
    assert tally.broken == []
    assert tally.good[200] > 50  # of 160; the others are asked to come back
    assert {400, 403, 404, 405, 413, 421} <= set(tally.bad)
    assert grown < 60
