"""Runs (ranks) by graphs: where in a job the misses are. A cell is one graph in one row of runs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final, NamedTuple

from cachescope.figures.canvas import (
    AXIS,
    NO_LINES,
    PANEL_TITLE,
    SMALL,
    axis_title,
    compile_order,
    empty,
    grid,
    key_marks,
    legend_room,
    note,
    panel_title,
    rows_canvas,
)
from cachescope.figures.folding import Folded, folded_runs
from cachescope.figures.palette import OUTCOME_COLOURS
from cachescope.figures.picture import Picture
from cachescope.figures.texts import hover, place_labels, shown
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.grouping import by_key
from cachescope.json_types import JsonObject
from cachescope.terms import AOTAUTOGRAD, CACHES
from cachescope.wording import duration, plural

CODES: Final = {outcome: code for code, outcome in enumerate(OUTCOME_COLOURS)}
"""Outcomes as whole numbers, the worst last."""

_MOST_GRAPHS: Final = 400
_GAP: Final = 0.02
_LINE: Final = 14
_DIRECTIONS: Final = {"inference": 0, "forward": 1, "backward": 2}
_SHORTEST_BLOCK: Final = 0.15
# Letters of labels beside each other on a page.
_LETTERS: Final = 126
_SHORTEST_LABEL: Final = 9
_TITLES_ON_ONE_LINE: Final = 3
# As many long hover texts as a page should hold; beyond that they are a few words.
_MOST_TEXTS: Final = 4_000


class Graph(NamedTuple):
    """What is one graph in every run: a compile id has many after ``torch._dynamo.reset()``, or where one compile is split."""

    compile_id: str
    function: str
    nth: int

    def label(self, letters: int) -> str:
        """The compile id with its number in the run, and the function below it; lines of so many letters at most."""
        again = f"·{self.nth + 1}" if self.nth else ""
        function = f"<br>{shown(self.function, letters)}" if self.function else ""
        return shown(self.compile_id + again, letters) + function


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: the worst of its lookups, which it shows, and how many they are."""

    row: int
    block: tuple[str, str]  # cache and direction
    graph: Graph
    order: int
    place: str | None
    worst: LookupRow
    count: int
    taken: int


def cells_of(lookups: Sequence[LookupRow], rows: Folded) -> list[Cell]:
    """The cells: the worst outcome, the number of lookups, their compile time, and the lookup that each shows."""
    times: Counter[tuple[object, ...]] = Counter()
    of_cell = defaultdict(list)
    placed = zip(lookups, place_labels(lookups), strict=True)
    for row, place in sorted(placed, key=lambda of: (of[0].run, of[0].order)):
        if row.outcome in CODES:
            names = _names(row)
            nth = times[row.run, names]
            times[row.run, names] += 1
            of_cell[names, nth, rows.row_of[row.run]].append((CODES[row.outcome], row, place))
    cells = []
    ordered = sorted(of_cell.items(), key=itemgetter(0))
    for ((cache, direction, compile_id, function), nth, at), members in ordered:
        _, worst, place = max(reversed(members), key=itemgetter(0))
        order = min(row.order for _, row, _ in members)
        taken = sum(row.time_taken_ns or 0 for _, row, _ in members)
        graph = Graph(compile_id, function, nth)
        cells.append(Cell(at, (cache, direction), graph, order, place, worst, len(members), taken))
    return cells


def _names(row: LookupRow) -> tuple[str, str, str, str]:
    """What distinguishes graphs: cache, direction, compile id and function."""
    # AOTAutograd keys cover both directions; a bypassed FX lookup may record none.
    direction = "" if row.cache == AOTAUTOGRAD else row.direction or "no direction"
    # Without a compile id, the place among the lookups of the run. Not file and line: they differ between machines and
    # edits of one program.
    compile_id = f"#{row.order}" if row.compile_id is None else row.compile_id
    return row.cache, direction, compile_id, row.function or ""


@dataclass(frozen=True, slots=True)
class _Block:
    """One cache and direction, with the graphs that were looked up there."""

    title: str
    cells: list[Cell]
    graphs: list[Graph]


def runs_by_graph(lookups: Sequence[LookupRow], runs: Sequence[RunRow]) -> Picture:
    """Outcomes as a heatmap: a row per run, a column per graph; a block of columns per cache and direction.

    A graph is a compile id of a function; where a run looks that up several times, as after ``torch._dynamo.reset()``,
    each time has a column. Of more than 24 runs those that went alike share a row, the rarest first, and a cell shows the worst
    outcome of its lookups; beyond 400 graphs the last are left out, and the figure states it. Cells are clickable: ``customdata`` holds the lookup.

    Parameters
    ----------
    lookups : DataFrame or sequence of its rows
        Columns lookup, run, order, cache, direction, compile_id, function, file, line, cache_key, outcome, time_taken_ns.
    runs : DataFrame or sequence of its rows
        Columns run, rank, start_time.
    """
    if not lookups:
        return empty("No lookup is recorded.")
    rows = folded_runs(((row.run, (_names(row), row.outcome)) for row in lookups), runs)
    cells = cells_of(lookups, rows)
    blocks, left_out = _blocks(cells)
    columns = sum(len(block.graphs) for block in blocks)
    few = len(blocks) <= _TITLES_ON_ONE_LINE
    worst = {cell.worst.outcome for cell in cells}
    top = legend_room(len(worst)) + PANEL_TITLE + (0 if few else 16)
    bottom = AXIS + (_LINE if any(graph.function for block in blocks for graph in block.graphs) else 0)
    figure = rows_canvas(rows.labels, top, below=bottom)
    key_marks(figure, {name: colour for name, colour in OUTCOME_COLOURS.items() if name in worst})
    texts = columns * len(rows.names) <= _MOST_TEXTS
    for number, (block, domain) in enumerate(zip(blocks, _domains(blocks), strict=True)):
        _add_block(figure, number, block, domain, rows, texts, few)
    remarks = []
    if rows.folded:
        remarks.append(f"{rows.remark}; a cell shows their worst outcome")
    if left_out:
        remarks.append(f"{plural(left_out, 'more graph')} not shown")
    note(figure, *remarks, below=bottom)
    return figure


def _blocks(cells: list[Cell]) -> tuple[list[_Block], int]:
    of_block = by_key((cell.block, cell) for cell in cells)
    share = max(1, _MOST_GRAPHS // max(1, len(of_block)))
    blocks, left_out = [], 0
    for cache, direction in sorted(of_block, key=_place_of_block):
        mine = of_block[cache, direction]
        first: dict[Graph, int] = {}
        for cell in mine:
            first[cell.graph] = min(cell.order, first.get(cell.graph, cell.order))
        graphs = sorted(first, key=lambda graph: (compile_order(graph.compile_id), first[graph], graph))
        left_out += len(graphs[share:])
        blocks.append(_Block(f"{cache} {direction}".strip(), mine, graphs[:share]))
    return blocks, left_out


def _place_of_block(block: tuple[str, str]) -> tuple[object, ...]:
    cache, direction = block
    place = CACHES.index(cache) if cache in CACHES else len(CACHES)
    return place, cache, _DIRECTIONS.get(direction, len(_DIRECTIONS)), direction


def _domains(blocks: list[_Block]) -> list[tuple[float, float]]:
    """Widths in proportion to the number of graphs, but none too short for its title."""
    room = 1 - _GAP * (len(blocks) - 1)
    columns = sum(len(block.graphs) for block in blocks)
    shortest = min(_SHORTEST_BLOCK, room / len(blocks))
    # What short blocks need is taken from those with the most to spare.
    spare = [max(0.0, room * len(block.graphs) / columns - shortest) for block in blocks]
    left_over = (room - shortest * len(blocks)) / (sum(spare) or 1.0)
    domains, left = [], 0.0
    for width in (shortest + left_over * one for one in spare):
        right = left + width
        domains.append((left, min(1.0, right)))
        left = right + _GAP
    return domains


def _add_block(
    figure: Picture,
    number: int,
    block: _Block,
    domain: tuple[float, float],
    rows: Folded,
    texts: bool,
    few: bool,
) -> None:
    axis = "x" if number == 0 else f"x{number + 1}"
    count = len(block.graphs)
    column = {graph: i for i, graph in enumerate(block.graphs)}
    names = [label.partition(" · ")[0] for label in rows.names]
    ids = [shown(graph.compile_id, 12) for graph in block.graphs]
    z: list[list[int | None]] = [[None] * count for _ in rows.names]
    cell_texts = [[""] * count for _ in rows.names]
    lookups: list[list[int | None]] = [[None] * count for _ in rows.names]
    for cell in block.cells:
        at = column.get(cell.graph)
        if at is None:
            continue
        z[cell.row][at] = CODES[cell.worst.outcome]
        lookups[cell.row][at] = cell.worst.lookup
        short = f"{names[cell.row]}, {ids[at]}: {cell.worst.outcome}"
        cell_texts[cell.row][at] = _hover(cell, block, rows) if texts else short
    gap = 2 if count <= 40 else (1 if count <= 120 else 0)
    colours = list(OUTCOME_COLOURS.values())
    thin = 2 if len(rows.names) <= 32 else 1
    grid(figure, z, cell_texts, colours, xaxis=axis, xgap=gap, ygap=thin, customdata=lookups)
    # Labels as wide as the columns up to the next one.
    width = domain[1] - domain[0]
    every = -(-count // max(1, int(width * _LETTERS / _SHORTEST_LABEL)))
    letters = max(_SHORTEST_LABEL, int(width * _LETTERS * every / count))
    at_ticks = list(range(0, count, every))
    settings: JsonObject = {
        "domain": list(domain),
        "tickvals": at_ticks,
        "ticktext": [block.graphs[i].label(letters) for i in at_ticks],
        "tickangle": 0,
        "tickfont": {"size": SMALL},
        **NO_LINES,
        "range": [-0.5, count - 0.5],
        "title": axis_title("compile id" if number == 0 else "", 4),
    }
    figure.lay_out(**{f"xaxis{axis[1:]}": settings})
    panel_title(figure, _title(block.title, few), axis)


def _title(text: str, few: bool) -> str:
    cache, _, direction = text.partition(" ")
    # Four blocks side by side leave room for one word each.
    return f"<b>{shown(cache)}</b>" + (f"{' ' if few else '<br>'}{shown(direction)}" if direction else "")


def _hover(cell: Cell, block: _Block, rows: Folded) -> str:
    count, taken, key = cell.count, cell.taken, cell.worst.cache_key
    several = f" ({count} lookups, the worst shown)" if count > 1 else ""
    time = f", {duration(taken)} compiled" if taken else ""
    again = f", number {cell.graph.nth + 1} in this run" if cell.graph.nth else ""
    return hover(
        rows.names[cell.row],
        f"{block.title}, compile {cell.graph.compile_id}"[:80] + again,
        cell.place,
        f"{cell.worst.outcome}{several}{time}",
        None if key is None else f"key {key[:14]}…",
    )
