"""How long it takes until something can be used: importing, asking for help, loading a model.

python -m benchmarks.importing        best of three fresh processes each
"""

import subprocess
import sys
import time

REPEATS = 3
GPT2 = "import torch; from transformers import GPT2LMHeadModel"
WAYS = {
    "python alone": ["-c", "pass"],
    "import headscope": ["-c", "import headscope"],
    "headscope --help": ["-m", "headscope", "--help"],
    "import torch and transformers' GPT-2": ["-c", GPT2],
    "a bundled model loaded and proved": ["-c", "import headscope as hs; hs.load('mini-gpt2')"],
}  # fmt: skip


def seconds(arguments: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    for name, arguments in WAYS.items():
        print(f"{name:40s}{min(seconds(arguments) for _ in range(REPEATS)):8.2f} s")


if __name__ == "__main__":
    main()
