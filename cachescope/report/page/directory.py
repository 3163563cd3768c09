"""The contents of the cache directories: sizes, ages, damage, which files belong together and what can go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cachescope.answers.directory import newest_first, size_of
from cachescope.answers.read import Read
from cachescope.figures.autotuning import autotune_margins
from cachescope.figures.entry_files import entry_ages, entry_sizes, link_layers
from cachescope.frames.directory_rows import EntryRow
from cachescope.grouping import by_key
from cachescope.report.blocks import Block, Column, Drawing, Group, Table, sized, table, timed, written
from cachescope.report.entries import entry_numbers, no_entry, section_lines
from cachescope.report.layout import Line
from cachescope.terms import ENTRY_KINDS


def entries_blocks(scope: Read) -> Iterator[Block]:
    """Question 5: what is in this directory."""
    entries = scope.tables.entries.rows
    if not entries:
        yield Line(no_entry(scope))
        return
    yield entry_numbers(entries, scope.orphaned.rows, scope.removed_unnoticed.rows)
    yield Drawing("Sizes by kind, folder and file", entry_sizes, (entries,))
    yield Drawing("When the files were written", entry_ages, (entries,))
    yield _kinds(entries)
    yield from section_lines(scope, "the table below has all")
    if links := scope.linked.rows:
        drawing = Drawing("References between files", link_layers, (links, entries))
        yield Group("links", "What refers to what", (drawing,))
    if measured := scope.tables.autotune.rows:
        drawing = Drawing("What max-autotune measured", autotune_margins, (measured,))
        intro = Line("The choices that max-autotune timed for each operator, beside the fastest.")
        yield Group("autotune", "What max-autotune measured", (intro, drawing))
    yield Group("files", "Every file", (_every_file(scope),))


def _kinds(entries: Sequence[EntryRow]) -> Table:
    by_kind = by_key((row.cache, row) for row in entries)
    kinds = sorted(by_kind.items(), key=lambda item: (-size_of(item[1]), item[0]))
    columns = (
        Column("Kind", "word", lambda kind: kind[0]),
        Column("Files", "number", lambda kind: len(kind[1])),
        Column("Damaged", "number", lambda kind: sum(row.status == "damaged" for row in kind[1])),
        Column("Size", "number", lambda kind: sized(size_of(kind[1]))),
        Column("Newest (UTC)", "word", lambda kind: written(max(row.modified_time or 0 for row in kind[1]))),
        Column("What it is", "text", lambda kind: ENTRY_KINDS.get(kind[0])),
    )
    return table("Files by kind, the largest first", columns, kinds, "kinds", "scope.entries")


def _every_file(scope: Read) -> Table:
    """What is to be looked at first, then the newest."""
    entries = scope.tables.entries.rows
    remarks = {row.entry: [row.damage] if row.damage else [] for row in entries}
    for row in scope.orphaned.rows:
        remarks[row.entry].append(f"left alone: {row.reason}")
    for gone in scope.removed_unnoticed.rows:
        remarks[gone.entry].append(f"can go: {gone.reason}")
    columns = (
        Column("Entry", "name", "entry"),
        Column("Kind", "word", "cache"),
        Column("Status", "word", "status"),
        Column("Size", "number", lambda row: sized(row.size_bytes)),
        Column("Written (UTC)", "word", lambda row: written(row.modified_time)),
        Column("Compile time", "number", lambda row: timed(row.time_taken_ns), is_optional=True),
        Column("Guards", "long", "guards_expr", is_optional=True),
        Column("Remarks", "text", lambda row: "; ".join(remarks[row.entry]), is_optional=True),
        Column("Path", "code", "path"),
    )
    rows = newest_first(entries)
    rows.sort(key=lambda row: not remarks[row.entry])
    name = "Files, those with a remark first, then the newest"
    return table(name, columns, rows, "files", "scope.entries")
