"""How two runs relate: over the same texts or not, of one lineage of networks or of two.

Head 3 of layer 2 is the same head in a network, in its fine-tuned and in its quantised copy. In two
networks that were trained apart the number of a head means nothing: another seed permutes them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from headscope.results.measure import GRID
from headscope.results.run import Run

ALIKE = 0.5  # correlation of the embeddings' sketches; that of two strangers is about 0 ± 0.06
# What changes how a run is computed, not what is computed.
CIRCUMSTANCES = frozenset({"batch_tokens", "shard_sentences", "attention"})


@dataclass(frozen=True)
class Relation:
    """What two runs have in common, with the reasons in words."""

    same_texts: bool
    one_lineage: bool
    same_shape: bool
    texts: str  # a sentence
    networks: str  # a sentence


def relate(first: Run, second: Run) -> Relation:
    """How two runs relate, from their run.json and results."""
    same_texts, texts = _texts(first, second)
    one_lineage, networks = _networks(first, second)
    return Relation(same_texts, one_lineage, _shape(first) == _shape(second), texts, networks)


def _texts(first: Run, second: Run) -> tuple[bool, str]:
    a, b = _drawn(first), _drawn(second)
    if a is None or b is None:
        return False, "Which texts were read is not known of both runs: taken as independent."
    if a[0] != b[0]:
        return False, "The runs read different texts: their errors are independent."
    changed = sorted(name for name in {*a[1], *b[1]} if a[1].get(name) != b[1].get(name))
    if changed:
        return False, (
            f"The runs differ in {', '.join(changed)}: their errors are taken as independent."
        )
    return True, (
        "Both runs read the same texts: they are compared document group by document group."
    )


def _drawn(run: Run) -> tuple[str, Mapping[str, Any]] | None:
    """The corpus, and how it was drawn from and read."""
    corpus, options = run.about.get("corpus"), run.about.get("options")
    if isinstance(corpus, dict) and isinstance(options, dict) and corpus.get("fingerprint"):
        kept = {name: each for name, each in options.items() if name not in CIRCUMSTANCES}
        return str(corpus["fingerprint"]), kept
    known = {} if run.result is None else run.result.attrs
    if "corpus" not in known or "options" not in known:
        return None
    return str(known["corpus"]), json.loads(known["options"])


def _networks(first: Run, second: Run) -> tuple[bool, str]:
    a, b = _model(first), _model(second)
    shapes = [" × ".join(map(str, _shape(each))) for each in (first, second)]
    if _shape(first) != _shape(second):
        return False, (
            f"Two networks of {shapes[0]} and {shapes[1]} layers × heads: a head's number does "
            "not say which head of the other network it belongs to."
        )
    if a.get("fingerprint") and a.get("fingerprint") == b.get("fingerprint"):
        return True, "One network: compared head with head."
    alike = likeness(a.get("sketch"), b.get("sketch"))
    if alike is None:
        return False, (
            "Whether the networks are of one lineage is not known: their runs hold no sketch of "
            "the embeddings. Head numbers are not taken to mean the same."
        )
    if alike > ALIKE:
        return True, f"One lineage: the embeddings correlate {alike:.2f}, so head with head."
    return False, (
        f"Two networks trained apart: the embeddings correlate {alike:.2f}, and head numbers of "
        "such networks mean nothing to each other."
    )


def likeness(first: object, second: object) -> float | None:
    """Correlation of two sketches of embeddings; None where one is missing or says nothing."""
    a, b = _numbers(first), _numbers(second)
    if a is None or b is None or a.size != b.size or a.size < 2:
        return None
    if not (np.ptp(a) > 0 and np.ptp(b) > 0):
        return None
    return float(np.corrcoef(a, b)[0, 1])


def _numbers(sketch: object) -> np.ndarray | None:
    if not isinstance(sketch, str) or not sketch:
        return None
    try:
        found = np.array([float(number) for number in sketch.split()])
    except ValueError:
        return None
    return found if np.isfinite(found).all() else None


def _model(run: Run) -> Mapping[str, Any]:
    found = run.about.get("model")
    return found if isinstance(found, dict) else {}


def _shape(run: Run) -> tuple[int, ...]:
    return tuple(run.data.sizes.get(dim, 0) for dim in GRID)
