"""Every test is found from the module it tests: the same folder, a name that begins alike."""

from pathlib import Path

TESTS = Path(__file__).parents[1]
SOURCE = TESTS.parent / "src" / "headscope"
# Rooms of their own, which mirror no package; the README says what each is for.
OTHERS = {
    "browser",
    "contracts",
    "docs",
    "fuzz",
    "golden",
    "hosts",
    "mistakes",
    "real",
    "references",
    "tools",
    "training",
}


def things(folder: Path) -> set[str]:
    """What tests may be named after: modules and folders of this one, and the folder itself."""
    inside = {path.stem for path in folder.iterdir() if path.is_dir() or path.suffix == ".py"}
    return {*inside, folder.name}


def mirrored() -> list[Path]:
    files = (path.relative_to(TESTS) for path in TESTS.rglob("test_*.py"))
    return sorted(path for path in files if path.parts[0] not in OTHERS)


def is_named_after_its_module(file: Path) -> bool:
    folder, name = SOURCE / file.parent, file.stem.removeprefix("test_")
    return folder.is_dir() and any(f"{name}_".startswith(f"{thing}_") for thing in things(folder))


def test_every_test_is_named_after_what_it_tests() -> None:
    assert [str(file) for file in mirrored() if not is_named_after_its_module(file)] == []


def test_the_readme_names_every_room() -> None:
    text = (TESTS / "README.md").read_text(encoding="utf-8")
    folders = (path for path in TESTS.iterdir() if any(path.glob("*.py")))
    rooms = {path.name for path in folders} & OTHERS
    assert rooms == OTHERS
    assert {room for room in rooms if f"`{room}/`" not in text} == set()


def test_no_test_imports_another() -> None:
    importing = {
        str(path.relative_to(TESTS))
        for path in TESTS.rglob("*.py")
        if path.parent.name != "browser"
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("from tests.") and ".test_" in line.split(" import ")[0]
    }
    assert importing == set()
