"""An audit as lines for the terminal, and in the forms that CI reads: JSON and SARIF; made from rows already redacted if requested."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Final
from urllib.parse import quote

from cachescope.auditing.audit import Audit
from cachescope.frames.audit_rules import AUDIT_RULES
from cachescope.frames.checks import AuditRow
from cachescope.json_types import JsonObject
from cachescope.report.json_text import values_of
from cachescope.report.layout import Line, rest
from cachescope.version import __version__
from cachescope.wording import plural

_SHOWN: Final = 20
_STYLES: Final = {"danger": "bold red", "warning": "yellow", "unproven": "cyan", "note": "dim"}
_ANSWERS: Final = {
    "finding": "finding: do not load it before you have looked at what stands below",
    "unread": "not proven: not everything could be read",
    "unproven": "unproven: nothing is against it, and it runs code that nothing vouches for",
    "proven": "proven: torch would run nothing but what torch itself writes, or a lock vouches for",
}
_SARIF_LEVELS: Final = {"danger": "error", "warning": "warning", "unproven": "note", "note": "note"}


def answer_of(report: Audit) -> str:
    """The answer: ``finding``, ``unread``, ``unproven`` (it runs code that nothing vouches for), or ``proven``."""
    found = report.counts
    if found["danger"] + found["warning"]:
        return "finding"
    return "unread" if report.unread else "unproven" if found["unproven"] else "proven"


def audit_lines(report: Audit) -> Iterator[Line]:
    """The audit for the terminal: the answer, a line for each rule with its count, then the places by rule."""
    rules = Counter(row.rule for row in report.rows)
    found = ", ".join(f"{level} {count:,}" for level, count in report.counts.items())
    yield Line(_ANSWERS[answer_of(report)], style="bold")
    yield Line(f"{plural(report.files, 'file')} looked at: {found}")
    if report.vouched:
        yield Line(f"{plural(report.vouched, 'file')} with code for which the lock vouches")
    for rule, count in rules.items():
        yield Line(f"{count:,} {AUDIT_RULES[rule].level}: {AUDIT_RULES[rule].meaning}", 2, right=rule)
    for rule in rules:
        said, rows = AUDIT_RULES[rule], [row for row in report.rows if row.rule == rule]
        yield from (Line(), Line(f"{said.level}: {rule}", style=_STYLES[said.level]))
        for row in rows[:_SHOWN]:
            where = row.path if row.offset is None else f"{row.path}, byte {row.offset}"
            yield from (Line(where, 2, whole=True), Line(row.message, 6))
            if row.sha256 is not None:
                yield Line(f"sha256 {row.sha256}", 6, whole=True)
        yield from rest(len(rows) - _SHOWN, indent=2, style="")
        yield Line(said.advice, 2, style="dim")


def audit_object(report: Audit) -> JsonObject:
    """The audit for ``--format json``."""
    return {
        "sources": list(report.sources),
        "answer": answer_of(report),
        **values_of(report, "files", "vouched", "counts"),
        "findings": [asdict(row) for row in report.rows],
    }


def sarif_object(report: Audit, *, with_places: bool = True) -> JsonObject:
    """The audit as SARIF 2.1.0 (OASIS), with places relative to the source they are in."""
    names = list(AUDIT_RULES)
    described = [
        {
            "id": rule.name,
            "shortDescription": {"text": rule.meaning},
            "help": {"text": rule.advice},
            "defaultConfiguration": {"level": _SARIF_LEVELS[rule.level]},
        }
        for rule in AUDIT_RULES.values()
    ]
    results = [
        {
            "ruleId": row.rule,
            "ruleIndex": names.index(row.rule),
            "level": _SARIF_LEVELS[row.level],
            "message": {"text": row.message},
            "locations": [{"physicalLocation": _location(row, report.sources)}],
        }
        for row in report.rows
    ]
    driver = {"name": "cachescope", "version": __version__, "rules": described}
    run: JsonObject = {"tool": {"driver": driver}, "results": results}
    if with_places:
        folders = (f"file://{_uri(os.path.abspath(source)).rstrip('/')}/" for source in report.sources)
        run["originalUriBaseIds"] = {_base(at): {"uri": folder} for at, folder in enumerate(folders)}
    return {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}


def _location(row: AuditRow, sources: Sequence[str]) -> JsonObject:
    number, inside = _relative(row.path, sources)
    place: JsonObject = {"artifactLocation": {"uri": _uri(inside), "uriBaseId": _base(number)}}
    if row.offset is not None:
        place["region"] = {"byteOffset": row.offset}
    return place


def _relative(path: str, sources: Sequence[str]) -> tuple[int, str]:
    """The source that contains a path, and the path in it; for a source itself, its own name."""
    inside = [
        (len(source), number)
        for number, source in enumerate(sources)
        if path == source or path.startswith(source.rstrip("/") + "/")
    ]
    if not inside:
        return 0, path.lstrip("/")
    _, number = max(inside)
    return number, path[len(sources[number]) :].strip("/")


def _base(number: int) -> str:
    return f"SOURCE{number}"


def _uri(path: str) -> str:
    return quote(path.encode("utf-8", "surrogateescape"), safe="/") or "."
