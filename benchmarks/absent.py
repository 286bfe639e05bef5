"""Stand-ins for packages that a GPU machine lacks: reading, drawing and writing are not measured.

What is imported from them is there but does nothing, so that the rest of the package can be used.
"""

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, spec_from_loader
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

UNMEASURED = (
    "pyarrow", "xarray", "pandas", "h5netcdf", "h5py", "matplotlib", "conllu", "fsspec", "rich",
    "scipy", "sklearn", "upath",
)  # fmt: skip


def stand_in(names: Sequence[str] = UNMEASURED) -> list[str]:
    """Replace those packages that are missing; their names."""
    missing = [name for name in names if find_spec(name) is None]
    sys.meta_path.append(_Finder(missing))
    return missing


class _Nothing(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return MagicMock(name=f"{self.__name__}.{name}")


class _Finder(MetaPathFinder, Loader):
    def __init__(self, names: Sequence[str]) -> None:
        self._names = set(names)

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname.split(".")[0] in self._names:
            return spec_from_loader(fullname, self, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Nothing(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass
