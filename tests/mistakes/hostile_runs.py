"""Run directories as strangers, broken disks and old versions make them, from one good run.

Each spoiler takes a copy of the good run and changes one thing. `spoil` makes all of them.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headscope.files import LENGTH, checksum, seal
from headscope.results.records import CHECKSUMS, EXAMPLES, INPUTS
from headscope.results.run import read_settings, seal_settings

Spoiler = Callable[[Path], None]
SECRET = "TOP-SECRET-KEY"  # must never be seen in anything we write
FILES = ("run.json", "result.nc", EXAMPLES)
FOLDERS = ("shards", "tables", "figures")


def spoil(good: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """The name and the place of every spoilt copy; `folder` also gets the secret they point at."""
    (folder / "secret").write_text(SECRET * 50, encoding="utf-8")
    for name, spoiler in spoilers().items():
        place = folder / name
        shutil.copytree(good, place, symlinks=True)
        spoiler(place)
        yield name, place


def spoilers() -> dict[str, Spoiler]:
    """Every spoiler by name."""
    return {
        **_of_files(),
        **_of_folders(),
        **_of_attributes(),
        **{f"run.json {name}": _json(change) for name, change in _SETTINGS.items()},
        **{f"run.json {name}": _text(content) for name, content in _BROKEN_JSON.items()},
        **{f"result.nc {name}": _hdf5(change) for name, change in _RESULTS.items()},
        **{f"examples {name}": _parquet(change) for name, change in _EXAMPLES.items()},
    }


def _of_files() -> dict[str, Spoiler]:
    found: dict[str, Spoiler] = {}
    for name in FILES:
        found |= {
            f"{name} is a link to a secret": _replace(name, _link("../secret")),
            f"{name} is a link to nothing": _replace(name, _link("nowhere")),
            f"{name} is a link to itself": _replace(name, _link(name)),
            f"{name} is a pipe": _replace(name, os.mkfifo),
            f"{name} is a folder": _replace(name, os.mkdir),
            f"{name} is empty": _replace(name, lambda path: path.write_bytes(b"")),
            f"{name} is noise": _replace(name, lambda path: path.write_bytes(_noise(4096))),
            f"{name} is missing": _replace(name, lambda path: None),
            f"{name} is unreadable text": _replace(name, lambda p: p.write_bytes(b"\xff\xfe\x00")),
            **{f"{name} is cut at {share}": _cut(name, share) for share in (0.1, 0.5, 0.9, 0.999)},
            **{f"{name} has flipped bits {seed}": _flip(name, seed) for seed in range(4)},
        }
    return found


def _of_folders() -> dict[str, Spoiler]:
    found: dict[str, Spoiler] = {}
    for name in FOLDERS:
        found |= {
            f"{name} is a link": _replace(name, _link("..")),
            f"{name} is a pipe": _replace(name, os.mkfifo),
            f"{name} is a file": _replace(name, lambda path: path.write_bytes(b"x")),
        }
    return found


def _replace(name: str, make: Callable[[Path], object]) -> Spoiler:
    def spoiler(run: Path) -> None:
        place = run / name
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
        make(place)

    return spoiler


def _link(target: str) -> Callable[[Path], None]:
    return lambda place: place.symlink_to(target)


def _noise(size: int) -> bytes:
    return np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8).tobytes()


def _cut(name: str, share: float) -> Spoiler:
    def spoiler(run: Path) -> None:
        content = (run / name).read_bytes()
        (run / name).write_bytes(content[: int(share * len(content))])

    return spoiler


def _flip(name: str, seed: int) -> Spoiler:
    def spoiler(run: Path) -> None:
        content = bytearray((run / name).read_bytes())
        for place in np.random.default_rng(seed).integers(0, len(content), 8):
            content[place] ^= 0x41
        (run / name).write_bytes(bytes(content))

    return spoiler


def _text(content: bytes) -> Spoiler:
    return _replace("run.json", lambda path: path.write_bytes(content))


def _json(change: Callable[[dict[str, Any]], object]) -> Spoiler:
    def spoiler(run: Path) -> None:
        about = read_settings(run)
        change(about)
        sealed = seal_settings(about)  # a stranger can do that too
        (run / "run.json").write_text(json.dumps(sealed), encoding="utf-8")

    return spoiler


_BROKEN_JSON: dict[str, bytes] = {
    "is a list": b"[]",
    "is null": b"null",
    "is a number": b"5",
    "is deeply nested": b"[" * 100_000 + b"]" * 100_000,
    "has a number of many digits": b'{"study": ' + b"9" * 6000 + b"}",
    "has NaN": b'{"study": NaN, "model": Infinity}',
    "begins with a byte-order mark": b"\xef\xbb\xbf{}",
    "is an empty object": b"{}",
    "ends in rubbish": b"{} {}",
}
_SETTINGS: dict[str, Callable[[dict[str, Any]], object]] = {
    "has a study of another type": lambda a: a.update(study=["vig2019"]),
    "has an unknown study": lambda a: a.update(study="nobody1999"),
    "has a study that is code": lambda a: a.update(study="os:system"),
    "has a study that is markup": lambda a: a.update(study="<script>alert(1)</script>"),
    "has no study": lambda a: a.pop("study", None),
    "has no model": lambda a: a.pop("model", None),
    "has a model of another type": lambda a: a.update(model=7),
    "has a model with a hostile name": lambda a: a.update(
        model={"name": "\x1b[2J$(touch x)`id`</script>", "fingerprint": 5}
    ),
    "has a corpus of another type": lambda a: a.update(corpus="demo"),
    "has a corpus without sentences": lambda a: a.update(corpus={"fingerprint": None}),
    "has negative sentences": lambda a: a.update(corpus={"fingerprint": "x", "sentences": -3}),
    "has options of another type": lambda a: a.update(options=[1, 2]),
    "has no options": lambda a: a.pop("options", None),
    "has shards of size zero": lambda a: a.update(options={"shard_sentences": 0}),
    "has a version of another type": lambda a: a.update(headscope={"a": 1}),
    "is of another version": lambda a: a.update(headscope="99.0"),
    "has surrogates": lambda a: a.update(study="\ud800"),
    "has a long text": lambda a: a.update(study="x" * 1_000_000),
}


def _hdf5(change: Callable[[h5py.File, Path], object]) -> Spoiler:
    """Change the content of result.nc and seal it again: a stranger can do that too."""

    def spoiler(run: Path) -> None:
        path = run / "result.nc"
        path.write_bytes(path.read_bytes()[:-LENGTH])
        with h5py.File(path, "a") as file:
            change(file, run)
        path.write_bytes(seal(path.read_bytes()))

    return spoiler


def _external(file: h5py.File, run: Path) -> None:
    del file["entropy"]
    size = (run.parent / "secret").stat().st_size // 8 * 8
    external = [(str((run.parent / "secret").resolve()), 0, size)]
    file.create_dataset("entropy", (size // 8,), "f8", external=external)


def _external_text(file: h5py.File, run: Path) -> None:
    external = [(str((run.parent / "secret").resolve()), 0, 14)]
    file.create_dataset("title", (1,), "S14", external=external)


def _virtual(file: h5py.File, run: Path) -> None:
    shape = _array(file, "entropy").shape
    layout = h5py.VirtualLayout(shape, "f8")
    layout[:] = h5py.VirtualSource("../elsewhere.nc", "entropy", shape)
    del file["entropy"]
    file.create_virtual_dataset("entropy", layout)


def _put(name: str, values: Any) -> Callable[[h5py.File, Path], None]:
    def change(file: h5py.File, run: Path) -> None:
        if name in file:
            del file[name]
        file[name] = values

    return change


def _overwrite(name: str, value: float) -> Callable[[h5py.File, Path], None]:
    def change(file: h5py.File, run: Path) -> None:
        _array(file, name)[...] = value

    return change


def _overwrite_all(value: float) -> Callable[[h5py.File, Path], None]:
    def change(file: h5py.File, run: Path) -> None:
        for name in map(str, file):
            if _array(file, name).dtype.kind == "f":
                _array(file, name)[...] = value

    return change


def _set_baseline(file: h5py.File, value: float, variable: str) -> None:
    """A baseline of entropy in that variable, which has this value for all heads."""
    measure = json.loads(str(_array(file, "entropy").attrs["measure"]))
    measure["baselines"] = [{"means": "even attention", "variable": variable}]
    _array(file, "entropy").attrs["measure"] = json.dumps(measure)
    if variable not in file:
        made = file.create_dataset(variable, data=np.full(_array(file, "entropy").shape, value))
        for axis, name in enumerate(("layer", "head")):
            h5py.h5ds.attach_scale(made.id, _array(file, name).id, axis)


def _put_texts(name: str) -> Callable[[h5py.File, Path], None]:
    """Texts in place of the numbers of a variable, along the same dimensions."""

    def change(file: h5py.File, run: Path) -> None:
        old = _array(file, name)
        shape, scales = old.shape, [axis[0] for axis in old.dims]
        del file[name]
        made = file.create_dataset(name, shape, h5py.string_dtype())
        made[...] = "many"
        for axis, scale in enumerate(scales):
            h5py.h5ds.attach_scale(made.id, scale.id, axis)

    return change


def _array(file: h5py.File, name: str) -> h5py.Dataset:
    found = file[name]
    assert isinstance(found, h5py.Dataset)
    return found


def _drop(name: str) -> Callable[[h5py.File, Path], None]:
    return lambda file, run: file.__delitem__(name)


def _attribute(owner: str, name: str, value: Any) -> Callable[[h5py.File, Path], None]:
    def change(file: h5py.File, run: Path) -> None:
        file[owner].attrs[name] = value

    return change


def _many(file: h5py.File, run: Path) -> None:
    for number in range(3000):
        file[f"v{number}"] = 1.0


def _bomb(file: h5py.File, run: Path) -> None:
    file.create_dataset("bomb", (2**31,), "f8", chunks=(2**20,), compression="gzip", fillvalue=1.0)


def _deep(file: h5py.File, run: Path) -> None:
    file.create_group("/".join("abcdefghij"))


_RESULTS: dict[str, Callable[[h5py.File, Path], object]] = {
    "is stored in a secret": _external,
    "has a title stored in a secret": _external_text,
    "has a link to a secret": lambda f, r: f.__setitem__("x", h5py.ExternalLink("../secret", "/")),
    "has a soft link": lambda f, r: f.__setitem__("x", h5py.SoftLink("/nowhere")),
    "is virtual": _virtual,
    "has 3,000 variables": _many,
    "unpacks to gigabytes": _bomb,
    "has groups in groups": _deep,
    "lacks entropy": _drop("entropy"),
    "lacks its layers": _drop("layer"),
    "lacks its heads": _drop("head"),
    "has texts for numbers": _put("entropy", np.array([[b"a"]])),
    "has a complex measure": _put("entropy", np.ones((2, 2), "c16")),
    "has booleans": _put("extra", np.array([True, False])),
    "has an empty array": _put("extra", np.zeros((0, 3))),
    "has a scalar": _put("extra", 5.0),
    "is infinite": _overwrite("entropy", np.inf),
    "is not a number anywhere": _overwrite("entropy", np.nan),
    "has no numbers": _overwrite_all(np.nan),
    "has a baseline of no number": lambda f, r: _set_baseline(f, np.nan, "entropy_even"),
    "has a measure that is its own baseline": lambda f, r: _set_baseline(f, 1.0, "entropy"),
    "has texts for a numerator": _put_texts("entropy_numerator"),
    "has texts for errors": _put_texts("entropy_se"),
    "has long doubles": _put("extra", np.ones(3, np.longdouble)),
    "has the largest integer": _put("extra", np.array([2**64 - 1], np.uint64)),
    "has a count of the largest integer": _attribute("/", "tokens", np.uint64(2**64 - 1)),
    "has huge values": _overwrite("entropy", 1e308),
    "has negative layers": _overwrite("layer", -3),
    "has one layer many times": _overwrite("layer", 1),
    "has a measure that is not JSON": _attribute("entropy", "measure", "{"),
    "has a measure of another type": _attribute("entropy", "measure", 5),
    "has a measure that is a list": _attribute("entropy", "measure", "[]"),
    "has a measure without a title": _attribute("entropy", "measure", "{}"),
    "has a measure with numbers for words": _attribute(
        "entropy", "measure", json.dumps({"name": 1, "title": 2, "meaning": [], "baselines": 3})
    ),
    "has statements that are not JSON": _attribute("/", "statements", "{"),
    "has statements of another type": _attribute("/", "statements", 7),
    "has statements that are a list": _attribute("/", "statements", "[1]"),
    "has statements with other fields": _attribute(
        "/", "statements", json.dumps({"tables": [{"rows": 3}], "findings": {}, "choices": "x"})
    ),
    "has statements with hostile rows": _attribute(
        "/",
        "statements",
        json.dumps(
            {
                "tables": [
                    {"name": "../../escape", "title": "<b>", "caption": "", "rows": [{"a": [1]}]}
                ],
                "findings": [],
                "choices": [{"table": "t", "layer": 10**9, "head": -1, "why": "="}],
            }
        ),
    ),
    "has deeply nested statements": _attribute("/", "statements", "[" * 50_000 + "]" * 50_000),
    "leaves out in no words": _attribute("/", "left_out", "5"),
    "leaves out what is not JSON": _attribute("/", "left_out", "{"),
    "skips what is not JSON": _attribute("/", "skipped", "["),
    "has options that are not JSON": _attribute("/", "options", "?"),
    "is of an unknown study": _attribute("/", "study", "nobody1999"),
    "is causal in words": _attribute("/", "is_causal", "maybe"),
    "counts no sentences": _attribute("/", "sentences", -1),
}


_PARSED = ("records_sha256", "left_out", "skipped", "words", "options", "statements", "measure")
_NO_OBJECT = {
    "a brace": "{", "a list": "[]", "null": "null", "NaN": "NaN", "a number": 5,
    "6,000 digits": "9" * 6000, "60,000 brackets": "[" * 60_000,
}  # fmt: skip


def _of_attributes() -> dict[str, Spoiler]:
    """Every attribute that is parsed, as JSON that is no object."""
    found: dict[str, Spoiler] = {}
    for name in _PARSED:
        owner = "entropy" if name == "measure" else "/"
        for words, value in _NO_OBJECT.items():
            found[f"{name} is {words}"] = _hdf5(_attribute(owner, name, value))
    return found


def _parquet(change: Callable[[pa.Table], pa.Table]) -> Spoiler:
    def spoiler(run: Path) -> None:
        table = change(pq.read_table(run / EXAMPLES))
        pq.write_table(table, run / EXAMPLES)
        checksums = {name: checksum(run / name) for name in (EXAMPLES, INPUTS)}
        _hdf5(_attribute("/", CHECKSUMS, json.dumps(checksums)))(run)

    return spoiler


def _column(name: str, values: Callable[[int], Any]) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        place = table.column_names.index(name)
        return table.set_column(place, name, pa.array(values(len(table))))

    return change


_EXAMPLES: dict[str, Callable[[pa.Table], pa.Table]] = {
    "lack their inputs": lambda table: table.drop_columns(["input"]),
    "lack their weights": lambda table: table.drop_columns(["weight"]),
    "are none": lambda table: table.slice(0, 0),
    "name inputs that are not there": _column("input", lambda n: [10**6] * n),
    "have weights that are words": _column("weight", lambda n: [["much"]] * n),
    "have weights that are null": _column(
        "weight", lambda n: pa.array([None] * n, pa.list_(pa.float32()))
    ),
    "have peaks that are not numbers": _column(
        "peak", lambda n: pa.array([float("nan")] * n, pa.float32())
    ),
    "point behind the sentence": _column(
        "attending", lambda n: pa.array([60_000] * n, pa.uint16())
    ),
    "are of heads that are not there": _column("head", lambda n: pa.array([999] * n, pa.int16())),
    "have ranks that are null": _column("rank", lambda n: pa.array([None] * n, pa.int16())),
    "have another column": lambda table: table.append_column("x", pa.array([1] * len(table))),
}
