"""What clark2019 leaves out of a result for a model, a corpus or an option, and why."""

import json

import xarray as xr

from headscope.studies import importance
from headscope.studies.clark2019.surface.parts import find_delimiters, why_no_gradients
from headscope.studies.study import Setup
from headscope.text.segments import Segments

NO_PARAGRAPHS = (
    "the corpus marks no paragraphs, so a segment is made of consecutive sentences of a document"
)
NO_TARGET = "the study reads segments, so only the encoder has input"
NO_TREES = (
    "the corpus has no dependency relations; "
    "make them with `headscope annotate INPUT --out CORPUS.parquet --spacy NAME`"
)
NO_MENTIONS = "the corpus marks no mentions of entities; use one with coreference, such as GUM"
NO_PROBES = "left out as asked (probes=False)"
NO_DELIMITER = {
    "cls": "neither [CLS] nor a token that begins a text",
    "sep": "neither [SEP] nor a token that ends a text",
}

OF_DELIMITER = {
    "cls": ("special_share cls", "entropy_from_cls"),
    "sep": ("special_share sep", "sep_to_sep", "other_to_sep"),
}
OF_TREES = (
    "relation_accuracy",
    "offset_accuracy",
    "relation_count",
    "tree_accuracy",
    "noop_applies",
    "noop_not",
)
OF_MENTIONS = ("coref_accuracy", "coref_baseline")
# Of metrics that may find nothing to count: the count, the variables made of it, and the reason.
COUNTED = (
    (
        "relation_count",
        ("relation_", "offset_accuracy", "tree_", "noop_"),
        "no sentence of the corpus is a tree whose words match the tokens",
    ),
    ("coref_count", ("coref_",), "no window of a document has a mention with an antecedent"),
)


def left_out(setup: Setup) -> dict[str, str]:
    """Variables that this model or corpus cannot support, with the reason."""
    missing: dict[str, str] = {}
    if Segments(setup.corpus).unit == "sentences":
        missing["paragraphs"] = NO_PARAGRAPHS
    for absent in find_delimiters(setup.model).absent:
        reason = f"the tokenizer of {setup.model.name} has {NO_DELIMITER[absent]}"
        missing |= dict.fromkeys(OF_DELIMITER[absent], reason)
    if (reason := why_no_gradients(setup)) is not None:
        missing |= dict.fromkeys(("gradient", "noop_gradient"), reason)
    if setup.model.is_encoder_decoder:
        missing |= dict.fromkeys(("stack decoder", "stack cross"), NO_TARGET)
    if not has_trees(setup):
        missing |= dict.fromkeys(OF_TREES, NO_TREES)
    if (reason := why_no_probes(setup)) is not None:
        missing["parsing_uas"] = reason
    if not setup.corpus.has("mentions"):
        missing |= dict.fromkeys(OF_MENTIONS, NO_MENTIONS)
    return missing | importance.left_out(setup)


def why_no_probes(setup: Setup) -> str | None:
    """Why no probes are trained; None if they are."""
    if not has_trees(setup):
        return NO_TREES
    return None if setup.options["probes"] else NO_PROBES


def has_trees(setup: Setup) -> bool:
    """Whether the corpus has governors and relations."""
    return setup.corpus.has("head") and bool(setup.labels.get("relation"))


def drop_uncounted(result: xr.Dataset) -> xr.Dataset:
    """The result without the variables of metrics that counted nothing, with the reasons."""
    missing = json.loads(result.attrs["left_out"])
    for counted, beginnings, reason in COUNTED:
        if counted in result and bool(result[counted].isnull().all()):
            names = [str(name) for name in result.data_vars if str(name).startswith(beginnings)]
            result = result.drop_vars(names)
            missing |= {counted.replace("count", "accuracy"): reason}
    return result.assign_attrs(left_out=json.dumps(missing))
