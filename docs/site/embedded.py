"""The views and reports that live inside the pages of the site.

They are made from the bundled models when the site is built, and kept in dist/embedded until a file
of the package changes. None of them is in the repository.
"""

import hashlib
import html
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import headscope as hs
from headscope.demo import demo
from headscope.views import View

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "dist" / "embedded"
DEMO = ROOT / "dist" / "demo"
CAT = "The old cat sat on the mat. The old cat was tired, so the old dog barked."
KEYS = ("The keys to the old cabinet were lost.", "She found them under the table.")
DEMO_SENTENCES = 24  # `headscope demo` takes more; a sample keeps `make docs` quick
PASSAGES = (
    "The harbour office is in Mill Street. The library is in Green Lane. "
    "The museum is in River Road. The museum is in"
)


@dataclass(frozen=True)
class Frame:
    """What stands in a frame: a view, by the function that makes it, or a report of the demo."""

    title: str
    height: int
    make: Callable[[], View] | None = None


def _gpt2(text: str = CAT) -> hs.Trace:
    return hs.load("mini-gpt2").trace(text)


def _bert() -> hs.Trace:
    return hs.load("mini-bert").trace(*KEYS)


FRAMES = {
    "head-view": Frame(
        "Head view of mini-gpt2: an induction head",
        640,
        lambda: _gpt2().head_view(layer=5, heads=[5], hide="first", pinned=10),
    ),
    "model-view": Frame(
        "Model view of mini-gpt2: all heads",
        720,
        lambda: _gpt2().model_view(layer=5, head=5, enlarged=True, hide="first"),
    ),
    "neuron-view": Frame(
        "Neuron view of mini-gpt2: query times key",
        760,
        lambda: _gpt2().neuron_view(layer=5, head=5, pinned=10),
    ),
    "pair-view": Frame(
        "Head view of mini-bert: two sentences",
        720,
        lambda: _bert().head_view(layer=2, heads=[0, 1, 2, 3], unit="word"),
    ),
    "retrieval-view": Frame(
        "Head view of mini-gpt2: three passages, and a question about the last",
        900,
        lambda: _gpt2(PASSAGES).head_view(layer=5, heads=[5], hide="first"),
    ),
    "report-vig2019-mini-gpt2": Frame("Report: vig2019 on mini-gpt2", 760),
    "report-vig2019-mini-bert": Frame("Report: vig2019 on mini-bert", 760),
    "report-clark2019-mini-gpt2": Frame("Report: clark2019 on mini-gpt2", 760),
    "report-clark2019-mini-bert": Frame("Report: clark2019 on mini-bert", 760),
}


def frame(name: str, up: str = "") -> str:
    """The frame as HTML, with a link that opens the same thing alone."""
    if name not in FRAMES:
        raise KeyError(f"There is no frame {name!r}; choose {', '.join(FRAMES)}.")
    shown, source = FRAMES[name], f"{up}embedded/{name}.html"
    title = html.escape(shown.title)
    return (
        f'<figure class="live"><iframe src="{source}" title="{title}" loading="lazy" '
        f'style="height:{shown.height}px"></iframe>\n<figcaption>{title}. '
        f'<a href="{source}">Open it alone</a>.</figcaption></figure>'
    )


def make() -> Path:
    """The folder with every file; made again only where the package has changed."""
    stamp = KEPT.with_suffix(".json")
    wanted = json.dumps({"package": _fingerprint(), "frames": list(FRAMES)})
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        stamp.unlink(missing_ok=True)
        for folder in (KEPT, DEMO):
            shutil.rmtree(folder, ignore_errors=True)
        KEPT.mkdir(parents=True)
        _make_views()
        _make_reports()
        stamp.write_text(wanted, encoding="utf-8")
    return KEPT


def _make_views() -> None:
    for name, shown in FRAMES.items():
        if shown.make is not None:
            shown.make().save(KEPT / f"{name}.html")


def _make_reports() -> None:
    folder = demo(DEMO, say=lambda line: None, sentences=DEMO_SENTENCES)
    for name, shown in FRAMES.items():
        if shown.make is None:
            run = folder / name.removeprefix("report-")
            shutil.copyfile(run / "report.html", KEPT / f"{name}.html")


def _fingerprint() -> str:
    """Of all that can change a view or a report: the package, and this file."""
    package = Path(hs.__file__).parent
    found = [file for file in package.rglob("*") if file.suffix in {".py", ".js", ".css", ".html"}]
    digest = hashlib.sha256()
    for file in [*sorted(found), Path(__file__)]:
        digest.update(file.read_bytes())
    return digest.hexdigest()
