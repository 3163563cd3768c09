"""What the command line shows of a scope: the answer first, then the causes by time lost, one block each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from cachescope.analysis.change_kinds import UPGRADE
from cachescope.analysis.differences import FieldChange, short
from cachescope.analysis.rates import hit_rates
from cachescope.answers.facts import Row
from cachescope.answers.names import baseline_name, in_compile, lookup_name, lookups_of_cause, run_name
from cachescope.answers.read import Read
from cachescope.answers.summary import footer, headline, is_cold_start, is_unexplained, outcomes
from cachescope.columns import records
from cachescope.report.explanation import change_lines, code_lines
from cachescope.report.layout import Line
from cachescope.report.past import past_lines
from cachescope.report.ranks import rank_lines, rank_names
from cachescope.wording import SHORT_KEY, duration, harmless, listed, plural

if TYPE_CHECKING:
    pass

_ROOTS_SHOWN: Final = 2
_FIELDS_SHOWN: Final = 8
_DIFF_LINES: Final = 12
_PROBLEMS_SHOWN: Final = 3
_FALSE_HITS_SHOWN: Final = 2
_ADVICE_ROWS: Final = 6


def answer_lines(scope: Read, runs: Collection[int] | None = None, most: int = 10) -> list[Line]:
    """The answer to "why did it miss": rates, the causes by time lost, what is left over.

    Parameters
    ----------
    scope : Read
        What was read.
    runs : collection of int, optional
        Only causes that struck in these runs, and of them only where they did.
    most : int
        Causes shown one by one; the rest is counted.
    """
    causes = _causes_in(scope, runs)
    lines = [] if runs is not None else [Line(headline(scope), style="bold")]
    for number, (cause, misses) in enumerate(causes[:most], 1):
        lines += [Line(), *_cause_lines(scope, number, cause, misses)]
    if rest := causes[most:]:
        left = sum(len(misses) for _, misses in rest)
        more = f"… and {plural(len(rest), 'more cause')} of {plural(left, 'lookup')} that did not hit"
        lines += [Line(), Line(f"{more}: --causes {len(causes)} shows all", style="dim")]
    if not scope.facts.lookups and (past := past_lines(scope)):
        lines += [Line(), *past]
    if runs is None and (ranks := list(rank_lines(scope))):
        lines += [Line(), *ranks]
    left_over = footer(scope) if runs is None else _footer_of_runs(scope, runs)
    lines += [Line(), Line(left_over, style="dim")]
    return lines + list(problem_lines(scope)) + list(false_hit_lines(scope))


def _footer_of_runs(scope: Read, runs: Collection[int]) -> str:
    facts = scope.facts
    of_number = {cause["cause"]: cause for cause in facts.causes}
    # That of the cause: a graph that is new because a mode changed is counted there already.
    mine = [
        of_number[miss["cause"]]
        for miss in facts.misses.values()
        if facts.lookups[miss["lookup"]]["run"] in runs
    ]
    first, unexplained = sum(map(is_cold_start, mine)), sum(map(is_unexplained, mine))
    parts = [f"first lookups: {plural(first, 'miss', 'misses')}"] if first else []
    return "    ".join([*parts, f"not explained: {unexplained}", f"problems: {len(facts.problems)}"])


def run_lines(scope: Read, runs: Collection[int]) -> list[Line]:
    """How the lookups of some runs went, in one line."""
    lookups = scope.lookups
    (rate,) = records(hit_rates(lookups[lookups["run"].isin(runs)]))
    if not rate["lookups"]:
        return [
            Line("this run looked nothing up: nothing was compiled, or its caches were off", style="bold")
        ]
    processes = f" in {plural(len(runs), 'process', 'processes')}" if len(runs) > 1 else ""
    lost = f"; {duration(rate['time_lost_ns'])} lost" if rate["time_lost_ns"] else ""
    text = f"this run: {plural(rate['lookups'], 'lookup')}{processes}: {outcomes(rate)}{lost}"
    return [Line(text, style="bold")]


def problem_lines(scope: Read) -> Iterator[Line]:
    """The first things that could not be read."""
    problems = scope.facts.problems
    for row in problems[:_PROBLEMS_SHOWN]:
        where = f" ({row['where']})" if row["where"] else ""
        yield Line(harmless(short(f"{row['source']}{where}: {row['kind']}: {row['message']}")), 2, "dim")
    if len(problems) > _PROBLEMS_SHOWN:
        yield Line(f"… and {len(problems) - _PROBLEMS_SHOWN} more: --json lists all", 2, "dim")


def false_hit_lines(scope: Read) -> Iterator[Line]:
    """The first warnings of keys that seem to stand for more than one thing."""
    found = records(scope.false_hits)
    if not found:
        return
    yield Line(
        f"possible false hits: {len(found)}, in --json and scope.false_hits; a warning, no certainty", 0
    )
    for row in found[:_FALSE_HITS_SHOWN]:
        key = "" if row["cache_key"] is None else f"{row['cache']} {row['cache_key'][:SHORT_KEY]}…: "
        yield Line(harmless(f"{key}{row['evidence']}"), 2, "dim", rows=_ADVICE_ROWS)


def _causes_in(scope: Read, runs: Collection[int] | None) -> list[tuple[Row, Sequence[Row]]]:
    facts = scope.facts
    found = []
    for cause in facts.causes:
        # First lookups are the cold start: the footer counts them, and there is nothing to explain.
        if is_cold_start(cause):
            continue
        misses = facts.misses_of(cause["cause"])
        if runs is not None:
            misses = [miss for miss in misses if facts.lookups[miss["lookup"]]["run"] in runs]
        if misses:
            found.append((cause, misses))
    return found


def _cause_lines(scope: Read, number: int, cause: Row, misses: Sequence[Row]) -> Iterator[Line]:
    facts = scope.facts
    roots = [miss for miss in misses if miss["root"]] or misses
    times = [facts.lookups[miss["lookup"]]["time_taken_ns"] for miss in misses]
    lost = sum(time for time in times if time is not None) if any(t is not None for t in times) else None
    count = lookups_of_cause(cause["verdict"], len(misses))
    right = f"{count:>8}  {duration(lost):>6}"
    changes = scope.changes(roots[0]["lookup"])
    is_upgrade = cause["kind"].startswith(UPGRADE)
    title = (
        harmless(cause["summary"])
        if len(cause["fields"]) < 2 or is_upgrade
        else plural(len(cause["fields"]), "field") + " changed"
    )
    if len(changes) == 1:
        title += f"   {harmless(changes[0].summary)}"
    yield Line(f"{number}  {title}", style="bold", right=right)
    if len(changes) == 1:
        yield from code_lines(changes[0], 5)
        yield from _other_values(scope, roots, changes[0])
    elif changes and not is_upgrade:
        yield from change_lines(changes, 3)
    elif not is_upgrade or "besides" in roots[0]["reason"]:
        yield Line(harmless(short(roots[0]["reason"], 400)), 3)
    for root in roots[:_ROOTS_SHOWN]:
        yield Line(_where(scope, root), 3)
    if len(roots) > _ROOTS_SHOWN:
        ranks = f", ranks {rank_names(cause['ranks'])}" if len(cause["ranks"]) > 1 else ""
        more = plural(len(roots) - _ROOTS_SHOWN, "more lookup")
        yield Line(f"and {more} in {_in_runs(scope, misses)}{ranks}", 3)
    name = baseline_name(facts, roots[0])
    if name is not None:
        yield Line(f"compared with {name}{_sameness(cause)}", 3)
    if roots[0]["evidence"] != "recorded":
        known = roots[0]["evidence"].replace("_", " ")
        yield Line(harmless(short(f"{known}: {roots[0]['evidence_text']}")), 3, "dim")
    # What to do about missing details is part of the reason.
    if cause["advice"] and cause["verdict"] != "details_not_recorded":
        yield Line(harmless(cause["advice"]), 3, "dim", rows=_ADVICE_ROWS)


def _other_values(scope: Read, roots: Sequence[Row], first: FieldChange) -> Iterator[Line]:
    """The same field may have changed in several ways: they are one cause, and shown side by side."""
    if first.field == "gm":
        return
    seen = {first.summary}
    for root in roots[1:20]:
        for change in scope.changes(root["lookup"]):
            if change.summary not in seen and len(seen) < 4:
                seen.add(change.summary)
                run = scope.facts.lookups[root["lookup"]]["run"]
                yield Line(f"and in run {run}: {harmless(change.summary)}", 3)


def _where(scope: Read, root: Row) -> str:
    facts = scope.facts
    row = facts.lookups[root["lookup"]]
    text = f"{run_name(facts.runs[row['run']])}{in_compile(row)}: {lookup_name(row)}"
    names = [lookup_name(other) for other in facts.followers_of(root)]
    return text + (f" and, because of it, {listed(names, 3)}" if names else "")


def _in_runs(scope: Read, misses: Sequence[Row]) -> str:
    return plural(len({scope.facts.lookups[miss["lookup"]]["run"] for miss in misses}), "run")


def _sameness(cause: Row) -> str:
    if cause["verdict"] != "key_changed":
        return ""
    return "; nothing else differs" if "gm" in cause["fields"] else ", the same graph; nothing else differs"
