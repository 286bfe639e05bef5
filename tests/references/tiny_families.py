"""Tiny models of the two best-known kinds, shared by the tests of the model package."""

from functools import lru_cache

from headscope.model.model import Model
from tests.contracts.families import FAMILIES
from tests.contracts.family import Family


def family(name: str) -> Family:
    return next(family for family in FAMILIES if family.name == name)


@lru_cache(maxsize=8)
def tiny(name: str) -> Model:
    return family(name).model()
