"""Packages import in one direction; the order and the doors are listed in tests/tools/house.py."""

from headscope.studies import STUDIES
from tests.tools.house import (
    AGAINST_THE_ORDER,
    LAZY_DOORS,
    LAZY_LIBRARIES,
    LAZY_PACKAGES,
    ORDER,
    Import,
    imports,
    modules,
    own_imports,
    package_of,
    single_importers,
    study_of,
)


def is_against_the_order(found: Import) -> bool:
    here, there = package_of(found.importer), package_of(found.imported)
    return bool(here) and bool(there) and ORDER.index(there) > ORDER.index(here)


def lazy_imports() -> list[Import]:
    """What functions import, but for commands, which keep `headscope --help` light."""
    return [
        found
        for found in imports()
        if found.in_function
        and not found.for_types
        and package_of(found.importer) not in LAZY_PACKAGES
    ]


def test_every_package_has_its_place_in_the_order() -> None:
    rooms = {package_of(name) for name in modules()} - {"", "__main__"}
    assert rooms - set(ORDER) == set()


def test_packages_import_only_from_those_before_them() -> None:
    wrong = [
        found.place
        for found in own_imports()
        if package_of(found.importer) in ORDER
        and is_against_the_order(found)
        and (found.importer, package_of(found.imported)) not in AGAINST_THE_ORDER
    ]
    assert wrong == []


def test_no_study_imports_another() -> None:
    assert {study_of(name) for name in modules()} == {None, *STUDIES}
    assert study_of("headscope.studies.shared.words") is None
    crossing = {
        (found.importer, found.imported)
        for found in own_imports()
        if (importer := study_of(found.importer)) is not None
        and study_of(found.imported) not in (None, importer)
    }
    assert crossing == set()


def test_a_function_imports_only_what_is_heavy_or_a_listed_door() -> None:
    wrong = [
        found.place
        for found in lazy_imports()
        if (found.importer, found.imported) not in LAZY_DOORS
        and found.imported.partition(".")[0] not in LAZY_LIBRARIES
    ]
    assert wrong == []


def test_every_listed_door_is_used() -> None:
    against = {(found.importer, package_of(found.imported)) for found in own_imports()}
    lazy = {(found.importer, found.imported) for found in lazy_imports()}
    assert set(AGAINST_THE_ORDER) - against == set()
    assert set(LAZY_DOORS) - lazy == set()


def test_a_module_is_told_from_the_package_it_lies_in() -> None:
    found = {each.imported for each in imports() if each.importer == "headscope.text.read"}
    assert "headscope.text.readers" in found and "headscope.text.readers.lines" in found
    importer = single_importers()["headscope.text.readers.mentions"]
    assert importer == "headscope.text.readers.conll"
