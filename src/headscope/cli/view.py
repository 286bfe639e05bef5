"""headscope view: the attention of one text, as a page or a figure."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headscope.cli.model import Device, DeviceMap, Dtype, Quantization, load_model
from headscope.errors import ViewError
from headscope.head import read_head
from headscope.model.inputs.frame import Bos
from headscope.model.trace import ENDING, Precision
from headscope.progress import show_progress
from headscope.views.kinds import KINDS, all_settings, kind_of
from headscope.views.state import Theme
from headscope.wording import plain

if TYPE_CHECKING:
    from headscope.model.trace import Trace
    from headscope.views.view import View

_SETTINGS = all_settings()
_MOST_TEXTS = 200  # in one page
_ENDINGS_OF_TEXTS = (".txt", ".text", ".md")


_Text = Annotated[
    str | None,
    typer.Argument(
        metavar="TEXT",
        help="What the model reads: a text, a file with a text on each line, or - for stdin; "
        "or a stored trace (.hst), which needs no model.",
    ),
]
_Model = Annotated[
    str | None, typer.Option(metavar="M", help="mini-gpt2, mini-bert, a directory, or a hub id.")
]
_Out = Annotated[
    Path,
    typer.Option(metavar="FILE", help="Where to: .html, .svg, .png or .pdf; .hst keeps the trace."),
]
_Chat = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.json",
        help='Messages instead of a text: [{"role": "user", "content": "…"}, …].',
    ),
]
_Special = Annotated[
    bool,
    typer.Option("--special/--no-special", help="Whether the tokenizer adds its special tokens."),
]
_Bos = Annotated[
    Bos,
    typer.Option(help="Whether the text begins with the BOS token; auto: as its tokenizer does."),
]
_Pair = Annotated[
    str | None, typer.Option(metavar="TEXT", help="A second text, for models of pairs.")
]
_Target = Annotated[
    str | None, typer.Option(metavar="TEXT", help="What the decoder reads, where there is one.")
]
_Generate = Annotated[
    int, typer.Option(metavar="N", min=0, help="Let the model write up to N tokens more.")
]
_Temperature = Annotated[
    float | None,
    typer.Option(
        metavar="X",
        min=0,
        help="Draw what is written; 0: the most probable; none: as the model says.",
    ),
]
_TopK = Annotated[
    int | None, typer.Option(metavar="K", min=1, help="Draw from the K most probable tokens.")
]
_TopP = Annotated[
    float | None, typer.Option(metavar="P", help="Draw from those that share the probability P.")
]
_Seed = Annotated[int, typer.Option(metavar="S", min=0, help="Seed of the draw.")]
_Layer = Annotated[
    int | None, typer.Option(metavar="L", help="Keep only this layer; the first is 0.")
]
_Heads = Annotated[
    str | None, typer.Option(metavar="0,3", help="Keep only these heads: numbers from 0, or L5H2.")
]
_Hide = Annotated[
    str | None,
    typer.Option(metavar=",".join(_SETTINGS["hide"].choices), help="Tokens to leave out."),
]
_Precision = Annotated[
    Precision, typer.Option(help="Of the weights in a stored trace (--out FILE.hst).")
]
_Summary = Annotated[
    str | None,
    typer.Option(metavar="mean|max", help="All heads and layers that are kept as one picture."),
]
_Layout = Annotated[
    str | None,
    typer.Option(
        metavar="|".join(_SETTINGS["layout"].choices),
        help=f"Of the head view: {_SETTINGS['layout'].meaning}.",
    ),
]
_Theme = Annotated[Theme, typer.Option(help=f"Of the page; {_SETTINGS['theme'].meaning}.")]
_Whole = Annotated[
    bool, typer.Option("--whole", help="A file is one text, however many lines it has.")
]
_Truncate = Annotated[
    bool, typer.Option("--truncate", help="Cut a text that is too long for the model.")
]


def view(
    out: _Out,
    text: _Text = None,
    model: _Model = None,
    chat: _Chat = None,
    kind: Annotated[str, typer.Option(metavar="|".join(KINDS), help="Which view.")] = "head",
    pair: _Pair = None,
    special: _Special = True,
    bos: _Bos = "auto",
    target: _Target = None,
    generate: _Generate = 0,
    temperature: _Temperature = None,
    top_k: _TopK = None,
    top_p: _TopP = None,
    seed: _Seed = 0,
    layer: _Layer = None,
    heads: _Heads = None,
    hide: _Hide = None,
    summary: _Summary = None,
    layout: _Layout = None,
    theme: _Theme = "auto",
    whole: _Whole = False,
    truncate: _Truncate = False,
    device: Device = None,
    dtype: Dtype = "float32",
    device_map: DeviceMap = None,
    quantization: Quantization = None,
    precision: _Precision = "exact",
) -> None:
    """Show what each head looks at in a text, or in each text of a file."""
    from headscope.views.view import check_ending, gallery, open_view

    ending = ENDING if out.suffix == ENDING else check_ending(out)
    layer, numbers = read_heads(layer, heads)
    settings = {
        **_settings(kind, layer, numbers, hide, theme), "summary": summary, "layout": layout,
    }  # fmt: skip
    if text is not None and text.endswith(ENDING):
        one = _open_stored(text, model=model, chat=chat, pair=pair, target=target)
        return _save(open_view(one, kind, **settings), one, out, precision)
    if model is None:
        raise ViewError("Say which model reads the text: --model M.")
    second, written = read_text(pair), read_text(target)
    inputs = _inputs(text, chat, whole=whole)
    if text is not None and len(inputs) > 1:
        _check_several(text, len(inputs), ending, pair=pair, target=target)
    network = load_model(
        model, device=device, dtype=dtype, device_map=device_map, quantization=quantization
    )
    traces = [
        network.trace(
            **one,
            pair=second,
            special=special,
            bos=bos,
            target=written,
            generate=generate,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            seed=seed,
            progress=_tell(generate),
            truncate=truncate,
            # Only what is shown is kept: all matrices of a long text do not fit into memory.
            layers=None if layer is None else [layer],
            heads=numbers,
        )
        for one in inputs
    ]
    if text is not None and len(traces) > 1:
        gallery(traces, kind=kind, title=Path(text).stem, **settings).save(out)
        return typer.echo(str(out))
    return _save(open_view(traces[0], kind, **settings), traces[0], out, precision)


def _open_stored(name: str, **others: object) -> "Trace":
    from headscope.model.stored import open_trace

    given = [f"--{option}" for option, value in others.items() if value is not None]
    if given:
        raise ViewError(f"{name} is a stored trace, which is only shown; leave {given[0]} out.")
    return open_trace(name)


def _save(view: "View", trace: "Trace", out: Path, precision: Precision) -> None:
    """A view as a page or a figure, or the trace itself."""
    if out.suffix == ENDING:
        trace.save(out, precision=precision)
    else:
        view.save(out)
    typer.echo(str(out))


def _tell(tokens: int) -> Callable[[str], None]:
    """On a terminal what the model writes, as it writes it; elsewhere how far it has come."""
    if sys.stderr.isatty():
        return lambda piece: typer.echo(plain(piece), nl=False, err=True)
    done = show_progress(range(tokens), tokens, "tokens", label="writing")

    def count(_: str) -> None:
        next(done, None)

    return count


def _inputs(text: str | None, chat: Path | None, *, whole: bool) -> list[dict[str, Any]]:
    """What is to be traced: the messages of a chat, or one text or more."""
    if (text is None) == (chat is None):
        raise ViewError("Give a text, or a chat (--chat FILE.json), and only one of them.")
    if chat is not None:
        from headscope.model.inputs.chat import read_chat

        messages, template = read_chat(chat)
        return [{"messages": messages, "template": template}]
    return [{"text": one} for one in read_texts(text or "", whole=whole)]


def read_texts(said: str, *, whole: bool = False) -> list[str]:
    """The text itself, or those of a file: one on each line that is not empty."""
    read = read_text(said) or ""
    if whole or said == "-" or not _names_file(said):
        return [read]
    return [line.strip() for line in read.splitlines() if line.strip()] or [read]


def _check_several(name: str, count: int, ending: str, **others: str | None) -> None:
    """Several texts make one page; what belongs to a single text is refused."""
    if count > _MOST_TEXTS:
        raise ViewError(
            f"{name} has {count:,} texts, one on each line; a page holds up to {_MOST_TEXTS}. Cut "
            "the file, or add --whole to read it as one text."
        )
    given = [f"--{option}" for option, value in others.items() if value is not None]
    if given or ending != ".html":
        wrong = given[0] if given else f"an {ending} file"
        raise ViewError(
            f"{name} has {count} texts, one on each line, and {wrong} is for a single one; save a "
            "page (.html) of them all, or add --whole to read the file as one text."
        )


def read_text(said: str | None) -> str | None:
    """The text itself, that of a file, or for `-` what comes from standard input."""
    if said is None:
        return None
    try:
        said.encode("utf-8")
        if said == "-":
            return sys.stdin.buffer.read().decode("utf-8").strip("\n")
        if _names_file(said):
            return Path(said).read_text(encoding="utf-8").strip("\n")
    except UnicodeError:
        shown = said.encode("utf-8", "backslashreplace").decode("utf-8")
        raise ViewError(f"{shown} is not UTF-8; convert it, for example by iconv.") from None
    except OSError as error:
        raise ViewError(f"{said} cannot be read: {error.strerror}.") from error
    return said


def _names_file(said: str) -> bool:
    """Whether a text is the name of a file; a file that is not there is refused, not drawn."""
    if "\n" in said or len(said) > 1000:
        return False
    path = Path(said)
    if path.suffix and path.is_file():
        return True
    if path.suffix.lower() in _ENDINGS_OF_TEXTS and " " not in said:
        raise ViewError(f"There is no file {said}; give its right path, or the text itself.")
    return False


def read_heads(layer: int | None, said: str | None) -> tuple[int | None, list[int] | None]:
    """The layer and its heads, which are numbers or names with their layer in them."""
    if said is None or "L" not in said.upper():
        return layer, None if said is None else parse_heads(said)
    named = [read_head(name) for name in said.split(",")]
    if layer is not None:
        raise ViewError(f"{said} names the layer; leave --layer out.")
    if len({head.layer for head in named}) > 1:
        raise ViewError(f"{said} are not heads of one layer, which a view takes.")
    return named[0].layer, [head.head for head in named]


def parse_heads(text: str) -> list[int]:
    """`0,3` and `0-3` as numbers."""
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise ViewError(f"Heads are {text!r}; write them like 0,3 or 0-3.")
        numbers.extend(range(int(first), int(last if dash else first) + 1))
    return numbers


def _settings(
    kind: str, layer: int | None, numbers: list[int] | None, hide: str | None, theme: Theme
) -> dict[str, Any]:
    """The options as settings of this kind of view; one that it does not have is refused there."""
    declared = kind_of(kind)
    settings: dict[str, Any] = {"theme": theme, "hide": hide.split(",") if hide else None}
    settings["layers" if declared.shows_all_layers else "layer"] = layer
    if "heads" in declared.settings:
        return {**settings, "heads": numbers}
    if numbers is not None and len(numbers) > 1:
        raise ViewError(f"The {kind} view takes one head, not {len(numbers)}.")
    return {**settings, "head": numbers[0] if numbers else None}
