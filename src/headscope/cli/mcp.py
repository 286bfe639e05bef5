"""headscope mcp: runs and a model as tools for an agent."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from headscope.cli.model import Device, DeviceMap, Dtype, Quantization, check_model, load_model


def mcp(
    runs: Annotated[
        list[Path] | None, typer.Argument(metavar="[RUN]...", help="Finished runs to ask about.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="M", help="A model to trace texts with.")
    ] = None,
    device: Device = None,
    dtype: Dtype = "float32",
    device_map: DeviceMap = None,
    quantization: Quantization = None,
) -> None:
    """Answer an agent over standard input and output, by the Model Context Protocol."""
    from headscope.mcp import serve

    load = None
    if model is not None:
        check_model(model, dtype)  # now, not when the first text comes
        load = partial(
            load_model, model, device=device, dtype=dtype, device_map=device_map,
            quantization=quantization,
        )  # fmt: skip
    serve(runs or [], load)
