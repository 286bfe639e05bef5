"""What runs in a process of the cluster: a work, opened once, then piece after piece."""

import pickle
from typing import Any

import headscope
from headscope.errors import RunError


class Worker:
    """One Ray actor."""

    def open(self, content: bytes, version: str) -> str:
        """Get ready for a pickled work, which loads its model; the address of this node."""
        if version != headscope.__version__:
            raise RunError(
                f"This node has headscope {headscope.__version__}, the run was started with "
                f"{version}; install the same version on every node."
            )
        self._work = pickle.loads(content)
        self._work.open()
        return self._address()

    def do(self, piece: Any) -> Any:
        """Do the work on a piece."""
        return self._work(piece)

    def _address(self) -> str:
        from ray.util import get_node_ip_address

        return get_node_ip_address()
