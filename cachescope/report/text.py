"""The plain-text forms: the summary of a scope, and its parts that the terminal shows as well."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cachescope.analysis.timeline import NOT_KNOWN
from cachescope.columns import records
from cachescope.report.facts import Facts, Row
from cachescope.terms import UNREADABLE
from cachescope.wording import SHORT_KEY, duration, harmless, harmless_line, plural

if TYPE_CHECKING:
    from cachescope.scope import Scope


def headline(scope: Scope) -> str:
    """Lookups, hits and misses, and the hit rate by count and by compile time, in one line."""
    facts = scope.facts
    if not facts.lookups:
        return _nothing_looked_up(facts)
    (rate,) = records(scope.hit_rates())
    rates = "no hit rate" if rate["hit_rate"] is None else f"{100 * rate['hit_rate']:.0f} % by count"
    if rate["time_hit_rate"] is not None:
        rates += f", {100 * rate['time_hit_rate']:.0f} % by compile time"
    lost = "" if rate["time_lost_ns"] is None else f"; {duration(rate['time_lost_ns'])} lost"
    # Compile workers leave traces as well; a run is a process that looked something up.
    looked_up = scope.lookups["run"].nunique()
    lookups, runs = plural(len(facts.lookups), "lookup"), plural(looked_up, "run")
    return f"{lookups} in {runs}: {outcomes(rate)} ({rates}{lost})"


def outcomes(rate: Row) -> str:
    """How many lookups of a row of hit rates went which way."""
    bypassed = f", {rate['bypasses']} bypassed or disabled" if rate["bypasses"] else ""
    unknown = f", {rate['unknown']} of unknown outcome" if rate["unknown"] else ""
    return f"{rate['hits']} hit, {rate['misses']} missed{bypassed}{unknown}"


def seen_text(rate: Row) -> str:
    """Of how many lookups a hit rate is, and how many it leaves out."""
    unknown = f"; {rate['unknown']:,} of unknown outcome" if rate["unknown"] else ""
    return f"{plural(rate['lookups'] - rate['unknown'], 'lookup')}{unknown}"


def _nothing_looked_up(facts: Facts) -> str:
    if facts.runs:
        return f"nothing was looked up in {plural(len(facts.runs), 'run')}: caching was off, or nothing was compiled"
    if facts.entries:
        size = sum(entry["size_bytes"] or 0 for entry in facts.entries.values())
        return (
            f"no lookups were read; {plural(len(facts.entries), 'entry', 'entries')} of {size / 1e6:.1f} MB"
        )
    if facts.contexts:
        return f"no lookups and no entries; {plural(facts.contexts, 'context')}"
    return "nothing was looked up: the cache loggers or the caches were off, or nothing was compiled"


def cause_rows(scope: Scope) -> list[Row]:
    """The causes to show one by one: everything but first lookups."""
    return [cause for cause in scope.facts.causes if not is_cold_start(cause)]


def is_cold_start(cause: Row) -> bool:
    """Whether there is nothing to explain: the graphs were looked up for the first time."""
    return bool(cause["verdict"] == "first_lookup" and cause["kind"] != NOT_KNOWN)


def is_unexplained(cause: Row) -> bool:
    """Whether nothing that was read says why it missed."""
    return bool(
        cause["verdict"] in ("details_not_recorded", "no_detail_differs") or cause["kind"] == NOT_KNOWN
    )


def footer(scope: Scope) -> str:
    """What stays outside the numbered causes: cold starts, unexplained misses, problems."""
    facts = scope.facts
    parts = []
    for cause in facts.causes:
        if is_cold_start(cause):
            time = "" if cause["time_lost_ns"] is None else f", {duration(cause['time_lost_ns'])}"
            parts.append(f"first lookups (cold start): {plural(cause['misses'], 'miss', 'misses')}{time}")
    unexplained = [cause["misses"] for cause in facts.causes if is_unexplained(cause)]
    parts.append(f"not explained: {sum(unexplained)}")
    parts.append(f"problems: {len(facts.problems)}")
    return "    ".join(parts)


def lookups_of_cause(verdict: str, count: int) -> str:
    """``3 misses``, ``2 bypassed``: a cause counts in the words of the headline, where a bypass is no miss."""
    return f"{count} {verdict}" if verdict in ("bypassed", "disabled") else plural(count, "miss", "misses")


def summary_text(scope: Scope) -> str:
    """The repr of a Scope: short, and the same for the same data."""
    facts = scope.facts
    lines = [f"cachescope.Scope: {headline(scope)}"]
    for number, cause in enumerate(cause_rows(scope)[:3], 1):
        misses = lookups_of_cause(cause["verdict"], cause["misses"])
        lines.append(
            f"  {number}  {harmless(cause['summary'])}  [{cause['verdict']}]  {misses}  "
            f"{duration(cause['time_lost_ns'])}"
        )
    if facts.lookups or facts.problems:
        lines.append(f"  {footer(scope)}")
    if facts.entries:
        damaged = sum(entry["status"] == "damaged" for entry in facts.entries.values())
        unread = sum(entry["status"] == UNREADABLE for entry in facts.entries.values())
        also = f", unreadable: {unread}" if unread else ""
        lines.append(f"  entries: {len(facts.entries)}, damaged: {damaged}{also}")
    return "\n".join(map(harmless_line, lines))


def miss_lines(scope: Scope, cause: int, most: int | None = None) -> list[str]:
    """Where a cause struck: one line per root miss, or per each of the first, with the misses that follow from it."""
    facts = scope.facts
    lines = []
    for root in facts.roots_of(cause)[:most]:
        row = facts.lookups[root["lookup"]]
        text = f"{run_name(facts.runs[row['run']])}{in_compile(row)}: {lookup_name(row)}"
        if following := facts.followers_of(root):
            text += " and, because of it, " + ", ".join(lookup_name(other) for other in following)
        lines.append(text)
    return lines


def in_compile(row: Row) -> str:
    """``, compile 0/0`` where the compile id is known."""
    return "" if row["compile_id"] is None else f", compile {harmless(row['compile_id'])}"


def lookup_name(row: Row) -> str:
    """``fxgraph fuyebj4t…`` with its direction where it is a backward graph."""
    key = "(no key)" if row["cache_key"] is None else f"{row['cache_key'][:SHORT_KEY]}…"
    backward = " backward" if row["direction"] == "backward" else ""
    return f"{row['cache']}{backward} {harmless(key)}"


def run_name(row: Row) -> str:
    """``run 1 (rank 0, pid 17905, 13:49:03)``; the clock is UTC."""
    facts = [f"{name} {row[name]}" for name in ("rank", "pid") if row[name] is not None]
    if row["start_time"] is not None:
        facts.append(f"{datetime.fromtimestamp(row['start_time'] // 10**9, UTC):%H:%M:%S}")
    return f"run {row['run']}" + (f" ({', '.join(facts)})" if facts else "")


def baseline_name(scope: Scope, miss: Row) -> str | None:
    """What a miss was compared with, in words; None where there is nothing."""
    facts = scope.facts
    if miss["baseline_lookup"] is not None:
        row = facts.lookups[miss["baseline_lookup"]]
        return f"{run_name(facts.runs[row['run']])}, {lookup_name(row)}{in_compile(row)}"
    if miss["baseline_entry"] is not None:
        entry = facts.entries[miss["baseline_entry"]]
        return f"the entry {harmless(entry['cache_key'][:SHORT_KEY])}… of {harmless(entry['root'])}"
    return None
