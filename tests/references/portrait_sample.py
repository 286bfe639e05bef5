"""A sample of the demo corpus as the bundled models read it, drawn once for all tests."""

from functools import cache

import headscope as hs
from headscope.engine.setup import Setup
from headscope.model.model import Model
from headscope.portrait.pairs import Pairs
from headscope.portrait.sample import Sample


@cache
def model(name: str) -> Model:
    return hs.load(name)


@cache
def setup(name: str) -> Setup:
    return Setup(model(name), hs.demo_corpus(), {}, {}, batch_tokens=1024)


@cache
def sample(name: str) -> Sample:
    return Sample.draw(setup(name), "auto")


@cache
def pairs(name: str, part: str) -> Pairs:
    return Pairs.of(sample(name).texts[part], sample(name).vocabulary)
