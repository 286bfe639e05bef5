"""What weights and traces need, what the machine has, and a refusal where they do not fit.

Attention matrices grow with the square of the tokens: 30 layers of 9 heads on 6,450 tokens are 270
matrices of 166 MB, 45 GB. Free memory is what Linux reports as available in /proc/meminfo, less
where a control group (a container) sets a lower limit; elsewhere the free physical pages that
`os.sysconf` counts. Where nothing is reported, nothing is refused.
"""

import math
import os
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from headscope.errors import ModelError
from headscope.model.attention import Stack
from headscope.model.capture.plan import Plan

MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")
NUMBER = 4  # bytes: whatever the network's dtype, weights are kept in float32
# Scores, weights and what checks them live at once while a layer is computed: 2.1 to 3.5 times its
# weights were measured in BERT, GPT-2, Llama, GPT-J and BLOOM.
WORKING = 3
_NO_MEMORY = re.compile(
    "out of memory|can't allocate memory|not enough memory|cannot allocate memory", re.IGNORECASE
)
_ASKED = re.compile(r"(?:allocate|allocating)\s+([\d.]+ (?:[KMGT]iB|bytes))")


@dataclass(frozen=True)
class Need:
    """The memory of one trace, in bytes."""

    matrices: int  # attention matrices that are kept, one per head
    kept: int  # in host memory, until the trace is deleted
    working: int  # on the network's device, while the pass runs


def needed(
    plan: Plan,
    lengths: dict[Stack, tuple[int, int]],
    layers: Collection[int] | None,
    heads: Collection[int] | None,
) -> Need:
    """The memory to trace the chosen layers and heads; `lengths` are queries and keys by stack."""
    matrices = kept = working = 0
    for stack in plan.stacks:
        if stack.name not in lengths:
            continue
        queries, keys = lengths[stack.name]
        matrix = queries * keys * NUMBER
        shown = _chosen(stack.attending, layers)
        wanted = _chosen(range(stack.heads), heads)
        masks = int(stack.no_neurons is None)  # beside the weights, where the neuron view is shown
        matrices += shown * wanted
        kept += shown * (wanted + masks) * matrix
        working = max(working, WORKING * stack.heads * matrix)
        if stack.backend == "outputs":  # the network hands out all layers at the end
            working += len(stack.attending) * stack.heads * matrix
    return Need(matrices, kept, working)


def check_memory(need: Need, tokens: int, device: torch.device) -> None:
    """Refuse a trace that does not fit, with the numbers and what would."""
    free = available_memory()
    if device.type == "cuda":
        _check(need, tokens, need.working, free_on_gpu(device), "on the GPU")
        _check(need, tokens, need.kept, free, "in memory")
    else:
        _check(need, tokens, need.kept + need.working, free, "in memory")


def free_on_gpu(device: torch.device) -> int:
    """Bytes that torch may still give out: what nobody has, and what it keeps for itself unused."""
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + unused


def check_room(name: str, folder: Path, dtype: torch.dtype, device: torch.device) -> None:
    """Refuse weights that do not fit before they are read: a machine without memory says nothing.

    The weights are counted in the safetensors of a local directory; elsewhere nothing is refused.
    """
    wanted = sum(map(_numbers_of, folder.glob("*.safetensors"))) * dtype.itemsize
    on_gpu = device.type == "cuda"
    free = free_on_gpu(device) if on_gpu else available_memory()
    if free is None or wanted <= free:
        return
    where = f"on {device}" if on_gpu else "in memory"
    raise ModelError(
        f"The weights of {name} take {_gigabytes(wanted)} {where} in {str(dtype)[6:]}, but only "
        f"{_gigabytes(free)} is free; {fewer_bytes(dtype)}."
    )


@contextmanager
def within_memory(name: str, doing: str, remedy: str) -> Iterator[None]:
    """Turn memory that runs out into one sentence."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:  # torch.OutOfMemoryError is a RuntimeError
        if not is_out_of_memory(error):
            raise
        asked = _ASKED.search(str(error))
        tried = "" if asked is None else f" (it wanted {asked[1]} more)"
        raise ModelError(f"The memory ran out while {name} {doing}{tried}; {remedy}.") from error


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory is what failed: torch has a class for GPUs alone."""
    kinds = (torch.OutOfMemoryError, MemoryError)
    return isinstance(error, kinds) or bool(_NO_MEMORY.search(str(error)))


def fewer_bytes(dtype: torch.dtype) -> str:
    """What a user can do about weights that are too large."""
    half = "dtype=bfloat16 takes half of it, " if dtype.itemsize > 2 else ""
    return (
        f"{half}quantization=int8 stores a byte for each number, and device_map=auto spreads the "
        "weights over devices, memory and disk"
    )


def _numbers_of(file: Path) -> int:
    try:
        with safe_open(file, framework="np") as opened:
            return sum(math.prod(opened.get_slice(key).get_shape()) for key in opened.keys())  # noqa: SIM118
    except (SafetensorError, OSError, ValueError):  # said where the weights are loaded
        return 0


def available_memory() -> int | None:
    """Bytes that can be used without swapping; None where the system does not tell."""
    limits = [free for free in (_available_to_system(), _available_to_group()) if free is not None]
    return min(limits, default=None)


def _check(need: Need, tokens: int, wanted: int, free: int | None, where: str) -> None:
    if free is None or wanted <= free:
        return
    fitting = int(tokens * (free / wanted) ** 0.5)
    raise ModelError(
        f"A trace of {tokens:,} tokens needs {_gigabytes(wanted)} {where}, but only "
        f"{_gigabytes(free)} is free: it keeps {need.matrices:,} attention matrices "
        f"({_gigabytes(need.kept)}), and computing a layer takes {_gigabytes(need.working)}; "
        f"choose fewer layers and heads, or a text of at most about {fitting:,} tokens."
    )


def _chosen(present: Collection[int], asked: Collection[int] | None) -> int:
    return len(present) if asked is None else len(set(present) & set(asked))


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e8 else f"{count / 1e6:,.1f} MB"


def _available_to_system() -> int | None:
    try:
        lines = dict(line.split(":", 1) for line in MEMINFO.read_text().splitlines())
        return int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _available_to_group() -> int | None:
    """What is left of a container's limit; cached files that can be dropped count as free."""
    try:
        limit = int((CGROUP / "memory.max").read_text())
        used = int((CGROUP / "memory.current").read_text())
        stat = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
        return max(0, limit - used + int(stat["inactive_file"]))
    except (OSError, KeyError, ValueError):  # no control groups, or no limit ("max")
        return None
