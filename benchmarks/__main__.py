"""Run every benchmark and write docs/benchmarks.md: machine, date, versions and all tables."""

import pkgutil
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import benchmarks

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
PACKAGES = ("torch", "transformers", "numpy", "pyarrow")


def machine() -> str:
    """The processor and the number of cores we may use."""
    info = Path("/proc/cpuinfo")
    names = info.read_text().splitlines() if info.exists() else []
    model = next((line.split(":")[1].strip() for line in names if "model name" in line), "")
    cores = sum(line.startswith("processor") for line in names)
    return f"{model or platform.processor() or platform.machine()}, {cores or '?'} cores"


def header() -> str:
    """What was measured on what."""
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return (
        "# Benchmarks\n\nWritten by `make bench`; every table was measured side by side in one run."
        f"\n\n{machine()}; {datetime.now(UTC):%Y-%m-%d}; Python {platform.python_version()}, "
        f"{versions}.\n"
    )


def run(name: str) -> str:
    """One benchmark as a section of the page; it is printed as it goes."""
    command = [sys.executable, "-m", f"benchmarks.{name}"]
    print(f"\n== python -m benchmarks.{name}", flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    print(done.stdout, end="", flush=True)
    return f"\n## {name}\n\n`python -m benchmarks.{name}`\n\n```text\n{done.stdout.strip()}\n```\n"


def main() -> None:
    """All benchmarks, in the order of their names."""
    names = [m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name != "__main__"]
    PAGE.write_text(header() + "".join(map(run, names)), encoding="utf-8")
    print(f"\n{PAGE}")


if __name__ == "__main__":
    main()
