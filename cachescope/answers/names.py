"""What a run, a lookup and a baseline are called in a line."""

from __future__ import annotations

from cachescope.answers.facts import Facts
from cachescope.frames.answer_rows import MissRow
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.wording import SHORT_KEY, clock, harmless, plural


def in_compile(row: LookupRow) -> str:
    """``, compile 0/0`` where the compile id is known."""
    return "" if row.compile_id is None else f", compile {harmless(row.compile_id)}"


def lookup_name(row: LookupRow) -> str:
    """``fxgraph fuyebj4t…`` with its direction where it is a backward graph."""
    key = "(no key)" if row.cache_key is None else f"{row.cache_key[:SHORT_KEY]}…"
    backward = " backward" if row.direction == "backward" else ""
    return f"{row.cache}{backward} {harmless(key)}"


def run_name(row: RunRow) -> str:
    """``run 1 (rank 0, pid 17905, 13:49:03)``; the clock is UTC."""
    facts = [
        f"{name} {number}" for name, number in (("rank", row.rank), ("pid", row.pid)) if number is not None
    ]
    if row.start_time is not None:
        facts.append(clock(row.start_time))
    return f"run {row.run}" + (f" ({', '.join(facts)})" if facts else "")


def baseline_name(facts: Facts, miss: MissRow) -> str | None:
    """What a miss was compared with, in words; None where there is nothing."""
    if miss.baseline_lookup is not None:
        row = facts.lookups[miss.baseline_lookup]
        return f"{run_name(facts.runs[row.run])}, {lookup_name(row)}{in_compile(row)}"
    if miss.baseline_entry is not None:
        entry = facts.entries[miss.baseline_entry]
        return f"the entry {harmless((entry.cache_key or '')[:SHORT_KEY])}… of {harmless(entry.root)}"
    return None


def lookups_of_cause(verdict: str, count: int) -> str:
    """``3 misses``, ``2 bypassed``: a cause counts in the words of the headline, where a bypass is no miss."""
    return f"{count} {verdict}" if verdict in ("bypassed", "disabled") else plural(count, "miss", "misses")


def lookup_in_run(facts: Facts, row: LookupRow) -> str:
    """A lookup with the run and the compile it is of."""
    return f"{run_name(facts.runs[row.run])}{in_compile(row)}: {lookup_name(row)}"
