"""What a cache directory holds: sizes by kind, folder and file."""

from __future__ import annotations

import os.path
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Final

import pandas as pd
import plotly.graph_objects as go

from cachescope.columns import records
from cachescope.figures.canvas import canvas, empty
from cachescope.figures.palette import DAMAGED, GREY, KIND_COLOURS, text_on, theme
from cachescope.figures.texts import hover, shown
from cachescope.terms import CACHES, ENTRY_KINDS
from cachescope.wording import file_size, plural

_MOST_FOLDERS: Final = 40
_MOST_FILES: Final = 25
NO_FILES: Final = "No file was found: no cache directory was read, or it is empty."


def entry_sizes(entries: pd.DataFrame, *, dark: bool = False) -> go.Figure:
    """A treemap of sizes: kind, then folder, then file; damaged files in the colour of misses.

    Of each kind the 40 largest folders, of each folder the 25 largest files are shown; the others are folded into
    one box. Boxes of files are clickable: ``customdata`` holds the entry.

    Parameters
    ----------
    entries : DataFrame
        The frame entries: entry, cache, path, root, size_bytes, status, damage, name.
    dark : bool
        For a dark background.
    """
    rows = records(
        entries, ["entry", "cache", "path", "root", "cache_key", "size_bytes", "status", "damage", "name"]
    )
    if not any(row["size_bytes"] for row in rows):
        return empty(NO_FILES if not rows else "All files are empty: there is no size to show.", dark)
    boxes = _Boxes()
    total = sum(row["size_bytes"] or 0 for row in rows)
    boxes.add(
        "all",
        "",
        f"<b>all files</b>  {file_size(total)}",
        total,
        hover(f"{plural(len(rows), 'file')}, {file_size(total)}"),
        "rgba(128,128,128,0.15)",
    )
    by_kind = _grouped(rows, lambda row: row["cache"])
    for number, (kind, of_kind) in enumerate(by_kind):
        _add_kind(boxes, number, kind, of_kind)
    look = theme(dark)
    figure = canvas(dark, 520, margin={"l": 4, "r": 4, "t": 4, "b": 4})
    figure.add_treemap(
        ids=boxes.ids,
        labels=boxes.labels,
        parents=boxes.parents,
        values=boxes.values,
        branchvalues="total",
        hovertext=boxes.hovers,
        hoverinfo="text",
        textinfo="label",
        customdata=boxes.entries,
        marker={"colors": boxes.colours, "line": {"width": 1, "color": look.surface}, "cornerradius": 2},
        textfont={"color": boxes.text_colours(look.text), "size": 11},
        tiling={"pad": 2, "packing": "squarify"},
        pathbar={"visible": False},
        maxdepth=4,
        sort=True,
    )
    return figure


@dataclass(slots=True)
class _Boxes:
    """The columns of a treemap trace."""

    ids: list[str] = field(default_factory=list)
    parents: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    values: list[int] = field(default_factory=list)
    hovers: list[str] = field(default_factory=list)
    colours: list[str] = field(default_factory=list)
    entries: list[int | None] = field(default_factory=list)

    def add(
        self, name: str, parent: str, label: str, size: int, said: str, colour: str, entry: int | None = None
    ) -> None:
        self.ids.append(name)
        self.parents.append(parent)
        self.labels.append(label)
        self.values.append(size)
        self.hovers.append(said)
        self.colours.append(colour)
        self.entries.append(entry)

    def text_colours(self, default: str) -> list[str]:
        return [text_on(colour) if colour.startswith("#") else default for colour in self.colours]


def _add_kind(boxes: _Boxes, place: int, kind: str, rows: Sequence[dict[str, Any]]) -> None:
    colour = KIND_COLOURS.get(kind, GREY)
    size = _size(rows)
    kind_id = f"kind {place}"
    said = hover(kind, ENTRY_KINDS.get(kind), f"{plural(len(rows), 'file')}, {file_size(size)}")
    label = f"<b>{shown(kind)}</b>  {file_size(size)}"
    boxes.add(kind_id, "all", label, size, said, colour)
    folders = _grouped(rows, lambda row: os.path.dirname(row["path"]))
    for number, (folder, of_folder) in enumerate(folders[:_MOST_FOLDERS]):
        _add_folder(boxes, f"{kind_id} {number}", kind_id, folder, of_folder, colour)
    _add_rest(
        boxes, f"{kind_id} rest", kind_id, [row for _, of in folders[_MOST_FOLDERS:] for row in of], colour
    )


def _add_folder(
    boxes: _Boxes, box: str, parent: str, folder: str, rows: Sequence[dict[str, Any]], colour: str
) -> None:
    if len(rows) == 1:
        # A folder for one file says no more than the file.
        _add_files(boxes, parent, rows, colour)
        return
    size = _size(rows)
    below = _below(folder, str(rows[0]["root"] or ""))
    said = hover(_end(folder), f"{plural(len(rows), 'file')}, {file_size(size)}")
    boxes.add(box, parent, shown(below, 18), size, said, colour)
    files = sorted(rows, key=lambda row: (-(row["size_bytes"] or 0), row["entry"]))
    _add_files(boxes, box, files[:_MOST_FILES], colour)
    _add_rest(boxes, f"{box} rest", box, files[_MOST_FILES:], colour)


def _add_files(boxes: _Boxes, box: str, rows: Sequence[dict[str, Any]], colour: str) -> None:
    for row in rows:
        damaged = row["status"] == "damaged"
        said = hover(
            _end(str(row["path"])),
            f"entry {row['entry']}, {row['status']}, {file_size(row['size_bytes'] or 0)}",
            row["damage"],
            row["name"],
        )
        label = ("damaged: " if damaged else "") + _file_label(row)
        shade = DAMAGED if damaged else colour
        boxes.add(f"entry {row['entry']}", box, label, row["size_bytes"] or 0, said, shade, row["entry"])


def _add_rest(boxes: _Boxes, box: str, parent: str, rows: Sequence[dict[str, Any]], colour: str) -> None:
    if rows:
        text = f"{len(rows):,} smaller"
        damaged = sum(row["status"] == "damaged" for row in rows)
        said = hover(
            f"{plural(len(rows), 'file')} that are smaller, {file_size(_size(rows))}",
            f"{damaged} damaged" if damaged else None,
        )
        boxes.add(box, parent, text, _size(rows), said, colour)


def _size(rows: Iterable[dict[str, Any]]) -> int:
    return sum(row["size_bytes"] or 0 for row in rows)


def _grouped(rows: Iterable[dict[str, Any]], key: Any) -> list[tuple[str, list[dict[str, Any]]]]:
    """Rows by a key, the largest first."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[str(key(row))].append(row)
    return sorted(groups.items(), key=lambda item: (-_size(item[1]), item[0]))


def _file_label(row: dict[str, Any]) -> str:
    """What a file is known by: the beginning of its key or name, and what kind of file it is."""
    # An entry of a graph is a file of its own under its key, and called by the key.
    name = (
        str(row["cache_key"]) if row["cache"] in CACHES and row["cache_key"] else PurePath(row["path"]).name
    )
    suffix = PurePath(name).suffix
    return shown(name, 11) + (shown(suffix, 9) if len(name) > 20 and suffix else "")


def _below(folder: str, root: str) -> str:
    """A folder as seen from its cache directory."""
    path = PurePath(folder)
    if root and path.is_relative_to(root):
        below = str(path.relative_to(root))
        return PurePath(root).name if below == "." else _end(below, 30)
    return path.name or folder


def _end(path: str, limit: int = 200) -> str:
    return path if len(path) <= limit else "…" + path[1 - limit :]
