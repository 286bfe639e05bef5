"""headscope study: run a published study on a model and a corpus."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    import xarray as xr

    from headscope.text.corpus import Corpus


_Name = Annotated[str, typer.Argument(metavar="vig2019|clark2019", help="Which study.")]
_ModelName = Annotated[
    str, typer.Option(metavar="M", help="mini-gpt2, mini-bert, a directory or a hub id.")
]
_CorpusName = Annotated[
    str, typer.Option(metavar="CORPUS", help="demo, a .parquet or a .conllu file.")
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
    int | None, typer.Option(min=1, metavar="N", help="Draw so many; all by default.")
]
_Seed = Annotated[int, typer.Option(metavar="S", help="Seed of the draw.")]
_Device = Annotated[
    str | None, typer.Option(metavar="D", help="cpu or cuda; the best there is by default.")
]
_Dtype = Annotated[str, typer.Option(metavar="T", help="float32, bfloat16 or float16.")]
_BatchTokens = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Most tokens of one batch.")
]
_Context = Annotated[
    int | None,
    typer.Option(
        min=2,
        metavar="N",
        help="Documents of up to N tokens as inputs of vig2019, instead of sentences.",
    ),
]
_Option = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="An option of the study; may be repeated."),
]
_Train = Annotated[
    str | None,
    typer.Option(metavar="CORPUS", help="What clark2019 trains its probes on."),
]
_Vectors = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Word vectors for clark2019's probes: text, .gz, .npy."),
]


def study(
    name: _Name,
    model: _ModelName,
    corpus: _CorpusName,
    out: _Out,
    engine: _EngineName = "local",
    address: _Address = None,
    workers: _Workers = None,
    sentences: _Sentences = None,
    seed: _Seed = 0,
    device: _Device = None,
    dtype: _Dtype = "float32",
    batch_tokens: _BatchTokens = None,
    context: _Context = None,
    option: _Option = None,
    train: _Train = None,
    vectors: _Vectors = None,
) -> None:
    """Run a study over a corpus and write its result to a run directory."""
    import headscope as hs
    from headscope.studies import find_study, read_options
    from headscope.workers.engine import find_engine

    where = find_engine(engine, address=address, workers=workers)
    chosen = find_study(name)  # a misspelt name is said before a model is loaded
    named = {"train": train, "vectors": vectors, "context": context}
    given = {key: value for key, value in named.items() if value is not None}
    options = chosen.with_options({**read_options(option or ()), **given})
    result = hs.study(
        name,
        hs.load(model, device=device, dtype=dtype),
        _open_corpus(corpus),
        out,
        engine=where,
        sentences=sentences,
        seed=seed,
        batch_tokens=batch_tokens,
        **options,
    )
    count = f"{result.attrs['sentences']:,} {chosen.unit}"
    typer.echo(f"{out}/result.nc: {name} of {model}, {count}{_skipped(result)}")
    typer.echo(f"Now: headscope report {out}")


def _skipped(result: "xr.Dataset") -> str:
    from headscope.results.dataset import skipped

    reasons = ", ".join(f"{count:,} {reason}" for reason, count in skipped(result).items())
    return f"; skipped: {reasons} (docs/studies.md)" if reasons else ""


def _open_corpus(corpus: str) -> "Corpus":
    import headscope as hs

    return hs.demo_corpus() if corpus == "demo" else hs.read_corpus(corpus)
