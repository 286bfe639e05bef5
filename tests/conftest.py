"""Settings that every test shares: no network, no user caches, reproducible examples."""

import gc
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ["OMP_NUM_THREADS"] = "1"  # two workers share two cores
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["HEADSCOPE_CACHE"] = tempfile.mkdtemp(prefix="headscope-tests-")
os.environ.setdefault("MPLBACKEND", "agg")

# What one process has compiled, the other worker and every process that a test starts only read,
# also where the environment asks for no bytecode, as many containers do: half of collecting.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# What is imported and collected lives to the end: the collector need not walk over it again and
# again, which took a tenth of the time.
gc.disable()
BETWEEN_WALKS = 20_000  # new objects; Python's own 700 is for programs of a smaller size

settings.register_profile(
    "headscope",
    deadline=None,
    derandomize=True,  # a test that passes here passes everywhere
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("headscope")

# A worker takes a whole file, so that what its tests share is made once. The longest files come
# first: the short ones at the end let two workers finish together. The cluster mostly waits, so
# beside it runs the demo, which has processes for two cores.
LONGEST_FIRST = (
    "workers/test_ray.py",
    "test_demo.py",
    "docs/test_examples.py",
    "real/test_minilm.py",
    "browser/test_explorer.py",
    "browser/test_site.py",
    "reports/test_reports.py",
    "engine/test_run_killed.py",
    "contracts/test_families.py",
    "contracts/test_long.py",
    "docs/test_gallery.py",
    "mistakes/test_runs.py",
    "plots/test_charts.py",
    "studies/test_running.py",
    "browser/test_barriers.py",
    "explorer/test_explorer.py",
    "browser/test_frames.py",
    "browser/test_explorer_layout.py",
    "contracts/test_metrics.py",
    "reports/test_reports_writing.py",
    "results/compare/test_matching_networks.py",
    "studies/clark2019/probes/test_inputs.py",
    "studies/clark2019/test_clark2019.py",
    "docs/test_views_notebook.py",
    "cli/test_cli.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files in the order in which they are handed out (--dist loadfile --no-loadscope-reorder)."""
    tests = Path(__file__).parent
    order = {tests / name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: order.get(item.path, len(order)))


def pytest_collection_finish() -> None:
    """Everything is loaded: from now on garbage is collected, among what is new."""
    gc.freeze()
    gc.set_threshold(BETWEEN_WALKS)
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def least_steps() -> int:
    """Probes train once, and no network of random weights is measured beside the claims.

    The value is how many steps they train outside the tests, at least.
    """
    from headscope.studies import untrained
    from headscope.studies.clark2019.probes import training

    untrained.NETWORKS, untrained.SENTENCES = 0, 16
    steps, training.LEAST_STEPS = training.LEAST_STEPS, 1
    return steps


@pytest.fixture(scope="module")
def untrained_network(least_steps: int) -> Iterator[None]:
    """One network of random weights, on few sentences, beside every claim."""
    from headscope.studies import untrained

    untrained.NETWORKS = 1
    yield
    untrained.NETWORKS = 0
