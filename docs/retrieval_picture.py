"""Draw what an answer looks at among four retrieved documents, by document, layer and head.

python docs/retrieval_picture.py MODEL [FOLDER]

FOLDER is docs/images by default; it gets retrieval-shares.svg, and the numbers are printed. A model
with a chat template is asked through it, another one by a plain prompt.
"""

import sys
from pathlib import Path
from typing import Any

import headscope as hs

DOCUMENTS = (
    "The harbour office is in Mill Street and opens at nine.",
    "The library is in Green Lane; it closes at six.",
    "The museum is in River Road, next to the old bridge.",
    "The theatre is in King Square, behind the town hall.",
)
QUESTION = "Where is the museum?"
ANSWER_TOKENS = 12
STRONGEST = 5  # heads that are printed


def ask(model: hs.Model) -> hs.Trace:
    """The prompt and the model's own answer."""
    listed = "\n\n".join(f"Document {n}: {text}" for n, text in enumerate(DOCUMENTS, 1))
    if not model.tokenizer.chat_template:
        prompt = f"{listed}\n\nQuestion: {QUESTION}\nAnswer:"
        return model.trace(prompt, generate=ANSWER_TOKENS)
    messages = [
        {"role": "system", "content": "Answer from the documents."},
        {"role": "user", "content": f"{listed}\n\n{QUESTION}"},
    ]
    return model.trace(messages=messages, generate=ANSWER_TOKENS)


def shares_of(trace: hs.Trace) -> Any:
    """The attention of the answer by document, the first token left out."""
    documents = trace.spans(pattern=r"(Document \d): [^\n]+")
    assert trace.generated is not None
    answer = hs.Span("answer", trace.generated.tokens)
    return trace.shares(documents, sources=[answer], hide="first")


def told(trace: hs.Trace, shares: Any) -> str:
    """The answer, the mean of all heads by document, and the heads that look most at one."""
    side = trace.default.queries
    assert trace.generated is not None
    answer = side.text[side.offsets[trace.generated.tokens[0]][0] :]
    lines = [f"{trace.model} answers: {answer.strip()}", "", "| document | share | by length |"]
    lines.append("|---|---|---|")
    means = shares.data.sel({"from": "answer"}).mean(("layer", "head"))
    for name in means["to"].values:
        one = means.sel(to=name)
        lines.append(f"| {name} | {float(one['share']):.1%} | {float(one['expected']):.1%} |")
    stacked = shares.share.sel({"from": "answer"}).stack(at=("layer", "head", "to"))
    best = stacked.sortby(stacked, ascending=False)[:STRONGEST]
    heads = [f"L{n}H{h} {to} {float(v):.0%}" for v in best for n, h, to in [v["at"].item()]]
    return "\n".join([*lines, "", f"Strongest: {', '.join(heads)}"])


def main(name: str, folder: str = "docs/images") -> None:
    """Ask, draw and print."""
    model = hs.load(name)
    model.name = Path(name).name
    trace = ask(model)
    shares = shares_of(trace)
    print(shares.save(Path(folder) / "retrieval-shares.svg"))
    print(told(trace, shares))


if __name__ == "__main__":
    main(*sys.argv[1:])
