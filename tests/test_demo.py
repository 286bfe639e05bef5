"""The demo: it refuses what is not its own, and works from the wheel alone, without a network."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from headscope.demo import demo
from headscope.errors import HeadscopeError, RunError

ROOT = Path(__file__).parents[1]
BARE_PYTHON = str(getattr(sys, "_base_executable", sys.executable))
NO_NETWORK = """
import socket
def refuse(*arguments, **options):
    raise OSError("the test has switched the network off")
socket.socket.connect = refuse
socket.getaddrinfo = refuse
"""
# The lengths of a training and of a sample: file, line, and what takes its place.
BRIEF = (
    ("studies/clark2019/probes/training.py", "LEAST_STEPS = 1000", "LEAST_STEPS = 1"),
    ("studies/untrained.py", "NETWORKS = 3", "NETWORKS = 1"),
    ("studies/untrained.py", "SENTENCES = 96", "SENTENCES = 16"),
)


def test_a_directory_with_something_else_in_it_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(HeadscopeError, match="already has something else in it"):
        demo(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HeadscopeError, match=r"cannot write to .*file.*--out"):
        demo(tmp_path / "file" / "below")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's content alone in a directory: what a user has who installed it, but brief."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    assert wheel.stat().st_size < 45_000_000
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    (folder / "site" / "sitecustomize.py").write_text(NO_NETWORK)
    for file, long, brief in BRIEF:
        source = (folder / "site" / "headscope" / file).read_text(encoding="utf-8")
        assert long in source
        (folder / "site" / "headscope" / file).write_text(source.replace(long, brief))
    return folder / "site"


def test_the_demo_runs_from_the_wheel_alone_without_a_network(
    unpacked: Path, tmp_path: Path
) -> None:
    environment = {**os.environ, "PYTHONPATH": str(unpacked), "HF_HUB_OFFLINE": "0"}
    code = (
        "import headscope, sys; assert headscope.__file__.startswith(sys.argv[1])\n"
        "from headscope.demo import demo; demo('out', sentences=1)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(unpacked)],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert "sentences" in done.stderr  # progress of both models, passed on as it came
    runs = [
        ("vig2019", "mini-gpt2"), ("clark2019", "mini-gpt2"), ("luger2026", "mini-gpt2"),
        ("vig2019", "mini-bert"), ("clark2019", "mini-bert"),
    ]  # fmt: skip
    for study, model in runs:
        page = (tmp_path / "out" / f"{study}-{model}" / "report.html").read_text()
        assert model in page and "Attention is not explanation" in page
        assert f"{study} on {model}" in done.stdout
    assert done.stdout.count("of the paper's claims") == len(runs)
    for model in ("mini-gpt2", "mini-bert"):
        probes = tmp_path / "out" / f"clark2019-{model}" / "stages" / "probes"
        assert len(list(probes.iterdir())) == 3  # trained, on however little
    for kind in ("head", "model", "neuron"):
        assert (tmp_path / "out" / "views" / f"{kind}.html").stat().st_size > 10_000
    assert (tmp_path / "out" / "site" / "index.html").exists()


def test_a_type_checker_sees_the_types_of_the_wheel(unpacked: Path, tmp_path: Path) -> None:
    """A user's program against the package alone, a mistake in it included.

    The interpreter below the environment has no torch, whose types would take ten times as long.
    """
    (tmp_path / "program.py").write_text(
        "import headscope as hs\n"
        "reveal_type(hs.load)\n"
        "reveal_type(hs.load('mini-gpt2').trace('a').head_view().save('a.html'))\n"
        "hs.load('mini-gpt2').trace(3)\n"
    )
    (tmp_path / "pyrightconfig.json").write_text(f'{{"extraPaths": ["{unpacked}"]}}')
    assert (unpacked / "headscope" / "py.typed").exists()
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "-p", str(tmp_path), "--pythonpath", BARE_PYTHON],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "-> Model" in done.stdout and '.save(\'a.html\')" is "Path"' in done.stdout, done.stdout
    assert done.stdout.count(" error: ") == 1 and '"Literal[3]" is not assignable' in done.stdout


def test_a_broken_installation_is_one_sentence(unpacked: Path, tmp_path: Path) -> None:
    weights = unpacked / "headscope" / "model" / "bundled" / "mini-bert" / "model.safetensors"
    hidden = weights.rename(weights.with_suffix(".hidden"))
    try:
        done = subprocess.run(
            [sys.executable, "-m", "headscope", "demo", "--out", "out"],
            cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(unpacked)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        hidden.rename(weights)
    assert done.returncode == 2
    last = done.stderr.strip().splitlines()[-1]
    assert "mini-bert" in done.stderr and "install" in last
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


def test_what_a_process_says_is_wrong_is_the_error_of_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headscope.demo.MODELS", (str(tmp_path / "none"),))
    monkeypatch.setattr("headscope.demo.find_source", lambda name: None)
    with pytest.raises(RunError, match=r"There is no model directory .*none") as said:
        demo(tmp_path / "out")
    assert "\n" not in str(said.value)
