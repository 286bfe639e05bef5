"""How long a report takes and a run takes to open, beside those of another commit, in CPU seconds.

python -m benchmarks.opening COMMIT [STUDY MODEL]

Both run the same study of some sentences of the demo corpus; the least of several calls counts.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.beside import ROOT, extract

SENTENCES = 40
CODE = """
import json, sys, tempfile, time
import torch
import headscope as hs
from headscope.results.run import read_run
from headscope.studies import find_study

name, model, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
torch.set_num_threads(1)
known = {option.name for option in find_study(name).options}
options = {option: False for option in ("portrait", "untrained") if option in known}

def seconds(work, folder):
    start = time.process_time()
    work(folder)
    return time.process_time() - start

with tempfile.TemporaryDirectory() as folder:
    hs.study(name, hs.load(model), hs.demo_corpus().select(range(count)), folder, **options)
    report = min(seconds(hs.report, folder) for _ in range(3))
    opening = min(seconds(read_run, folder) for _ in range(10))
print(json.dumps([report, opening]))
"""


def main(commit: str, study: str = "vig2019", model: str = "mini-gpt2") -> None:
    print("| source | report | opening |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, source in ((commit, extract(commit, Path(folder))), ("now", ROOT / "src")):
            done = subprocess.run(
                [sys.executable, "-c", CODE, study, model, str(SENTENCES)],
                env={**os.environ, "PYTHONPATH": str(source)}, check=True, stdout=subprocess.PIPE,
            )  # fmt: skip
            report, opening = json.loads(done.stdout.splitlines()[-1])
            print(f"| {name} | {report:.2f} s | {opening:.3f} s |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
