"""Files here or under a URL: nobody sees half of one, and in a sealed one no bit can change."""

import errno
import io
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import headscope as hs
from headscope.engine import measure
from headscope.errors import CorpusError, RunError
from headscope.files import (
    LENGTH,
    SHARDS,
    find_place,
    is_intact,
    is_local,
    names_in,
    replacing,
    seal,
    write_atomically,
    write_text,
)
from headscope.results import dataset as results
from tests.references.tiny_models import causal_model, treebank


@pytest.fixture
def remote() -> Iterator[Path]:
    place = find_place("memory://headscope-tests/folder")
    yield place
    if place.exists():
        place.fs.rm("/headscope-tests", recursive=True)  # pyright: ignore[reportAttributeAccessIssue]


def test_a_path_stays_a_path_and_a_url_becomes_one() -> None:
    assert find_place("runs/a") == Path("runs/a")
    assert find_place("file:///tmp/with%20space") == Path("/tmp/with space")
    assert is_local(find_place("/tmp"))
    assert not is_local(find_place("memory://a"))
    assert str(find_place("memory://a/b") / "c") == "memory://a/b/c"


@pytest.mark.parametrize(("url", "part"), [("nothing://a", "nothing"), ("s3://bucket/run", "s3fs")])
def test_a_filesystem_that_cannot_be_used_is_named(url: str, part: str) -> None:
    with pytest.raises(RunError, match=part):
        find_place(url)


def test_without_what_reaches_urls_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "upath", None)
    with pytest.raises(RunError, match=r'pip install "headscope\[remote\]"'):
        find_place("memory://a")


def test_a_file_appears_whole_or_not_at_all(remote: Path, tmp_path: Path) -> None:
    for folder in (remote, tmp_path):
        with replacing(folder / "a.bin") as temporary:
            temporary.write_bytes(b"first")
            assert "a.bin" not in names_in(folder)
        with pytest.raises(ValueError, match="broken"):
            write_half(folder / "a.bin")
        assert (folder / "a.bin").read_bytes() == b"first"
        assert names_in(folder) == {"a.bin"}


def write_half(place: Path) -> None:
    with replacing(place) as temporary:
        temporary.write_bytes(b"sec")
        raise ValueError("broken")


def test_a_corpus_lies_under_a_url(remote: Path) -> None:
    written = hs.Corpus.write(str(remote / "corpus.parquet"), treebank(60))
    opened = hs.read_corpus(str(remote / "corpus.parquet"))
    travelled = pickle.loads(pickle.dumps(opened))
    assert written.fingerprint == opened.fingerprint == treebank(60).fingerprint
    assert list(travelled) == list(treebank(60))
    with pytest.raises(CorpusError, match="no file"):
        hs.read_corpus(str(remote / "none.parquet"))


def test_a_run_under_a_url_resumes_to_the_bits_of_a_local_one(
    remote: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "SHARD_SENTENCES", 16)
    out = str(remote / "run")
    hs.study("vig2019", causal_model(), treebank(48), out)
    (remote / "run" / "shards" / "00001.npz").write_bytes(b"damaged")
    (remote / "run" / "result.nc").unlink()
    (remote / "run" / "shards" / "00002.npz").unlink()
    found = hs.study("vig2019", causal_model(), treebank(48), out)
    xr.testing.assert_identical(found, hs.study("vig2019", causal_model(), treebank(48)))
    xr.testing.assert_identical(found, results.load(out))
    assert names_in(remote / "run") == {
        "run.json",
        "shards",
        "result.nc",
        "examples.parquet",
        "inputs.parquet",
        "stages",
    }
    page = hs.report(out, formats=["svg"])
    assert str(page) == f"{out}/report.html"
    assert "figure05.svg" in names_in(remote / "run" / "figures")


def test_a_filesystem_that_goes_away_is_one_sentence(
    remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "SHARD_SENTENCES", 16)
    filesystem = remote.fs  # pyright: ignore[reportAttributeAccessIssue]
    real, left = filesystem.put_file, [4]  # run.json twice, two shards

    def put_file(*args: object) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise LookupError("the server\nhas gone")  # no OSError, as with many filesystems
        real(*args)

    monkeypatch.setattr(filesystem, "put_file", put_file)
    with pytest.raises(RunError, match=r"00002.npz cannot be written \(the server"):
        hs.study("vig2019", causal_model(), treebank(60), str(remote / "run"))
    assert names_in(remote / "run" / "shards") == {"00000.npz", "00001.npz"}


@pytest.mark.parametrize("step", ["write", "flush", "fsync", "rename"])
def test_a_full_disk_is_one_sentence_and_the_old_file_stays(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def full(*args: object, **options: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    places: dict[str, tuple[object, str]] = {
        "write": (Path, "write_bytes"),
        "flush": (Path, "open"),
        "fsync": (os, "fsync"),
        "rename": (Path, "replace"),
    }
    with monkeypatch.context() as patched:
        patched.setattr(*places[step], full)
        with pytest.raises(RunError) as caught:
            write_text(path, "new")
    assert str(caught.value) == (
        f"{path} cannot be written (No space left on device); "
        "make room or choose another place and run the same command again."
    )
    assert path.read_text() == "old"
    assert names_in(tmp_path) == {"a.txt"}


def test_a_file_that_grows_too_large_leaves_the_old_one(tmp_path: Path) -> None:
    """A real failure halfway through a write: the system allows files of 4,096 bytes."""
    (tmp_path / "a.txt").write_text("old")
    code = (
        "import resource, sys; from pathlib import Path\n"
        "from headscope.errors import RunError; from headscope.files import write_text\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try: write_text(Path(sys.argv[1]), 'x' * 10_000)\n"
        "except RunError as error: print(error)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "a.txt")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "a.txt cannot be written (File too large); make room" in done.stdout
    assert (tmp_path / "a.txt").read_text() == "old"
    assert names_in(tmp_path) == {"a.txt"}


def test_a_full_disk_behind_another_error_is_found(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"No space left"), write_atomically(tmp_path / "a.pdf"):
        fail_while_closing()
    assert names_in(tmp_path) == set()


def fail_while_closing() -> None:
    try:
        raise OSError(errno.ENOSPC, "No space left on device")
    finally:
        raise AttributeError("no attribute 'closed'")


def test_an_error_that_is_not_the_disks_stays_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(AttributeError), write_atomically(tmp_path / "a.pdf"):
        raise AttributeError("a mistake of ours")


def test_only_a_run_says_that_its_shards_are_kept(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="; make room or"):
        write_text(tmp_path / "none" / "report.html", "page")
    with pytest.raises(RunError, match="; finished shards are kept, so make room or"):
        write_text(tmp_path / "none" / "0.npz", "shard", kept=SHARDS)


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_path_is_not_the_current_directory(empty: str) -> None:
    with pytest.raises(RunError, match="The path is empty; name a file or a directory"):
        find_place(empty)


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    path = tmp_path / "x.npz"
    content = io.BytesIO()
    np.savez(content, values=np.arange(50.0))
    path.write_bytes(seal(content.getvalue()))
    return path


def test_archives_and_results_open_as_before(sealed: Path, tmp_path: Path) -> None:
    with np.load(sealed) as arrays:
        np.testing.assert_array_equal(arrays["values"], np.arange(50.0))
    plain = tmp_path / "x.nc"
    xr.Dataset({"a": ("b", [1.0, 2.0])}).to_netcdf(plain, engine="h5netcdf")
    plain.write_bytes(seal(plain.read_bytes()))
    assert xr.load_dataset(plain)["a"].values.tolist() == [1.0, 2.0]
    assert is_intact(plain)


def test_every_flipped_bit_is_noticed(sealed: Path) -> None:
    content = sealed.read_bytes()
    assert is_intact(sealed)
    random = np.random.default_rng(0)
    places = {*random.integers(0, len(content), 300).tolist(), *range(-LENGTH, 0)}
    for place in places:
        changed = bytearray(content)
        changed[place] ^= 1 << int(random.integers(8))
        sealed.write_bytes(bytes(changed))
        assert not is_intact(sealed), place


def test_a_file_that_is_cut_longer_or_without_a_seal_is_not_intact(sealed: Path) -> None:
    content = sealed.read_bytes()
    for other in (b"", content[:-1], content + b"\n", content[:-LENGTH], content[: LENGTH - 1]):
        sealed.write_bytes(other)
        assert not is_intact(sealed)
