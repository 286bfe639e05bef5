"""Whole studies beside those of another commit, by turns on the same inputs: CPU seconds, memory.

python -m benchmarks.beside COMMIT                        all studies
python -m benchmarks.beside COMMIT --studies luger2026    one of them
python -m benchmarks.beside COMMIT --studies load trace read_corpus

Both read the demo corpus with both bundled models. The last work is inputs of 4,096 tokens for a
random network, some rows at a time. Portraits and untrained networks are left out: a commit may
have none. Loading, tracing and reading the demo corpus are done many times over in a process; the
fastest call counts, times their number.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
WORKS = (
    *((study, model) for study in ("vig2019", "clark2019", "luger2026")
      for model in ("mini-bert", "mini-gpt2")),
    ("vig2019", "4096 tokens"),
    ("load", "mini-gpt2"), ("trace", "mini-gpt2"), ("read_corpus", "demo.conllu"),
)  # fmt: skip
# Runs in a process of its own, for either source. The first run compiles and fills caches.
CODE = """
import dataclasses, json, resource, sys, time
import torch
import headscope as hs
from headscope.studies import find_study

name, which, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
torch.set_num_threads(threads)
corpus, options = hs.demo_corpus(), {}
for option in find_study(name).options:
    if option.name in ("portrait", "untrained"):
        options[option.name] = False
if name == "luger2026":
    options["rest"] = True
if which == "4096 tokens":
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(0)
    tokenizer = hs.load("mini-gpt2").tokenizer
    network = LlamaForCausalLM(LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=128, intermediate_size=256, num_hidden_layers=4,
        num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=4096,
        bos_token_id=0, eos_token_id=0,
    ))
    model = hs.load(network.eval(), tokenizer=tokenizer)
    sentences = [dataclasses.replace(sentence, document="all") for sentence in corpus]
    corpus = hs.Corpus.from_sentences(sentences[:600])
    options |= {"context": 4096, "attention": "rows"}
    short = corpus
else:
    model, short = hs.load(which), corpus.select(range(min(40, len(corpus))))
hs.study(name, model, short, **options)
start = time.process_time()
hs.study(name, model, corpus, **options)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([time.process_time() - start, peak]))
"""
# Each is called once before it is timed, for what is compiled and cached by then.
CALLS = """
import json, os, resource, sys, tempfile, time
from importlib.resources import files
from pathlib import Path
import torch
import headscope as hs

name, which, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
torch.set_num_threads(threads)
folder = Path(os.environ.setdefault("HEADSCOPE_CACHE", tempfile.mkdtemp()))
treebank = (files("headscope.text") / "bundled" / "demo.conllu").read_text("utf-8")

def read(number):
    file = folder / f"{number}.conllu"  # other bytes each time, so that no cache has them
    file.write_text(f"# copy = {number}\\n{treebank}", "utf-8")
    return list(hs.read_corpus(file))

if name == "load":
    call, repeats = lambda _: hs.load(which), 20
elif name == "trace":
    model = hs.load(which)
    text = " ".join(sentence.text for sentence in hs.demo_corpus().select(range(6)))
    call, repeats = lambda _: model.trace(text), 40
else:
    call, repeats = read, 10
call(-1)
seconds = []
for number in range(repeats):
    start = time.process_time()
    call(number)
    seconds.append(time.process_time() - start)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps([repeats * min(seconds), peak]))
"""


class Cost(NamedTuple):
    """What a study takes."""

    seconds: float  # of all cores
    peak: float  # MiB of memory


def extract(commit: str, folder: Path) -> Path:
    """The source of a commit in a folder."""
    archive = subprocess.run(
        ["git", "archive", commit, "src"], cwd=ROOT, check=True, stdout=subprocess.PIPE
    )
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    return folder / "src"


def run(source: Path, study: str, model: str, threads: int) -> Cost:
    """A study, or a call, in a process that imports the package from a source."""
    code = CALLS if study in ("load", "trace", "read_corpus") else CODE
    command = [sys.executable, "-c", code, study, model, str(threads)]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(source)}, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{study} on {model} from {source} failed:\n{done.stderr}")
    return Cost(*json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commit", help="the commit to compare with")
    names = list(dict.fromkeys(study for study, _ in WORKS))
    parser.add_argument("--studies", nargs="+", choices=names, default=names)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    print(f"{'':28s}{'before':>9s}{'now':>9s}{'ratio':>8s}{'MiB':>9s}{'now':>9s}")
    with tempfile.TemporaryDirectory() as folder:
        sources = extract(given.commit, Path(folder)), ROOT / "src"
        for study, model in [work for work in WORKS if work[0] in given.studies]:
            costs: list[list[Cost]] = [[], []]
            for _ in range(given.repeats):
                for of_source, source in zip(costs, sources, strict=True):
                    of_source.append(run(source, study, model, given.threads))
            before, now = (min(of_source) for of_source in costs)
            print(
                f"{f'{study}, {model}':28s}{before.seconds:9.2f}{now.seconds:9.2f}"
                f"{now.seconds / before.seconds:8.2f}{before.peak:9.0f}{now.peak:9.0f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
