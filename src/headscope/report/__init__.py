"""Figures, tables and one self-contained page for finished runs."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any


def report(run: str | Path, *more: str | Path, **options: Any) -> Path:
    """Write figures, tables and one page for finished runs; see `headscope.report.write.report`."""
    from headscope.report.write import report as write

    return write(run, *more, **options)


class _CallableModule(ModuleType):
    # Python binds this package as `headscope.report` when any part of it is imported, over the
    # function of the same name: so the package itself answers to `hs.report(run)`.
    def __call__(self, run: str | Path, *more: str | Path, **options: Any) -> Path:
        return report(run, *more, **options)


sys.modules[__name__].__class__ = _CallableModule
