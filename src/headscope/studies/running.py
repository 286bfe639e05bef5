"""Running a study of a model on a corpus: its options, its run directory, and its result."""

import json
import logging
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import xarray as xr

from headscope.engine.forward import (
    DENSE_TOKENS,
    check_attention,
    check_reading,
    default_batch_tokens,
    long_path,
)
from headscope.engine.measure import shard_sentences
from headscope.engine.question import say_left_out
from headscope.engine.run import THREADS, RunFolder, lock_run, open_run
from headscope.engine.setup import Setup
from headscope.engine.stage import run_stage, run_stages
from headscope.errors import CorpusError, RunError
from headscope.files import find_place, names_only
from headscope.model.inputs.frame import check_bos, find_frame
from headscope.model.inputs.labels import marks_word_pieces
from headscope.model.loading.load import load
from headscope.model.loading.source import find_source
from headscope.model.model import Model
from headscope.results import dataset
from headscope.results.dataset import check_result, without_stack
from headscope.results.measure import attach
from headscope.results.replicates import add_q_values, groups_of
from headscope.results.run import read_settings
from headscope.results.statements import make_statements, write_statements
from headscope.studies import find_study
from headscope.studies.draw import count_copies, pick_documents
from headscope.studies.option import Option, say_copies
from headscope.studies.study import Study
from headscope.studies.untrained import ATTRIBUTE as UNTRAINED
from headscope.text.corpus import Corpus, count_documents
from headscope.text.read import read_corpus
from headscope.text.readers.raw import Document, cut_documents
from headscope.workers import Engine, Pool, find_engine, use_threads

SOURCE = ("name", "path", "format")  # of a corpus
MOST_COPIES = 0.02  # of all sentences
MOST_LABELS = 800  # tags, or relations
AS_ASKED = "left out as asked"  # begins the reason of what an option left out

SENTENCES = Option("sentences", int, None, "how many are drawn", least=1)
SEED = Option("seed", int, 0, "seed of the draw", least=0, most=2**32 - 1)
BATCH_TOKENS = Option("batch_tokens", int, None, "most tokens of a batch", least=1)

log = logging.getLogger("headscope")


def study(
    name: str | Study,
    model: Model | str | Path,
    corpus: Corpus | str | Path | Sequence[str],
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
    Study. `model` may be a name that `load` takes, `corpus` what `read_corpus` takes, or a list of
    texts, each a document. `out` is the run directory; a second call with the same one continues
    where the first stopped. Without it nothing is kept. `engine` is "local", "ray", or a RayEngine
    with an address. `sentences` draws a sample with the seed, which clark2019 also takes as
    `segments` and luger2026 as `texts`, for that is what they count. `options` are the study's.
    """
    if out is None:
        with tempfile.TemporaryDirectory(prefix="headscope-") as folder:
            return study(name, model, corpus, folder, engine=engine, sentences=sentences, seed=seed,
                         batch_tokens=batch_tokens, **options)  # fmt: skip
    if isinstance(out, str) and not out.strip():
        raise RunError("The run directory has no name; give one, such as runs/mine.")
    path = find_place(out)
    declared = name if isinstance(name, Study) else find_study(name)
    workers = find_engine(engine) if isinstance(engine, str) else engine
    own = {declared.drawn: options.pop(declared.drawn)} if declared.drawn in options else {}
    sentences = SENTENCES.read(declared.sample_size(sentences=sentences, **own))
    options, seed = declared.with_options(options), SEED.read(seed)
    if isinstance(model, str | Path):
        find_source(model)  # what is not there is said before anything is read
    corpus = _corpus(corpus, declared)
    model = load(model) if isinstance(model, str | Path) else model
    options = dict(declared.settle(model, corpus, options))
    check_bos(model.tokenizer, options.get("bos", "auto"))
    check_attention(model, options.get("attention"))
    check_reading(model, options.get("weights", "raw"), options.get("attention"))
    tokens = BATCH_TOKENS.read(batch_tokens) or _batch_tokens(model, path)
    drawn = _draw(declared, corpus, sentences, seed, options)
    setup = Setup(model, drawn, options, declared.labels(drawn), tokens, seed, sentences)
    _check_context(setup)
    _check_labels(setup)
    declared.check(setup)
    known_as = declared.name if isinstance(name, Study) else name
    with lock_run(path):
        run = open_run(path, _settings(known_as, declared, setup))
        if run.result.exists():
            return _open_finished(declared, setup, run, workers)
        _report_left_out(run.settings["left_out"])
        _report_copies(drawn)
        with workers.open() as pool:
            if THREADS not in run.settings:
                on_gpu = model.device.type == "cuda"
                threads = pool.share(torch.get_num_threads(), needs_gpu=on_gpu)
                run = run.record({THREADS: threads})
            return _finish(declared, setup, run, pool)


def _corpus(given: object, study: Study) -> Corpus:
    """The corpus itself, a named one, or texts as documents."""
    if isinstance(given, Corpus):
        return given
    if isinstance(given, str | Path):
        return read_corpus(given, layout=study.layout)
    texts = list(given) if isinstance(given, list | tuple) else []
    if not texts or not all(isinstance(text, str) for text in texts):
        raise CorpusError(
            f"A study reads a corpus, the name of one, or a list of texts, not {given!r:.60}."
        )
    documents = [Document(text, name=str(number)) for number, text in enumerate(texts, start=1)]
    return Corpus.from_sentences(cut_documents(documents, study.layout or "running"))


def _finish(study: Study, setup: Setup, run: RunFolder, pool: Pool) -> xr.Dataset:
    """Compute what is missing, and write the result."""
    result = xr.Dataset(
        attrs={
            "study": study.name,
            "model": names_only(setup.model.name),
            "is_causal": int(setup.model.is_causal),
            "weights": setup.reading,
            "bos": _begin(study, setup),
            "shown_first": " ".join(study.shown_first),
            "word_pieces": "##" if marks_word_pieces(setup.model.tokenizer) else "",
            "corpus": setup.corpus.fingerprint,
            "left_out": json.dumps(study.left_out(setup)),
            "options": json.dumps(names_only({"seed": setup.seed, **setup.options})),
        }
    )
    result = run_stages(study.stages(setup), setup, run, pool, result)
    result = result.assign_attrs(
        unit_of_error="document" if setup.has_documents else "sentence",
        documents=count_documents(setup.corpus),
        groups=groups_of(result),
        copies=json.dumps(count_copies(setup.corpus)),
    )
    with use_threads(run.threads):
        result = _with_statements(study, setup, study.derive(result))
    if setup.model.is_encoder_decoder:
        result = result.expand_dims(stack=["encoder"])
    counts = {
        "inputs": result.attrs["sentences"],
        "tokens": result.attrs["tokens"],
        "skipped": json.loads(result.attrs["skipped"]),
        "words": json.loads(result.attrs["words"]),
    }
    run.record({"counts": counts})
    check_result(without_stack(result))  # nothing is saved that could not be opened
    dataset.save(result, run.result)
    return result


def _open_finished(study: Study, setup: Setup, run: RunFolder, workers: Engine) -> xr.Dataset:
    """The result of a finished run; files that are missing or damaged are written again."""
    result = dataset.load(run.result)
    inner = check_result(without_stack(result))
    for stage in study.stages(setup):
        try:
            stage.check_files(inner, run.path)
        except RunError as error:
            log.warning("%s It is written again.", error)
            with workers.open() as pool:
                written = run_stage(stage, setup, run, pool, inner)
            result = result.assign_attrs(written.attrs)  # their checksums
            dataset.save(result, run.result)
    return result


def _with_statements(study: Study, setup: Setup, result: xr.Dataset) -> xr.Dataset:
    """The result with its measures, tables, judged claims and chosen heads."""
    measures = [*study.measures]
    for metric in study.metrics(setup).values():
        measures += metric.measures
    for place, measure in enumerate(measures):
        if measure.name in study.published:
            measures[place] = replace(measure, published=study.published[measure.name])
    result = add_q_values(attach(result, measures))
    untrained = json.loads(result.attrs.pop(UNTRAINED, "{}"))
    statements = make_statements(study.tables, study.claims, study.choices, result, untrained)
    return write_statements(result, statements)


def _batch_tokens(model: Model, path: Path) -> int:
    """What the run was started with; the free memory of a GPU may be another now."""
    if (path / "run.json").exists():
        recorded = read_settings(path).get("options", {}).get("batch_tokens")
        return recorded or default_batch_tokens(model)
    return default_batch_tokens(model)


def _draw(
    study: Study, corpus: Corpus, sentences: int | None, seed: int, options: Mapping[str, Any]
) -> Corpus:
    """What is read of the corpus."""
    if len(corpus) == 0:
        raise CorpusError("The corpus has no sentences; give one that has at least one.")
    documents = options.get("documents")
    if documents is not None:
        corpus = pick_documents(corpus, documents, seed)
    return study.draw(corpus, sentences, seed, options)


def _check_context(setup: Setup) -> None:
    """Refuse inputs longer than the model has positions for."""
    context, limit = setup.context, setup.model.max_length
    if context is not None and limit is not None and context > limit:
        raise RunError(
            f"{setup.model.name} has positions for {limit:,} tokens, fewer than a context of "
            f"{context:,}; give --context {limit} or less."
        )


def _check_labels(setup: Setup) -> None:
    """Refuse more tags or relations than a result can hold, before anything is computed."""
    for kind, labels in setup.labels.items():
        if len(labels) > MOST_LABELS:
            raise CorpusError(
                f"The corpus has {len(labels):,} different values of {kind}, more than "
                f"{MOST_LABELS}; write fewer into it."
            )


def _settings(known_as: str, study: Study, setup: Setup) -> dict[str, Any]:
    """What run.json says from the start; a run continues only if this has not changed."""
    model, corpus = setup.model, setup.corpus
    source = getattr(corpus, "source", None)
    settings = {
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
            "sentences": setup.sentences,
            "seed": setup.seed,
            "batch_tokens": setup.batch_tokens,
            "shard_sentences": shard_sentences(model),
            **setup.options,
        },
        "left_out": study.left_out(setup),
    }
    if setup.context is not None:  # by which path layers are looked at, in words
        settings["attention"] = setup.attention
        if setup.attention == "auto":
            beyond = long_path(model, setup.reading)
            settings["attention"] = f"dense up to {DENSE_TOKENS} tokens, {beyond} beyond"
    return settings


def _report_left_out(missing: Mapping[str, str]) -> None:
    """Say before the work begins what the result will lack, except what was asked to be left."""
    for reason, sentence in say_left_out(missing).items():
        if not reason.startswith(AS_ASKED):
            log.warning("%s", sentence)


def _report_copies(corpus: Corpus) -> None:
    """Say that errors count copies as if they were texts of their own."""
    copies = count_copies(corpus)
    if copies["sentences"] > MOST_COPIES * len(corpus) or copies["documents"]:
        log.warning("%s Leave the copies out.", say_copies(copies))


def _begin(study: Study, setup: Setup) -> str:
    """The BOS token that inputs begin with, or nothing."""
    tokenizer = setup.model.tokenizer
    frame = find_frame(tokenizer, study.bos(setup))
    begins = frame.before[:1] == (tokenizer.bos_token_id,)
    return str(tokenizer.bos_token) if begins else ""
