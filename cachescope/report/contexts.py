"""Isolation contexts as lines: what each is and its key, who shares one, and what differs between those who do not."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from cachescope.analysis.contexts.keys import FORMS, isolation_keys, schema_without
from cachescope.analysis.differences import short
from cachescope.answers.read import Read
from cachescope.columns import records
from cachescope.report.as_json import frame_rows
from cachescope.report.layout import Line
from cachescope.version import __version__
from cachescope.wording import and_more, harmless, plural

if TYPE_CHECKING:
    from cachescope.keys import IsolationSchema

_CONTEXTS_SHOWN: Final = 20
_PAIRS_SHOWN: Final = 3
_FIELDS_SHOWN: Final = 8
KNOWN_FROM: Final = {
    "torch": "captured",
    "rebuilt": "rebuilt: this torch makes no isolation key itself",
    "hash_details": "reconstructed from hash details",
    None: "a bare context",
}

Row = dict[str, Any]


def contexts_object(scope: Read, schema: IsolationSchema) -> dict[str, Any]:
    """What ``cachescope contexts --json`` prints."""
    return {
        "cachescope": __version__,
        "schema": schema.to_dict(),
        "contexts": frame_rows(scope.contexts),
        "isolation_keys": frame_rows(isolation_keys(scope.contexts, schema)),
        "context_groups": frame_rows(scope.context_groups(schema)),
        "context_pairs": frame_rows(scope.context_pairs()),
        "problems": frame_rows(scope.problems),
    }


def context_lines(scope: Read, schema: IsolationSchema) -> list[Line]:
    """The answer to "which of these processes would share a cache"."""
    contexts = records(scope.contexts)
    if not contexts:
        return [
            Line("no contexts: capture one with cachescope capture, or read a recorded run", style="bold")
        ]
    keys = {row["context"]: row for row in records(isolation_keys(scope.contexts, schema))}
    groups = records(scope.context_groups(schema))
    lines = [Line(f"{plural(len(contexts), 'context')}: {_sharing(groups)}", style="bold"), Line()]
    for row in contexts[:_CONTEXTS_SHOWN]:
        lines += _context(row, keys[row["context"]])
    if len(contexts) > _CONTEXTS_SHOWN:
        lines.append(Line(and_more(len(contexts) - _CONTEXTS_SHOWN, where="--json lists all"), style="dim"))
    lines += _alike(scope, groups)
    pairs = records(scope.context_pairs())
    for pair in pairs[:_PAIRS_SHOWN]:
        lines += [Line(), *_pair(scope, pair)]
    if len(pairs) > _PAIRS_SHOWN:
        lines += [
            Line(),
            Line(and_more(len(pairs) - _PAIRS_SHOWN, "pair", "--json lists all"), style="dim"),
        ]
    return lines


def _sharing(groups: list[Row]) -> str:
    decided = [row for row in groups if row["group"] is not None]
    undecided = len(groups) - len(decided)
    told = [plural(len(decided), "group of equals", "groups of equals")] if decided else []
    told += [f"{undecided} not decided, a chosen form is not known"] if undecided else []
    return ", ".join(told)


def _alike(scope: Read, groups: list[Row]) -> Iterator[Line]:
    """Which contexts are alike in the forms that are known of all, where the schema leaves some undecided."""
    if all(row["group"] is not None for row in groups) or len(groups) == 1:
        return
    contexts = records(scope.contexts, ("missing_forms", "hashed_forms"))
    missing = {form for row in contexts for form in row["missing_forms"] if form not in row["hashed_forms"]}
    known = [form for form in FORMS if form not in missing]
    if not known:
        return
    found = records(scope.context_groups(schema_without(missing)))
    alike = [", ".join(map(str, row["contexts"])) for row in found]
    yield Line()
    yield Line(f"alike in {', '.join(known)}, which is known of all: {' | '.join(alike)}")


def _context(row: Row, key: Row) -> Iterator[Line]:
    made = KNOWN_FROM.get(row["known_from"]) or str(row["known_from"])
    run = "" if row["run"] is None else f"run {row['run']}, "
    yield Line(
        f"{row['context']}  {run}{harmless(row['source'])}", rows=1, right=key["isolation_key"] or "no key"
    )
    versions = [
        f"{name} {row[column]}"
        for name, column in (("torch", "torch_version"), ("Python", "python_version"))
        if row[column]
    ]
    when = (
        []
        if row["time"] is None
        else [f"{datetime.fromtimestamp(row['time'] // 10**9, UTC):%Y-%m-%d %H:%M:%S}"]
    )
    host = [] if row["host"] is None else [f"on {row['host']}"]
    yield Line(harmless(", ".join([made, *versions, *host, *when])), 3, "dim")
    if row["missing_forms"]:
        names = [
            f"{form} (its hash is)" if form in row["hashed_forms"] else form for form in row["missing_forms"]
        ]
        yield Line(f"not known: {harmless(', '.join(names))}", 3, "dim")
    if key["text_only"]:
        yield Line(f"torch has no key for it, JSON cannot hold {harmless(', '.join(key['text_only']))}", 3)


def _pair(scope: Read, pair: Row) -> Iterator[Line]:
    before, after = pair["before"], pair["after"]
    undecided = f"; not known whether {', '.join(pair['undecided'])} differ" if pair["undecided"] else ""
    if not pair["differing"]:
        yield Line(f"{before} and {after}: nothing that is known differs{undecided}")
        return
    forms = ", ".join(pair["differing"])
    told = (
        f"{forms} {'differs' if len(pair['differing']) == 1 else 'differ'}{undecided}"
        if undecided
        else f"one key without {forms}"
    )
    yield Line(harmless(f"{before} and {after}: {told}"), style="bold")
    rows = [row for row in records(scope.context_difference(before, after)) if row["status"] != "unknown"]
    for row in rows[:_FIELDS_SHOWN]:
        yield Line(difference_line(row), 3)
    if len(rows) > _FIELDS_SHOWN:
        yield Line(and_more(len(rows) - _FIELDS_SHOWN), 3, "dim")


def difference_line(row: Row) -> str:
    """One row of the frame context_difference in one line."""
    name = row["form"] if row["field"] is None else f"{row['form']}[{row['field']}]"
    note = f"  ({row['note']})" if row["note"] else ""
    return harmless(f"{name}   {_side(row['before'])} -> {_side(row['after'])}{note}")


def _side(text: str | None) -> str:
    return "none" if text is None else short(text, 40)
