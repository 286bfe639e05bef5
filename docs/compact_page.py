"""Print docs/api/compact.md: every public name with its signature and what it does, on one page.

python docs/compact_page.py > docs/api/compact.md
"""

import dataclasses
import inspect
import re
from collections.abc import Iterator
from typing import Any

import headscope as hs
from headscope.cli import COMMANDS
from headscope.results.measure import Measure
from headscope.results.statements import Statements, read_statements
from headscope.studies import STUDIES, find_study
from headscope.views import View
from headscope.views.kinds import all_settings

BEGIN = """# The API on one page

For programs that write code, and for people who know what they look for. Printed by
`python docs/compact_page.py` from the package itself. Facts that save a wrong guess:

- Layers and heads count from 0; `L5H2` is layer 5, head 2. Axes are layer, head, query, key.
- `trace.weights` is a mapping from layer number to a tensor of head × query × key; rows sum to 1.
- Models are `mini-gpt2` and `mini-bert` (bundled, no network), a directory, a `.gguf` file, a hub
  id, or a `PreTrainedModel` with `tokenizer=`.
- Corpora are `hs.demo_corpus()` (bundled), or what `hs.read_corpus` reads; raw text needs
  `headscope annotate` for tags and trees.
- A study returns an `xarray.Dataset`. `NAME_se` is the standard error of `NAME`.
- Every mistake of a caller raises a `HeadscopeError` whose message says what to do.

```python
import headscope as hs

model = hs.load("mini-gpt2")
trace = model.trace("The old cat sat on the mat. The old cat was tired.")
trace.weights[5][5]  # head 5 of layer 5: query × key
trace.head_view(layer=5, heads=[5]).save("head.html")
result = hs.study("vig2019", model, hs.demo_corpus(), "runs/mini", sentences=64)
result["distance"].sel(layer=5, head=5).item()
hs.heads("runs/mini")  # a DataFrame: what each head looks at
```
"""
CLASSES = (
    hs.Model,
    hs.Trace,
    View,
    hs.Corpus,
    hs.Sentence,
    hs.Word,
    hs.Mention,
    Statements,
    Measure,
)
OTHERS = (read_statements,)
QUOTED = re.compile(r"'([A-Z]\w*)'")  # a type that is written as text
HOME = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z_])")


def page() -> str:
    """The whole page."""
    # A package that bears the name of its function may have taken its place.
    found = ((name, getattr(hs, name)) for name in hs.__all__)
    functions = [getattr(each, name, each) for name, each in found]
    sections = [
        _section("Functions", filter(inspect.isfunction, map(inspect.unwrap, functions)), "hs."),
        _section("Elsewhere", OTHERS, "headscope.results.statements."),
        *(_class(each) for each in CLASSES),
        _settings(),
        _studies(),
        _commands(),
    ]
    return BEGIN + "".join(sections)


def _section(title: str, functions: Any, prefix: str) -> str:
    lines = (f"{prefix}{_call(each)}\n    {_says(each)}\n" for each in functions)
    return f"\n## {title}\n\n```text\n{''.join(lines)}```\n"


def _class(kind: type) -> str:
    says = f"{kind.__module__}.{kind.__name__}"
    lines = "".join(f"{line}\n" for line in _members(kind))
    return f"\n## {kind.__name__}\n\n`{says}`: {_says(kind)}\n\n```text\n{lines}```\n"


def _members(kind: type) -> Iterator[str]:
    if dataclasses.is_dataclass(kind):
        for field in dataclasses.fields(kind):
            yield f".{field.name}: {_short(field.type)}"
    for name, value in vars(kind).items():
        if name.startswith("_"):
            continue
        function = getattr(value, "__func__", None) or getattr(value, "func", None) or value
        function = getattr(function, "fget", function)
        if isinstance(value, property) or hasattr(value, "attrname"):  # also a cached property
            gives = _short(inspect.signature(function).return_annotation)
            yield f".{name}: {gives}  {_says(function)}"
        elif inspect.isfunction(function):
            bound = function if isinstance(value, staticmethod) else function.__get__(kind)
            yield f".{_call(bound)}  {_says(function)}".rstrip()


def _call(function: Any) -> str:
    """Name and signature, without the modules of its types."""
    return function.__name__ + _short(inspect.signature(function))


def _short(annotation: Any) -> str:
    shown = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    return QUOTED.sub(r"\1", HOME.sub("", shown))


def _says(thing: Any) -> str:
    """The first sentence of its docstring, on one line."""
    text = " ".join((thing.__doc__ or "").partition("\n\n")[0].split())
    return "" if text.startswith(f"{getattr(thing, '__name__', '')}(") else text


def _settings() -> str:
    names = ", ".join(f"`{name}`" for name in all_settings())
    return f"\n## Settings of views\n\nKeywords of `trace.head_view` and its siblings: {names}.\n"


def _studies() -> str:
    lines = []
    for name in STUDIES:
        study = find_study(name)
        options = ", ".join(f"`{option.name}`" for option in study.options)
        lines.append(f"- `{name}`: {study.title}. Options: {options}.\n")
    return "\n## Studies\n\n" + "".join(lines)


def _commands() -> str:
    lines = "".join(f"- `headscope {each.__name__}`: {_says(each)}\n" for each in COMMANDS)
    return f"\n## Commands\n\nIn full: [commands](../cli.md).\n\n{lines}"


if __name__ == "__main__":
    print(page(), end="")
