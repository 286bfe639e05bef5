"""What feeds a head: parts in the order of their shares, and the same as a graph in files."""

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import xarray as xr

from headscope.errors import RunError
from headscope.exports.graph import JSON_NAME, XML_NAME, require_composition, write_graph
from headscope.head import Head
from headscope.metrics.composition import HeadComposition
from headscope.metrics.metric import Grid
from headscope.results.dataset import build
from headscope.results.feeds import all_feeds, fed_by

SOURCES = ("embedding", "L0H0", "L0H1", "MLP 0", "biases")


def composed() -> xr.Dataset:
    """Two layers of two heads in two documents; L1H1 picks keys by L0H1, then by L0H0."""
    metric = HeadComposition(Grid((0, 1), 2), SOURCES)
    sums = metric.zero()
    sums["variance"][:2] = 4
    sums["covariance"][:2, :, :, 1, 0] = 4
    for group, shares in enumerate(((0.1, 0.2, 0.5, 0.2, 0.0), (0.1, 0.3, 0.4, 0.204, -0.004))):
        sums["covariance"][group, 1, 1, 1] = 4 * sums["covariance"].new_tensor(shares)
    return build(metric.compute(sums), {})


def test_feeds_are_the_earlier_heads_by_their_share_of_the_choice() -> None:
    data = composed()
    assert [(feed.source, round(feed.share, 6)) for feed in fed_by(data, Head(1, 1))] == [
        ("L0H1", 0.45),
        ("L0H0", 0.25),
    ]
    assert fed_by(data, Head(1, 1))[0].margin > 0
    assert fed_by(data, Head(1, 1), side="query") == fed_by(data, Head(0, 0)) == []
    assert fed_by(data.drop_vars("composition"), Head(1, 1)) == []


def test_all_parts_of_a_choice_sum_to_one() -> None:
    feeds = list(all_feeds(composed()))
    for head in (Head(0, 0), Head(1, 0), Head(1, 1)):
        of_head = [feed.share for feed in feeds if feed.head == head and feed.side == "key"]
        assert sum(of_head) == pytest.approx(1, abs=1e-6)
    assert len([feed for feed in feeds if feed.head == Head(1, 1)]) == len(SOURCES)


def test_the_graph_has_the_same_edges_in_json_and_in_graphml(tmp_path: Path) -> None:
    write_graph(composed(), tmp_path)
    graph = json.loads((tmp_path / JSON_NAME).read_text())
    edges = {(e["source"], e["target"], e["side"]): e["share"] for e in graph["links"]}
    assert edges["L0H1", "L1H1", "key"] == 0.45 and edges["embedding", "L0H0", "key"] == 1
    assert ("biases", "L1H1", "key") not in edges  # less than one per cent
    assert {end for edge in edges for end in edge[:2]} == {node["id"] for node in graph["nodes"]}
    space = {"g": "http://graphml.graphdrawing.org/xmlns"}
    root = ElementTree.parse(tmp_path / XML_NAME).getroot()
    drawn = {}
    for edge in root.iterfind("g:graph/g:edge", space):
        values = {d.get("key"): d.text or "" for d in edge.iterfind("g:data", space)}
        drawn[edge.get("source"), edge.get("target"), values["side"]] = float(values["share"])
    assert drawn == edges


def test_a_run_without_composition_says_how_to_get_it() -> None:
    with pytest.raises(RunError, match="--option composition=16"):
        require_composition(xr.Dataset({"entropy": (("layer", "head"), np.zeros((1, 1)))}))
