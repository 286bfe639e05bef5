"""Running a study: over every shard of a corpus, through its stages, resumable, to one Dataset."""

import json
import logging
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import xarray as xr

from headscope.engine.exemplars import write_exemplars
from headscope.engine.forward import default_batch_tokens
from headscope.engine.job import (
    Counts,
    Job,
    check_context,
    check_counts,
    check_exemplars,
    draw_documents,
    make_shards,
    pick_documents,
)
from headscope.engine.records import record_stages
from headscope.engine.run import Merging, PieceFiles, RunFolder, lock_run, open_run
from headscope.errors import CorpusError, RunError
from headscope.files import find_place
from headscope.metrics.metric import Variables
from headscope.model.model import Model
from headscope.observe.show import DENSE_TOKENS, check_attention, check_reading, long_path
from headscope.progress import show_progress
from headscope.results import dataset as result
from headscope.results.dataset import check_result, without_stack
from headscope.results.measure import attach
from headscope.results.records import records_of
from headscope.results.replicates import add_q_values
from headscope.results.run import EXEMPLARS, EXEMPLARS_CHECKSUM, exemplars_of, read_settings
from headscope.results.statements import make_statements, write_statements
from headscope.studies import find_study
from headscope.studies.option import Option
from headscope.studies.study import Setup, Stage, Study
from headscope.text.corpus import Corpus, Shard
from headscope.text.sharing import SEVERAL
from headscope.wording import plain
from headscope.workers import Engine, LocalPool, Piece, Pool, find_engine
from headscope.workers.threads import use_threads

SHARD_SENTENCES = 256
SHARD_SENTENCES_CUDA = 8192  # two batches or more of the size that keeps a GPU busy
THREADS = "threads"  # in run.json
SHARD_THREADS = "shard_threads"  # of older runs, which computed several shards at once
SOURCE = ("name", "path", "format")  # of a corpus
AS_ASKED = "left out as asked"  # begins the reason of what an option left out

SENTENCES = Option("sentences", int, None, "how many are drawn", least=1)
SEED = Option("seed", int, 0, "seed of the draw", least=0, most=2**32 - 1)
BATCH_TOKENS = Option("batch_tokens", int, None, "most tokens of a batch", least=1)

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
    """Run a study of a model on a corpus and return its result.

    `name` is that of a published study, the import path of your own (package.module:STUDY), or a
    Study. `out` is the run directory; a second call with the same one continues where the first
    stopped. Without it nothing is kept. `engine` is "local", "ray", or a RayEngine with an address.
    `sentences` draws a sample with the seed. `options` are the study's.
    """
    if out is None:
        with tempfile.TemporaryDirectory(prefix="headscope-") as folder:
            return study(name, model, corpus, folder, engine=engine, sentences=sentences, seed=seed,
                         batch_tokens=batch_tokens, **options)  # fmt: skip
    path = _find_out(out)
    chosen = name if isinstance(name, Study) else find_study(name)
    options = dict(chosen.settle(model, chosen.with_options(options)))
    sentences, seed = SENTENCES.read(sentences), SEED.read(seed)
    check_attention(model, options.get("attention"))
    check_reading(model, options.get("weights", "raw"), options.get("attention"))
    most = BATCH_TOKENS.read(batch_tokens) or _batch_tokens(model, path)
    drawn, sampled = _draw(chosen, corpus, sentences, seed, options)
    setup = Setup(model, drawn, options, chosen.labels(drawn), most, seed, sampled)
    check_context(setup)
    chosen.check(setup)
    known_as = chosen.name if isinstance(name, Study) else name
    with lock_run(path):
        run = open_run(path, _settings(known_as, chosen, setup, sentences))
        if run.result.exists():
            return _with_records(_load_finished(run, chosen, setup), run, chosen, setup, engine)
        _say_left_out(run.settings["left_out"])
        with _open(engine) as pool:
            run = _fix_threads(run, pool, setup)
            return _Running(chosen, setup, pool, run).finish()


def _load_finished(run: RunFolder, study: Study, setup: Setup) -> xr.Dataset:
    """The result of a run that is finished; exemplars that are damaged are written again."""
    dataset, file = result.load(run.result), run.path / EXEMPLARS
    checked = check_result(without_stack(dataset))
    try:
        exemplars_of(checked, file)
    except RunError as error:
        log.warning("%s Its exemplars are written again.", error)
        written = _with_exemplars(dataset, file, study, setup)
        if written.attrs.get(EXEMPLARS_CHECKSUM) != dataset.attrs.get(
            EXEMPLARS_CHECKSUM
        ):  # by another Arrow
            result.save(written, run.result)
        return written
    return dataset


def _with_records(
    dataset: xr.Dataset, run: RunFolder, study: Study, setup: Setup, engine: str | Engine
) -> xr.Dataset:
    """The result of a run that is finished; records that are damaged are written again."""
    try:
        records_of(dataset, run.path)
        return dataset
    except RunError as error:
        log.warning("%s Its records are written again.", error)
    with _open(engine) as pool:
        written = _Running(study, setup, pool, run).write_records(dataset)
    result.save(written, run.result)
    return written


def _with_exemplars(dataset: xr.Dataset, file: Path, study: Study, setup: Setup) -> xr.Dataset:
    """The result with the checksum of its exemplars, which are written if the study keeps any."""
    written = write_exemplars(file, dataset, study, setup)
    return dataset if written is None else dataset.assign_attrs({EXEMPLARS_CHECKSUM: written})


def _find_out(out: str | Path) -> Path:
    if isinstance(out, str) and not out.strip():
        raise RunError("The run directory has no name; give one, such as runs/mine.")
    return find_place(out)


def _batch_tokens(model: Model, path: Path) -> int:
    """What the run was started with; the free memory of a GPU may be another now."""
    if (path / "run.json").exists():
        known = read_settings(path).get("options", {}).get("batch_tokens")
        return known or default_batch_tokens(model)
    return default_batch_tokens(model)


def _draw(
    study: Study, corpus: Corpus, sentences: int | None, seed: int, options: Mapping[str, Any]
) -> tuple[Corpus, int | None]:
    """What is read, and how many sentences of it the numbers are from, if not all."""
    if len(corpus) == 0:
        raise CorpusError("The corpus has no sentences; give one that has at least one.")
    if options.get("documents") is not None:
        corpus = pick_documents(corpus, options["documents"], seed)
    more = check_exemplars(options, sentences)
    if sentences is None:
        return corpus, None
    if options.get("context") is not None:
        return draw_documents(corpus, sentences, seed), None
    drawn = study.draw(corpus, more or sentences, seed, options)
    return drawn, sentences if more and sentences < len(drawn) else None


def _settings(known_as: str, study: Study, setup: Setup, sentences: int | None) -> dict[str, Any]:
    """What run.json says from the start; a run continues only if this has not changed."""
    model, corpus = setup.model, setup.corpus
    source = getattr(corpus, "source", None)
    return {
        "study": known_as,
        "model": {
            "name": model.name,
            "revision": model.revision,
            "fingerprint": model.fingerprint,
            "sketch": model.sketch,
            "layers": len(setup.grid.layers),
            "heads": model.heads,
            "is_causal": model.is_causal,
            "dtype": str(model.network.dtype).removeprefix("torch."),
            "device": model.device.type,
        },
        "corpus": {
            **{fact: getattr(source, fact, None) for fact in SOURCE},
            "fingerprint": corpus.fingerprint,
            "sentences": len(corpus),
        },
        "options": {
            "sentences": sentences,
            "seed": setup.seed,
            "batch_tokens": setup.batch_tokens,
            "shard_sentences": _shard_sentences(setup.model),
            **setup.options,
        },
        "left_out": study.left_out(setup),
        **({} if setup.context is None else {"attention": _ways(setup)}),
    }


def _shard_sentences(model: Model) -> int:
    return SHARD_SENTENCES_CUDA if model.device.type == "cuda" else SHARD_SENTENCES


def _ways(setup: Setup) -> str:
    """How the layers of the inputs are looked at, in words."""
    if setup.attention != "auto":
        return setup.attention
    return f"dense up to {DENSE_TOKENS} tokens, {long_path(setup.model, setup.reading)} beyond"


def _say_left_out(missing: Mapping[str, str]) -> None:
    """Say before the work begins what the result will lack, except what was asked to be left."""
    for reason in dict.fromkeys(missing.values()):
        if not reason.startswith(AS_ASKED):
            names = ", ".join(name for name, why in missing.items() if why == reason)
            log.warning("Without %s: %s.", plain(names), plain(reason))


def _open(engine: str | Engine) -> AbstractContextManager[Pool]:
    return (find_engine(engine) if isinstance(engine, str) else engine).open()


def _fix_threads(run: RunFolder, pool: Pool, setup: Setup) -> RunFolder:
    """The run with the number of threads it was started with, or is started with now."""
    if THREADS in run.settings:
        return run
    on_gpu = setup.model.device.type == "cuda"
    return run.record({THREADS: pool.share(torch.get_num_threads(), needs_gpu=on_gpu)})


@dataclass(frozen=True)
class _Running:
    """A run in progress: shards first, then their sum, then the stages."""

    study: Study
    setup: Setup
    pool: Pool
    run: RunFolder

    @property
    def label(self) -> str:
        return f"{self.study.name} on {self.setup.model.name}"

    @property
    def threads(self) -> int:
        return self.run.settings[THREADS]

    @property
    def shard_threads(self) -> int:
        return self.run.settings.get(SHARD_THREADS, self.threads)

    def finish(self) -> xr.Dataset:
        """Compute what is missing, and write the result."""
        shards = make_shards(self.setup, _shard_sentences(self.setup.model))
        merging = Merging(self.run, self.study.metrics(self.setup))
        self._compute_shards(shards, merging)
        with use_threads(self.threads):
            dataset, counts = self._merge(merging, len(shards))
        for stage in (*self.study.stages, *self._record_stages()):
            dataset = self._run_stage(stage, dataset)
        with use_threads(self.threads):
            dataset = self._say(self.study.derive(dataset))
        if self.setup.model.is_encoder_decoder:
            dataset = dataset.expand_dims(stack=["encoder"])
        self.run.record({"counts": vars(counts)})
        dataset = _with_exemplars(dataset, self.run.path / EXEMPLARS, self.study, self.setup)
        check_result(without_stack(dataset))  # nothing is saved that could not be opened
        result.save(dataset, self.run.result)
        return dataset

    def write_records(self, dataset: xr.Dataset) -> xr.Dataset:
        """The result with its records written again, from what the second pass has kept."""
        for stage in self._record_stages():
            written = self._run_stage(stage, without_stack(dataset))
            dataset = dataset.assign_attrs(written.attrs)
        return dataset

    def _record_stages(self) -> tuple[Stage[Any], ...]:
        return record_stages(self.study, self.setup, self.run.path)

    def _say(self, dataset: xr.Dataset) -> xr.Dataset:
        """The result with its measures, tables, judged claims and chosen heads."""
        metrics = self.study.metrics(self.setup).values()
        declared = [measure for metric in metrics for measure in metric.measures]
        dataset = add_q_values(attach(dataset, [*declared, *self.study.measures]))
        study = self.study
        said = make_statements(study.tables, study.findings, study.choices, dataset)
        return write_statements(dataset, said)

    def _compute_shards(self, shards: list[Shard], merging: Merging) -> None:
        """Compute and keep the shards that are missing, and add up what is complete so far."""
        model = self.setup.model
        job = Job(self.setup, self.study.parts, self.shard_threads, model.fingerprint)
        missing = [shards[index] for index in _missing(self.run.shards, len(shards))]
        if isinstance(self.pool, LocalPool) and job.needs_gpu:
            done = job.run_ahead(missing)
        else:
            done = self.pool.run(job, missing)
        kept = _keep(self.run.shards, ((shard.index, shard, content) for shard, content in done))
        total, waiting = sum(map(len, missing)), {shard.index for shard in missing}
        for shard in show_progress(kept, total, "sentences", label=self.label, size=len):
            waiting.remove(shard.index)
            merging.advance(min(waiting, default=len(shards)))

    def _merge(self, merging: Merging, shards: int) -> tuple[xr.Dataset, Counts]:
        merging.advance(shards)
        counts = merging.counts
        check_counts(counts, self.study.remedy)
        variables: Variables = {}
        for name, metric in self.study.metrics(self.setup).items():
            variables |= metric.compute(merging.sums[name], self.run.records(name, shards))
        return result.build(variables, _attributes(self.study, self.setup, counts)), counts

    def _run_stage(self, stage: Stage[Piece], dataset: xr.Dataset) -> xr.Dataset:
        """Compute the pieces of a stage that are missing, and what follows from all of them."""
        pieces = list(dict.fromkeys(stage.pieces(self.setup, dataset)))  # equal ones once
        if not pieces:
            return stage.finish(self.setup, dataset, {})
        files = self.run.stage(stage.name)
        missing = [pieces[index] for index in _missing(files, len(pieces))]
        work = stage.work(self.setup, dataset, self.threads, self.run.path)
        done = self.pool.run(work, missing) if missing else iter(())
        kept = _keep(files, ((pieces.index(p), p, content) for p, content in done))
        for _ in show_progress(kept, len(missing), "pieces", label=f"{stage.name}, {self.label}"):
            pass
        outcomes = {piece: files.read(index) for index, piece in enumerate(pieces)}
        with use_threads(self.threads):
            return stage.finish(self.setup, dataset, outcomes)


def _missing(files: PieceFiles, count: int) -> list[int]:
    """Pieces still to be computed; damaged files are removed first."""
    for index in files.damaged(count):
        name = f"{files.folder.name.removesuffix('s')} {index}".capitalize()
        log.warning("%s of %s is damaged and is computed again.", name, files.folder.parent)
        files.discard(index)
    return files.missing(count)


def _keep(files: PieceFiles, done: Iterator[tuple[int, Piece, bytes]]) -> Iterator[Piece]:
    """Write every file here: no other process needs to reach the run directory."""
    for index, piece, content in done:
        files.keep(index, content)
        yield piece


def _attributes(study: Study, setup: Setup, counts: Counts) -> Mapping[str, Any]:
    return {
        "study": study.name,
        "model": setup.model.name,
        "is_causal": int(setup.model.is_causal),
        "weights": setup.reading,
        "corpus": setup.corpus.fingerprint,
        "sentences": counts.inputs,
        "tokens": counts.tokens,
        "mean_tokens": counts.tokens / counts.inputs,
        "skipped": json.dumps(dict(counts.skipped)),
        "words": json.dumps(dict(counts.words)),
        **_shared_tokens(counts),
        "left_out": json.dumps(study.left_out(setup)),
        "options": json.dumps({"seed": setup.seed, **setup.options}),
    }


def _shared_tokens(counts: Counts) -> Mapping[str, int]:
    """How many tokens cover several words, where the whole study reads words in one way."""
    return {"shared_tokens": counts.words[SEVERAL]} if SEVERAL in counts.words else {}
