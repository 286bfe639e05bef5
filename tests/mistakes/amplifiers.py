"""Small files of a run that would take gigabytes, and every command that reads a run, on them.

`python -m tests.mistakes.amplifiers FOLDER` runs the commands on those in FOLDER in one process,
whose peak memory is measured.
"""

import io
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headscope import cli
from headscope.files import LENGTH, checksum, seal
from headscope.results.dataset import load, save
from headscope.results.records import (
    EXAMPLES,
    INPUTS,
    TOP_TOKENS,
    with_checksums,
)
from tests.references.luger2026_run import write_luger_run

COMMANDS = (
    ("heads", "{run}"),
    ("compare", "{run}", "{good}"),
    ("export", "{run}", "--format", "csv", "--out", "{out}"),
    ("report", "{run}", "--out", "{out}.html"),
    ("site", "{run}", "--out", "{out}-site"),
)
Spoiler = Callable[[Path], object]
MILLION = 1_000_000


def _one_row(name: str, column: str, values: pa.Array) -> Spoiler:
    """The first row with a list of many equal values, which take a few bytes."""

    def spoil(run: Path) -> None:
        first = pq.read_table(run / name).slice(0, 1)
        lists = pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)
        _write(run, name, first.set_column(first.column_names.index(column), column, lists))

    return spoil


def _many_rows(name: str) -> Spoiler:
    """The first row, a million times."""

    def spoil(run: Path) -> None:
        _write(run, name, pq.read_table(run / name).take(np.zeros(MILLION, np.int64)))

    return spoil


def _write(run: Path, name: str, table: pa.Table) -> None:
    pq.write_table(table, run / name, compression="zstd", store_schema=False)
    save(with_checksums(load(run), {name: checksum(run / name)}), run / "result.nc")


def _hdf5(change: Callable[[h5py.File], object]) -> Spoiler:
    def spoil(run: Path) -> None:
        path = run / "result.nc"
        path.write_bytes(path.read_bytes()[:-LENGTH])
        with h5py.File(path, "a") as file:
            change(file)
        path.write_bytes(seal(path.read_bytes()))

    return spoil


def _shared_texts(file: h5py.File) -> None:
    """Many texts, all pointing at one long object."""
    texts = file.create_dataset("names", (1400,), h5py.string_dtype())
    texts[0] = "x" * 5_000_000
    offset = texts.id.get_offset()
    file.flush()
    with Path(file.filename).open("rb+") as content:
        content.seek(offset)
        pointer = content.read(16)
        content.seek(offset)
        content.write(pointer * 1400)


def _shared_attributes(file: h5py.File) -> None:
    """Many attributes, each of a megabyte."""
    for number in range(40):
        file["entropy"].attrs[f"note{number}"] = "x" * MILLION


def _compressed(file: h5py.File) -> None:
    zeros = file.create_dataset("zeros", (400 * MILLION,), "i1", chunks=(MILLION,), compression=4)
    for start in range(0, 400, 50):
        zeros[start * MILLION : (start + 50) * MILLION] = np.zeros(50 * MILLION, np.int8)


AMPLIFIERS: dict[str, Spoiler] = {
    "one example of 20 million weights": _one_row(
        EXAMPLES, "weight", pa.array(np.ones(20 * MILLION, np.float32))
    ),
    "a million rows of examples": _many_rows(EXAMPLES),
    "a million top tokens": _many_rows(TOP_TOKENS),
    "an input of long tokens": _one_row(
        INPUTS,
        "tokens",
        pa.DictionaryArray.from_arrays(np.zeros(MILLION, np.int32), ["x" * 19_999]),
    ),
    "texts that share one object": _hdf5(_shared_texts),
    "attributes of a megabyte each": _hdf5(_shared_attributes),
    "zeros of gzip": _hdf5(_compressed),
    "settings of many lists": lambda run: (run / "run.json").write_text(
        json.dumps({"options": [[]] * 3_000_000, "sha256": ""}), "utf-8"
    ),
}


def amplify(folder: Path) -> Iterator[tuple[str, Path]]:
    """A good run, and the name and place of every copy of it with one such file."""
    good = write_luger_run(folder / "good")
    for name, spoil in AMPLIFIERS.items():
        run = folder / name.replace(" ", "-")
        shutil.copytree(good, run)
        spoil(run)
        yield name, run


def main(folder: Path) -> None:
    """Run every command on every copy, and print what became of it, one JSON object per line."""
    for name in AMPLIFIERS:
        run = folder / name.replace(" ", "-")
        names = {"run": run, "good": folder / "good", "out": folder / f"{run.name}-out"}
        for command, *arguments in COMMANDS:
            start, code = time.process_time(), None
            sys.argv = ["headscope", command, *(part.format(**names) for part in arguments)]
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as said:
                try:
                    cli.main()
                except SystemExit as end:
                    code = end.code or 0
            outcome = {
                "name": name,
                "command": command,
                "exit": code,
                "said": said.getvalue(),
                "seconds": time.process_time() - start,
                "memory": peak_memory(),
            }
            print(json.dumps(outcome), flush=True)


def peak_memory() -> int:
    """The most bytes that this process had; what getrusage says begins with its parent's."""
    status = Path("/proc/self/status").read_text("ascii")
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
