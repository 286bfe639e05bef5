"""How a command loads its model: options that all commands with a model share."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headscope.errors import ModelError
from headscope.wording import plain

if TYPE_CHECKING:
    from headscope.model.model import Model

DTYPES = ("auto", "float32", "bfloat16", "float16", "float64")
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
    str | None, typer.Option(metavar="int8|int4", help="Quantize the weights.")
]


def check_model(name: str, dtype: str) -> None:
    """Refuse a missing model, and a number type that is none, before torch is imported."""
    from headscope.model.loading.source import find_source

    find_source(name)
    if dtype not in DTYPES:
        raise ModelError(f"There is no dtype {dtype!r}; choose {', '.join(DTYPES)}.")


def load_model(name: str, **options: Any) -> "Model":
    """Load a model as the options say, and tell on stderr what is unusual about it."""
    check_model(name, options.get("dtype", "float32"))
    from headscope.model.loading.load import load

    model = load(name, **options)
    for remark in model.remarks:
        typer.echo(plain(remark), err=True)
    return model
