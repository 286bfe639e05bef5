"""Tiny models of the two best-known kinds, shared by the tests of the model package."""

from functools import lru_cache
from pathlib import Path

from headscope.model.model import Model
from tests.contracts.families import FAMILIES
from tests.contracts.family import Family, tokenizer


def family(name: str) -> Family:
    return next(family for family in FAMILIES if family.name == name)


@lru_cache(maxsize=8)
def tiny(name: str) -> Model:
    return family(name).model()


def save(name: str, directory: Path) -> Path:
    family(name).network().save_pretrained(directory)
    tokenizer().save_pretrained(directory)
    return directory
