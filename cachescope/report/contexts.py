"""Isolation contexts: each with its key, which ones share it, and what differs between the others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from operator import attrgetter
from typing import Final

from cachescope.analysis.contexts.differences import context_pairs
from cachescope.analysis.contexts.keys import FORMS, context_groups, key_row
from cachescope.answers.recording import Recording
from cachescope.answers.sharing import Form, SideBySide, context_names, known_differences
from cachescope.frames.context_rows import ContextRow
from cachescope.frames.sharing_rows import FormDifference, GroupRow, IsolationKeyRow, PairRow
from cachescope.json_types import JsonObject
from cachescope.keys import IsolationSchema
from cachescope.keys.isolation import schema_without
from cachescope.report.as_json import rows_object
from cachescope.report.blocks import Block, Column, table
from cachescope.report.layout import Line, firsts, parted, rest
from cachescope.wording import clock, date, listed, plural, rank_names, short

NO_CONTEXT: Final = "No context was read: neither a snapshot (cachescope capture) nor a run whose hash details say what it was keyed by."
_CONTEXTS_SHOWN: Final = 20
_PAIRS_SHOWN: Final = 3
_FIELDS_SHOWN: Final = 8
_ALONE_SHOWN: Final = 5
_ALONE_NAMED: Final = 8
_NAMED: Final = 4
_BESIDE_EACH_OTHER: Final = 8
# Letters need little room, values may be long.
_SHORT: Final = 12
_KNOWN_FROM: Final = {
    "torch": "captured",
    "rebuilt": "rebuilt: this torch makes no isolation key itself",
    "hash_details": "reconstructed from hash details",
    "entries": "reconstructed from entries",
    None: "a bare context",
}
_DIFFERENCE: Final = (
    Column("Form", "code", "form"),
    Column("Field", "code", "field", is_optional=True),
    Column("Before", "long", lambda row: _value(row, row.before)),
    Column("After", "long", lambda row: _value(row, row.after)),
    Column("Note", "text", "note", is_optional=True),
)


def contexts_object(read: Recording, schema: IsolationSchema) -> JsonObject:
    """The object printed by ``cachescope contexts --json``."""
    return {
        "schema": schema.to_dict(),
        **rows_object(
            contexts=read.all_contexts.rows,
            isolation_keys=[key_row(one, schema) for one in read.known_contexts],
            context_groups=context_groups(read.known_contexts, schema),
            context_pairs=context_pairs(read.known_contexts),
            problems=read.tables.problems.rows,
        ),
    }


def context_lines(read: Recording, schema: IsolationSchema) -> list[Line]:
    """The answer to "which of these processes would share a cache", under a schema that says what counts."""
    contexts, known = read.all_contexts.rows, read.known_contexts
    if not contexts:
        nothing = "no contexts: capture one with cachescope capture, or read a recorded run"
        return [Line(nothing, style="bold")]
    groups, columns = context_groups(known, schema), SideBySide.of(read).columns
    keys = {one.number: key_row(one, schema) for one in known}
    lines = [Line(f"{plural(len(contexts), 'context')}: {_sharing(groups)}", style="bold"), Line()]
    for column in columns[:_CONTEXTS_SHOWN]:
        lines += _context(column[0], keys[column[0].context])
        if len(column) > 1:
            like_it = plural(len(column) - 1, "other is", "others are")
            lines.append(Line(f"{like_it} like it: {_numbers(column[1:])}", 3))
    lines += rest(len(columns) - _CONTEXTS_SHOWN, where="--json lists all", indent=0)
    pairs = context_pairs(known)
    told = [_pair(read, pair) for pair in pairs[:_PAIRS_SHOWN]]
    more_pairs = rest(len(pairs) - _PAIRS_SHOWN, "pair", "--json lists all", indent=0)
    return [*lines, *parted([_alike(read, groups), *told, more_pairs])]


def _sharing(groups: Sequence[GroupRow]) -> str:
    decided = [row for row in groups if row.group is not None]
    undecided = len(groups) - len(decided)
    counts = [plural(len(decided), "group of equals", "groups of equals")] if decided else []
    counts += [f"{undecided} not decided, a chosen form is not known"] if undecided else []
    return ", ".join(counts)


def _alike(read: Recording, groups: Sequence[GroupRow]) -> Iterator[Line]:
    """Which contexts are equal in the forms known for all of them, if the schema leaves some of several undecided."""
    rows = read.all_contexts.rows
    missing = {form for row in rows for form in row.missing_forms if form not in row.hashed_forms}
    forms = [form for form in FORMS if form not in missing]
    if forms and len(groups) > 1 and any(row.group is None for row in groups):
        equal = context_groups(read.known_contexts, schema_without(set(FORMS) - set(forms)))
        alike = " | ".join(rank_names(row.contexts) for row in equal)
        yield Line(f"alike in {', '.join(forms)}, which is known of all: {alike}")


def _context(row: ContextRow, key: IsolationKeyRow) -> Iterator[Line]:
    run = "" if row.run is None else f"run {row.run}, "
    yield Line(f"{row.context}  {run}{row.source}", rows=1, right=key.isolation_key or "no key")
    torch = f"torch {row.torch_version}" if row.torch_version else ""
    python = f"Python {row.python_version}" if row.python_version else ""
    host = "" if row.host is None else f"on {row.host}"
    when = "" if row.time is None else f"{date(row.time)} {clock(row.time)}"
    yield Line(", ".join(filter(None, (known_from(row), torch, python, host, when, row.machine))), 3, "dim")
    if row.missing_forms:
        yield Line(f"not known: {missing_forms(row)}", 3, "dim")
    if key.text_only:
        yield Line(f"torch has no key for it, JSON cannot hold {', '.join(key.text_only)}", 3)


def known_from(row: ContextRow) -> str:
    """How a context is known, in words."""
    return _KNOWN_FROM.get(row.known_from) or str(row.known_from)


def _pair(read: Recording, pair: PairRow) -> Iterator[Line]:
    before, after = pair.before, pair.after
    undecided = f"; not known whether {', '.join(pair.undecided)} differ" if pair.undecided else ""
    if not pair.differing:
        yield Line(f"{before} and {after}: nothing that is known differs{undecided}")
        return
    outcome = f"one key without {', '.join(pair.differing)}"
    if undecided:
        verb = "differs" if len(pair.differing) == 1 else "differ"
        outcome = f"{', '.join(pair.differing)} {verb}{undecided}"
    yield Line(f"{before} and {after}: {outcome}", style="bold")
    changed, folded = folded_differences(known_differences(read, before, after))
    yield from firsts((Line(difference_line(row), 3) for row in changed), _FIELDS_SHOWN)
    yield from (Line(text, 3) for text in folded)


def side_by_side_blocks(read: Recording, runs: Collection[int] | None = None) -> Iterator[Block]:
    """Who is alike, in which forms they differ, and a line on the others; of all, or of some runs and what was captured."""
    found, names = SideBySide.of(read, runs), context_names(read)
    every = IsolationSchema.all()
    keys = {one.number: key_row(one, every).isolation_key for one in read.known_contexts}
    if not found.columns:
        yield Line("No run looked anything up in this time.")
        return
    columns = (
        Column("Context", "word", _numbers),
        Column("From", "text", lambda alike: listed((names[one.context] for one in alike), _NAMED)),
        Column("Known from", "text", lambda alike: known_from(alike[0])),
        Column("torch", "word", lambda alike: alike[0].torch_version),
        Column("Python", "word", lambda alike: alike[0].python_version),
        Column("Host", "word", _each("host"), is_optional=True),
        Column("Machine", "text", _each("machine", "; "), is_optional=True),
        Column("Isolation key", "code", lambda alike: keys[alike[0].context], is_optional=True),
    )
    yield table("Contexts", columns, found.columns, "contexts", "scope.contexts")
    if found.forms:
        shown = found.columns[:_BESIDE_EACH_OTHER]
        is_short = all(len(cell) <= _SHORT for one in found.forms for cell in one.cells)
        forms = (
            Column("Form", "code", "form"),
            Column(
                "Settings that differ", "code", lambda one: listed(one.settings, _NAMED), is_optional=True
            ),
            *(
                Column(f"Context {_numbers(alike)}", "word" if is_short else "text", _cell(at))
                for at, alike in enumerate(shown)
            ),
        )
        caption = "Forms that are not the same everywhere: equal letters are equal values, ? is not known"
        yield table(caption, forms, found.forms, "forms", "scope.contexts")
        yield from rest(len(found.columns) - len(shown), "context", "scope.contexts has all", 0)
    yield from (Line(text, style="dim") for text in shared_lines(found))


def _numbers(alike: Sequence[ContextRow]) -> str:
    return rank_names([row.context for row in alike])


def _each(name: str, between: str = ", ") -> Callable[[Sequence[ContextRow]], str | None]:
    """The values of an attribute, each once."""
    of = attrgetter(name)
    return lambda alike: listed(dict.fromkeys(filter(None, map(of, alike))), _NAMED, between) or None


def _cell(at: int) -> Callable[[Form], str]:
    return lambda form: form.cells[at]


def difference_blocks(
    rows: Sequence[FormDifference], undecided: Sequence[str], source: str
) -> Iterator[Block]:
    """What is known to differ between two contexts, field by field, and the forms of which it is not known."""
    changed, folded = folded_differences(rows)
    if changed:
        yield table("What differs, field by field", _DIFFERENCE, changed, "fields", source)
    if not rows:
        yield Line("Nothing that is known of the two differs.")
    yield from map(Line, folded)
    if undecided:
        yield Line(f"Not known whether these differ: {', '.join(undecided)}.", style="dim")


def _value(row: FormDifference, text: str | None) -> str:
    if text is None:
        return "known by its hash" if row.status == "changed" else "(not there)"
    return text


def shared_lines(found: SideBySide) -> list[str]:
    """What is the same of all contexts, and what is known of none, in a line each."""
    count = sum(map(len, found.columns))
    if not count:
        return []
    lines = []
    if len(found.columns) == 1 and count > 1:
        lines.append(f"Nothing that is known of all {count:,} contexts differs.")
    if found.same:
        known = "Known" if count == 1 else f"Known and equal in all {count:,} contexts"
        lines.append(f"{known}: {', '.join(found.same)}.")
    if found.unknown:
        lines.append(f"Not known of any: {', '.join(found.unknown)}.")
    return lines


def folded_differences(rows: Sequence[FormDifference]) -> tuple[list[FormDifference], list[str]]:
    """Differences to be listed one by one; and, where many settings are only on one side, as with another torch, a line for them."""
    lines = []
    listed_rows = list(rows)
    for status, side in (("removed", "before"), ("added", "after")):
        alone = [row for row in rows if row.status == status]
        if len(alone) > _ALONE_SHOWN:
            names = listed((row.field or row.form for row in alone), _ALONE_NAMED)
            lines.append(f"Only {side}, {plural(len(alone), 'setting')}: {names}.")
            listed_rows = [row for row in listed_rows if row.status != status]
    return listed_rows, lines


def missing_forms(row: ContextRow) -> str:
    """The unknown forms of a context, and for which of them the hash is known."""
    hashed = dict.fromkeys(row.hashed_forms, " (its hash is)")
    return ", ".join(f"{form}{hashed.get(form, '')}" for form in row.missing_forms)


def difference_line(row: FormDifference) -> str:
    """One row of the frame context_difference in one line."""
    name = row.form if row.field is None else f"{row.form}[{row.field}]"
    note = f"  ({row.note})" if row.note else ""
    return f"{name}   {_side(row.before)} -> {_side(row.after)}{note}"


def _side(text: str | None) -> str:
    return "none" if text is None else short(text, 40)
