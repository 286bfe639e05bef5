"""What a trace needs, what the machine has, and a refusal before the pass where it does not fit.

Attention matrices grow with the square of the tokens: 30 layers of 9 heads on 6,450 tokens are 270
matrices of 166 MB, 45 GB. Free memory is what Linux reports as available in /proc/meminfo, less
where a control group (a container) sets a lower limit; elsewhere the free physical pages that
`os.sysconf` counts. Where nothing is reported, nothing is refused.
"""

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import torch

from headscope.errors import ModelError
from headscope.model.attention import Stack
from headscope.model.capture.plan import Plan, StackPlan

MEMINFO = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")
NUMBER = 4  # bytes: whatever the network's dtype, weights are kept in float32
# Scores, weights and what checks them live at once while a layer is computed: 2.1 to 3.5 times its
# weights were measured in BERT, GPT-2, Llama, GPT-J and BLOOM.
WORKING = 3


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
        matrices += shown * wanted
        kept += shown * (wanted + _masks(stack)) * matrix
        working = max(working, WORKING * stack.heads * matrix)
        if stack.backend == "outputs":  # the network hands out all layers at the end
            working += len(stack.attending) * stack.heads * matrix
    return Need(matrices, kept, working)


def check_memory(need: Need, tokens: int, device: torch.device) -> None:
    """Refuse a trace that does not fit, with the numbers and what would."""
    free = available_memory()
    if device.type == "cuda":
        _check(need, tokens, need.working, torch.cuda.mem_get_info(device)[0], "on the GPU")
        _check(need, tokens, need.kept, free, "in memory")
    else:
        _check(need, tokens, need.kept + need.working, free, "in memory")


def available_memory() -> int | None:
    """Bytes that can be used without swapping; None where the system does not tell."""
    found = [free for free in (_available_to_system(), _available_to_group()) if free is not None]
    return min(found, default=None)


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


def _masks(stack: StackPlan) -> int:
    """The mask is kept beside the weights of every layer where the neuron view can be shown."""
    return 1 if stack.no_neurons is None else 0


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
