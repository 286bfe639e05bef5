"""How a command loads its model: options that all commands with a model share."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headscope.wording import plain

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
    str | None, typer.Option(metavar="int8|int4", help="Store the weights in few bits.")
]


def load_model(name: str, **options: Any) -> "Model":
    """Load a model as the options say, and tell on stderr what is unusual about it."""
    from headscope.model.loading.source import find_source

    find_source(name)  # what is not there is said at once, before torch is imported
    from headscope.model.loading.load import load

    model = load(name, **options)
    for remark in model.remarks:
        typer.echo(plain(remark), err=True)
    return model
