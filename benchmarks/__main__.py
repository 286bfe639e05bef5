"""Run every benchmark and write docs/benchmarks.md: machine, date, versions and all tables.

python -m benchmarks                  all of them
python -m benchmarks study memory     some of them; the page keeps the other sections

A benchmark that needs something absent says so in its section. Tables of a GPU are made on another
machine and kept in benchmarks/gpu: a title, the command, and what it printed. Aims, and whether
they are met, are in benchmarks/notes; a benchmark with several tables has its notes after the last.
"""

import pkgutil
import platform
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import benchmarks

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
PACKAGES = ("torch", "transformers", "tokenizers", "numpy", "pyarrow", "ray")
# The last three are for people: they compare commits, or belong to docs/statistics.md.
NOT_HERE = ("__main__", "absent", "beside", "coverage", "untrained")
LIMIT = 900  # seconds for one benchmark


@dataclass(frozen=True)
class Section:
    """One run of one benchmark, and its heading in the page."""

    title: str
    module: str
    arguments: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        return " ".join(["python -m", f"benchmarks.{self.module}", *self.arguments])


# In the order of the page; whatever else lies in this folder follows with its defaults.
SECTIONS = (
    Section("Study over forward pass, 8 × 8 heads", "study", ("--no-memory",)),
    Section(
        "Study over forward pass, GPT-2 small",
        "study",
        ("--shape", "gpt2", "--sentences", "256", "--repeats", "2", "--no-memory"),
    ),
    Section("Studies beside the plain pass", "studies"),
    Section("Memory against corpus size", "memory"),
    Section("Import time", "importing"),
    Section("Reading", "reading"),
    Section("Divergence between heads", "divergence"),
    Section("Gradient importance", "gradient"),
    Section("Heads as classifiers", "probes"),
    Section("Generated tokens", "generation"),
    Section("Views", "views"),
    Section(
        "A view of 512 tokens and 144 heads",
        "long_views",
        ("512", "--layers", "12", "--heads", "12"),
    ),
    Section("Long views", "long_views"),
    Section("Explorer under a crowd", "server", ("--seconds", "20")),
)


def sections() -> list[Section]:
    known = {section.module for section in SECTIONS}
    modules = [module.name for module in pkgutil.iter_modules(benchmarks.__path__)]
    others = [
        Section(name.replace("_", " ").capitalize(), name)
        for name in modules
        if name not in known and name not in NOT_HERE and not name.startswith("gpu_")
    ]
    return [*SECTIONS, *others]


def machine() -> str:
    """The processor and the number of cores we may use."""
    info = Path("/proc/cpuinfo")
    names = info.read_text().splitlines() if info.exists() else []
    model = next((line.split(":")[1].strip() for line in names if "model name" in line), "")
    cores = sum(line.startswith("processor") for line in names)
    return f"{model or platform.processor() or platform.machine()}, {cores or '?'} cores"


def header() -> str:
    """What was measured on what."""
    versions = ", ".join(f"{name} {found}" for name in PACKAGES if (found := _version(name)))
    return (
        "# Benchmarks\n\nEvery speed claim of the project in one place. Written by `make bench`; "
        "every table was measured side by side in one run, so ratios hold on other machines too "
        "where seconds do not.\n\n"
        f"{machine()}; {datetime.now(UTC):%Y-%m-%d}; Python {platform.python_version()}, "
        f"{versions}. The tables of a GPU name theirs.\n"
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def measure(section: Section) -> str:
    """One benchmark as a section of the page; it is printed as it goes."""
    print(f"\n== {section.command}", flush=True)
    start = time.perf_counter()
    output = _run([sys.executable, "-m", f"benchmarks.{section.module}", *section.arguments])
    print(output, f"({time.perf_counter() - start:.0f} s)", sep="\n", flush=True)
    of_module = [other for other in sections() if other.module == section.module]
    notes = _notes(section.module) if section == of_module[-1] else ""
    return _text(section.title, section.command, output, notes)


def _run(command: list[str]) -> str:
    """What a benchmark prints, or why it could not run."""
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return f"Not measured: it took longer than {LIMIT} s here."
    if process.returncode == 0:
        return process.stdout.strip()
    last = (process.stderr.strip().splitlines() or ["no reason given"])[-1]
    return f"{process.stdout}\nNot measured here: {last}".strip()


def _notes(module: str) -> str:
    path = HERE / "notes" / f"{module}.md"
    return f"\n{path.read_text(encoding='utf-8').strip()}\n" if path.exists() else ""


def _text(title: str, command: str, output: str, notes: str) -> str:
    return f"\n## {title}\n\n`{command}`\n\n```text\n{output}\n```\n{notes}"


def gpu_sections() -> list[str]:
    """The tables that were made on a GPU: a title, the command, and what it printed."""
    made: list[str] = []
    for path in sorted((HERE / "gpu").glob("*.txt")):
        title, command, output = path.read_text(encoding="utf-8").split("\n", 2)
        made.append(_text(f"GPU: {title}", command, output.strip(), _notes(path.stem)))
    return made


def known_sections() -> dict[str, str]:
    """The sections that the page has now, by title."""
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    parts = re.split(r"(?m)^(?=## )", text)[1:]
    return {part.split("\n", 1)[0].removeprefix("## "): f"\n{part.rstrip()}\n" for part in parts}


def write(made: dict[str, str]) -> None:
    """The page, of the sections that there are."""
    parts = [made[section.title] for section in sections() if section.title in made]
    PAGE.write_text(header() + "".join([*parts, *gpu_sections()]), encoding="utf-8")


def main() -> None:
    """All benchmarks, or those that are named; the page is written anew after each."""
    chosen, made = set(sys.argv[1:]), known_sections()
    for section in sections():
        if not chosen or section.module in chosen:
            made[section.title] = measure(section)
            write(made)
    print(f"\n{PAGE}")


if __name__ == "__main__":
    main()
