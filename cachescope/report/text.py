"""The plain-text forms: the summary of a scope, and its parts that the terminal shows as well."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

if TYPE_CHECKING:
    from cachescope.scope import Scope

# Control characters steer a terminal; log values hold them (`torch_version` is 32 raw bytes).
_CONTROL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
SHORT_KEY: Final = 8


def harmless(text: str) -> str:
    """Text from a log with every control character made visible, so that it cannot steer a terminal."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def duration(ns: int | None) -> str:
    """Nanoseconds as people write them; a dash where nothing is known.

    Examples
    --------
    >>> duration(4_100_000_000), duration(230_000_000), duration(None)
    ('4.1 s', '230 ms', '-')
    """
    if ns is None or ns is pd.NA:
        return "-"
    seconds = ns / 1e9
    if seconds >= 600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def plural(count: int, one: str, many: str = "") -> str:
    """``1 lookup``, ``2 lookups``."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def headline(scope: Scope) -> str:
    """Lookups, hits and misses, and the hit rate by count and by compile time, in one line."""
    lookups, runs = scope.lookups, scope.runs
    if lookups.empty:
        return _nothing_looked_up(scope)
    rate = scope.hit_rates().iloc[0]
    hits, missed = int(rate["hits"]), int(rate["misses"])
    parts = [f"{hits} hit", f"{missed} missed"]
    if rate["bypasses"]:
        parts.append(f"{int(rate['bypasses'])} bypassed or disabled")
    rates = f"{100 * rate['hit_rate']:.0f} % by count"
    if pd.notna(rate["time_hit_rate"]):
        rates += f", {100 * rate['time_hit_rate']:.0f} % by compile time"
    lost = "" if pd.isna(rate["time_lost_ns"]) else f"; {duration(rate['time_lost_ns'])} lost"
    return (
        f"{plural(len(lookups), 'lookup')} in {plural(len(runs), 'run')}: {', '.join(parts)} ({rates}{lost})"
    )


def _nothing_looked_up(scope: Scope) -> str:
    runs, entries = scope.runs, scope.entries
    if len(runs):
        return (
            f"nothing was looked up in {plural(len(runs), 'run')}: caching was off, or nothing was compiled"
        )
    if len(entries):
        size = entries["size_bytes"].sum() / 1e6
        return f"no lookups were read; {plural(len(entries), 'entry', 'entries')} of {size:.1f} MB"
    return f"no lookups and no entries; {plural(len(scope.contexts), 'context')}"


def cause_rows(scope: Scope) -> list[dict[str, Any]]:
    """The causes to show one by one: everything but first lookups."""
    causes = scope.causes
    return causes[causes["verdict"] != "first_lookup"].to_dict("records")


def footer(scope: Scope) -> str:
    """What stays outside the numbered causes: cold starts, unexplained misses, problems."""
    causes, problems = scope.causes, scope.problems
    first = causes[causes["verdict"] == "first_lookup"]
    parts = []
    if len(first):
        row = first.iloc[0]
        time = "" if pd.isna(row["time_lost_ns"]) else f", {duration(row['time_lost_ns'])}"
        parts.append(f"first lookups (cold start): {plural(int(row['misses']), 'miss', 'misses')}{time}")
    unexplained = causes[causes["verdict"].isin(["details_not_recorded", "no_detail_differs"])]
    parts.append(f"not explained: {int(unexplained['misses'].sum())}")
    parts.append(f"problems: {len(problems)}")
    return "    ".join(parts)


def summary_text(scope: Scope) -> str:
    """The repr of a Scope: short, and the same for the same data."""
    lines = [f"cachescope.Scope: {headline(scope)}"]
    for number, cause in enumerate(cause_rows(scope)[:3], 1):
        misses = plural(int(cause["misses"]), "miss", "misses")
        lines.append(
            f"  {number}  {harmless(cause['summary'])}  [{cause['verdict']}]  {misses}  "
            f"{duration(cause['time_lost_ns'])}"
        )
    if len(scope.lookups) or len(scope.problems):
        lines.append(f"  {footer(scope)}")
    if len(scope.entries):
        damaged = int((scope.entries["status"] == "damaged").sum())
        lines.append(f"  entries: {len(scope.entries)}, damaged: {damaged}")
    return "\n".join(lines)


def miss_lines(scope: Scope, cause: int) -> list[str]:
    """Where a cause struck: one line per root miss, with the misses that follow from it."""
    misses, lookups, runs = scope.misses, scope.lookups.set_index("lookup"), scope.runs.set_index("run")
    mine = misses[misses["cause"] == cause]
    lines = []
    for root in mine[mine["root"]].itertuples():
        row = lookups.loc[root.lookup]
        following = [
            lookups.loc[m.lookup]
            for m in mine[~mine["root"]].itertuples()
            if lookups.loc[m.lookup, "run"] == row["run"]
            and _same(lookups.loc[m.lookup, "compile_id"], row["compile_id"])
        ]
        text = f"{run_name(runs, int(row['run']))}{_compile(row)}: {lookup_name(row)}"
        if following:
            text += " and, because of it, " + ", ".join(lookup_name(f) for f in following)
        lines.append(text)
    return lines


def _same(a: object, b: object) -> bool:
    return (pd.isna(a) and pd.isna(b)) or a == b  # type: ignore[call-overload]


def _compile(row: Any) -> str:
    return "" if pd.isna(row["compile_id"]) else f", compile {harmless(row['compile_id'])}"


def lookup_name(row: Any) -> str:
    """``fxgraph fuyebj4t…`` with its direction where it is a backward graph."""
    key = "(no key)" if pd.isna(row["cache_key"]) else f"{row['cache_key'][:SHORT_KEY]}…"
    backward = " backward" if row["direction"] == "backward" else ""
    return f"{row['cache']}{backward} {harmless(key)}"


def run_name(runs: pd.DataFrame, run: int) -> str:
    """``run 1 (rank 0, pid 17905, 13:49:03)``; the clock is UTC."""
    row = runs.loc[run]
    facts = []
    if pd.notna(row["rank"]):
        facts.append(f"rank {row['rank']}")
    if pd.notna(row["pid"]):
        facts.append(f"pid {row['pid']}")
    if pd.notna(row["start_time"]):
        facts.append(f"{row['start_time']:%H:%M:%S}")
    return f"run {run}" + (f" ({', '.join(facts)})" if facts else "")


def baseline_name(scope: Scope, miss: Any) -> str | None:
    """What a miss was compared with, in words; None where there is nothing."""
    if pd.notna(miss.baseline_lookup):
        row = scope.lookups.set_index("lookup").loc[miss.baseline_lookup]
        runs = scope.runs.set_index("run")
        return f"{run_name(runs, int(row['run']))}, {lookup_name(row)}{_compile(row)}"
    if pd.notna(miss.baseline_entry):
        row = scope.entries.set_index("entry").loc[miss.baseline_entry]
        return f"the entry {harmless(str(row['cache_key'])[:SHORT_KEY])}… of {harmless(row['root'])}"
    return None
