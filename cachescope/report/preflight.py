"""The report of a pre-flight: the answer first, then what would miss and why, then what is not known."""

from __future__ import annotations

from typing import Final

from cachescope.answers.preflight import PreflightAnswer
from cachescope.json_types import JsonObject
from cachescope.report.layout import Line, firsts
from cachescope.report.why_missed import answer_lines
from cachescope.wording import duration, listed, plural

_REASONS: Final = 5
_PLACES: Final = 3


def preflight_lines(answer: PreflightAnswer) -> list[Line]:
    """The whole answer."""
    if not answer.lookups:
        text = "a real run would look nothing up: nothing was compiled, or its caches were off"
        return [Line(text, style="bold")]
    lines = [Line(_headline(answer), style="bold"), *_costs(answer)]
    if answer.held_against:
        against = f"checked against {listed(answer.held_against, _PLACES)}"
        lines.append(Line(against, style="dim"))
    if answer.elsewhere:
        others = f"the program would itself look in {listed(answer.elsewhere, _PLACES)}"
        lines.append(Line(others, style="dim"))
    runs = {run.run for run in answer.read.facts.runs.values() if run.is_preflight}
    lines += answer_lines(answer.read, runs)
    if answer.not_known:
        lines += [Line(), Line(f"not known of {plural(answer.counts['not_known'], 'lookup')}:")]
        reasons = (Line(reason, 2, right=f"{count}") for reason, count in answer.not_known)
        lines += firsts(reasons, _REASONS, "reason", "--json lists all", indent=2)
    return lines


def preflight_object(answer: PreflightAnswer) -> JsonObject:
    """What ``--json`` says of the answer itself, beside the lookups and causes."""
    return {
        "lookups": answer.lookups,
        **answer.counts,
        "processes": answer.processes,
        "against": list(answer.held_against),
        "elsewhere": list(answer.elsewhere),
        "not_known_reasons": [{"reason": reason, "lookups": count} for reason, count in answer.not_known],
        "time_saved_ns": answer.saved_ns,
        "time_cost_ns": answer.cost_ns,
        "misses_without_cost": answer.without_cost,
    }


def _headline(answer: PreflightAnswer) -> str:
    counts = answer.counts
    processes = f" in {plural(answer.processes, 'process', 'processes')}" if answer.processes > 1 else ""
    parts = [f"{counts['would_hit']} would hit", f"{counts['would_miss']} would miss"]
    parts += [f"{counts['would_bypass']} would bypass"] if counts["would_bypass"] else []
    parts += [f"{counts['disabled']} with the caches off"] if counts["disabled"] else []
    parts += [f"{counts['not_known']} not known"] if counts["not_known"] else []
    return f"a real run would make {plural(answer.lookups, 'lookup')}{processes}: {', '.join(parts)}"


def _costs(answer: PreflightAnswer) -> list[Line]:
    said = [] if answer.saved_ns is None else [f"the hits save {duration(answer.saved_ns)} of compiling"]
    if answer.cost_ns is not None:
        rest = f" and {plural(answer.without_cost, 'more graph')}" if answer.without_cost else ""
        said.append(f"the misses cost about {duration(answer.cost_ns)}{rest}, as recorded before")
    return [Line("; ".join(said), style="dim")] if said else []
