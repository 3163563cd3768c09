"""Isolation contexts: each with its key, which ones share it, and what differs between the others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from operator import attrgetter
from typing import Final

from cachescope.analysis.contexts.differences import context_difference, context_pairs
from cachescope.analysis.contexts.keys import context_groups, key_row
from cachescope.answers.recording import Recording
from cachescope.answers.sharing import Form, SideBySide, context_names, is_any_decided
from cachescope.figures.context_grid import context_sharing
from cachescope.frames.context_rows import ContextRow
from cachescope.frames.sharing_rows import FormDifference, GroupRow
from cachescope.json_types import JsonObject
from cachescope.keys import IsolationSchema
from cachescope.report.as_json import rows_object
from cachescope.report.blocks import Block, Column, Drawing, Group, table
from cachescope.report.layout import Line, rest
from cachescope.wording import listed, plural, rank_names

NO_CONTEXT: Final = "No context was read: neither a snapshot (cachescope capture) nor a run whose hash details say what it was keyed by."
_PAIRS_SHOWN: Final = 3
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
EVERY_FORM: Final = IsolationSchema.all()
_SHARING: Final = "Who shares a key, with each smallest change to the schema that joins two contexts"
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


def contexts_blocks(read: Recording, schema: IsolationSchema = EVERY_FORM) -> Iterator[Block]:
    """Which of these processes would share a cache, under a schema that says what counts, and what differs between the first pairs."""
    contexts = read.all_contexts.rows
    if not contexts:
        yield Line(NO_CONTEXT)
        return
    yield from side_by_side_blocks(read, schema)
    yield from sharing_blocks(read)
    pairs = context_pairs(read.known_contexts)
    if not pairs:
        one = "There is only one context, so there is nothing to compare it with."
        alike = "No two contexts differ in what is known of them."
        yield Line(one if len(read.known_contexts) == 1 else alike, style="dim")
    for pair in pairs[:_PAIRS_SHOWN]:
        before, after = pair.before, pair.after
        without = f"One key without {', '.join(pair.differing)}."
        said = [Line(without)] if pair.differing and not pair.undecided else []
        source = f"scope.context_difference({before}, {after})"
        differing = difference_blocks(context_difference(contexts, before, after), source)
        yield Group(
            f"contexts-{before}-{after}", f"Context {before} beside context {after}", (*said, *differing)
        )
    yield from rest(len(pairs) - _PAIRS_SHOWN, "pair", "scope.context_pairs() has all", 0)


def side_by_side_blocks(
    read: Recording, schema: IsolationSchema = EVERY_FORM, runs: Collection[int] | None = None
) -> Iterator[Block]:
    """Who is alike, in which forms they differ, and a line on the others; of all, or of some runs and what was captured."""
    found, names = SideBySide.of(read, runs), context_names(read)
    keys = {one.number: key_row(one, schema) for one in read.known_contexts}
    if not found.columns:
        yield Line("No run looked anything up in this time.")
        return
    shown = {row.context for alike in found.columns for row in alike}
    groups = context_groups([one for one in read.known_contexts if one.number in shown], schema)
    yield Line(f"{plural(len(shown), 'context')}: {_sharing(groups)}", style="bold")

    def key_of(alike: Sequence[ContextRow]) -> str | None:
        key = keys[alike[0].context]
        unwritten = f"none: JSON cannot hold {', '.join(key.text_only)}" if key.text_only else None
        return key.isolation_key or unwritten

    columns = (
        Column("Context", "word", _numbers),
        Column("From", "text", lambda alike: listed((names[one.context] for one in alike), _NAMED)),
        Column("Known from", "text", lambda alike: _KNOWN_FROM.get(known := alike[0].known_from, known)),
        Column(
            "Known by its hash alone",
            "code",
            lambda alike: ", ".join(alike[0].hashed_forms),
            is_optional=True,
        ),
        Column("torch", "word", lambda alike: alike[0].torch_version),
        Column("Python", "word", lambda alike: alike[0].python_version),
        Column("Host", "word", _each("host"), is_optional=True),
        Column("Machine", "text", _each("machine", "; "), is_optional=True),
        Column("Isolation key", "code", key_of, is_optional=True),
    )
    yield table("Contexts", columns, found.columns, "contexts", "scope.contexts")
    if found.forms:
        beside = found.columns[:_BESIDE_EACH_OTHER]
        is_short = all(len(cell) <= _SHORT for one in found.forms for cell in one.cells)
        forms = (
            Column("Form", "code", "form"),
            Column(
                "Settings that differ", "code", lambda one: listed(one.settings, _NAMED), is_optional=True
            ),
            *(
                Column(f"Context {_numbers(alike)}", "word" if is_short else "text", _cell(at))
                for at, alike in enumerate(beside)
            ),
        )
        caption = "Forms that are not the same everywhere: equal letters are equal values, ? is not known"
        yield table(caption, forms, found.forms, "forms", "scope.contexts")
        yield from rest(len(found.columns) - len(beside), "context", "scope.contexts has all", 0)
    yield from (Line(text, style="dim") for text in shared_lines(found))


def sharing_blocks(read: Recording) -> Iterator[Block]:
    """The picture of who shares a key under which schema; nothing where it would be a grid of question marks."""
    if is_any_decided(read):
        drawn = (context_groups(read.known_contexts), read.all_contexts.rows)
        yield Drawing(_SHARING, context_sharing, drawn)


def _sharing(groups: Sequence[GroupRow]) -> str:
    decided = [row for row in groups if row.group is not None]
    undecided = len(groups) - len(decided)
    counts = [plural(len(decided), "group of equals", "groups of equals")] if decided else []
    counts += [f"{undecided} not decided, a chosen form is not known"] if undecided else []
    return ", ".join(counts)


def _numbers(alike: Sequence[ContextRow]) -> str:
    return rank_names([row.context for row in alike])


def _each(name: str, between: str = ", ") -> Callable[[Sequence[ContextRow]], str | None]:
    """The values of an attribute, each once."""
    of = attrgetter(name)
    return lambda alike: listed(dict.fromkeys(filter(None, map(of, alike))), _NAMED, between) or None


def _cell(at: int) -> Callable[[Form], str]:
    return lambda form: form.cells[at]


def difference_blocks(rows: Sequence[FormDifference], source: str) -> Iterator[Block]:
    """What is known to differ between two contexts, field by field, and the forms of which it is not known."""
    known = [row for row in rows if row.status != "unknown"]
    undecided = sorted({row.form for row in rows if row.status == "unknown"})
    changed, folded = folded_differences(known)
    if changed:
        yield table(
            "What differs between the contexts, field by field", _DIFFERENCE, changed, "fields", source
        )
    if not known:
        yield Line("Nothing that is known of the two contexts differs.")
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
