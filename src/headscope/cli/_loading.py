"""How a model is loaded: options that every command with a model shares."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headscope.model.model import Model

Device = Annotated[
    str | None, typer.Option(metavar="D", help="cpu or cuda; the best there is by default.")
]
Dtype = Annotated[str, typer.Option(metavar="T", help="float32, bfloat16 or float16.")]
DeviceMap = Annotated[
    str | None,
    typer.Option(
        metavar="auto|JSON",
        help="Spread the weights over devices, memory and disk: auto, or which part goes where.",
    ),
]
Quantization = Annotated[
    str | None,
    typer.Option(metavar="int8|int4", help="Store the weights in few bits."),
]


def load_model(
    name: str,
    *,
    device: str | None,
    dtype: str,
    device_map: str | None,
    quantization: str | None,
    revision: str | None = None,
) -> "Model":
    """Load a model as the options say, and tell on stderr what is unusual about it."""
    from headscope.model.loading.load import load
    from headscope.wording import plain

    model = load(
        name,
        revision=revision,
        dtype=dtype,
        device=device,
        device_map=device_map,
        quantization=quantization,
    )
    for remark in model.remarks:
        typer.echo(plain(remark), err=True)
    return model
