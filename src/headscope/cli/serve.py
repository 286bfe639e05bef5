"""headscope serve: the explorer of finished runs, and of typed texts."""

from pathlib import Path
from typing import Annotated

import typer

from headscope.cli.model import Device, DeviceMap, Dtype, Quantization


def serve(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN]...", help="Directories made by `study`, or their result.nc."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="M", help="A model to trace typed texts with.")
    ] = None,
    host: Annotated[
        str, typer.Option(help="Another address than 127.0.0.1 is guarded by a token.")
    ] = "127.0.0.1",
    device: Device = None,
    dtype: Dtype = "float32",
    device_map: DeviceMap = None,
    quantization: Quantization = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8642,
    browser: Annotated[bool, typer.Option(help="Open the explorer in the browser.")] = True,
) -> None:
    """Explore runs, and with --model any text, in the browser."""
    import webbrowser

    from headscope.explorer import serve as serve_runs

    def ready(address: str) -> None:
        typer.echo(f"Headscope explorer: {address}  (Ctrl-C stops it)")
        if browser:
            webbrowser.open(address)

    load = {"device": device, "device_map": device_map, "quantization": quantization}
    load["dtype"] = dtype
    serve_runs(runs or [], model=model, load=load, host=host, port=port, ready=ready)
