"""The command line's report on why it missed: the answer first, then the causes by time lost, one block each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from cachescope.analysis.differences import short
from cachescope.answers.causes import Place, Struck
from cachescope.answers.names import lookups_of_cause
from cachescope.answers.summary import outcomes
from cachescope.answers.why import RunsWent, Why
from cachescope.frames.answer_rows import FalseHit
from cachescope.frames.recorded_rows import ProblemRow
from cachescope.report.explanation import change_lines, code_lines
from cachescope.report.layout import Line
from cachescope.report.past import past_lines
from cachescope.report.ranks import rank_lines, rank_names
from cachescope.report.vllm import vllm_lines
from cachescope.verdict_kinds import kind_of
from cachescope.wording import SHORT_KEY, and_more, duration, harmless, listed, plural

_PLACES_SHOWN: Final = 2
_FOLLOWERS_SHOWN: Final = 3
_PROBLEMS_SHOWN: Final = 3
_FALSE_HITS_SHOWN: Final = 2
_ADVICE_ROWS: Final = 5


def answer_lines(why: Why) -> list[Line]:
    """The answer to "why did it miss": rates, the causes by time lost, the rest."""
    causes = why.causes
    lines = [] if why.headline is None else [Line(why.headline, style="bold")]
    for number, struck in enumerate(causes.struck, 1):
        lines += [Line(), *_cause_lines(number, struck)]
    if causes.more:
        left = plural(causes.more_misses, "lookup")
        all_of_them = f"--causes {len(causes.struck) + causes.more} shows all"
        more = f"{and_more(causes.more, 'cause')} of {left} that did not hit: {all_of_them}"
        lines += [Line(), Line(more, style="dim")]
    if past := past_lines(why.past):
        lines += [Line(), *past]
    if why.rank_differences is not None and (ranks := list(rank_lines(why.rank_differences))):
        lines += [Line(), *ranks]
    if why.vllm is not None:
        lines += [Line(), *vllm_lines(why.vllm)]
    lines += [Line(), Line(why.footer, style="dim")]
    return lines + list(problem_lines(why.problems)) + list(_false_hit_lines(why.false_hits))


def run_lines(went: RunsWent) -> list[Line]:
    """How the lookups of some runs went, in one line."""
    rate = went.rate
    if not rate.lookups:
        return [
            Line("this run looked nothing up: nothing was compiled, or its caches were off", style="bold")
        ]
    processes = f" in {plural(went.processes, 'process', 'processes')}" if went.processes > 1 else ""
    lost = f"; {duration(rate.time_lost_ns)} lost" if rate.time_lost_ns else ""
    text = f"this run: {plural(rate.lookups, 'lookup')}{processes}: {outcomes(rate)}{lost}"
    return [Line(text, style="bold")]


def problem_lines(problems: Sequence[ProblemRow]) -> Iterator[Line]:
    """The first problems with reading."""
    for row in problems[:_PROBLEMS_SHOWN]:
        where = f" ({row.where})" if row.where else ""
        yield Line(harmless(short(f"{row.source}{where}: {row.kind}: {row.message}")), 2, "dim")
    if len(problems) > _PROBLEMS_SHOWN:
        yield Line(and_more(len(problems) - _PROBLEMS_SHOWN, where="--json lists all"), 2, "dim")


def place_text(place: Place) -> str:
    """Where a miss was, and what missed because of it."""
    if not place.followers:
        return place.name
    return f"{place.name} and, because of it, {listed(place.followers, _FOLLOWERS_SHOWN)}"


def _false_hit_lines(found: Sequence[FalseHit]) -> Iterator[Line]:
    """The first warnings of keys that seem to stand for more than one thing."""
    if not found:
        return
    yield Line(
        f"possible false hits: {len(found)}, in --json and scope.false_hits; a warning, no certainty", 0
    )
    for row in found[:_FALSE_HITS_SHOWN]:
        key = "" if row.cache_key is None else f"{row.cache} {row.cache_key[:SHORT_KEY]}…: "
        yield Line(harmless(f"{key}{row.evidence}"), 2, "dim", rows=_ADVICE_ROWS)


def _cause_lines(number: int, struck: Struck) -> Iterator[Line]:
    cause, changes, first = struck.row, struck.changes, struck.first
    count = lookups_of_cause(cause, struck.misses)
    right = f"{count:>8}  {duration(struck.time_lost_ns):>6}"
    kind = kind_of(cause)
    title = (
        harmless(cause.summary)
        if len(cause.fields) < 2 or kind.is_upgrade
        else plural(len(cause.fields), "field") + " changed"
    )
    if len(changes) == 1:
        title += f"   {harmless(changes[0].summary)}"
    yield Line(f"{number}  {title}", style="bold", right=right)
    if len(changes) == 1:
        yield from code_lines(changes[0], 5)
        for run, summary in struck.other_values:
            yield Line(f"and in run {run}: {harmless(summary)}", 3)
    elif changes and not kind.is_upgrade:
        yield from change_lines(changes, 3)
    elif not kind.is_upgrade or "besides" in first.reason:
        yield Line(harmless(short(first.reason, 400)), 3)
    if struck.guards is not None:
        yield Line(harmless(struck.guards.text), 3)
    for place in struck.places[:_PLACES_SHOWN]:
        yield Line(place_text(place), 3)
    if struck.roots > _PLACES_SHOWN:
        ranks = f", ranks {rank_names(cause.ranks)}" if len(cause.ranks) > 1 else ""
        more = plural(struck.roots - _PLACES_SHOWN, "more lookup")
        yield Line(f"and {more} in {plural(struck.runs, 'run')}{ranks}", 3)
    if struck.baseline is not None:
        yield Line(f"compared with {struck.baseline}{_sameness(struck)}", 3)
    if first.evidence != "recorded":
        known = first.evidence.replace("_", " ")
        yield Line(harmless(short(f"{known}: {first.evidence_text}")), 3, "dim")
    if struck.advice and not kind.is_advice_in_reason:
        yield Line(harmless(struck.advice), 3, "dim", rows=_ADVICE_ROWS)


def _sameness(struck: Struck) -> str:
    cause = struck.row
    if not cause.fields:
        return ""
    if struck.is_of_vllm:
        return ", the same part of a model; nothing else differs"
    return "; nothing else differs" if "gm" in cause.fields else ", the same graph; nothing else differs"
