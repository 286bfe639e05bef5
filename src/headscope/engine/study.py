"""Running a study: over every shard of a corpus, resumable, to one Dataset."""

import json
import logging
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import torch
import xarray as xr

from headscope.engine.exemplars import write_exemplars
from headscope.engine.job import Job
from headscope.engine.memory import default_batch_tokens
from headscope.engine.partial import Counts
from headscope.engine.run import Run, open_run, read_settings
from headscope.engine.shards import check_context, draw_documents, make_shards
from headscope.errors import CorpusError, RunError
from headscope.files import find_place, write_bytes
from headscope.metrics.metric import Metric, Variables
from headscope.model.model import Model
from headscope.observe.example import Example
from headscope.observe.long import DENSE_TOKENS, check_attention, long_way
from headscope.progress import show_progress
from headscope.results import dataset as result
from headscope.studies import find_study
from headscope.studies.study import Setup, Stage, Study
from headscope.text.corpus import Corpus, Shard
from headscope.text.excerpt import Excerpt
from headscope.text.sentence import Sentence
from headscope.workers.engine import Engine, Pool, find_engine
from headscope.workers.overlapped import OverlappedEngine
from headscope.workers.threads import use_threads

SHARD_SENTENCES = 256
SHARD_SENTENCES_CUDA = 8192  # two batches or more of the size that keeps a GPU busy
THREADS = "threads"  # in run.json

log = logging.getLogger("headscope")


def study(
    name: str | Study,
    model: Model,
    corpus: Corpus,
    out: str | Path | None = None,
    *,
    engine: str | Engine = "local",
    sentences: int | None = None,
    seed: int = 0,
    batch_tokens: int | None = None,
    **options: Any,
) -> xr.Dataset:
    """Run a study, by name or of your own, of a model on a corpus and return its result.

    `out` is the run directory; a second call with the same one continues where the first stopped.
    Without it nothing is kept. `engine` is "local", "ray", or a RayEngine with an address.
    `sentences` draws a sample with the seed. `options` are the study's.
    """
    if out is None:
        with tempfile.TemporaryDirectory(prefix="headscope-") as folder:
            return study(name, model, corpus, folder, engine=engine, sentences=sentences, seed=seed,
                         batch_tokens=batch_tokens, **options)  # fmt: skip
    chosen = name if isinstance(name, Study) else find_study(name)
    check_attention(model, options.get("attention"))
    batch_tokens = batch_tokens or _batch_tokens(model, find_place(out))
    drawn = _draw(chosen, corpus, sentences, seed, options.get("context"))
    setup = Setup(
        model, drawn, chosen.with_options(options), chosen.labels(drawn), batch_tokens, seed
    )
    check_context(setup)
    run = open_run(find_place(out), _settings(chosen, setup, sentences, seed))
    if run.result.exists():
        return result.load(run.result)
    run = _compute_shards(run, chosen, setup, engine)
    with use_threads(run.settings[THREADS]):
        return _finish(run, chosen, setup, engine)


def _batch_tokens(model: Model, path: Path) -> int:
    """What the run was started with; the free memory of a GPU may be another now."""
    if (path / "run.json").exists():
        return read_settings(path)["options"]["batch_tokens"]
    return default_batch_tokens(model)


def _shard_sentences(model: Model) -> int:
    return SHARD_SENTENCES_CUDA if model.device.type == "cuda" else SHARD_SENTENCES


def _draw(
    study: Study, corpus: Corpus, sentences: int | None, seed: int, context: int | None
) -> Corpus:
    if len(corpus) == 0:
        raise CorpusError("The corpus has no sentences; give one that has at least one.")
    if sentences is None:
        return corpus
    draw = study.draw if context is None else draw_documents
    return draw(corpus, sentences, seed)


def _settings(study: Study, setup: Setup, sentences: int | None, seed: int) -> dict[str, Any]:
    """What run.json says from the start; a run continues only if this has not changed."""
    model, corpus = setup.model, setup.corpus
    return {
        "study": study.name,
        "model": {
            "name": model.name,
            "revision": model.revision,
            "fingerprint": model.fingerprint,
            "layers": len(setup.grid.layers),
            "heads": model.heads,
            "is_causal": model.is_causal,
            "dtype": str(model.network.dtype).removeprefix("torch."),
            "device": model.device.type,
        },
        "corpus": {"fingerprint": corpus.fingerprint, "sentences": len(corpus)},
        "options": {
            "sentences": sentences,
            "seed": seed,
            "batch_tokens": setup.batch_tokens,
            "shard_sentences": _shard_sentences(model),
            **setup.options,
        },
        "left_out": study.left_out(setup),
        **({} if setup.context is None else {"attention": _ways(setup)}),
    }


def _ways(setup: Setup) -> str:
    """How the layers of the inputs are looked at, in words."""
    if setup.attention != "auto":
        return setup.attention
    return f"dense up to {DENSE_TOKENS} tokens, {long_way(setup.model)} beyond"


def _compute_shards(run: Run, study: Study, setup: Setup, engine: str | Engine) -> Run:
    """Compute what is missing, each shard with the same number of threads on every engine."""
    shards = make_shards(setup, _shard_sentences(setup.model))
    for index in run.damaged(len(shards)):
        log.warning("Shard %d of %s is damaged and is computed again.", index, run.path)
        run.discard(index)
    missing = [shards[index] for index in run.missing(len(shards))]
    with _open(engine if missing else "local", setup.model) as pool:
        run = _fix_threads(run, pool, setup.model)
        job = Job(setup, study.parts, run.settings[THREADS], setup.model.fingerprint)
        done = _keep(run, pool.run(job, missing))
        label, total = f"{study.name} on {setup.model.name}", sum(map(len, missing))
        for _ in show_progress(done, total, "sentences", label=label, size=len):
            pass
    return run


def _open(engine: str | Engine, model: Model) -> AbstractContextManager[Pool]:
    """On a GPU of this machine the next shard is prepared and the last packed meanwhile."""
    if engine == "local" and model.device.type == "cuda":
        engine = OverlappedEngine()
    return (find_engine(engine) if isinstance(engine, str) else engine).open()


def _fix_threads(run: Run, pool: Pool, model: Model) -> Run:
    """The run with the number of threads it was started with, or is started with now."""
    if THREADS in run.settings:
        return run
    needs_gpu = model.device.type == "cuda"
    return run.record({THREADS: pool.share(torch.get_num_threads(), needs_gpu=needs_gpu)})


def _keep(run: Run, done: Iterator[tuple[Shard, bytes]]) -> Iterator[Shard]:
    """Write every shard here: no other process needs to reach the run directory."""
    for shard, content in done:
        run.keep(shard.index, content)
        yield shard


def _finish(run: Run, study: Study, setup: Setup, engine: str | Engine) -> xr.Dataset:
    """Merge the shards in order, compute the result and write it."""
    shards = len(make_shards(setup, _shard_sentences(setup.model)))
    metrics = study.metrics(setup)
    sums, counts = run.merge(metrics, shards)
    _check_counts(counts)
    variables: Variables = {}
    for name, metric in metrics.items():
        variables |= metric.compute(sums[name], run.records(name, shards))
    merged = result.build(variables, _attributes(study, setup, counts))
    dataset = study.complete(setup, run.path, merged)
    for stage in study.stages:
        dataset = _run_stage(run, stage, setup, dataset, engine)
    dataset = study.derive(dataset)
    if setup.model.is_encoder_decoder:
        dataset = dataset.expand_dims(stack=["encoder"])
    run.record({"counts": vars(counts)})
    _write_exemplars(run, study, setup, dataset)
    result.save(dataset, run.result)
    return dataset


def _run_stage(
    run: Run, stage: Stage[Any], setup: Setup, dataset: xr.Dataset, engine: str | Engine
) -> xr.Dataset:
    """Compute the pieces of a stage that are missing, and the result with all of them."""
    pieces = stage.pieces(setup, dataset)
    files = {piece: run.path / f"{stage.name}-{n:02d}.npz" for n, piece in enumerate(pieces)}
    missing = [piece for piece, file in files.items() if not file.exists()]
    work = stage.work(setup, dataset, run.settings[THREADS], run.path)
    with _open(engine if missing else "local", setup.model) as pool:
        done = pool.run(work, missing) if missing else iter(())
        for piece, content in show_progress(done, len(missing), "pieces", label=stage.name):
            write_bytes(files[piece], content)
    return stage.finish(setup, dataset, {piece: files[piece].read_bytes() for piece in pieces})


def _check_counts(counts: Counts) -> None:
    if counts.inputs == 0:
        reasons = ", ".join(f"{count} {reason}" for reason, count in counts.skipped.items())
        raise RunError(
            f"No sentence of the corpus could be used ({reasons}); "
            "see docs/studies.md for what each reason means."
        )


def _attributes(study: Study, setup: Setup, counts: Counts) -> Mapping[str, Any]:
    return {
        "study": study.name,
        "model": setup.model.name,
        "is_causal": int(setup.model.is_causal),
        "corpus": setup.corpus.fingerprint,
        "sentences": counts.inputs,
        "tokens": counts.tokens,
        "mean_tokens": counts.tokens / counts.inputs,
        "skipped": json.dumps(dict(counts.skipped)),
        "left_out": json.dumps(study.left_out(setup)),
        "options": json.dumps({"seed": setup.seed, **setup.options}),
    }


def _write_exemplars(run: Run, study: Study, setup: Setup, dataset: xr.Dataset) -> None:
    """Tokens are made again for the few sentences that are shown."""
    part = next((part for part in study.parts(setup) if _has_exemplars(part.metrics)), None)
    if part is None:
        return
    unstacked = dataset.isel(stack=0) if "stack" in dataset.dims else dataset

    numbers = sorted({int(n) for n in unstacked["exemplar_sentence"].values.flat if n >= 0})
    sentences = dict(zip(numbers, setup.corpus.select(numbers), strict=True))

    @cache
    def prepare(number: int) -> tuple[Sentence, Example]:
        following = [sentences[number], *_rest_of_document(setup, number)]
        example = part.inputs(setup, Excerpt(following), number).examples[0]
        return example.sentence or sentences[number], example

    write_exemplars(run.path / "exemplars.parquet", unstacked, setup, prepare)


def _rest_of_document(setup: Setup, number: int) -> list[Sentence]:
    """What may belong to the input that starts with a sentence: none, unless documents do."""
    if setup.context is None:
        return []
    stop = min(number + setup.context, len(setup.corpus))
    following = setup.corpus.read(Shard(0, number, stop))
    document = following[0].document
    return list(takewhile(lambda each: each.document == document, following[1:]))


def _has_exemplars(metrics: tuple[Metric, ...]) -> bool:
    return any(metric.name == "exemplars" for metric in metrics)
