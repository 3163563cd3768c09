"""The contents of the cache directories: sizes, ages, damage, which files belong together and what can go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cachescope.answers.directory import Directory, newest_first
from cachescope.answers.read import Read
from cachescope.figures.autotuning import autotune_margins
from cachescope.figures.entry_files import entry_ages, entry_sizes
from cachescope.figures.links import link_layers
from cachescope.grouping import by_key
from cachescope.report.blocks import (
    Block,
    Drawing,
    Group,
    Section,
    Table,
    table,
)
from cachescope.report.entry_table import NO_ENTRY, entry_numbers
from cachescope.report.layout import Line
from cachescope.report.tables import Column, sized, timed, written
from cachescope.terms import ENTRY_KINDS

_ENTRY, _KIND = Column("Entry", "name", "entry"), Column("Kind", "word", "cache")
_PATH: Final = Column("Path", "code", "path")
_SIZE: Final = Column("Size", "number", lambda row: sized(row.size_bytes))
_ENTRIES: Final = (
    _ENTRY,
    _KIND,
    Column("Status", "word", "status"),
    _SIZE,
    Column("Written (UTC)", "word", lambda row: written(row.modified_time)),
    Column("Compile time", "number", lambda row: timed(row.time_taken_ns), is_optional=True),
    Column("Guards", "long", "guards_expr", is_optional=True),
    _PATH,
)
_DAMAGED: Final = (_ENTRY, _KIND, _SIZE, Column("Damage", "text", "damage"), _PATH)
_DUPLICATES: Final = (
    _KIND,
    Column("Key", "code", "cache_key"),
    Column("Copies", "number", "copies"),
    Column("Would save", "number", lambda row: sized(row.saved_bytes)),
    Column("Known by", "text", "known_by"),
)
_REMOVABLE: Final = (_ENTRY, _KIND, _SIZE, Column("Why it can go", "text", "reason"), _PATH)
_UNREADABLE: Final = (
    "Files that could not be opened, or were not read completely; nothing is known to be wrong with them"
)
# The columns that entry_sizes, entry_ages and link_layers read.
_DRAWN: Final = [
    "entry", "cache", "path", "root", "cache_key", "size_bytes", "modified_time", "status", "damage", "name",
]  # fmt: skip


def entries_section(scope: Read) -> Section:
    """Question 5: what is in this directory."""
    sentence = (
        "Every file that torch would call an entry: how big and how old it is, whether it can be loaded, what it belongs to,"
        " and what could be deleted without a later process noticing. cachescope itself removes nothing."
    )
    found = Directory.of(scope)
    blocks: list[Block] = [Line(NO_ENTRY)]
    if found.entries:
        drawn = scope.entries[_DRAWN]
        blocks = [
            entry_numbers(found.entries, found.orphans, found.removable),
            Drawing("Sizes by kind, folder and file", entry_sizes, (drawn,)),
            Drawing("When the files were written", entry_ages, (drawn,)),
            _kinds(found),
            *_standing_out(found),
            *_links(scope),
            *_measured(scope),
            Group("files", "Every file", (_every_file(found),)),
        ]
    return Section("entries", "What is in the cache directory?", sentence, tuple(blocks))


def _kinds(found: Directory) -> Table:
    by_kind = by_key((total.cache, total) for total in found.totals)
    rows = sorted(by_kind.items(), key=lambda item: -sum(t.size_bytes for t in item[1]))
    columns = (
        Column("Kind", "word", lambda row: row[0]),
        Column("Files", "number", lambda row: sum(t.count for t in row[1])),
        Column("Damaged", "number", lambda row: sum(t.count for t in row[1] if t.status == "damaged")),
        Column("Size", "number", lambda row: sized(sum(t.size_bytes for t in row[1]))),
        Column("Newest (UTC)", "word", lambda row: written(max(t.newest_ns or 0 for t in row[1]))),
        Column("What it is", "text", lambda row: ENTRY_KINDS.get(row[0])),
    )
    return table("Files by kind, the largest first", columns, rows, "kinds", "scope.entries")


def _standing_out(found: Directory) -> Iterator[Block]:
    damaged = ("damaged", "Files that cannot be loaded", found.damaged)
    for status, name, files in (damaged, ("unreadable", _UNREADABLE, found.unreadable)):
        if files or status == "damaged":
            source = f'scope.entries[scope.entries["status"] == "{status}"]'
            shown = table(name, _DAMAGED, files, "files", source)
            yield _group(status, status.capitalize(), shown, "No file is damaged.")
    paths = {row.entry: row.path for row in found.entries}
    why, path = Column("Why", "text", "reason"), Column("Path", "code", lambda row: paths[row.entry])
    name = "Files whose other side is gone, or that nothing refers to"
    shown = table(name, (_ENTRY, _KIND, why, path), found.orphans, "files", "scope.orphans")
    yield _group("alone", "Left alone", shown, "Nothing refers to a file that is gone.")
    name = "Groups of files of which one would be enough"
    shown = table(name, _DUPLICATES, found.duplicates, "files", "scope.duplicates")
    yield _group("duplicates", "There twice", shown, "No two files are duplicates by name, size and guards.")
    shown = table("Files that can go, and why", _REMOVABLE, found.removable, "files", "scope.removable")
    yield _group("removable", "What can go", shown, "Every file may still be of use to a later process.")


def _group(anchor: str, title: str, shown: Table, empty: str) -> Group:
    return Group(anchor, title, (shown if shown.rows else Line(empty, style="dim"),))


def _links(scope: Read) -> Iterator[Block]:
    if scope.links.empty:
        yield Group("links", "What refers to what", (Line("No file refers to another one.", style="dim"),))
        return
    drawing = Drawing("References between files", link_layers, (scope.links, scope.entries[_DRAWN]))
    yield Group("links", "What refers to what", (drawing,))


def _measured(scope: Read) -> Iterator[Block]:
    if scope.autotune.empty:
        return
    drawing = Drawing("What max-autotune measured", autotune_margins, (scope.autotune,))
    intro = Line("The choices that max-autotune timed for each operator, beside the fastest.")
    yield Group("autotune", "What max-autotune measured", (intro, drawing))


def _every_file(found: Directory) -> Table:
    rows, what = newest_first(found.entries), "files, the newest first"
    return table("Files, the newest first", _ENTRIES, rows, what, "scope.entries")
