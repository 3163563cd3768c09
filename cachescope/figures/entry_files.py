"""The contents of a cache directory: sizes by kind, folder and file, when the files were written, and what refers to what."""

from __future__ import annotations

import os.path
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Final

from cachescope.answers.entries import size_of
from cachescope.figures.canvas import (
    DATES,
    axis_title,
    bars,
    canvas,
    count_axis,
    empty,
    legend_room,
    note,
    stacked_rows,
)
from cachescope.figures.palette import DAMAGED, GREY, KIND_COLOURS, LIGHT, text_on
from cachescope.figures.picture import Picture
from cachescope.figures.texts import hover, plain, shown
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.linked_rows import LinkRow
from cachescope.grouping import by_key
from cachescope.terms import AOTAUTOGRAD, CACHES, CODE, ENTRY_KINDS, FXGRAPH, LOCK
from cachescope.wording import file_size, plural

_MOST_FOLDERS: Final = 60
# Many files in one box are no large file.
_FOLDED: Final = "rgba(128,128,128,0.35)"
_MOST_FILES: Final = 12
_LONGEST: Final = 200
NO_FILES: Final = "No file was found: no cache directory was read, or it is empty."

_BINS: Final = 40
_FEWEST_STEPS: Final = 12


def entry_sizes(entries: Sequence[EntryRow]) -> Picture:
    """A treemap of sizes: kind, then folder, then file; damaged files in the colour of misses.

    The 60 largest folders of each kind and the 12 largest files of each folder are shown; the others are folded into
    one grey box. Boxes of files are clickable: ``customdata`` holds the entry.

    Parameters
    ----------
    entries : DataFrame or sequence of its rows
        The frame entries: entry, cache, path, root, size_bytes, status, damage, name.
    """
    total = size_of(entries)
    if not total:
        return empty("All files are empty: there is no size to show." if entries else NO_FILES)
    hover_text = hover(f"{plural(len(entries), 'file')}, {file_size(total)}")
    label = f"<b>all files</b>  {file_size(total)}"
    boxes = [_Box("all", "", label, total, hover_text, "rgba(128,128,128,0.15)")]
    for number, (kind, rows) in enumerate(_largest_first((row.cache, row) for row in entries)):
        colour = KIND_COLOURS.get(kind, GREY)
        size, box = size_of(rows), f"kind {number}"
        hover_text = hover(kind, ENTRY_KINDS.get(kind), f"{plural(len(rows), 'file')}, {file_size(size)}")
        boxes.append(_Box(box, "all", f"<b>{shown(kind)}</b>  {file_size(size)}", size, hover_text, colour))
        folders = _largest_first((row.path.rpartition("/")[0], row) for row in rows)
        for place, (folder, files) in enumerate(folders[:_MOST_FOLDERS]):
            _add_folder(boxes, f"{box} {place}", box, folder, files, colour)
        _add_others(boxes, f"{box} rest", box, [row for _, files in folders[_MOST_FOLDERS:] for row in files])
    colours = [box.colour for box in boxes]
    figure = canvas(520, margin={"l": 4, "r": 4, "t": 4, "b": 4})
    figure.add(
        "treemap",
        ids=[box.name for box in boxes],
        labels=[box.label for box in boxes],
        parents=[box.parent for box in boxes],
        values=[box.size for box in boxes],
        branchvalues="total",
        hovertext=[box.hover for box in boxes],
        hoverinfo="text",
        textinfo="label",
        customdata=[box.entry for box in boxes],
        marker={"colors": colours, "line": {"width": 1, "color": LIGHT.surface}, "cornerradius": 2},
        textfont={
            "color": [text_on(one) if one.startswith("#") else LIGHT.text for one in colours],
            "size": 11,
        },
        tiling={"pad": 2, "packing": "squarify"},
        pathbar={"visible": False},
        maxdepth=4,
        sort=True,
    )
    return figure


@dataclass(frozen=True, slots=True)
class _Box:
    """A box of a treemap, within its parent."""

    name: str
    parent: str
    label: str
    size: int
    hover: str
    colour: str
    entry: int | None = None


def _largest_first(files: Iterable[tuple[str, EntryRow]]) -> list[tuple[str, list[EntryRow]]]:
    """Files by their kinds or folders, the largest first."""
    return sorted(by_key(files).items(), key=lambda one: (-size_of(one[1]), one[0]))


def _add_folder(
    boxes: list[_Box], box: str, parent: str, folder: str, rows: list[EntryRow], colour: str
) -> None:
    if len(rows) == 1:
        # A folder for one file adds nothing to the file.
        _add_files(boxes, parent, rows, colour)
        return
    rows.sort(key=lambda row: (-(row.size_bytes or 0), row.entry))
    size, below = size_of(rows), _below(folder, rows[0].root or "")
    hover_text = hover(below, f"{plural(len(rows), 'file')}, {file_size(size)}")
    boxes.append(_Box(box, parent, shown(PurePath(below).name, 18), size, hover_text, colour))
    _add_files(boxes, box, rows[:_MOST_FILES], colour)
    _add_others(boxes, f"{box} rest", box, rows[_MOST_FILES:])


def _add_files(boxes: list[_Box], box: str, rows: Sequence[EntryRow], colour: str) -> None:
    for row in rows:
        damaged = row.status == "damaged"
        entry, size = f"entry {row.entry}", row.size_bytes or 0
        said = f"{entry}, {row.status}, {file_size(size)}"
        hover_text = hover(_below(row.path, row.root or ""), said, row.damage, row.name)
        label = ("damaged: " if damaged else "") + _file_label(row)
        boxes.append(_Box(entry, box, label, size, hover_text, DAMAGED if damaged else colour, row.entry))


def _add_others(boxes: list[_Box], box: str, parent: str, others: Sequence[EntryRow]) -> None:
    if others:
        size, count = file_size(size_of(others)), sum(row.status == "damaged" for row in others)
        damaged = f"{count} damaged" if count else None
        hover_text = hover(f"{plural(len(others), 'file')} that are smaller, {size}", damaged)
        label = f"{len(others):,} smaller, {size}"
        boxes.append(_Box(box, parent, label, size_of(others), hover_text, _FOLDED))


def _file_label(row: EntryRow) -> str:
    """The label of a file: the beginning of its key or name, and its kind."""
    # An entry of a graph is a file of its own under its key, and is named by the key.
    name = row.cache_key if row.cache in CACHES and row.cache_key else os.path.basename(row.path)
    suffix = os.path.splitext(name)[1]
    return shown(name, 11) + (shown(suffix, 9) if len(name) > 20 and suffix else "")


def _below(path: str, root: str) -> str:
    """A path from the name of its cache directory on: where that directory is has nothing to do with sizes."""
    folder = root.rstrip("/")
    if folder and (path == folder or path.startswith(f"{folder}/")):
        path = path[folder.rfind("/") + 1 :]
    return path if len(path) <= _LONGEST else "…" + path[1 - _LONGEST :]


def entry_ages(entries: Sequence[EntryRow]) -> Picture:
    """When files were last written: a histogram of 40 steps, stacked by kind.

    Parameters
    ----------
    entries : DataFrame or sequence of its rows
        The frame entries: cache, modified_time, size_bytes.
    """
    if not entries:
        return empty(NO_FILES)
    timed = [(row.modified_time, row) for row in entries if row.modified_time is not None]
    if not timed:
        return empty("No file has a time.")
    moments = [moment for moment, _ in timed]
    first = min(moments)
    # Whole seconds: a directory filled at once is one bar.
    width = max(10**9, -(-(max(moments) - first + 1) // _BINS))
    in_step = Counter((moment - first) // width for moment in moments)
    # A directory filled at once is a bar in the middle, not a wall.
    steps = max(_FEWEST_STEPS, max(in_step) + 1)
    left = first - (steps - 1 - max(in_step)) * width // 2
    kinds = {row.cache for row in entries if row.modified_time is not None}
    drawn = [kind for kind in KIND_COLOURS if kind in kinds]
    others = sorted(kinds.difference(KIND_COLOURS))
    series = [(kind, [kind]) for kind in drawn] + ([("other kinds", others)] if others else [])
    top = legend_room(len(series)) + 8
    figure = canvas(
        top + 260 + DATES,
        barmode="stack",
        bargap=0.08,
        margin={"t": top, "l": 48, "b": DATES},
        yaxis=count_axis(max(in_step.values()), title={"text": "files", "font": {"size": 11}}),
        xaxis={
            "type": "date", "range": [_moment(left), _moment(left + steps * width)], "showgrid": False, "zeroline": False, "tickfont": {"size": 11}, "nticks": 7,
            "title": axis_title("last written (UTC)"),
        },
    )  # fmt: skip

    def said(name: str, step: int, rows: Sequence[EntryRow]) -> str:
        began = f"from {_moment(first + step * width)[:19]} on".replace("T", " ")
        return hover(name, f"{plural(len(rows), 'file')}, {file_size(size_of(rows))}", began)

    for name, members in series:
        mine = by_key(((moment - first) // width, row) for moment, row in timed if row.cache in members)
        at = sorted(mine)
        figure.add(
            "bar",
            x=[_moment(first + step * width + width // 2) for step in at],
            y=[len(mine[step]) for step in at],
            width=[width / 1e6 * 0.92] * len(at),
            name=shown(name),
            marker={"color": KIND_COLOURS.get(name, GREY), "line": {"width": 0}},
            hovertext=[said(name, step, mine[step]) for step in at],
            hoverinfo="text",
        )
    remarks = []
    if len(timed) < len(entries):
        remarks.append(f"{plural(len(entries) - len(timed), 'file')} without a time not shown")
    if others:
        remarks.append(f"other kinds: {', '.join(sorted(plain(kind, 24) for kind in others))}")
    note(figure, *remarks, below=DATES)
    return figure


def _moment(ns: int) -> str:
    return f"{datetime.fromtimestamp(ns // 10**9, UTC).isoformat()[:19]}.{ns // 10**6 % 1000:03}"


# The reference that leads to a file of generated code decides its layer.
_WRAPPER: Final = "wrapper"
_KERNEL: Final = "kernels"
_COMPILED: Final = "compiled"
_OTHER_CODE: Final = "other code"
_CODE_LAYERS: Final = (_WRAPPER, _KERNEL, _COMPILED, _OTHER_CODE)
_GONE: Final = "gone"
# Room for the text beside the longest bar.
_ROOM: Final = 1.45
_COMPILED_BY: Final = "the name, which what is compiled from it shares"
_ORDER: Final = (
    AOTAUTOGRAD, FXGRAPH, _WRAPPER, _KERNEL, _OTHER_CODE, "autotune", "best_config", _COMPILED, "triton",
    _GONE,
)  # fmt: skip


def link_layers(links: Sequence[LinkRow], entries: Sequence[EntryRow]) -> Picture:
    """References between the layers: AOTAutograd, FX, wrapper, kernel, best configuration, Triton; missing ones in red.

    One bar per pair of layers, as long as its number of references: the picture is as small for a
    million files as for ten. References of locks are counted below it.

    Parameters
    ----------
    links : DataFrame or sequence of its rows
        The frame links: parent, parent_kind, child, child_kind, known_by.
    entries : DataFrame or sequence of its rows
        The frame entries: entry, size_bytes.
    """
    drawn = [row for row in links if row.parent_kind != LOCK]
    if not drawn:
        reason = "No file refers to another one" if entries else "No cache directory was read"
        return empty(f"{reason}: there are no links between the layers to show.")
    sizes = {row.entry: row.size_bytes or 0 for row in entries}
    roles = _roles(drawn)
    pairs = by_key(
        ((_layer(row.parent_kind, row.parent, roles), _layer(row.child_kind, row.child, roles)), row)
        for row in drawn
    )
    names = sorted(pairs, key=lambda pair: tuple(map(_place, pair)))
    counts = [len(pairs[name]) for name in names]
    labels = [f"{shown(parent, 20)} → {shown(child, 20)}" for parent, child in names]
    most = max(counts) * _ROOM
    figure = stacked_rows(labels, 8, xaxis=count_axis(int(most), range=[0, most]))
    bars(
        figure,
        counts,
        list(range(len(names))),
        [_colour(child) for _, child in names],
        [_hover(name, pairs[name], sizes) for name in names],
        text=[_text(child, pairs[parent, child]) for parent, child in names],
        textposition="outside",
        cliponaxis=False,
        showlegend=False,
    )
    locks = len(links) - len(drawn)
    of_locks = f"{plural(locks, 'reference')} of locks not shown" if locks else ""
    note(figure, "counts are references", of_locks)
    return figure


def _roles(rows: list[LinkRow]) -> dict[int, str]:
    """The layer of each file of generated code: the first one that leads to it, from the top down."""
    found: dict[str, dict[int, str]] = {_KERNEL: {}, _COMPILED: {}, _WRAPPER: {}}
    for row in rows:
        if row.child_kind == CODE and row.child is not None:
            is_graph = row.parent_kind in (FXGRAPH, AOTAUTOGRAD)
            role = _WRAPPER if is_graph else _COMPILED if row.known_by == _COMPILED_BY else _KERNEL
            found[role][row.child] = role
    return found[_KERNEL] | found[_COMPILED] | found[_WRAPPER]


def _place(layer: str) -> tuple[int, str]:
    return _ORDER.index(layer) if layer in _ORDER else len(_ORDER), layer


def _layer(kind: str, entry: int | None, roles: dict[int, str]) -> str:
    if entry is None:
        return _GONE
    return roles.get(entry, _OTHER_CODE) if kind == CODE else str(kind)


def _colour(layer: str) -> str:
    if layer == _GONE:
        return DAMAGED
    return KIND_COLOURS.get(CODE if layer in _CODE_LAYERS else layer, GREY)


def _text(child: str, rows: Sequence[LinkRow]) -> str:
    if child == _GONE:
        return f"{len(rows):,} to files that are gone"
    parents, children = {row.parent for row in rows}, {row.child for row in rows}
    return f"{len(rows):,} from {plural(len(parents), 'file')} to {len(children):,}"


def _hover(name: tuple[str, str], rows: Sequence[LinkRow], sizes: dict[int, int]) -> str:
    parent, child = name
    meaning = ENTRY_KINDS.get(CODE if child in _CODE_LAYERS else child)
    children = {row.child for row in rows if row.child is not None}
    size = file_size(sum(sizes.get(one, 0) for one in children))
    files = None if meaning is None else f"{child}: {meaning}, {plural(len(children), 'file')}, {size}"
    known_by = Counter(row.known_by for row in rows).most_common(4)
    how = (f"{count}: {known}" for known, count in known_by)
    return hover(f"{parent} → {child}: {plural(len(rows), 'reference')}", files, *how)
