"""Studies on a real Ray cluster of two nodes: the same bits, whatever fails on the way.

One cluster serves all tests, since every new process of it imports Ray, and torch for a study. What
ends processes comes before the studies, and what takes a node away comes after them.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import spacy
import xarray as xr

import headscope as hs
from headscope.engine import Measuring, measure
from headscope.errors import RunError
from headscope.studies.clark2019.probes import training
from headscope.workers import LocalEngine, find_engine
from headscope.workers.ray import (
    Node,
    Placement,
    RayEngine,
    RayPool,
    check_room,
    find_nodes,
    place_workers,
)
from tests.references.own_study import STUDY
from tests.references.small_works import Noted, Square, Unready
from tests.references.tiny_models import bidirectional_model, causal_model, treebank
from tests.workers.ray_cluster import two_nodes


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with two_nodes() as found:
        yield found


@pytest.fixture(scope="module")
def pool(cluster: Any) -> Iterator[RayPool]:
    """Two processes, one on each node: there is no core for anybody else."""
    with RayEngine(cluster.address, 2).open() as pool:
        yield pool


@dataclass(frozen=True)
class Kept:
    """An engine whose processes stay when a study is over."""

    pool: RayPool
    name: str = "kept"

    @contextmanager
    def open(self) -> Iterator[RayPool]:
        yield self.pool


@pytest.fixture(autouse=True, scope="module")
def _small_shards() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure, "SHARD_SENTENCES", 8)
        yield


@dataclass(frozen=True)
class Around:
    """An engine whose pool runs every work in another way."""

    engine: Any
    run: Callable[[Any, Any, Iterable[Any]], Iterator[Any]]  # of the pool, a work and its pieces
    name: str = "around"

    @contextmanager
    def open(self) -> Iterator[Any]:
        with self.engine.open() as pool:
            yield AroundPool(pool, self.run)


@dataclass(frozen=True)
class AroundPool:
    pool: Any
    way: Callable[[Any, Any, Iterable[Any]], Iterator[Any]]

    def share(self, threads: int, *, needs_gpu: bool) -> int:
        return self.pool.share(threads, needs_gpu=needs_gpu)

    def run(self, work: Any, pieces: Iterable[Any]) -> Iterator[Any]:
        return self.way(self.pool, work, pieces)


def disturbed(engine: Any, after: int, happen: Callable[[], object]) -> Around:
    """An engine during whose work something happens, after so many pieces."""

    def run(pool: Any, work: Any, pieces: Iterable[Any]) -> Iterator[Any]:
        for count, done in enumerate(pool.run(work, pieces), start=1):
            yield done
            if count == after:
                happen()

    return Around(engine, run)


def stages_on(engine: Any) -> Around:
    """An engine that does the pieces of stages; shards stay in this process."""

    def run(pool: Any, work: Any, pieces: Iterable[Any]) -> Iterator[Any]:
        if not isinstance(work, Measuring):
            yield from pool.run(work, pieces)
            return
        with LocalEngine().open() as here:
            yield from here.run(work, pieces)

    return Around(engine, run)


def counted(engine: Any, folder: Path) -> Around:
    """An engine whose two processes begin together and say in a folder who began which shard."""
    return Around(engine, lambda pool, work, pieces: pool.run(Noted(work, folder, crew=2), pieces))


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
    assert place_workers(nodes, workers, threads, needs_gpu=False) == placed


def test_there_is_one_worker_for_every_gpu() -> None:
    nodes = [Node(8, 4), Node(8, 0)]
    assert place_workers(nodes, None, 4, needs_gpu=True) == Placement(4, 0, 1)
    assert place_workers(nodes, 3, 4, needs_gpu=True) == Placement(3, 0, 1)
    with pytest.raises(RunError, match="4 GPUs, too few for 5 workers"):
        place_workers(nodes, 5, 4, needs_gpu=True)


def test_a_cluster_that_lost_its_last_fitting_node_is_not_waited_for() -> None:
    check_room([Node(1, 0), Node(4, 0)], Placement(2, 4, 0))
    with pytest.raises(RunError, match="No node with 4 CPUs and 0 GPUs is left in the cluster"):
        check_room([Node(1, 0), Node(3, 0)], Placement(2, 4, 0))


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


def test_the_program_does_not_import_ray_before_it_is_asked() -> None:
    code = "import sys, headscope.cli, headscope.workers.ray; print('ray' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ}
    )
    assert done.stdout == "False\n"


def press_ctrl_c() -> None:
    raise KeyboardInterrupt


def squares(pool: RayPool, work: Square, count: int = 12) -> dict[int, int]:
    return dict(pool.run(work, range(count)))


def tries(folder: Path) -> dict[int, int]:
    names = [int(path.name.split("-")[0]) for path in folder.glob("[0-9]*")]
    return {number: names.count(number) for number in sorted(set(names))}


def processes(folder: Path) -> set[str]:
    return {path.name.split("-")[1] for path in folder.glob("[0-9]*")}


def test_both_nodes_work_and_every_piece_is_done_once(pool: RayPool, tmp_path: Path) -> None:
    found = squares(pool, Square(tmp_path, seconds=0.05, crew=2))
    assert found == {number: number**2 for number in range(12)}
    assert tries(tmp_path) == dict.fromkeys(range(12), 1)
    assert len(processes(tmp_path)) == 2
    assert len(list(tmp_path.glob("opened-*"))) == 2  # once in each process, not for each piece


def test_pieces_are_taken_from_their_source_as_workers_are_free(
    pool: RayPool, tmp_path: Path
) -> None:
    taken: list[int] = []

    def numbers() -> Iterator[int]:
        for number in range(12):
            taken.append(number)
            yield number

    for done, _ in enumerate(pool.run(Square(tmp_path), numbers()), start=1):
        assert len(taken) <= done + 2


def test_another_version_of_headscope_on_a_node_is_named(
    pool: RayPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hs, "__version__", "0.0.1")
    with pytest.raises(RunError, match=r"This node has headscope .* was started with 0\.0\.1"):
        squares(pool, Square(tmp_path), 1)
    assert tries(tmp_path) == {}


def test_a_worker_that_dies_costs_only_its_piece(pool: RayPool, tmp_path: Path) -> None:
    found = squares(pool, Square(tmp_path, deadly_once=5))
    assert found == {number: number**2 for number in range(12)}
    assert tries(tmp_path) == {**dict.fromkeys(range(12), 1), 5: 2}


def test_a_piece_that_always_fails_is_named_after_three_tries(
    pool: RayPool, tmp_path: Path
) -> None:
    with pytest.raises(RunError, match=r"Number 3 failed 3 times.*ValueError: 3 cannot be squared"):
        squares(pool, Square(tmp_path, poison=3))
    assert tries(tmp_path)[3] == 3


def test_a_work_that_cannot_be_opened_says_why(pool: RayPool, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"Number \d+ failed 3 times.*There is no model directory"):
        squares(pool, Unready(tmp_path))


def test_more_workers_than_cores_are_refused(pool: RayPool) -> None:
    with pytest.raises(RunError, match="The cluster has 2 CPUs, too few for 3 workers"):  # noqa: SIM117
        with RayEngine(workers=3).open():
            pass


def test_a_gpu_that_no_node_has_is_said(pool: RayPool, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="the cluster has 0 GPUs"):
        squares(pool, Square(tmp_path, needs_gpu=True))


def test_stopping_in_the_middle_leaves_no_worker_behind(pool: RayPool, tmp_path: Path) -> None:
    done = pool.run(Square(tmp_path, seconds=0.2), range(1000))
    next(done)
    assert isinstance(done, Generator)
    done.close()  # what Ctrl-C does to it
    # Works only if the cores of the cluster are free again.
    assert squares(pool, Square(tmp_path), 2) == {0: 0, 1: 1}


def test_a_worker_killed_in_a_stage_costs_only_its_piece(pool: RayPool, tmp_path: Path) -> None:
    engine = stages_on(Kept(pool))
    with pytest.raises(RunError, match=r"The sum up to 3 failed 3 times.*its process"):
        hs.study(STUDY, causal_model(), treebank(40), tmp_path, engine=engine, deadly=3)
    kept = {path.name for path in (tmp_path / "stages" / "sums").iterdir()}
    assert "00003.bin" not in kept
    assert {"00000.bin", "00001.bin", "00002.bin"} <= kept


def test_annotation_keeps_order_and_fingerprint(pool: RayPool, tmp_path: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.to_disk(tmp_path / "pipeline")
    texts = [f"Sentence {n} here. And more of it.\nA paragraph." for n in range(150)]
    here = hs.annotate(texts, spacy=str(tmp_path / "pipeline"), processes=1)
    there = hs.annotate(
        texts,
        spacy=str(tmp_path / "pipeline"),
        engine=Kept(pool),
        out=tmp_path / "corpus.parquet",
    )
    assert len(there) == 450
    assert there.fingerprint == here.fingerprint


PROBES: dict[str, Any] = {
    "gradients": False, "period": 8, "probe_seeds": 2, "untrained": False,
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def probes_train_as_long_as_on_the_cluster(least_steps: int) -> Iterator[None]:
    """Tests train probes briefly, which processes of their own do not know."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(training, "LEAST_STEPS", least_steps)
        yield


@pytest.fixture(scope="module")
def calm() -> xr.Dataset:
    """A study with trained probes that nothing disturbed, in this process: eight shards."""
    return hs.study("clark2019", bidirectional_model(), treebank(60), **PROBES)


def test_probes_trained_on_a_cluster_are_the_same_bits(
    pool: RayPool, calm: xr.Dataset, tmp_path: Path
) -> None:
    model, corpus = bidirectional_model(), treebank(60)
    there = hs.study("clark2019", model, corpus, tmp_path, engine=Kept(pool), **PROBES)
    assert "parsing_uas" in there
    xr.testing.assert_identical(there, calm)


def remove_node(cluster: Any) -> None:
    """As if somebody pulled the plug."""
    assert len(find_nodes()) == 2
    cluster.remove_node(cluster.worker_nodes.copy().pop(), allow_graceful=False)


def test_a_node_removed_in_mid_run_costs_one_piece_and_changes_nothing(
    cluster: Any, pool: RayPool, tmp_path: Path
) -> None:
    """One node is left for the tests below; its process goes on with their work."""
    model, corpus = causal_model(), treebank(160)
    calm = hs.study("vig2019", model, corpus, untrained=False)
    engine = disturbed(counted(Kept(pool), tmp_path), 5, partial(remove_node, cluster))
    found = hs.study("vig2019", model, corpus, tmp_path / "run", engine=engine, untrained=False)
    xr.testing.assert_identical(found, calm)
    assert list(tries(tmp_path)) == list(range(20))
    assert sum(tries(tmp_path).values()) <= 21
    assert len(processes(tmp_path)) == 2

    (tmp_path / "after").mkdir()
    assert squares(RayPool(1), Square(tmp_path / "after"), 2) == {0: 0, 1: 1}


def test_a_run_goes_on_with_either_engine_after_ctrl_c(
    pool: RayPool, calm: xr.Dataset, tmp_path: Path
) -> None:
    model, corpus = bidirectional_model(), treebank(60)
    one_is_left = RayPool(1)
    for engine, shards in ((LocalEngine(), 3), (Kept(one_is_left), 4)):
        stopped = disturbed(engine, shards, press_ctrl_c)
        with pytest.raises(KeyboardInterrupt):
            hs.study("clark2019", model, corpus, tmp_path, engine=stopped, **PROBES)
    assert len(list((tmp_path / "shards").iterdir())) == 7
    found = hs.study("clark2019", model, corpus, tmp_path, engine="local", **PROBES)
    assert "parsing_uas" in found
    xr.testing.assert_identical(found, calm)
