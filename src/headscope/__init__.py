"""Headscope: what does each attention head look at?

Everything public is here, imported on first use so that `import headscope` stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from headscope.errors import HeadscopeError as HeadscopeError
    from headscope.explorer.site import site as site
    from headscope.exports import export as export
    from headscope.model.inputs.spans import Span as Span
    from headscope.model.loading.load import load as load
    from headscope.model.model import Model as Model
    from headscope.model.stored import open_trace as open_trace
    from headscope.model.trace import Trace as Trace
    from headscope.portrait.portraits import portraits as portraits
    from headscope.reports import report as report
    from headscope.results.compare import compare as compare
    from headscope.results.heads import heads as heads
    from headscope.studies.running import study as study
    from headscope.text.annotate import annotate as annotate
    from headscope.text.corpus import Corpus as Corpus
    from headscope.text.read import demo_corpus as demo_corpus
    from headscope.text.read import read_corpus as read_corpus
    from headscope.text.sentence import Mention as Mention
    from headscope.text.sentence import Sentence as Sentence
    from headscope.text.sentence import Word as Word
    from headscope.text.sources import read_documents as read_documents
    from headscope.views.view import gallery as gallery

_HOME = {
    "Corpus": "headscope.text.corpus",
    "HeadscopeError": "headscope.errors",
    "Mention": "headscope.text.sentence",
    "Model": "headscope.model.model",
    "Sentence": "headscope.text.sentence",
    "Span": "headscope.model.inputs.spans",
    "Trace": "headscope.model.trace",
    "Word": "headscope.text.sentence",
    "annotate": "headscope.text.annotate",
    "compare": "headscope.results.compare",
    "demo_corpus": "headscope.text.read",
    "export": "headscope.exports",
    "gallery": "headscope.views.view",
    "heads": "headscope.results.heads",
    "load": "headscope.model.loading.load",
    "open_trace": "headscope.model.stored",
    "portraits": "headscope.portrait.portraits",
    "read_corpus": "headscope.text.read",
    "read_documents": "headscope.text.sources",
    "report": "headscope.reports",
    "site": "headscope.explorer.site",
    "study": "headscope.studies.running",
}

__all__ = list(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    """Import a public name from its module the first time it is used (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'headscope' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
