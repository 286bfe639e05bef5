"""Check the finished site: every link and anchor leads somewhere, and nothing comes from elsewhere.

python -m docs.site.links dist/site
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {
    ("script", "src"),
    ("link", "href"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
}
NOT_FETCHED = {"canonical", "alternate", "prev", "next", "edit", "author", "license"}
ELSEWHERE = re.compile(r"(https?:)?//")


@dataclass
class Reference:
    """A link, or something that a page shows, as it is written in the page."""

    page: Path
    target: str
    fetched: bool


@dataclass
class Page(HTMLParser):
    """What a page names, and what can be named in it."""

    path: Path
    names: set[str] = field(default_factory=set)
    references: list[Reference] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.names |= {values[name] for name in ("id", "name") if name in values}
        for name in ("href", "src"):
            if values.get(name):
                fetched = (tag, name) in FETCHED and values.get("rel") not in NOT_FETCHED
                self.references.append(Reference(self.path, values[name], fetched))


@dataclass(frozen=True)
class Site:
    """All pages of a folder."""

    folder: Path

    @cached_property
    def pages(self) -> dict[Path, Page]:
        """Pages by path; the views and reports in frames are checked where they are made."""
        found = sorted(self.folder.rglob("*.html"))
        return {path: Page(path) for path in found if "embedded" not in path.parts}

    def faults(self) -> Iterator[str]:
        """A sentence for every link that is broken."""
        for page in self.pages.values():
            for reference in page.references:
                fault = self._fault(reference)
                if fault:
                    yield f"{page.path.relative_to(self.folder)}: {reference.target}: {fault}"

    def _fault(self, reference: Reference) -> str:
        address = urlsplit(reference.target)
        if ELSEWHERE.match(reference.target):
            return "fetched from elsewhere" if reference.fetched else ""
        if address.scheme:
            return ""
        return self._missing(reference.page, unquote(address.path), unquote(address.fragment))

    def _missing(self, page: Path, path: str, anchor: str) -> str:
        if page.name == "404.html":  # its addresses are absolute: it is shown anywhere
            return ""
        target = (page.parent / path).resolve() if path else page
        target = target / "index.html" if target.is_dir() else target
        if not target.is_relative_to(self.folder) or not target.exists():
            return "no such file"
        if anchor and target in self.pages and anchor not in self.pages[target].names:
            return "no such anchor"
        return ""


def main() -> int:
    """Print what is broken; exit code 1 if anything is."""
    site = Site(Path(sys.argv[1]).resolve())
    faults = list(site.faults())
    count = sum(len(page.references) for page in site.pages.values())
    print(*faults, f"{len(site.pages)} pages, {count} links, {len(faults)} broken", sep="\n")
    return 1 if faults or not site.pages else 0


if __name__ == "__main__":
    sys.exit(main())
