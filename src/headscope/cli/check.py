"""headscope check: how each layer of a model is captured, what is refused and why."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headscope.cli.model import Device, DeviceMap, Dtype, Quantization, load_model

if TYPE_CHECKING:
    from rich.table import Table

    from headscope.model.model import Model


def check(
    model: Annotated[str, typer.Argument(help="A bundled model, a directory or a hub id.")],
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit on the hub.")] = None,
    dtype: Dtype = "float32",
    device: Device = None,
    device_map: DeviceMap = None,
    quantization: Quantization = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it for programs.")] = False,
) -> None:
    """Show how each stack of a model is captured, what is refused and why."""
    from rich.console import Console

    options = {"device": device, "device_map": device_map, "quantization": quantization}
    loaded = load_model(model, revision=revision, dtype=dtype, **options)
    if as_json:
        typer.echo(json.dumps(_described(loaded), indent=1, ensure_ascii=False))
        return
    console = Console()
    console.print(_table(loaded))
    for line in (*_legend(loaded), *_remarks(loaded)):
        console.print(line, markup=False, highlight=False)


_OF_A_STACK = (
    "name", "layers", "attending", "heads", "key_heads", "backend", "plain", "sink", "no_neurons",
    "no_norms",
)  # fmt: skip
BACKENDS = {
    "interface": "what the model's own attention function receives and returns, layer by layer",
    "hooks": "what the modules that compute weights return, layer by layer; no queries and keys",
    "outputs": "what the network reports at its end, all layers at once; no queries and keys",
}


def _described(model: "Model") -> dict[str, Any]:
    """The same for programs: names are those of `Model` and of its stacks."""
    from headscope.model.capture.plan import sliding_window

    config = model.network.config
    windows = {stack.name: sliding_window(config, stack.name) for stack in model.stacks}
    return {
        "model": model.name,
        "network": type(model.network).__name__,
        "model_type": config.model_type,
        "is_causal": model.is_causal,
        "max_length": model.max_length,
        "weights": list(model.remarks),
        "can_pad": model.can_pad("right"),
        "long_texts": list(model.modes.deferred),
        "stacks": [
            {
                **{name: getattr(stack, name) for name in _OF_A_STACK},
                "sliding_window": None if (found := windows[stack.name]) is None else found[0],
            }
            for stack in model.stacks
        ],
        "remarks": _remarks(model),
    }


def _table(model: "Model") -> "Table":
    from rich.table import Table

    columns = ("stack", "layers", "heads", "key/value heads", "backend", "plain", "neuron view")
    table = Table(*columns, title=f"{model.name}: {type(model.network).__name__}")
    for stack in model.stacks:
        counts = map(str, (stack.layers, stack.heads, stack.key_heads))
        answers = ("yes" if each else "no" for each in (stack.plain, stack.no_neurons is None))
        table.add_row(stack.name, *counts, stack.backend, *answers)
    return table


def _legend(model: "Model") -> list[str]:
    """What the columns mean, of those backends that are in the table."""
    used = dict.fromkeys(stack.backend for stack in model.stacks)
    return [
        *(f"backend {name}: {BACKENDS[name]}." for name in used),
        "plain: the weights are softmax(scaling · q·k + mask and position bias), without soft-cap, "
        "sink or anything else.",
        "neuron view: queries and keys are known and rebuild the weights.",
        "",
    ]


def _remarks(model: "Model") -> list[str]:
    """What the table has no room for: direction, length, windows, hybrid layers, refusals."""
    from headscope.model.capture.plan import sliding_window

    limit = "any number of" if model.max_length is None else f"at most {model.max_length}"
    direction = "sees only what came before" if model.is_causal else "sees the whole text"
    remarks = [f"Every token {direction}; {limit} tokens. Proved against the model's own output."]
    for stack in model.stacks:
        window = sliding_window(model.network.config, stack.name)
        if window is not None:
            remarks.append(f"{stack.name}: {_window(*window)}")
        if len(stack.attending) < stack.layers:
            numbers = ", ".join(str(number) for number in stack.attending)
            remarks.append(f"{stack.name}: only these layers have attention: {numbers}.")
        if stack.sink:
            remarks.append(f"{stack.name}: rows sum to less than 1, the rest goes to a sink.")
        if stack.no_neurons is not None:
            remarks.append(f"{stack.name}: no neuron view, because {stack.no_neurons}.")
        if stack.no_norms is not None:
            remarks.append(f"{stack.name}: no norm-weighted attention, because {stack.no_norms}.")
    remarks.append(_long_texts(model))
    if not model.can_pad("right"):
        remarks.append("Padding changes its attention, so only texts of equal length are batched.")
    return remarks


def _long_texts(model: "Model") -> str:
    if not model.modes.deferred:
        return f"Long texts need whole matrices: {next(iter(model.modes.refused.values()))}."
    proved = " and ".join(model.modes.deferred)
    return f"Long texts can be measured without whole matrices, by {proved} (see docs/scale.md)."


def _window(size: int, layers: tuple[int, ...]) -> str:
    where = f"in layers {', '.join(map(str, layers))}" if layers else "in all layers"
    return (
        f"{where} a token sees only a sliding window of {size} tokens; weights beyond it are zero, "
        "and texts that fit into it are not affected."
    )
