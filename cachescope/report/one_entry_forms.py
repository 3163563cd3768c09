"""One entry as lines and as JSON; text from files is escaped in each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cachescope.answers import one_entry as answer
from cachescope.frames.directory_rows import Candidate, EntryRow, KernelRow
from cachescope.frames.linked_rows import DuplicateRow, LinkRow, OrphanRow, PastMiss, RemovableRow
from cachescope.frames.recorded_rows import ProblemRow
from cachescope.json_types import JsonObject
from cachescope.readers.directory.file_contents import SourceCode
from cachescope.report.as_json import plain_rows, rows_object
from cachescope.report.entry_table import BESIDE_NAMES
from cachescope.report.explanation import change_lines
from cachescope.report.html import CODE_STYLE, Reprs, answer_html, safe
from cachescope.report.layout import Line, firsts, parted, rest, titled
from cachescope.terms import AUTOTUNE
from cachescope.verdict_kinds import KINDS
from cachescope.wording import duration, file_size, file_time, plural

_LABEL: Final = 12
_SHOWN: Final = 8
# torch/_inductor/select_algorithm.py: `hash_key` of a choice is of the kernel that was timed, `output_node` makes another.
_ENDED_IN: Final = "entries that are not known: the chosen kernel is written again, with what is fused into it, under another hash"


def one_entry_lines(one: answer.OneEntry, where: str = "") -> list[Line]:
    """Everything but the source; `where` says where the rest of a list is, by default in the frames of `one`."""
    row = one.row
    name = f" of {row.name}" if row.name else ""
    title = f"{row.cache} {row.cache_key or '(no key)'}{name}"
    lines = [Line(title, style="bold")]
    for label, text in _facts(one):
        lines.append(Line(text, hang=_LABEL, whole=label == "file", label=label))
    damaged = sum(file.status == "damaged" and file.cache == row.cache for file in one.rows(EntryRow))
    beside = f", and {damaged} damaged" if damaged else ""
    candidates = f"{plural(len(one.rows(Candidate)), 'candidate')} under the key{beside}"
    sections = (
        (candidates, _candidate_lines(one, where or ".guards has all")),
        ("other files under the key", _file_lines(one)),
        ("linked", _link_lines(one, where or ".links has all")),
        ("made by a miss", _past_lines(one)),
        (plural(len(one.rows(KernelRow)), "kernel"), _kernel_lines(one, where or ".kernels has all")),
    )
    return [*lines, *parted(titled(title, body) for title, body in sections)]


class OneEntry(Reprs, answer.OneEntry):
    """One entry with its reprs."""

    __slots__ = ()

    _lines = one_entry_lines

    def _repr_html_(self) -> str:
        source = self.source
        if source.text is None:
            return answer_html([*self._lines(), *source_title(source)])
        body = f"<pre style='{CODE_STYLE}'>{safe(source.text)}</pre>"
        return answer_html(self._lines(), f"<details><summary>source</summary>{body}</details>")


def _facts(one: answer.OneEntry) -> Iterator[tuple[str, str]]:
    row = one.row
    yield "file", row.path
    written = "" if row.modified_time is None else f", written {file_time(row.modified_time)} UTC"
    yield "size", f"{file_size(row.size_bytes or 0)}{written}"
    yield "status", row.status + (f": {row.damage}" if row.damage else "")
    if row.time_taken_ns is not None:
        yield "compile", duration(row.time_taken_ns)
    if row.device_types:
        yield "devices", ", ".join(row.device_types)
    if row.code_key is not None:
        yield "code key", row.code_key
    if row.cudagraphs_skipped:
        yield "CUDA graphs", f"not used: {row.cudagraphs_skipped}"
    if row.detail:
        yield "says", row.detail
    if row.cache == AUTOTUNE:
        yield "ended in", _ENDED_IN
    if one.made_for is not None:
        yield "made for", one.made_for
    for orphan in one.rows(OrphanRow):
        yield "left alone", orphan.reason
    for gone in one.rows(RemovableRow):
        yield "can go", gone.reason
    for group in one.rows(DuplicateRow):
        yield "duplicates", f"{plural(group.copies, 'file')} ({group.known_by})"


def _candidate_lines(one: answer.OneEntry, where: str) -> Iterator[Line]:
    rows = one.rows(Candidate)
    shown = rows[:_SHOWN] + [row for row in rows[_SHOWN:] if row.entry == one.row.entry]
    for row in shown:
        time = "-" if row.modified_time is None else file_time(row.modified_time)
        mine = "this one" if row.entry == one.row.entry else f"entry {row.entry}"
        guards = row.guards_expr or "no guards: it fits always"
        yield Line(f"{mine}, {time}: {guards}", 3, hang=2)
        if row.beside:
            yield Line("; ".join(BESIDE_NAMES[mark] for mark in row.beside), 5, "dim")
    yield from rest(len(rows) - len(shown), where=where, style="")


def _file_lines(one: answer.OneEntry) -> Iterator[Line]:
    files = one.rows(EntryRow)[1:]
    for file in files[:_SHOWN]:
        status = "" if file.status == "ok" else f"   {file.status}"
        yield Line(f"{file_size(file.size_bytes or 0):>9}  {file.path}{status}", 3, whole=True)
    yield from rest(len(files) - _SHOWN, style="")


def _link_lines(one: answer.OneEntry, where: str) -> Iterator[Line]:
    mine = {file.entry for file in one.rows(EntryRow)}
    texts = dict.fromkeys(_link(one, link, mine) for link in one.rows(LinkRow))
    yield from firsts((Line(text, 3, hang=2) for text in texts), _SHOWN, where=where, style="")


def _link(one: answer.OneEntry, link: LinkRow, mine: set[int]) -> str:
    if link.parent not in mine:
        return f"used by {one.names[link.parent]}"
    if link.child is None:
        return f"uses {link.child_kind} {link.child_key}, which was not found"
    return f"uses {one.names[link.child]}: {link.known_by}"


def _past_lines(one: answer.OneEntry) -> Iterator[Line]:
    for miss in one.rows(PastMiss):
        if miss.entry == one.row.entry:
            before = KINDS[miss.verdict, ""].before_in_directory
            yield Line(f"{before}: {one.names[miss.baseline_entry]}", 3, hang=2)
            yield from change_lines(one.changes, 5)
            if miss.changed and miss.same_code:
                yield Line("The generated source is the same.", 5)
    later = [m for m in one.rows(PastMiss) if m.entry != one.row.entry]
    for miss in later[:_SHOWN]:
        fields = f" ({', '.join(miss.changed[:4])})" if miss.changed else ""
        yield Line(f"a later miss made {one.names[miss.entry]} beside it{fields}", 3, hang=2)


def _kernel_lines(one: answer.OneEntry, where: str) -> Iterator[Line]:
    rows = one.rows(KernelRow)
    for row in rows[:_SHOWN]:
        ops = f": {', '.join(row.aten_ops)}" if row.aten_ops else ""
        yield Line(f"{row.kernel} ({row.kind}){ops}", 3, hang=2)
    yield from rest(len(rows) - _SHOWN, where=where, style="")


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
        **rows_object(**{name: table.rows for name, table in one.tables.items() if name != "problems"}),
        "made_for": one.made_for,
        "source_code": source.text,
        "source_language": source.language if source.text is not None else None,
        "source_missing": source.why_not,
        "problems": plain_rows(one.rows(ProblemRow)),
    }
