"""Lay out the pages of the site: `python -m docs.site.stage dist/pages`.

The pages in docs/ are plain Markdown that reads well in the repository. What the site adds is made
here, so that the builder (Sphinx with MyST) needs no plug-in of ours:

- pages from files that lie elsewhere: CHANGELOG.md, SECURITY.md …, and the notebooks;
- frames: the comment `<!-- live: NAME -->` in a page becomes a frame with that view or report;
- links to files of the repository that are no pages, which lead to the repository;
- the order of the pages, which is `NAVIGATION` below.
"""

import posixpath
import re
import shutil
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

from docs.site import embedded
from docs.site.notebooks import to_markdown

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Tutorial, how-to, reference and explanation are four needs of a reader (diataxis.fr).
NAVIGATION = {
    "Tutorial": ("tutorial", "notebook"),
    "How to": (
        "loading",
        "views",
        "chat",
        "traces",
        "why",
        "embedding",
        "corpora",
        "languages",
        "which_study",
        "studies",
        "explorer",
        "reproducing",
        "scale",
        "agents",
        "neighbours",
        "extending",
    ),
    "Gallery": (
        "gallery/index",
        "gallery/induction-head",
        "gallery/syntax-or-distance",
        "gallery/vig-belinkov",
        "gallery/clark",
        "gallery/retrieval",
        "gallery/fine-tuning",
        "gallery/what-feeds-it",
        "gallery/reports",
    ),
    "Reference": (
        "api/index",
        "api/models",
        "api/views",
        "api/corpora",
        "api/results",
        "api/metrics",
        "api/compact",
        "cli",
        "metrics",
        "models",
        "benchmarks",
        "changelog",
    ),
    "Explanation": (
        "design",
        "statistics",
        "clark2019",
        "luger2026",
        "portraits",
        "probes",
        "records",
        "training",
        "releasing",
    ),
    "Community": ("contributing", "conduct", "security"),
}
# Pages that are made from a file outside docs/, or from a notebook.
ELSEWHERE = {
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "conduct.md": "CODE_OF_CONDUCT.md",
    "security.md": "SECURITY.md",
    "training.md": "training/README.md",
    "notebook.md": "docs/views.ipynb",
}
AS_THEY_ARE = ("images", "llms.txt", "families.json")
LIVE = re.compile(r"^<!-- live: ([\w-]+) -->$", re.MULTILINE)
LINK = re.compile(r"(?<=\]\()([^)\s:#]+)(#[^)\s]*)?(?=\))")
CODE = re.compile(r"^(?P<fence>```+).*?^(?P=fence)$|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def stage(target: Path, *, frames: bool = True) -> None:
    """Write every page and what it needs into a folder of its own."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for page, source in sources().items():
        _write_page(target, page, source)
    for name in AS_THEY_ARE:
        copy = shutil.copytree if (DOCS / name).is_dir() else shutil.copyfile
        copy(DOCS / name, target / name)
    if frames:
        shutil.copytree(embedded.make(), target / "extra" / "embedded")
    for name in ("llms.txt", "families.json"):  # programs look for them at the root
        (target / "extra").mkdir(exist_ok=True)
        shutil.copyfile(DOCS / name, target / "extra" / name)


def sources() -> dict[str, str]:
    """Every page of the site, with the file of the repository that it is made from."""
    pages = [file.relative_to(DOCS).as_posix() for file in DOCS.rglob("*.md")]
    notebooks = [file.relative_to(DOCS).as_posix() for file in (DOCS / "gallery").glob("*.ipynb")]
    made = {name.replace(".ipynb", ".md"): f"docs/{name}" for name in notebooks}
    return {**{name: f"docs/{name}" for name in sorted(pages)}, **made, **ELSEWHERE}


def repository() -> str:
    """Where the repository is shown, as the package's metadata says."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project["urls"]["Repository"]


def _write_page(target: Path, page: str, source: str) -> None:
    place = target / page
    place.parent.mkdir(exist_ok=True)
    text = (ROOT / source).read_text(encoding="utf-8")
    if source.endswith(".ipynb"):
        text, pictures = to_markdown(text, place.stem)
        text += f"\n[This page as a notebook]({repository()}/blob/main/{source})\n"
        for name, content in pictures.items():
            (place.parent / name).write_bytes(content)
    place.write_text(_for_the_site(text, page, source), encoding="utf-8")


def _for_the_site(text: str, page: str, source: str) -> str:
    up = "../" * page.count("/")
    framed = LIVE.sub(lambda found: embedded.frame(found[1], up), text)
    linked = _outside_code(framed, lambda part: _linked(part, source, page))
    return linked + _contents() if page == "index.md" else linked


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    parts, place = [], 0
    for found in CODE.finditer(text):
        parts += [change(text[place : found.start()]), found[0]]
        place = found.end()
    return "".join([*parts, change(text[place:])])


def _linked(text: str, source: str, page: str) -> str:
    homes = {made_from: name for name, made_from in sources().items()}

    def target(found: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), found[1]))
        return _address(path, homes, page, found[1]) + (found[2] or "")

    return LINK.sub(target, text)


def _address(path: str, homes: dict[str, str], page: str, written: str) -> str:
    """Where the site has a file of the repository, else where the repository shows it."""
    here = posixpath.dirname(page) or "."
    if path in homes:
        return posixpath.relpath(homes[path], here)
    if not (ROOT / path).exists():
        return written  # a picture of a notebook, or a mistake that the builder reports
    if path.split("/")[1:2] and path.split("/")[1] in AS_THEY_ARE:
        return posixpath.relpath(path.removeprefix("docs/"), here)
    kind = "tree" if (ROOT / path).is_dir() else "blob"
    return f"{repository()}/{kind}/main/{path}"


def _contents() -> str:
    """The navigation, as MyST writes it."""
    parts = [
        f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(pages) + "\n```\n"
        for caption, pages in NAVIGATION.items()
    ]
    return "".join(parts)


if __name__ == "__main__":
    stage(Path(sys.argv[1]))
