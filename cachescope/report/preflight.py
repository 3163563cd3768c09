"""The report of a pre-flight: the answer first, what would miss and why, what is not known; and what to set so that lookups hit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cachescope.analysis.fixes import VARIABLE, Setting
from cachescope.answers.preflight import Fix, PreflightAnswer
from cachescope.json_types import JsonObject
from cachescope.report.blocks import Block
from cachescope.report.json_text import values_of
from cachescope.report.layout import Line, firsts, rest
from cachescope.report.why_missed import answer_blocks
from cachescope.wording import duration, listed, plural

_PLACES: Final = 3


def preflight_blocks(answer: PreflightAnswer) -> Iterator[Block]:
    """The whole answer."""
    if not answer.lookups:
        text = "a real run would look nothing up: nothing was compiled, or its caches were off"
        yield Line(text, style="bold")
        return
    yield Line(_headline(answer), style="bold")
    yield from _costs(answer)
    if answer.held_against:
        yield Line(f"checked against {listed(answer.held_against, _PLACES)}", style="dim")
    if answer.elsewhere:
        yield Line(f"the program would itself look in {listed(answer.elsewhere, _PLACES)}", style="dim")
    runs = {run.run for run in answer.read.facts.runs.values() if run.is_preflight}
    yield from answer_blocks(answer.read, runs)
    if answer.not_known:
        yield from (Line(), Line(f"not known of {plural(answer.counts['not_known'], 'lookup')}:"))
        reasons = (Line(reason, 2, right=f"{count}") for reason, count in answer.not_known)
        yield from firsts(reasons, 5, "reason", "--json lists all", indent=2)


def preflight_object(answer: PreflightAnswer) -> JsonObject:
    """What ``--json`` says of the answer itself, beside the lookups and causes."""
    return {
        **_counts(answer),
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
    processes = f" in {plural(answer.processes, 'process')}" if answer.processes > 1 else ""
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


ENV_FILE_BEGINS: Final = "# Written by cachescope fix."
_REMAINING: Final = 10


def fix_lines(found: Fix) -> Iterator[Line]:
    """The settings first, then what they leave."""
    before, after = found.before, found.after
    if before.counts["would_hit"] == before.lookups and not found.settings:
        yield Line(f"nothing to fix: {_went(before)}", style="bold")
    elif found.settings:
        yield Line(f"with {plural(len(found.settings), 'change')}, {_went(after)}", style="bold")
        looks = f"; the program looks into {listed(found.elsewhere, 2)}" if found.elsewhere else ""
        yield Line(f"without: {_went(before)}{looks}", 3, "dim")
        for number, setting in enumerate(found.settings, 1):
            yield Line(f"{number}  {setting.code}", right=setting.where)
        tried = "tried together, and each is needed" if len(found.settings) > 1 else "tried"
        yield Line(f"{tried}: {plural(found.trials, 'pre-flight', 'pre-flights')}", 3, "dim")
        for sentence in found.advice[:_REMAINING]:
            yield Line(f"better, and not tried: {sentence}", 3, "dim")
    else:
        yield Line(f"nothing was found that could be set: {_went(before)}", style="bold")
    for way in found.failed[:_REMAINING]:
        codes = "; ".join(setting.code for setting in way)
        yield Line(f"left out, as the command failed with it: {codes}", 3, "dim")
    if found.remaining:
        yield from (Line(), Line("not fixed; what is advised was not tried", style="bold"))
    for one in found.remaining[:_REMAINING]:
        yield Line(one.summary, 3, right=plural(one.misses, "miss"))
        final = "nothing that can be set helps: the entries are of another installation or machine"
        if advice := final if one.is_final else one.advice:
            yield Line(advice, 6, "dim")
    yield from rest(len(found.remaining) - _REMAINING)


def fix_object(found: Fix) -> JsonObject:
    """The answer for ``--json``."""
    return {
        "before": _counts(found.before),
        "after": _counts(found.after),
        "settings": [_setting_object(setting) for setting in found.settings],
        "not_fixed": [
            {**values_of(one, "summary", "misses", "advice"), "nothing_helps": one.is_final}
            for one in found.remaining
        ],
        "advice": list(found.advice),
        "failed_with": [[_setting_object(setting) for setting in way] for way in found.failed],
        "looks_into": list(found.elsewhere),
        "preflights": found.trials,
    }


def env_file(found: Fix) -> str:
    """The variables among the settings, as ``docker run --env-file`` takes them; one to unset is a comment."""
    lines = [_env_line(setting) for setting in found.settings if setting.kind == VARIABLE]
    return "\n".join([ENV_FILE_BEGINS, *lines, ""])


def _env_line(setting: Setting) -> str:
    if setting.value is None:
        return f"# unset {setting.name}"
    if len(setting.value.splitlines()) > 1:
        return f"# {setting.name} has several lines, which no such file can hold"
    return f"{setting.name}={setting.value}"


def _counts(answer: PreflightAnswer) -> JsonObject:
    return {"lookups": answer.lookups, **answer.counts}


def _setting_object(setting: Setting) -> JsonObject:
    return values_of(setting, "kind", "name", "value", "code", "where")


def _went(answer: PreflightAnswer) -> str:
    hits = answer.counts["would_hit"]
    unknown = answer.counts["not_known"]
    rest = f", {unknown} not known" if unknown else ""
    return f"{hits} of {plural(answer.lookups, 'lookup')} would hit{rest}"
