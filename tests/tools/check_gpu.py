"""Every study on a GPU beside the same study on the CPU, both in float32, on the bundled models.

python -m tests.tools.check_gpu        needs a GPU
"""

import argparse
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr

import headscope as hs

STUDIES: dict[str, dict[str, Any]] = {
    "vig2019": {"sentences": 200},
    "clark2019": {"sentences": 200},
    "luger2026": {"context": 128},
}
MOST = 1e-4  # two float32 networks part by rounding; a wrong sum is off by far more
OTHERWISE = 1e-3  # of what is counted, where two weights are compared that differ by rounding
SHARES = ("example_share",)  # of inputs, without the counts behind them


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--studies", nargs="*", default=list(STUDIES))
    given = parser.parse_args()
    torch.set_float32_matmul_precision("highest")
    worst = 0.0
    for study, name in product(given.studies, ("mini-gpt2", "mini-bert")):
        with tempfile.TemporaryDirectory() as folder:
            here, there = (
                run(study, name, device, Path(folder) / device) for device in ("cpu", given.device)
            )
        worst = max(worst, compare(f"{study} on {name}", here, there))
    if worst > MOST:
        raise SystemExit("too far apart")


def run(study: str, name: str, device: str, folder: Path) -> xr.Dataset:
    """The result of one study."""
    model = hs.load(name, device=device)
    return hs.study(study, model, hs.demo_corpus(), out=folder, **STUDIES[study])


def compare(title: str, here: xr.Dataset, there: xr.Dataset) -> float:
    """Print how far apart the values are, and which variables only one of them has."""
    here, there = (result.assign(_in_order(result)) for result in (here, there))
    both = sorted(set(here.data_vars) & set(there.data_vars), key=str)
    counted = {name: _otherwise(name, here, there) for name in _counted(here)}
    left_out = (*counted, *SHARES)
    apart = {
        str(name): difference(here[name].values, there[name].values)
        for name in both
        if here[name].dtype.kind == "f" and not _follows(str(name), left_out)
    }
    worst = sorted(apart, key=lambda name: -apart[name])[:4]
    alone = sorted(map(str, set(here.data_vars) ^ set(there.data_vars)))
    shown = ", ".join(f"{name} {apart[name]:.1e}" for name in worst)
    print(f"{title}: {len(apart)} variables, furthest apart {shown}")
    print(f"  on one device only: {', '.join(alone) or 'none'}")
    for name, (changed, total) in counted.items():
        if changed:
            print(f"  {name} counts {changed:,.0f} of {total:,.0f} otherwise")
    far = max((changed / total for changed, total in counted.values()), default=0.0)
    return max(apart[worst[0]], far * MOST / OTHERWISE)


def _follows(name: str, measures: tuple[str, ...]) -> bool:
    """Whether a variable is one of these measures, made of one, or the chance of a value."""
    return name.endswith(("_q", "_p")) or any(
        name == each or name.startswith(f"{each}_") for each in measures
    )


def _counted(result: xr.Dataset) -> list[str]:
    """Measures that count what falls on one side of a comparison: their numerators are whole."""
    sums = {str(name): result[name].values for name in result.data_vars}
    return [
        name.removesuffix("_numerator")
        for name, values in sums.items()
        if name.endswith("_numerator") and np.array_equal(values, np.round(values)) and values.any()
    ]


def _otherwise(name: str, here: xr.Dataset, there: xr.Dataset) -> tuple[float, float]:
    """How many counts are in another place, and how many there are."""
    one, other = (result[f"{name}_numerator"].values for result in (here, there))
    return float(np.abs(one - other).sum()) / 2, float(one.sum())


def _in_order(result: xr.Dataset) -> dict[str, xr.DataArray]:
    """Shares in their own order: in that of lifts, tokens whose lifts are alike change places."""
    name = "top_token_share"
    return {name: result[name].sel(by="mass")} if name in result else {}


def difference(one: np.ndarray, other: np.ndarray) -> float:
    """The largest difference, relative to the largest value; one where other places are unknown."""
    if one.shape != other.shape or not np.array_equal(np.isnan(one), np.isnan(other)):
        return 1.0
    if not one.size or np.isnan(one).all():
        return 0.0
    return float(np.nanmax(np.abs(one - other)) / max(np.nanmax(np.abs(one)), 1e-6))


if __name__ == "__main__":
    main()
