"""What to set so that lookups hit: as lines for the terminal, as an object for JSON, and as a file of variables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cachescope.analysis.fixes import VARIABLE, Setting
from cachescope.answers.fix import Fix
from cachescope.answers.preflight import PreflightAnswer
from cachescope.json_types import JsonObject
from cachescope.report.json_text import values_of
from cachescope.report.layout import Line, rest
from cachescope.wording import listed, plural

ENV_FILE_BEGINS: Final = "# Written by cachescope fix."
_REMAINING: Final = 10


def fix_lines(found: Fix) -> Iterator[Line]:
    """The settings first, then what they leave."""
    before, after = found.before, found.after
    if not before.counts["would_miss"] and not found.settings:
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
        yield Line()
        yield Line("not fixed; what is advised was not tried", style="bold")
    for one in found.remaining[:_REMAINING]:
        yield Line(one.summary, 3, right=plural(one.misses, "miss", "misses"))
        if one.is_final:
            yield Line(
                "nothing that can be set helps: the entries are of another installation or machine", 6, "dim"
            )
        elif one.advice:
            yield Line(one.advice, 6, "dim")
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
