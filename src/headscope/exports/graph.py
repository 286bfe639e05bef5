"""The composition of a run as a graph: who feeds whom, as JSON (node-link) and GraphML.

An edge goes from a part of the network to a head; its `share` is what the part makes of the head's
choice on one side, the query's or the key's, and `margin` half of its 95 % interval.
"""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

import xarray as xr

from headscope.errors import RunError
from headscope.results.feeds import COMPOSITION, Feed, all_feeds
from headscope.results.measure import variable_along
from headscope.studies import studies_with

LEAST = 0.01  # share of an edge
JSON_NAME, XML_NAME = "composition.json", "composition.graphml"
ASKED = "composition=16"  # the option by which a study computes it
_TYPES = {"side": "string", "share": "double", "margin": "double"}
_XMLNS = "http://graphml.graphdrawing.org/xmlns"


def require_composition(data: xr.Dataset) -> None:
    """Refuse a run of which it was not computed what feeds its heads."""
    if variable_along(data, *COMPOSITION) is None:
        raise RunError(
            "This run does not say what feeds its heads; run "
            f"{studies_with(ASKED)} with --option {ASKED} into a new directory."
        )


def write_graph(data: xr.Dataset, folder: Path) -> None:
    """Write both files."""
    feeds = [feed for feed in all_feeds(data) if abs(feed.share) >= LEAST]
    nodes = list(dict.fromkeys(str(end) for feed in feeds for end in (feed.source, feed.head)))
    edges = [{"source": feed.source, "target": str(feed.head), **_values(feed)} for feed in feeds]
    graph = {
        "directed": True,
        "multigraph": True,
        "graph": {"model": str(data.attrs.get("model", ""))},
        "nodes": [{"id": node} for node in nodes],
        "links": edges,
    }
    text = json.dumps(graph, indent=1, ensure_ascii=False) + "\n"
    (folder / JSON_NAME).write_text(text, encoding="utf-8")
    _graphml(nodes, feeds).write(folder / XML_NAME, encoding="utf-8", xml_declaration=True)


def _values(feed: Feed) -> dict[str, str | float | None]:
    margin = None if math.isnan(feed.margin) else round(feed.margin, 6)
    return {"side": feed.side, "share": round(feed.share, 6), "margin": margin}


def _graphml(nodes: Iterable[str], feeds: Iterable[Feed]) -> ElementTree.ElementTree:
    root = ElementTree.Element("graphml", xmlns=_XMLNS)
    for name, kind in _TYPES.items():
        about = {"id": name, "for": "edge", "attr.name": name, "attr.type": kind}
        ElementTree.SubElement(root, "key", about)
    graph = ElementTree.SubElement(root, "graph", edgedefault="directed")
    for node in nodes:
        ElementTree.SubElement(graph, "node", id=node)
    for feed in feeds:
        edge = ElementTree.SubElement(graph, "edge", source=feed.source, target=str(feed.head))
        for name, value in _values(feed).items():
            if value is not None:
                ElementTree.SubElement(edge, "data", key=name).text = str(value)
    ElementTree.indent(root)
    return ElementTree.ElementTree(root)
