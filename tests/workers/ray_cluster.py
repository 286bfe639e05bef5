"""A real Ray cluster of two nodes on this machine, small and quiet."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headscope.workers.ray import SETTINGS

ROOT = Path(__file__).parents[2]
NODE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80 * 2**20}

os.environ |= SETTINGS
os.environ["RAY_memory_monitor_refresh_ms"] = "0"  # noqa: SIM112  others may fill the machine
os.environ["RAY_DISABLE_IMPORT_WARNING"] = "1"


@contextmanager
def two_nodes() -> Iterator[Any]:
    """The cluster; what is imported here can be imported by its workers."""
    from ray.cluster_utils import Cluster

    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), before)))
    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    try:
        cluster.add_node(**NODE)
        yield cluster
    finally:
        cluster.shutdown()
        os.environ["PYTHONPATH"] = before
