"""Entries of cache directories: totals by kind, what was found, then the newest; and a single entry, as lines and as JSON."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from cachescope.analysis.directory.same_key import marks_beside
from cachescope.answers import entries as answer
from cachescope.answers.entries import newest_first, size_of
from cachescope.answers.recording import Recording
from cachescope.figures.autotuning import autotune_margins
from cachescope.figures.entry_files import entry_ages, entry_sizes, link_layers
from cachescope.frames.directory_rows import Candidate, EntryRow, KernelRow
from cachescope.frames.linked_rows import DuplicateRow, LinkRow, LockRow, OrphanRow, PastMiss, RemovableRow
from cachescope.frames.recorded_rows import ProblemRow
from cachescope.grouping import by_key
from cachescope.json_types import JsonObject
from cachescope.readers.directory.file_contents import SourceCode
from cachescope.readers.kinds import shown
from cachescope.report.as_json import plain_rows, tables_object
from cachescope.report.blocks import (
    Block,
    Column,
    Drawing,
    Group,
    Numbers,
    Table,
    sized,
    table,
    timed,
    written,
)
from cachescope.report.explanation import change_blocks
from cachescope.report.html import CODE_STYLE, Reprs, answer_html, safe
from cachescope.report.layout import Line, first_items, firsts, parted, problem_lines, rest, titled
from cachescope.report.terminal import terminal_lines
from cachescope.terms import AUTOTUNE, CACHES, ENTRY_KINDS, HASH, SHIPPED, UNREADABLE
from cachescope.verdict_kinds import KINDS
from cachescope.wording import duration, file_size, file_time, listed, plural, short

_SHOWN: Final = 5
# The marks of `analysis.directory.same_key.beside`, in words.
BESIDE_NAMES: Final = {
    "damaged": "damaged, next to an intact one",
    "other_code": "same key, other code",
    "other_guards": "same key, other guards",
    "equal_guards": "same key, equal guards: raced for, or made again",
}
_ANY_KEY: Final = re.compile(rf" [afc]{HASH}")
_KEY: Final = 16


def no_entry(read: Recording) -> str:
    """A sentence that no entry was read, and which directory to give: the one that the recordings name, if any does."""
    named = dict.fromkeys(run.cache_dir for run in read.facts.runs.values() if run.cache_dir)
    where = "the one that TORCHINDUCTOR_CACHE_DIR names, or /tmp/torchinductor_ and the name of the user"
    if named:
        where = (
            f"the recordings name {listed(named, _SHOWN)} (TORCHINDUCTOR_CACHE_DIR, or torch's own choice)"
        )
    return f"No cache directory was read, so there are no entries. Give the directory as well: {where}."


def section_lines(
    read: Recording, where: str = "--json lists all", locks: Sequence[LockRow] | None = None
) -> list[Line]:
    """The sections that are not empty, each after an empty line; `where` the rest of a list is."""
    entries = read.tables.entries.rows
    shipped = [row for row in entries if row.cache in SHIPPED]
    damaged, unreadable = ([row for row in entries if row.status == one] for one in ("damaged", UNREADABLE))
    shared, orphans, removable = _shared(entries), read.orphaned.rows, read.removed_unnoticed.rows
    nothing_known = "what they hold is not known, nor what they need"
    can_go = f"{plural(len(removable), 'file')} of {file_size(size_of(removable))} can go"

    def listed(title: str, items: Iterable[Iterable[Line]]) -> list[Line]:
        return first_items(f"{title}:", items, _SHOWN, where)

    sections = (
        listed(f"{plural(len(shipped), 'file')} shipped by themselves", map(_shipped, shipped)),
        listed(f"{len(damaged)} damaged", map(_unsound, damaged)),
        listed(f"{len(unreadable)} unreadable: {nothing_known}", map(_unsound, unreadable)),
        listed(f"{plural(len(shared), 'key holds', 'keys hold')} several entries", shared),
        _duplicates(read.duplicated.rows),
        titled(f"{len(orphans)} left alone:", _by_reason(orphans, where)),
        titled(f"{can_go} (--prune-list prints the paths):", _by_reason(removable, where)),
        _locks(locks),
    )
    return list(parted(sections))


def _shipped(row: EntryRow) -> list[Line]:
    parts = (row.cache, ", ".join(row.device_types), row.name, row.cache_key, row.detail)
    return [Line(row.path, 3, whole=True), Line("; ".join(text for text in parts if text), 5)]


def _unsound(row: EntryRow) -> list[Line]:
    return [Line(row.path, 3, whole=True), Line(short(row.damage or "not said"), 5)]


def _shared(entries: Sequence[EntryRow]) -> list[list[Line]]:
    """The keys that hold several entries, and how these differ."""
    marks, lines = marks_beside(entries), []
    several = (row for row in entries if row.entry in marks)
    keys = by_key(((row.root, row.cache, row.cache_key or ""), row) for row in several)
    for (_, cache, key), rows in keys.items():
        statuses = Counter(row.status for row in rows)
        marked = {mark for row in rows for mark in marks[row.entry]}
        if "ok" not in statuses:
            marked.discard("damaged")
        names = "; ".join(name for mark, name in BESIDE_NAMES.items() if mark in marked)
        how_many = ", ".join(f"{count} {status}" for status, count in statuses.items())
        lines.append([Line(f"{cache} {key[:_KEY]}…: {how_many} ({names})", 3, hang=2)])
    return lines


def _duplicates(duplicates: Sequence[DuplicateRow]) -> Iterator[Line]:
    """How many files could be saved, then the duplicates by kind, the largest saving first."""
    if not duplicates:
        return
    saved = file_size(sum(group.saved_bytes for group in duplicates))
    copies = sum(group.copies - 1 for group in duplicates)
    yield Line(f"{plural(copies, 'duplicate')} of {saved}, by names, sizes and guards:", style="bold")
    alike = by_key(((group.cache, group.known_by), group) for group in duplicates)
    for (cache, known_by), groups in islice(alike.items(), _SHOWN):
        files = plural(sum(group.copies for group in groups), "file")
        saved = file_size(sum(group.saved_bytes for group in groups))
        text = f"{cache}: {files} of which {len(groups)} would be enough, {saved} saved ({known_by})"
        yield Line(text, 3, hang=2)
    yield from rest(len(alike) - _SHOWN, "kind", "--json and scope.duplicates have all", style="")


def _by_reason(rows: Sequence[OrphanRow] | Sequence[RemovableRow], where: str) -> Iterator[Line]:
    counts = Counter((row.cache, _ANY_KEY.sub("", row.reason)) for row in rows)
    lines = (Line(f"{count} {cache}: {reason}", 3, hang=2) for (cache, reason), count in counts.most_common())
    yield from firsts(lines, _SHOWN, where=where)


def _locks(rows: Sequence[LockRow] | None) -> Iterator[Line]:
    if rows is None:
        return
    states = Counter(row.lock_held for row in rows)
    undecided = f", {states[None]} not known" if states[None] else ""
    said = f"{plural(len(rows), 'lock')}: {states[True]} held, {states[False]} free{undecided}"
    yield Line(said, style="bold")
    held = (Line(row.path, 3, whole=True) for row in rows if row.lock_held)
    yield from firsts(held, _SHOWN, where="--json lists all")


def entry_numbers(read: Recording, entries: Sequence[EntryRow]) -> Numbers:
    """The numbers of entries and what was found in them; of removable files only those among them."""
    statuses, there = Counter(row.status for row in entries), {row.entry for row in entries}
    freed = [row for row in read.removed_unnoticed.rows if row.entry in there]
    alone = sum(row.entry in there for row in read.orphaned.rows)
    unread = statuses[UNREADABLE]
    cells = [
        ("Entries", f"{len(entries):,}", file_size(size_of(entries))),
        ("Damaged", f"{statuses['damaged']:,}", "their content is not what it should be"),
        *([("Unreadable", f"{unread:,}", "what they hold is not known")] if unread else []),
        ("Left alone", f"{alone:,}", "their other side is gone"),
        ("Can go", f"{len(freed):,}", f"{file_size(size_of(freed))}; nothing is removed here"),
    ]
    return Numbers(tuple(cells))


def entries_blocks(
    read: Recording, most: int = 20, locks: Sequence[LockRow] | None = None
) -> Iterator[Block]:
    """What these directories contain: totals, what was found, and the newest compiled graphs."""
    entries, problems = read.tables.entries.rows, read.tables.problems.rows
    if not entries:
        yield from (Line(no_entry(read), style="bold"), *problem_lines(problems))
        return
    yield _title(entries)
    yield Line()
    yield _kinds(entries, _KINDS[:-1])
    yield from section_lines(read, locks=locks)
    # A copy is not another entry: the name is the hash of the content.
    places = by_key((_content(row), row) for row in newest_first(entries) if row.cache in CACHES)
    newest = [rows[0] for rows in places.values()]
    if newest:

        def copies(row: EntryRow) -> int | None:
            count = len(places[_content(row)])
            return count if count > 1 else None

        columns = (*FILES[1:-1], Column("Places", "number", copies, is_optional=True), FILES[-1])
        yield Line()
        name, all_of_them = "Compiled graphs, the newest first", f"--most {len(newest)}"
        yield table(name, columns, newest, "graphs", all_of_them, most)
    # Damaged and unreadable entries are listed above.
    unreadable = {row.path for row in entries if row.status == UNREADABLE}
    if any(row.kind != "damaged_entry" and row.source not in unreadable for row in problems):
        yield from (Line(), *problem_lines(problems))


def every_file_blocks(read: Recording) -> Iterator[Block]:
    """The same with pictures and with every file: what to look at first, then the newest."""
    entries = read.tables.entries.rows
    if not entries:
        yield Line(no_entry(read))
        return
    yield _title(entries)
    yield Drawing("Sizes by kind, folder and file", entry_sizes, (entries,))
    yield Drawing("When the files were written", entry_ages, (entries,))
    yield _kinds(entries, _KINDS)
    yield from section_lines(read, "the table below has all")
    yield from found_pictures(read)
    remarks = {row.entry: [row.damage] if row.damage else [] for row in entries}
    for orphan in read.orphaned.rows:
        remarks[orphan.entry].append(f"left alone: {orphan.reason}")
    for gone in read.removed_unnoticed.rows:
        remarks[gone.entry].append(f"can go: {gone.reason}")
    columns = (
        *FILES,
        Column("Remarks", "text", lambda row: "; ".join(remarks[row.entry]), is_optional=True),
        Column("Path", "code", "path"),
    )
    rows = sorted(newest_first(entries), key=lambda row: not remarks[row.entry])
    name = "Files, those with a remark first, then the newest"
    yield Group("files", "Every file", (table(name, columns, rows, "files", "scope.entries"),))


def found_pictures(read: Recording) -> Iterator[Block]:
    """Links and autotuning, if there are any."""
    if links := read.linked.rows:
        yield Drawing("What refers to what", link_layers, (links, read.tables.entries.rows))
    if measured := read.tables.autotune.rows:
        name = "What max-autotune measured: the choices that it timed for each operator, beside the fastest"
        yield Drawing(name, autotune_margins, (measured,))


def _title(entries: Sequence[EntryRow]) -> Line:
    roots = sorted({shown(row.root) for row in entries})
    where = roots[0] if len(roots) == 1 else plural(len(roots), "directory")
    title = f"{plural(len(entries), 'entry')} of {file_size(size_of(entries))} in {where}"
    return Line(title, style="bold", whole=True)


def _kinds(entries: Sequence[EntryRow], columns: Sequence[Column]) -> Table:
    groups = by_key(((row.cache, row.status), row) for row in entries)
    kinds = sorted(groups.items(), key=lambda one: (-size_of(one[1]), one[0]))
    return table("Files by kind, the largest first", columns, kinds, "kinds", "scope.entries")


def _times(rows: Sequence[EntryRow]) -> list[int]:
    return [row.modified_time for row in rows if row.modified_time is not None]


def _content(row: EntryRow) -> tuple[object, ...]:
    name = os.path.basename(row.path)
    # Through torch 2.7 an AOTAutograd entry is called "entry", and one that differs from its name could be anything.
    return row.cache_key, name, row.size_bytes, row.status, row.path if name == "entry" or row.damage else ""


_KINDS: Final = (
    Column("Kind", "word", lambda kind: kind[0][0]),
    Column("Status", "word", lambda kind: kind[0][1]),
    Column("Files", "number", lambda kind: len(kind[1])),
    Column("Size", "number", lambda kind: sized(size_of(kind[1]))),
    Column("Oldest (UTC)", "word", lambda kind: written(min(_times(kind[1]), default=None))),
    Column("Newest (UTC)", "word", lambda kind: written(max(_times(kind[1]), default=None))),
    Column("What it is", "text", lambda kind: ENTRY_KINDS.get(kind[0][0])),
)
FILES: Final = (
    Column("Entry", "name", "entry"),
    Column("Key", "key", lambda row: row.cache_key or row.name or os.path.basename(row.path)),
    Column("Kind", "word", "cache"),
    Column("Status", "word", "status"),
    Column("Size", "number", lambda row: sized(row.size_bytes)),
    Column("Written (UTC)", "word", lambda row: written(row.modified_time)),
    Column("Compile time", "number", lambda row: timed(row.time_taken_ns), is_optional=True),
    Column("Guards", "long", "guards_expr", is_optional=True),
)
"""The columns of every table of entries."""

_SHOWN_OF_ONE: Final = 8
# torch/_inductor/select_algorithm.py: `hash_key` of a choice is of the kernel that was timed, `output_node` makes another.
_ENDED_IN: Final = "entries that are not known: the chosen kernel is written again, with what is fused into it, under another hash"


def one_entry_lines(one: answer.OneEntry) -> list[Line]:
    """Everything but the source."""
    row = one.row
    name = f" of {row.name}" if row.name else ""
    title = f"{row.cache} {row.cache_key or '(no key)'}{name}"
    facts = (Line(text, hang=12, whole=label == "file", label=label) for label, text in _facts(one))
    damaged = sum(file.status == "damaged" and file.cache == row.cache for file in one.rows(EntryRow))
    beside = f", and {damaged} damaged" if damaged else ""
    candidates = f"{plural(len(one.rows(Candidate)), 'candidate')} under the key{beside}"
    sections = (
        (candidates, _candidate_lines(one)),
        ("other files under the key", _file_lines(one)),
        ("linked", _link_lines(one)),
        ("made by a miss", _past_lines(one)),
        (plural(len(one.rows(KernelRow)), "kernel"), _kernel_lines(one)),
    )
    return [Line(title, style="bold"), *facts, *parted(titled(name, body) for name, body in sections)]


class OneEntry(Reprs, answer.OneEntry):
    """One entry with its reprs."""

    __slots__ = ()

    _blocks = one_entry_lines

    def _repr_html_(self) -> str:
        source = self.source
        if source.text is None:
            return answer_html([*self._blocks(), *source_title(source)])
        body = f"<pre style='{CODE_STYLE}'>{safe(source.text)}</pre>"
        return answer_html(self._blocks(), f"<details><summary>source</summary>{body}</details>")


def _facts(one: answer.OneEntry) -> list[tuple[str, str]]:
    """What is known about it, each under a label."""
    row = one.row
    written = "" if row.modified_time is None else f", written {file_time(row.modified_time)} UTC"
    told = (
        ("file", row.path),
        ("size", f"{file_size(row.size_bytes or 0)}{written}"),
        ("status", row.status + (f": {row.damage}" if row.damage else "")),
        ("compile", None if row.time_taken_ns is None else duration(row.time_taken_ns)),
        ("devices", ", ".join(row.device_types)),
        ("code key", row.code_key),
        ("CUDA graphs", row.cudagraphs_skipped and f"not used: {row.cudagraphs_skipped}"),
        ("says", row.detail),
        ("ended in", _ENDED_IN if row.cache == AUTOTUNE else None),
        ("made for", one.made_for),
        *(("left alone", orphan.reason) for orphan in one.rows(OrphanRow)),
        *(("can go", gone.reason) for gone in one.rows(RemovableRow)),
        *(
            ("duplicates", f"{plural(group.copies, 'file')} ({group.known_by})")
            for group in one.rows(DuplicateRow)
        ),
    )
    return [(label, text) for label, text in told if text]


def _candidate_lines(one: answer.OneEntry) -> Iterator[Line]:
    rows = one.rows(Candidate)
    shown = rows[:_SHOWN_OF_ONE] + [row for row in rows[_SHOWN_OF_ONE:] if row.entry == one.row.entry]
    for row in shown:
        time = "-" if row.modified_time is None else file_time(row.modified_time)
        mine = "this one" if row.entry == one.row.entry else f"entry {row.entry}"
        guards = row.guards_expr or "no guards: it fits always"
        yield Line(f"{mine}, {time}: {guards}", 3, hang=2)
        if row.beside:
            yield Line("; ".join(BESIDE_NAMES[mark] for mark in row.beside), 5, "dim")
    yield from rest(len(rows) - len(shown), where="--json and .guards have all", style="")


def _file_lines(one: answer.OneEntry) -> Iterator[Line]:
    lines = []
    for file in one.rows(EntryRow)[1:]:
        status = "" if file.status == "ok" else f"   {file.status}"
        lines.append(Line(f"{file_size(file.size_bytes or 0):>9}  {file.path}{status}", 3, whole=True))
    return firsts(lines, _SHOWN_OF_ONE, style="")


def _link_lines(one: answer.OneEntry) -> Iterator[Line]:
    mine = {file.entry for file in one.rows(EntryRow)}
    texts = dict.fromkeys(_link(one, link, mine) for link in one.rows(LinkRow))
    lines = (Line(text, 3, hang=2) for text in texts)
    return firsts(lines, _SHOWN_OF_ONE, where="--json and .links have all", style="")


def _link(one: answer.OneEntry, link: LinkRow, mine: set[int]) -> str:
    if link.parent not in mine:
        return f"used by {one.names[link.parent]}"
    if link.child is None:
        return f"uses {link.child_kind} {link.child_key}, which was not found"
    return f"uses {one.names[link.child]}: {link.known_by}"


def _past_lines(one: answer.OneEntry) -> Iterator[Line]:
    for miss in one.rows(PastMiss):
        if miss.entry == one.row.entry:
            beside = KINDS[miss.verdict, ""].beside_in_directory
            yield Line(f"{beside}: {one.names[miss.baseline_entry]}", 3, hang=2)
            yield from terminal_lines(change_blocks(one.changes, ".changes"))
            if miss.changed and miss.same_code:
                yield Line("The generated source is the same.", 5)
    others = [m for m in one.rows(PastMiss) if m.entry != one.row.entry]
    for miss in others[:_SHOWN_OF_ONE]:
        fields = f" ({', '.join(miss.changed[:4])})" if miss.changed else ""
        yield Line(f"another miss made {one.names[miss.entry]} beside it{fields}", 3, hang=2)
    yield from rest(len(others) - _SHOWN_OF_ONE, where="--json and .past_misses have all", style="")


def _kernel_lines(one: answer.OneEntry) -> Iterator[Line]:
    named = ((f"{row.kernel} ({row.kind})", ", ".join(row.aten_ops)) for row in one.rows(KernelRow))
    lines = (Line(f"{name}: {ops}" if ops else name, 3, hang=2) for name, ops in named)
    return firsts(lines, _SHOWN_OF_ONE, where="--json and .kernels have all", style="")


def source_title(source: SourceCode) -> list[Line]:
    """The heading of the source, or why there is none."""
    if source.text is None:
        return [Line(), Line(f"no source: {source.why_not or ''}", style="dim")]
    return [Line(), Line(f"source ({plural(len(source.text.splitlines()), 'line')})", style="bold")]


def one_entry_object(one: answer.OneEntry) -> JsonObject:
    """The object printed by ``cachescope entries KEY --json``."""
    source = one.source
    return {
        "entry": one.row.entry,
        **tables_object(*(table for name, table in one.tables.items() if name != "problems")),
        "made_for": one.made_for,
        "source_code": source.text,
        "source_language": source.language if source.text is not None else None,
        "source_missing": source.why_not,
        "problems": plain_rows(one.rows(ProblemRow)),
    }
