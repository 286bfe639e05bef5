"""Studies on a real Ray cluster of two nodes: the same bits, whatever fails on the way."""

import os
import subprocess
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import spacy
import xarray as xr

import headscope as hs
from headscope.engine import study as running
from headscope.engine.job import Job
from headscope.errors import RunError
from headscope.workers import LocalEngine, find_engine
from headscope.workers.ray import Node, Placement, RayEngine, RayPool, find_nodes, place_workers
from tests.engine.own_study import STUDY
from tests.engine.ray_cluster import NODE, two_nodes
from tests.engine.small_works import Square, Unready
from tests.engine.tiny import bidirectional_model, causal_model, treebank


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with two_nodes() as found:
        yield found


@dataclass(frozen=True)
class Kept:
    """An engine whose processes stay when a test is over: each of them imports torch."""

    pool: RayPool
    name: str = "kept"

    @contextmanager
    def open(self) -> Iterator[RayPool]:
        yield self.pool


@pytest.fixture(scope="module")
def kept(cluster: Any) -> Iterator[Kept]:
    """Two processes, one on each node, for the last tests: there is no core for anybody else."""
    with RayEngine(cluster.address, 2).open() as pool:
        yield Kept(pool)


@pytest.fixture(autouse=True)
def _small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "SHARD_SENTENCES", 8)


@dataclass(frozen=True)
class Disturbed:
    """An engine during whose work something happens, after so many pieces."""

    engine: Any
    after: int
    happen: Any
    name: str = "disturbed"

    @contextmanager
    def open(self) -> Iterator[Any]:
        with self.engine.open() as pool:
            yield DisturbedPool(pool, self.after, self.happen)


@dataclass(frozen=True)
class DisturbedPool:
    pool: Any
    after: int
    happen: Any

    def share(self, threads: int, *, needs_gpu: bool) -> int:
        return self.pool.share(threads, needs_gpu=needs_gpu)

    def run(self, work: Any, pieces: Iterable[Any]) -> Iterator[Any]:
        for count, done in enumerate(self.pool.run(work, pieces), start=1):
            yield done
            if count == self.after:
                self.happen()


@dataclass(frozen=True)
class StagesOn:
    """An engine that does the pieces of stages; shards stay in this process."""

    engine: Any
    name: str = "stages"

    @contextmanager
    def open(self) -> Iterator[Any]:
        with self.engine.open() as pool, LocalEngine().open() as here:
            yield StagesPool(pool, here)


@dataclass(frozen=True)
class StagesPool:
    pool: Any
    here: Any

    def share(self, threads: int, *, needs_gpu: bool) -> int:
        return self.pool.share(threads, needs_gpu=needs_gpu)

    def run(self, work: Any, pieces: Iterable[Any]) -> Iterator[Any]:
        return (self.here if isinstance(work, Job) else self.pool).run(work, pieces)


def press_ctrl_c() -> None:
    raise KeyboardInterrupt


def squares(cluster: Any, work: Square, count: int = 12, workers: int = 2) -> dict[int, int]:
    with RayEngine(cluster.address, workers).open() as pool:
        return dict(pool.run(work, range(count)))


def tries(folder: Path) -> dict[int, int]:
    names = [int(path.name.split("-")[0]) for path in folder.glob("[0-9]*")]
    return {number: names.count(number) for number in sorted(set(names))}


def test_both_nodes_work_and_every_piece_is_done_once(cluster: Any, tmp_path: Path) -> None:
    found = squares(cluster, Square(tmp_path, seconds=0.05, crew=2))
    assert found == {number: number**2 for number in range(12)}
    assert tries(tmp_path) == dict.fromkeys(range(12), 1)
    assert len({path.name.split("-")[1] for path in tmp_path.glob("[0-9]*")}) == 2


def test_a_worker_that_dies_costs_only_its_piece(cluster: Any, tmp_path: Path) -> None:
    found = squares(cluster, Square(tmp_path, deadly_once=5))
    assert found == {number: number**2 for number in range(12)}
    assert tries(tmp_path) == {**dict.fromkeys(range(12), 1), 5: 2}


def test_a_piece_that_always_fails_is_named_after_three_tries_on_both_workers(
    cluster: Any, tmp_path: Path
) -> None:
    with pytest.raises(RunError, match=r"Number 3 failed 3 times.*ValueError: 3 cannot be squared"):
        # Long enough for both workers to be known as ready before the last try.
        squares(cluster, Square(tmp_path, poison=3, seconds=0.2, crew=2))
    assert tries(tmp_path)[3] == 3
    processes = {path.name.split("-")[1] for path in tmp_path.glob("3-*")}
    assert len(processes) == 2


def test_workers_that_cannot_get_ready_say_why(cluster: Any, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"No worker could start.*There is no model directory"):
        squares(cluster, Unready(tmp_path))


def test_more_workers_than_cores_are_refused(cluster: Any, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="The cluster has 2 CPUs, too few for 3 workers"):
        squares(cluster, Square(tmp_path), workers=3)


def test_a_gpu_that_no_node_has_is_said(cluster: Any, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="the cluster has 0 GPUs"):
        squares(cluster, Square(tmp_path, needs_gpu=True))


def test_stopping_in_the_middle_leaves_no_worker_behind(cluster: Any, tmp_path: Path) -> None:
    with RayEngine(cluster.address, 2).open() as pool:
        done = pool.run(Square(tmp_path, seconds=0.2), range(1000))
        next(done)
        assert isinstance(done, Generator)
        done.close()  # what Ctrl-C does to it
        assert squares_in(pool, tmp_path) == {0: 0, 1: 1}


def squares_in(pool: RayPool, folder: Path) -> dict[int, int]:
    """Works only if the cores of the cluster are free again."""
    return dict(pool.run(Square(folder), range(2)))


def test_the_processes_of_one_work_do_the_next(cluster: Any, tmp_path: Path) -> None:
    folders = [tmp_path / "first", tmp_path / "second"]
    with RayEngine(cluster.address, 2).open() as pool:
        for folder in folders:
            folder.mkdir()
            assert len(dict(pool.run(Square(folder, seconds=0.05, crew=2), range(6)))) == 6
    first, second = ({path.name for path in folder.glob("ready-*")} for folder in folders)
    assert first == second and len(first) == 2


def remove_node(cluster: Any) -> None:
    """As if somebody pulled the plug."""
    assert len(find_nodes()) == 2
    cluster.remove_node(cluster.worker_nodes.copy().pop(), allow_graceful=False)


def test_a_node_that_goes_away_costs_only_the_piece_in_its_hands(
    cluster: Any, tmp_path: Path
) -> None:
    engine = Disturbed(RayEngine(cluster.address, 2), 3, partial(remove_node, cluster))
    with engine.open() as pool:
        found = dict(pool.run(Square(tmp_path, seconds=0.2, crew=2), range(12)))
    cluster.add_node(**NODE)
    assert found == {number: number**2 for number in range(12)}
    assert sum(tries(tmp_path).values()) <= 13


def test_a_run_goes_on_with_either_engine_after_ctrl_c(cluster: Any, tmp_path: Path) -> None:
    model, corpus = bidirectional_model(), treebank(80)
    options: dict[str, Any] = {"gradients": False, "period": 8, "probe_seeds": 1}
    calm = hs.study("clark2019", model, corpus, tmp_path / "calm", **options)
    for engine, shards in ((LocalEngine(), 3), (RayEngine(cluster.address, 1), 4)):
        stopped = Disturbed(engine, shards, press_ctrl_c)
        with pytest.raises(KeyboardInterrupt):
            hs.study("clark2019", model, corpus, tmp_path / "run", engine=stopped, **options)
    assert len(list((tmp_path / "run" / "shards").iterdir())) == 7
    found = hs.study("clark2019", model, corpus, tmp_path / "run", engine="local", **options)
    assert "parsing_uas" in found
    xr.testing.assert_identical(found, calm)


def test_a_worker_killed_in_a_stage_costs_only_its_piece(cluster: Any, tmp_path: Path) -> None:
    engine = StagesOn(RayEngine(cluster.address, 2))
    with pytest.raises(RunError, match=r"The sum up to 3 failed 3 times.*its process"):
        hs.study(STUDY, causal_model(), treebank(40), tmp_path, engine=engine, deadly=3)
    kept = {path.name for path in (tmp_path / "stages" / "sums").iterdir()}
    assert "00003.bin" not in kept
    assert {"00000.bin", "00001.bin", "00002.bin"} <= kept


@pytest.mark.parametrize(
    ("nodes", "workers", "threads", "placed"),
    [
        ([Node(2, 0)], None, 2, Placement(1, 2, 0)),
        ([Node(2, 0)], 2, 2, Placement(2, 1, 0)),
        ([Node(16, 0), Node(8, 0)], None, 4, Placement(6, 4, 0)),
        ([Node(2, 0), Node(2, 0)], None, 8, Placement(2, 2, 0)),
        ([Node(3, 0), Node(3, 0)], 3, 8, Placement(3, 1, 0)),
    ],
)
def test_workers_share_the_cores(
    nodes: list[Node], workers: int | None, threads: int, placed: Placement
) -> None:
    assert place_workers(nodes, workers=workers, threads=threads, needs_gpu=False) == placed


def test_there_is_one_worker_for_every_gpu() -> None:
    nodes = [Node(8, 4), Node(8, 0)]
    assert place_workers(nodes, workers=None, threads=4, needs_gpu=True) == Placement(4, 1, 1)
    assert place_workers([Node(1, 2)], workers=None, threads=4, needs_gpu=True) == Placement(
        2, 0, 1
    )
    with pytest.raises(RunError, match="4 GPUs, too few for 5 workers"):
        place_workers(nodes, workers=5, threads=4, needs_gpu=True)


def test_an_address_that_nobody_answers_is_said() -> None:
    with (
        pytest.raises(RunError, match=r"Nobody answers at 127\.0\.0\.1:9"),
        RayEngine("127.0.0.1:9").open(),
    ):
        pass


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(RunError, match=r'pip install "headscope\[ray\]"'),
        find_engine("ray").open(),
    ):
        pass


def test_options_of_ray_without_ray_are_refused() -> None:
    with pytest.raises(RunError, match="add `--engine ray`"):
        find_engine("local", workers=2)
    with pytest.raises(RunError, match="no engine 'spark'; choose one of local, ray"):
        find_engine("spark")


def test_the_program_does_not_import_ray_before_it_is_asked() -> None:
    code = "import sys, headscope.cli, headscope.workers.ray; print('ray' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ}
    )
    assert done.stdout == "False\n"


def test_annotation_keeps_order_and_fingerprint(kept: Kept, tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path / "pipeline")
    texts = [f"Sentence {n} here. And more of it.\nA paragraph." for n in range(150)]
    here = hs.annotate(texts, spacy=str(tmp_path / "pipeline"), processes=1)
    there = hs.annotate(
        texts,
        spacy=str(tmp_path / "pipeline"),
        engine=kept,
        out=tmp_path / "corpus.parquet",
    )
    assert len(there) == 450
    assert there.fingerprint == here.fingerprint


def test_probes_trained_on_a_cluster_are_the_same_bits(kept: Kept, tmp_path: Path) -> None:
    model, corpus = bidirectional_model(), treebank(60)
    options: dict[str, Any] = {"gradients": False, "period": 8, "probe_seeds": 2}
    here = hs.study("clark2019", model, corpus, tmp_path / "here", **options)
    there = hs.study("clark2019", model, corpus, tmp_path / "there", engine=kept, **options)
    assert "parsing_uas" in there
    xr.testing.assert_identical(there, here)


def test_a_node_removed_in_mid_run_changes_nothing(
    cluster: Any, kept: Kept, tmp_path: Path
) -> None:
    """The last test of the cluster: one node is all that is left."""
    model, corpus = causal_model(), treebank(160)
    calm = hs.study("vig2019", model, corpus)

    engine = Disturbed(kept, 5, partial(remove_node, cluster))
    found = hs.study("vig2019", model, corpus, tmp_path / "run", engine=engine)
    xr.testing.assert_identical(found, calm)
