"""`headscope check MODEL`: how each layer is captured, what is refused and why."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from headscope.model.model import Model


def check(
    model: Annotated[str, typer.Argument(help="A bundled model, a directory or a hub id.")],
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit on the hub.")] = None,
    dtype: Annotated[str, typer.Option(help="float32, float16 or bfloat16.")] = "float32",
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1 …")] = None,
) -> None:
    """Show how each stack of a model is captured, what is refused and why."""
    from rich.console import Console

    from headscope.model.load import load

    loaded = load(model, revision=revision, dtype=dtype, device=device)
    console = Console()
    console.print(_table(loaded))
    for line in _remarks(loaded):
        console.print(line, markup=False)


def _table(model: "Model") -> "Table":
    from rich.table import Table

    table = Table(title=f"{model.name}: {type(model.network).__name__}")
    for column in (
        "stack",
        "layers",
        "heads",
        "key/value heads",
        "backend",
        "plain",
        "neuron view",
    ):
        table.add_column(column)
    for stack in model.stacks:
        table.add_row(
            stack.name,
            str(stack.layers),
            str(stack.heads),
            str(stack.key_heads),
            stack.backend,
            _yes(stack.plain),
            _yes(stack.no_neurons is None),
        )
    return table


def _remarks(model: "Model") -> list[str]:
    """What the table has no room for: direction, length, hybrid layers, refusals and reasons."""
    limit = "any number of" if model.max_length is None else f"at most {model.max_length}"
    direction = "sees only what came before" if model.is_causal else "sees the whole text"
    remarks = [f"Every token {direction}; {limit} tokens. Proved against the model's own output."]
    for stack in model.stacks:
        if len(stack.attending) < stack.layers:
            numbers = ", ".join(str(number) for number in stack.attending)
            remarks.append(f"{stack.name}: only these layers have attention: {numbers}.")
        if stack.sink:
            remarks.append(f"{stack.name}: rows sum to less than 1, the rest goes to a sink.")
        if stack.no_neurons is not None:
            remarks.append(f"{stack.name}: no neuron view, because {stack.no_neurons}.")
        if stack.no_norms is not None:
            remarks.append(f"{stack.name}: no norm-weighted attention, because {stack.no_norms}.")
    if not model.can_pad("right"):
        remarks.append("Padding changes its attention, so only texts of equal length are batched.")
    return remarks


def _yes(answer: bool) -> str:
    return "yes" if answer else "no"
