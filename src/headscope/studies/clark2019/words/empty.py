"""Parts for which no input could be used are left out of a result, with the reason."""

import json

import xarray as xr

# Of each part: what it counts, the variables made of it, and what it needs.
_PARTS = (
    (
        "relation_count",
        ("relation_", "offset_accuracy", "offset_correct", "tree_"),
        "no sentence of the corpus is a tree whose words match the tokens",
    ),
    ("coref_count", ("coref_",), "no window of a document has a mention with an antecedent"),
)


def drop_empty(result: xr.Dataset) -> xr.Dataset:
    """The result without the variables of parts that counted nothing, and why they are missing."""
    missing = json.loads(result.attrs["left_out"])
    for counted, beginnings, reason in _PARTS:
        if counted in result and bool(result[counted].isnull().all()):
            names = [str(name) for name in result.data_vars if str(name).startswith(beginnings)]
            result = result.drop_vars(names)
            missing |= {counted.replace("count", "accuracy"): reason}
    return result.assign_attrs(left_out=json.dumps(missing))
