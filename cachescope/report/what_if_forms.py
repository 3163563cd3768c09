"""What would have hit under other keys, and the ranking of fields, as lines and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Final

from cachescope.answers import what_if as answer
from cachescope.answers.cards import cause_titles
from cachescope.answers.chosen import Chosen
from cachescope.answers.names import fields_text, lookup_in_run, run_name, short_fields
from cachescope.answers.recording import Recording
from cachescope.answers.summary import counts_text
from cachescope.frames.replay_rows import CauseSaving, SensitivityRow, WhatIfCause, WhatIfRate
from cachescope.json_types import JsonObject
from cachescope.report.as_json import tables_object
from cachescope.report.blocks import Block, Column, table, timed
from cachescope.report.html import Reprs
from cachescope.report.layout import Line, firsts, rest, unwrapped
from cachescope.terms import VLLM
from cachescope.wording import and_more, duration, percent, plural, short_key

_SHOWN: Final = 6
_WHAT_KEYS_ARE: Final = (
    "By what-if keys: cachescope's own, made from the remaining hash details. torch's keys cannot be rebuilt."
)

SAFETY: Final = {
    "safe": "May be left out: torch's code generation reads none of them",
    "unknown": "Not known whether they may be left out",
    "unsafe": "Not safe to leave out: they change the generated code",
    "program": "The program itself, which has to be in the key",
}
"""The groups of a ranking."""
NOTHING_ALONE: Final = "nothing by itself"
_NO_FIELDS: Final = "has no field to leave out"
BY_CAUSE: Final = "Cause by cause, without its own changed fields"


def what_if_lines(found: answer.WhatIf) -> list[Line]:
    """Warnings, the answer, and its origin."""
    if not found.read.facts.lookups:
        return [Line("no lookups were read, so none can be replayed", style="bold")]
    # What is known about leaving out each varying field that was left out.
    safety = (Line(f"{name}: {advice}", 2) for name, advice in found.safety)
    causes = cause_lines(found, cause_titles(Chosen(found.read), found.read.explained.rows))
    shown = firsts(safety, _SHOWN, "field", ".safety has all", 2)
    parts = (warning_lines(found), _answer_lines(found), shown, causes, _run_lines(found))
    return [*chain(*parts), *(Line(text, style="dim") for text in _caveats(found))]


class WhatIf(Reprs, answer.WhatIf):
    """A replay with its reprs."""

    _blocks = what_if_lines

    def __repr__(self) -> str:
        return unwrapped(self._blocks())


def _answer_lines(found: answer.WhatIf) -> Iterator[Line]:
    if not found.removed:
        yield Line(counts_text(found.read), style="bold")
        yield Line("as recorded, with no field left out", style="dim")
        return
    yield Line(_headline(found), style="bold")
    yield Line(f"{found.schema!s}. {_WHAT_KEYS_ARE}", style="dim")


def _headline(found: answer.WhatIf) -> str:
    before, after = found.rate_table.rows
    text = f"{before.hits:,} -> {after.hits:,} of {plural(before.lookups, 'lookup')} hit"
    shares = f"{percent(before.hit_rate)} -> {percent(after.hit_rate)} by count"
    if before.time_hit_rate is not None:
        shares += f", {percent(before.time_hit_rate)} -> {percent(after.time_hit_rate)} by compile time"
    return f"{text} ({shares}; {time_won(before, after)})"


def time_won(before: WhatIfRate, after: WhatIfRate) -> str:
    """The compile time that the new hits would save. A time that is not recorded is not zero."""
    if after.hits == before.hits:
        return "nothing saved"
    won = (after.time_saved_ns or 0) - (before.time_saved_ns or 0)
    return f"{duration(won)} saved" if won else "times not recorded"


def warning_lines(found: answer.WhatIf) -> Iterator[Line]:
    """Warnings about keys that would become one but hold different code."""
    pairs = found.warning_table.rows
    if not pairs:
        return
    what = " or ".join(sorted({pair.what for pair in pairs}, reverse=True))
    text = f"{plural(len(pairs), 'pair')} of keys would become one and hold different {what}"
    yield Line(f"Not safe: {text}. A hit would run code that was made for something else.", style="bold red")
    for pair in pairs[:3]:
        keys = f"{short_key(pair.cache_key)} and {short_key(pair.other_key)}"
        codes = f"{short_key(pair.code_key)}, {short_key(pair.other_code_key)}"
        yield Line(f"fxgraph {keys}: code {codes}", 2)
    yield from rest(len(pairs) - 3, where=".warnings lists all", indent=2)


def cause_lines(found: answer.WhatIf, titles: Mapping[int, str]) -> Iterator[Line]:
    """How many misses of each cause would hit, and why the others would not, under the causes' titles."""
    causes = [row for row in found.cause_table.rows if row.hits_after or row.unknown or row.why]
    for row in causes[:_SHOWN]:
        yield Line(f"{titles[row.cause]}: {_turned(row)}", 2)
        if row.why:
            yield Line(row.why, 4)
    yield from rest(len(causes) - _SHOWN, "cause", ".by_cause lists all", 2)


def _run_lines(found: answer.WhatIf) -> Iterator[Line]:
    runs = [row for row in found.run_table.rows if row.hits_after > row.hits]
    for row in runs[:_SHOWN]:
        name = run_name(found.read.facts, row.run)
        time = "" if row.time_won_ns is None else f", {duration(row.time_won_ns)} saved"
        yield Line(f"{name}: {row.hits} -> {row.hits_after} of {plural(row.lookups, 'lookup')}{time}", 2)
    yield from rest(len(runs) - _SHOWN, "run", ".by_run lists all", 2)


def _turned(row: WhatIfCause | CauseSaving) -> str:
    saved = "" if row.time_won_ns is None else f", {duration(row.time_won_ns)} saved"
    unknown = f", {row.unknown:,} cannot be known" if row.unknown else ""
    return f"{row.hits_after:,} of {plural(row.misses, 'miss')} would hit{saved}{unknown}"


def _caveats(found: answer.WhatIf) -> Iterator[str]:
    before, after = found.rate_table.rows
    if before.unknown:
        yield f"the outcome of {plural(before.unknown, 'lookup')} was not seen, and stays unknown"
    if after.undecided:
        known = "(no details of the key, or no guards of the entry, are recorded); counted as missed"
        yield f"{plural(after.undecided, 'lookup')} cannot be known {known}"
    if found.removed.parts:
        yield "parts of a field were compared by their printed texts, not by hashes"
    for row in found.difference_table.rows[:_SHOWN]:
        name = lookup_in_run(found.read.facts, found.read.facts.lookups[row.lookup])
        yield f"not replayed but taken as it came: {name}, {row.outcome}: {row.reason}"
    if (more := len(found.difference_table) - _SHOWN) > 0:
        yield and_more(more, "such lookup", ".differences lists all")
    if of_vllm := sum(row.cache == VLLM for row in found.read.facts.lookups.values()):
        yield f"{plural(of_vllm, 'lookup')} of vLLM's own cannot be replayed, and stay as they are"
    if not found.read.replay.cells.directories.are_all_known:
        yield "not every run says which cache directory it had: those are taken to share one"
    if found.removed and all(entry.code_key is None for entry in found.read.facts.entries.values()):
        yield "generated code was not compared: no cache directory was read"


def sensitivity_lines(rows: Sequence[SensitivityRow], most: int = 12) -> Iterator[Line]:
    """The fields that would help. Those that may be left out come first; within a group, by compile time."""
    yield Line("What would have hit if these fields were not in the key", style="bold")
    yield Line(f"{_WHAT_KEYS_ARE} Each line is a replay of all lookups.", style="dim")
    if not rows:
        yield Line("no field, and no small set of fields, keeps anything from hitting")
    names = short_fields(dict.fromkeys(chain.from_iterable(row.fields for row in rows)))
    for safety, shown in groupby(rows[:most], key=lambda row: row.safety):
        yield Line(SAFETY[safety])
        for row in shown:
            time = duration(row.time_alone_ns) if row.misses_alone else "nothing"
            right = f"{plural(row.misses_alone, 'miss'):>8}  {time:>6}"
            yield Line(fields_text(row.fields, 8, names), 2, right=right, hang=2)
            yield Line(field_note(row), 4, "dim")
    yield from rest(len(rows) - most, where="--json and scope.sensitivity() have all", indent=2)


def saves(row: SensitivityRow) -> str:
    """How many misses would hit without the fields of a row, and the time saved."""
    time = row.time_alone_ns if row.misses_alone else row.staggered_time_ns
    count = row.misses_alone or row.staggered
    text = f"{count:,} would hit" if time is None else f"{count:,} would hit, {duration(time)}"
    return text if row.misses_alone else f"{text}, with a staggered start"


def field_note(row: SensitivityRow) -> str:
    """A further note on a row of the ranking."""
    notes = []
    if row.staggered:
        time = "" if row.staggered_time_ns is None else f" ({duration(row.staggered_time_ns)})"
        more = f"{row.staggered:,} more" if row.misses_alone else f"{row.staggered:,}"
        notes.append(f"the runs were concurrent: with a staggered start, {more} would hit{time}")
    if row.needs_all:
        notes.append(f"only all {len(row.fields)} together")
    elif len(row.fields) > 1 and row.misses_alone:
        notes.append(f"{row.misses_together:,} of them only with all {len(row.fields)}")
    notes.append(row.advice)
    if row.unknown:
        notes.append(
            f"{row.unknown:,} more cannot be known: the fields of their keys, or the guards of an entry, are not recorded"
        )
    return "; ".join(notes)


def titled_savings(read: Recording) -> list[tuple[str, CauseSaving]]:
    """What leaving out the changed fields of each cause would save, under the titles of the cards."""
    titles = cause_titles(Chosen(read), read.explained.rows)
    return [(titles[row.cause], row) for row in read.saving_rows()]


# Only causes with titles.
CAUSE_SAVINGS: Final = (
    Column("Cause", "text", lambda row: row[0]),
    Column("Time lost", "number", lambda row: timed(row[1].time_lost_ns)),
    Column("Without its fields", "text", lambda row: _turned(row[1]) if row[1].fields else _NO_FIELDS),
    Column("Why the rest stays", "text", lambda row: row[1].why, is_optional=True),
)


def saving_blocks(read: Recording) -> Iterator[Block]:
    """For each cause, what leaving out its fields would save, and why the rest would still miss."""
    if rows := titled_savings(read):
        yield table(BY_CAUSE, CAUSE_SAVINGS, rows, "causes by time lost", "scope.cause_savings()")


def what_if_object(found: answer.WhatIf) -> JsonObject:
    """The object printed by ``cachescope what-if --json``."""
    return {
        "schema": found.schema.to_dict(),
        **tables_object(found.lookup_table, found.rate_table, found.cause_table),
        **tables_object(found.run_table, found.difference_table, found.warning_table),
    }
