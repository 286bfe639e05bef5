"""Heads by name: L4H11 is head 11 of layer 4, both counted from 0."""

import re

import xarray as xr

from headscope.explorer.refusal import RefusedError

_NAME = re.compile(r"L(\d{1,4})H(\d{1,4})", re.ASCII)


def head_name(layer: int, head: int) -> str:
    """The name of a head."""
    return f"L{layer}H{head}"


def head_place(data: xr.Dataset, name: str) -> tuple[int, int]:
    """Layer and head of a name, or a RefusedError that gives the range."""
    found = _NAME.fullmatch(name)
    layers, heads = _numbers(data, "layer"), _numbers(data, "head")
    if found and int(found[1]) in layers and int(found[2]) in heads:
        return int(found[1]), int(found[2])
    last = head_name(max(layers), max(heads))
    raise RefusedError(404, f"There is no such head; heads are named L0H0 to {last}.")


def _numbers(data: xr.Dataset, dim: str) -> list[int]:
    return [int(value) for value in data[dim].values]
