"""Runs and a model as tools for an agent that speaks the Model Context Protocol over stdio.

The tools read. They say what the explorer says, in the same sentences, and what they answer has a
largest size: an agent pays for every word.
"""

from collections.abc import Callable, Iterable
from functools import cached_property, wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

import headscope
from headscope.errors import HeadscopeError, RunError
from headscope.explorer import answers
from headscope.explorer.answers.runs import Library, OpenRun
from headscope.explorer.wire import RefusedError
from headscope.head import Head, read_head
from headscope.results.compare import clear_and_all, compare_runs, exported, rows_of
from headscope.results.heads import Order, choose_heads, describe_heads, tell_rows
from headscope.results.statements import Table

if TYPE_CHECKING:
    from mcp.server import MCPServer

    from headscope.model.model import Model
    from headscope.model.trace import Trace

ROWS, MOST_ROWS = 20, 200
CHARACTERS, TOKENS = 4_000, 256  # of a text to be traced
INSTRUCTIONS = (
    "Headscope says what the attention heads of a Transformer look at. Begin with list_runs. Heads "
    "are named L4H11: head 11 of layer 4, both counted from 0."
)
Answer = dict[str, Any]


def serve(runs: Iterable[str | Path], load: "Callable[[], Model] | None" = None) -> None:
    """Answer an agent until it hangs up; `load` gives the model that texts are traced with."""
    make_server(Tools(Library(runs), load)).run("stdio")


def make_server(tools: "Tools") -> "MCPServer":
    """The server with every tool; those of a model only where there is one."""
    try:
        from mcp.server import MCPServer
    except ImportError as error:
        raise RunError('This needs the package mcp; `pip install "headscope[mcp]"`.') from error
    server = MCPServer("headscope", instructions=INSTRUCTIONS, version=headscope.__version__)
    of_runs = (
        tools.list_runs, tools.describe_heads, tools.describe_head, tools.read_measure,
        tools.read_table, tools.compare_runs,
    )  # fmt: skip
    of_model = (tools.trace_text, tools.draw_head) if tools.load is not None else ()
    for tool in (*of_runs, *of_model):
        server.tool(structured_output=False)(_in_sentences(tool))
    return server


class Tools:
    """What an agent may ask; every method is a tool, its docstring the description."""

    def __init__(self, library: Library, load: "Callable[[], Model] | None" = None) -> None:
        self.library = library
        self.load = load

    def list_runs(self) -> Answer:
        """List the runs: study, model, corpus, heads, and the measures that can be read."""
        runs: list[Answer] = []
        for name in self.library.slugs:
            opened = self.library.run(name)
            about = opened.run
            runs.append(
                {
                    "run": name,
                    "study": about.study,
                    "state": about.state,
                    "model": about.model,
                    "corpus": about.corpus,
                    "notes": about.remarks,
                    "measures": [] if about.result is None else sorted(opened.columns),
                    "tables": [] if about.result is None else list(_tables(opened)),
                }
            )
        return {"runs": runs, "can_trace": self.load is not None}

    def describe_heads(
        self,
        run: str,
        role: str | None = None,
        layer: int | None = None,
        sort: Order = "explained",
        rows: int = ROWS,
    ) -> Answer:
        """Say in a sentence what each head looks at, and how much of its attention that explains.

        role finds heads by name, group or word, such as "previous" or "syntax"; a relation, such as
        "nsubj", also by what tables of the run say of it: which head finds it best.
        """
        data = self.library.run(run).data
        described, told = describe_heads(data), tell_rows(data, role) if role else []
        chosen = choose_heads(described, role=role, layer=layer, order=sort, is_answered=bool(told))
        cells = [
            {"head": cell.head, "name": cell.name, "group": cell.group, "sentence": cell.sentence,
             "explained": cell.explained}
            for cell in chosen[: _rows(rows)]
        ]  # fmt: skip
        summary = {"summary": described.summary, "count": len(chosen), "heads": cells}
        return {**summary, "tables": told} if told else summary

    def describe_head(self, run: str, head: str) -> Answer:
        """Say what one head looks at, with its value and rank in every measure."""
        opened = self.library.run(run)
        place, values = read_head(head), []
        for columns in opened.columns.values():
            for column in columns:
                if place not in column.places:
                    raise RunError(f"The run {run} has no head {place}.")
                at = column.places[place]
                values.append((int(column.ranks[at]), column.chosen.spec, float(column.values[at])))
        values = sorted(value for value in values if value[0] > 0)
        answer: Answer = {
            "head": str(place),
            "measures": [
                {"measure": spec, "value": value, "rank": rank}
                for rank, spec, value in values[:MOST_ROWS]
            ],
        }
        try:
            cells = describe_heads(opened.data).cells
        except RunError as error:
            return {**answer, "sentence": str(error)}
        return {**answer, "sentence": next(c.sentence for c in cells if c.head == str(place))}

    def read_measure(self, run: str, measure: str, rows: int = ROWS) -> Answer:
        """Read a measure of heads, the largest values first; pos_to~NOUN is one slice of pos_to."""
        opened = self.library.run(run)
        chosen = answers.find(opened.data, measure)
        columns = opened.columns[chosen.measure.name]
        column = next(column for column in columns if column.chosen.at == chosen.at)
        heads = sorted(
            (head for head in column.places if np.isfinite(column.values[column.places[head]])),
            key=lambda head: -column.values[column.places[head]],
        )
        return {
            "title": chosen.title,
            "meaning": chosen.measure.meaning,
            "heads": [
                {"head": str(head), "value": float(column.values[column.places[head]])}
                for head in heads[: _rows(rows)]
            ],
        }

    def read_table(self, run: str, table: str, rows: int = ROWS) -> Answer:
        """Read a table of a run in LaTeX (booktabs), with the columns that fit a paper's column."""
        from headscope.reports.tables import show_table, to_latex

        tables = _tables(self.library.run(run))
        if table not in tables:
            raise RunError(f"There is no table of that name; there are {', '.join(tables)}.")
        chosen = tables[table]
        shown = show_table(chosen.columns, chosen.rows[: _rows(rows)], chosen.title)
        latex = to_latex(shown.narrow(chosen.narrow)).decode()
        return {"title": chosen.title, "caption": chosen.caption, "latex": latex}

    def compare_runs(self, first: str, second: str, rows: int = ROWS) -> Answer:
        """Compare two runs of one study: what differs most, and what by more than chance."""
        a, b = self.library.run(first).run, self.library.run(second).run
        comparison = compare_runs(a, b, names=(first, second))
        clear, count = clear_and_all(comparison)
        differences = [
            {"kind": kind, **row}
            for kind in comparison.kinds
            for row in exported(rows_of(comparison, kind, _rows(rows)))
        ]
        return {
            "notes": comparison.notes,
            "clear": f"{clear:,} of {count:,} differences are clear (q < 0.05).",
            "differences": differences,
        }

    def trace_text(self, text: str, head: str | None = None, rows: int = ROWS) -> Answer:
        """Read a text with the model: the largest weights of a head, or the largest of each head.

        Attention to the first token and of a token to itself is left out.
        """
        trace = self._trace(text)
        pairs: list[tuple[float, str, int, int]] = []
        heads = _heads(trace) if head is None else [_known(trace, head)]
        for place in heads:
            weights = trace.weights[place.layer][place.head].float().numpy().copy()
            weights[:, 0] = 0
            np.fill_diagonal(weights, 0)
            count = 1 if head is None else _rows(rows)
            for flat in np.argsort(-weights, axis=None)[:count]:
                query, key = map(int, np.unravel_index(flat, weights.shape))
                pairs.append((float(weights[query, key]), str(place), query, key))
        pairs = sorted(pairs, key=lambda pair: -pair[0])[: _rows(rows)]
        tokens = trace.tokens
        return {
            "tokens": tokens,
            "weights": [
                {"head": name, "query": query, "key": key, "weight": weight,
                 "sentence": f"{name}: {tokens[query]!r} looks at {tokens[key]!r} ({weight:.0%})."}
                for weight, name, query, key in pairs
            ],
        }  # fmt: skip

    def draw_head(self, text: str, head: str) -> Any:
        """Draw where one head looks in a text, as a PNG picture."""
        from mcp.server.mcpserver import Image

        trace = self._trace(text)
        place = _known(trace, head)
        with TemporaryDirectory(prefix="headscope-") as folder:
            view = trace.head_view(layer=place.layer, heads=[place.head])
            return Image(data=view.save(Path(folder) / "head.png").read_bytes(), format="png")

    @cached_property
    def _model(self) -> "Model":
        assert self.load is not None
        return self.load()

    def _trace(self, text: str) -> "Trace":
        if len(text) > CHARACTERS:
            raise RunError(f"The text has {len(text):,} characters; the most is {CHARACTERS:,}.")
        count = len(self._model.tokenizer(text)["input_ids"])
        if count > TOKENS:
            raise RunError(f"The text has {count:,} tokens; the most is {TOKENS:,}.")
        return self._model.trace(text)


def _tables(run: OpenRun) -> dict[str, Table]:
    return {table.file: table for table in run.statements.tables}


def _heads(trace: "Trace") -> list[Head]:
    return [Head(layer, head) for layer in trace.weights for head in trace.default.heads]


def _known(trace: "Trace", name: str) -> Head:
    head = read_head(name)
    if head not in _heads(trace):
        raise RunError(f"{trace.model} has no head {head}; its heads are {_ends(trace)}.")
    return head


def _ends(trace: "Trace") -> str:
    heads = _heads(trace)
    return f"{heads[0]} to {heads[-1]}"


def _rows(rows: int) -> int:
    if not 1 <= rows <= MOST_ROWS:
        raise RunError(f"rows is {rows}; ask for 1 to {MOST_ROWS}.")
    return rows


def _in_sentences(tool: Callable[..., Any]) -> Callable[..., Any]:
    """The tool, whose mistakes are told as they are."""
    from mcp.server.mcpserver.exceptions import ToolError

    @wraps(tool)
    def told(*args: Any, **options: Any) -> Any:
        try:
            return tool(*args, **options)
        except (HeadscopeError, RefusedError) as error:
            raise ToolError(str(error)) from None

    return told
