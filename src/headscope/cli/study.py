"""headscope study: run a published study on a model and a corpus."""

import json
import os
import shlex
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer.core import TyperCommand

from headscope.cli.model import Device, DeviceMap, Dtype, Quantization, check_model, load_model
from headscope.studies import STUDIES
from headscope.text.readers import list_formats
from headscope.wording import counted, plain

if TYPE_CHECKING:
    import xarray as xr

    from headscope.text.readers.lines import Layout

_Name = Annotated[
    str,
    typer.Argument(
        metavar="|".join([*STUDIES, "package.module:STUDY"]),
        help="Which study, or one of your own.",
    ),
]
_ModelName = Annotated[
    str, typer.Option(metavar="M", help="mini-gpt2, mini-bert, a directory or a hub id.")
]
_CorpusName = Annotated[
    str,
    typer.Option(
        metavar="CORPUS",
        help=f"demo, a directory, a URL, - for standard input, the name of a dataset on the hub, "
        f"or a file: {list_formats()}; text also as .gz or .zst.",
    ),
]
_Column = Annotated[
    str, typer.Option(metavar="NAME", help="The column or key of raw text that holds it.")
]
_Layout = Annotated[
    str | None,
    typer.Option(
        metavar="sentences|running|paragraphs|documents",
        help="Raw text: a sentence per line, cut by rules, lines whole, or documents whole.",
    ),
]
_Documents = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Read only the first N documents.")
]
_Out = Annotated[
    str, typer.Option(metavar="RUN", help="Run directory or URL; a second call resumes.")
]
_EngineName = Annotated[str, typer.Option(metavar="local|ray", help="Where shards are computed.")]
_Address = Annotated[
    str | None, typer.Option(metavar="A", help="A running Ray cluster, as host:port or auto.")
]
_Workers = Annotated[
    int | None,
    typer.Option(metavar="N", help="Ray workers, sharing the cores; one per GPU by default."),
]
_Sentences = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="How many to draw; all by default.")
]
_Segments = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="The same, where segments are read.")
]
_Texts = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="The same, where documents are read: lines or sentences of whole ones.",
    ),
]
_Seed = Annotated[int, typer.Option(min=0, metavar="S", help="Seed of the draw.")]
_BatchTokens = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Most tokens of one batch.")
]
_Context = Annotated[
    int | None,
    typer.Option(
        min=2,
        metavar="N",
        help="Tokens of an input, in studies with that option; sentences become documents, cut to "
        "this length.",
    ),
]
_Rest = Annotated[
    bool,
    typer.Option("--rest", help="Keep the shorter ends of documents, where a study cuts them."),
]
_Weights = Annotated[
    str | None,
    typer.Option(
        metavar="raw|norm|both",
        help="Attention as it is, weighted by what each token gives, or both.",
    ),
]
_Bos = Annotated[
    str | None,
    typer.Option(
        metavar="auto|never|always",
        help="Whether inputs begin with the BOS token; auto: as the tokenizer adds it.",
    ),
]
_Option = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=VALUE", help="An option of the study, listed below; may be repeated."
    ),
]
_Train = Annotated[
    str | None, typer.Option(metavar="CORPUS", help="What a study with probes trains them on.")
]
_Vectors = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Word vectors for probes: text, .gz, .npy."),
]


_AsJson = Annotated[bool, typer.Option("--json", help="Print what was found for programs.")]


class StudyCommand(TyperCommand):
    """The study command, whose help also lists the options of the study that is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """A study before --help is the one whose options are shown."""
        ctx.meta["named"] = [arg for arg in args if not arg.startswith("-")]
        return super().parse_args(ctx, args)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """The declarations are imported, and torch with them, only when help is asked for."""
        from headscope.studies import find_study

        named = [name for name in ctx.meta["named"] if name in STUDIES]
        if not named:
            formatter.write_paragraph()
            formatter.write_text(
                "A study has options of its own: headscope study "
                f"{'|'.join(STUDIES)} --help lists them."
            )
        for name in named:
            with formatter.section(f"Options of {name} (--option NAME=VALUE)"):
                formatter.write_dl([
                    (one.name, f"{one.meaning}: {one.expected}  [default: {one.shown_default}]")
                    for one in find_study(name).options
                ])  # fmt: skip


def study(
    name: _Name,
    model: _ModelName,
    corpus: _CorpusName,
    out: _Out,
    column: _Column = "text",
    layout: _Layout = None,
    documents: _Documents = None,
    engine: _EngineName = "local",
    address: _Address = None,
    workers: _Workers = None,
    sentences: _Sentences = None,
    segments: _Segments = None,
    texts: _Texts = None,
    seed: _Seed = 0,
    device: Device = None,
    dtype: Dtype = "float32",
    device_map: DeviceMap = None,
    quantization: Quantization = None,
    batch_tokens: _BatchTokens = None,
    context: _Context = None,
    rest: _Rest = False,
    weights: _Weights = None,
    bos: _Bos = None,
    option: _Option = None,
    train: _Train = None,
    vectors: _Vectors = None,
    as_json: _AsJson = False,
) -> None:
    """Run a study over a corpus and write its result to a run directory."""
    _spin_briefly()
    check_model(model, dtype)  # before torch is imported
    from headscope.studies import find_modules_here, find_study
    from headscope.studies.option import read_pairs
    from headscope.workers import find_engine

    # Every mistake that needs no model is said before one is loaded.
    where = find_engine(engine, address=address, workers=workers)
    find_modules_here(name)
    chosen = find_study(name)
    count = chosen.sample_size(sentences=sentences, segments=segments, texts=texts)
    named = {"train": train, "vectors": vectors, "context": context, "weights": weights}
    named |= {"rest": rest or None, "bos": bos}
    given = {key: value for key, value in named.items() if value is not None}
    options = chosen.with_options({**read_pairs(option or ()), **given})
    import headscope as hs

    read = hs.read_corpus(
        corpus,
        column=column,
        layout=cast("Layout | None", layout or chosen.layout),
        documents=documents,
    )
    for remark in read.remarks:
        typer.echo(plain(remark), err=True)
    result = hs.study(
        name,
        load_model(
            model, device=device, dtype=dtype, device_map=device_map, quantization=quantization
        ),
        read,
        out,
        engine=where,
        sentences=count,
        seed=seed,
        batch_tokens=batch_tokens,
        **options,
    )
    if as_json:
        said = _summary(result, out)
        typer.echo(json.dumps(said, indent=1, ensure_ascii=False, default=lambda n: n.item()))
        return
    inputs = counted(result.attrs["sentences"], chosen.unit)
    typer.echo(plain(f"{out}/result.nc: {name} of {model}, {inputs}{_skipped(result)}"))
    typer.echo(f"Now: headscope report {shlex.quote(out)}")


def _summary(result: "xr.Dataset", out: str) -> dict[str, Any]:
    """What a program needs to go on: where the run is, what was read, what was found."""
    from dataclasses import asdict

    from headscope.results.dataset import read_attribute
    from headscope.results.statements import read_statements

    kept = ("study", "model", "corpus", "sentences", "tokens")
    said = read_statements(result)
    return {
        "run": out,
        **{name: result.attrs[name] for name in kept},
        "skipped": read_attribute(result, "skipped"),
        "variables": sorted(map(str, result.data_vars)),
        "findings": [asdict(each) for each in said.findings],
        "choices": [asdict(each) for each in said.choices],
    }


def _skipped(result: "xr.Dataset") -> str:
    from headscope.results.dataset import read_attribute

    reasons = ", ".join(
        f"{count:,} × {reason}" for reason, count in read_attribute(result, "skipped").items()
    )
    return f"; skipped: {reasons} (docs/studies.md)" if reasons else ""


def _spin_briefly() -> None:
    """Let threads of torch that wait for each other sleep soon instead of spinning for long.

    A spinning thread takes the core that the thread it waits for may need; see docs/scale.md. Must
    be set before torch is imported.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")
