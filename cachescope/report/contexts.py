"""Isolation contexts: their keys, which ones share a key, what differs between the others, and which entries a process would find."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from operator import attrgetter
from string import ascii_uppercase
from typing import Final, Self

from cachescope.analysis.contexts.differences import context_difference, context_pairs
from cachescope.analysis.contexts.keys import context_groups, key_row
from cachescope.analysis.contexts.prediction import OWN_FIELDS
from cachescope.answers.comparison import predictions_of_run
from cachescope.answers.names import run_name
from cachescope.answers.recording import Recording
from cachescope.figures.context_grid import context_sharing
from cachescope.frames.context_rows import ContextRow
from cachescope.frames.sharing_rows import FormDifference, GroupRow, PredictionRow
from cachescope.grouping import by_key
from cachescope.json_types import JsonObject
from cachescope.keys import IsolationSchema
from cachescope.keys.isolation import FORMS
from cachescope.report.as_json import rows_object
from cachescope.report.blocks import Block, Column, Drawing, Group, Kind, table
from cachescope.report.layout import Line, rest
from cachescope.terms import RUNTIME_FORMS
from cachescope.wording import listed, plural, rank_names, short_key, short_names

NO_CONTEXT: Final = "No context was read: neither a snapshot (cachescope capture) nor a run whose hash details say what it was keyed by."
_PAIRS_SHOWN: Final = 3
_ALONE_SHOWN: Final = 5
_NAMED: Final = 4
# Letters need little room. Values may be long.
_SHORT: Final = 12
_KNOWN_FROM: Final = {
    "torch": "captured", "rebuilt": "rebuilt: this torch makes no isolation key itself",
    "hash_details": "reconstructed from hash details", "entries": "reconstructed from entries", None: "a bare context",
}  # fmt: skip
EVERY_FORM: Final = IsolationSchema.all()
_DIFFERENCE: Final = (
    Column("Form", "code", "form"),
    Column("Field", "code", "field", is_optional=True),
    Column("Before", "long", lambda row: _value(row, row.before)),
    Column("After", "long", lambda row: _value(row, row.after)),
    Column("Note", "text", "note", is_optional=True),
)


@dataclass(frozen=True, slots=True)
class Form:
    """A context form that differs between columns, or is not known in all of them."""

    form: str
    settings: tuple[str, ...]  # the settings in it that differ, if it consists of settings
    # For each column, the value of the only setting that differs, or a letter that is equal for equal values. ? means not known.
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Contexts that were read."""

    # Contexts that are equal in all that a key may hold, and of which the same is known, share a column.
    columns: tuple[tuple[ContextRow, ...], ...]
    forms: tuple[Form, ...]  # the forms in which columns differ, or that are known for only some
    same: tuple[str, ...]  # the forms that are known and equal everywhere, and those that are known nowhere
    unknown: tuple[str, ...]

    @classmethod
    def of(cls, read: Recording, runs: Collection[int] | None = None) -> Self:
        """Compare all contexts that were read; or those of some runs, with the captured ones."""
        tokens_of = {one.number: one.tokens for one in read.known_contexts}

        def likeness(row: ContextRow) -> Hashable:
            what = tuple(tokens_of[row.context].values()), row.text_only, row.missing_forms, row.hashed_forms
            return what, row.known_from, row.torch_version, row.python_version

        contexts = read.all_contexts.rows
        rows = (row for row in contexts if runs is None or row.run is None or row.run in runs)
        columns = by_key((likeness(row), row) for row in rows).values()
        first = [column[0] for column in columns]
        forms, same, unknown = [], [], []
        for form in FORMS:
            tokens = [tokens_of[row.context][form] for row in first]
            # Equal values have one letter.
            letters = dict(zip(dict.fromkeys(filter(None, tokens)), cycle(ascii_uppercase), strict=False))
            if not letters:
                unknown.append(form)
            elif len(set(tokens)) == 1:
                same.append(form)
            else:
                settings, cells = _settings(form, first)
                cells = cells or tuple("?" if token is None else letters[token] for token in tokens)
                forms.append(Form(form, settings, cells))
        return cls(tuple(map(tuple, columns)), tuple(forms), tuple(same), tuple(unknown))


def _settings(form: str, rows: Sequence[ContextRow]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The settings of a form that differ between contexts where it is known; and the values, if it is a single setting."""
    if form not in RUNTIME_FORMS:
        return (), ()
    of_column = [json.loads(getattr(row, form) or "null") for row in rows]
    values = [value for value in of_column if isinstance(value, dict)]
    names = dict.fromkeys(name for value in values for name in value)
    settings = tuple(name for name in names if len({_text(value, name) for value in values}) > 1)
    if len(settings) != 1:
        return settings, ()
    (name,) = settings
    return settings, tuple(_text(value, name) if isinstance(value, dict) else "?" for value in of_column)


def _text(values: Mapping[str, object], name: str) -> str:
    return json.dumps(values[name], sort_keys=True, ensure_ascii=False) if name in values else "not there"


def context_names(read: Recording) -> dict[int, str]:
    """The name of each context: its run, or the file of its snapshot."""
    rows = read.all_contexts.rows
    files = short_names(row.source for row in rows if row.run is None)
    return {
        row.context: files[row.source] if row.run is None else run_name(read.facts, row.run) for row in rows
    }


def _safety(row: PredictionRow) -> str | None:
    if row.is_unsafe or row.unsafe_reason is None:
        return row.unsafe_reason
    return f"not known: {row.unsafe_reason}"


_PREDICTIONS: Final = (
    Column("Entry", "name", "entry"),
    Column("Cache", "word", "cache"),
    Column("Key", "word", lambda row: short_key(row.cache_key)),
    Column("Would be found", "word", "will_hit"),
    Column("Unsafe", "text", _safety, is_optional=True),
    Column("Fields in the way", "code", lambda row: listed(row.fields, 8) or None, is_optional=True),
    Column("Why", "text", "reason"),
)

_PREDICTED_FIRST: Final = ("no", "unknown", "yes")


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
        title = f"Context {before} beside context {after}"
        yield Group(f"contexts-{before}-{after}", title, (*said, *differing))
    yield from rest(len(pairs) - _PAIRS_SHOWN, "pair", "scope.context_pairs() has all", 0)


def side_by_side_blocks(
    read: Recording, schema: IsolationSchema = EVERY_FORM, runs: Collection[int] | None = None
) -> Iterator[Block]:
    """Which contexts are equal, in which forms others differ, and a line on the remaining forms; of all contexts, or of some runs and captured ones."""
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
        beside = found.columns[:8]
        is_short = all(len(cell) <= _SHORT for one in found.forms for cell in one.cells)
        kind: Kind = "word" if is_short else "text"
        forms = (
            Column("Form", "code", "form"),
            Column(
                "Settings that differ", "code", lambda form: listed(form.settings, _NAMED), is_optional=True
            ),
            *(Column(f"Context {_numbers(alike)}", kind, _cell(at)) for at, alike in enumerate(beside)),
        )
        caption = "Forms that are not the same everywhere: equal letters are equal values, ? is not known"
        yield table(caption, forms, found.forms, "forms", "scope.contexts")
        yield from rest(len(found.columns) - len(beside), "context", "scope.contexts has all", 0)
    yield from (Line(text, style="dim") for text in shared_lines(found))


def sharing_blocks(read: Recording) -> Iterator[Block]:
    """The picture of which contexts share a key under which schema; nothing if it would be a grid of question marks."""
    known = read.known_contexts
    # Logs alone show no keys.
    if len(known) > 1 and any(row.group is not None for row in context_groups(known, EVERY_FORM)):
        name = "Who shares a key, with each smallest change to the schema that joins two contexts"
        yield Drawing(name, context_sharing, (context_groups(known), read.all_contexts.rows))


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
    """What is known to differ between two contexts, field by field; and the forms for which that is not known."""
    known = [row for row in rows if row.status != "unknown"]
    undecided = sorted({row.form for row in rows if row.status == "unknown"})
    changed, folded = folded_differences(known)
    if changed:
        name = "What differs between the contexts, field by field"
        yield table(name, _DIFFERENCE, changed, "fields", source)
    if not known:
        yield Line("Nothing that is known of the two contexts differs.")
    yield from map(Line, folded)
    if undecided:
        yield Line(f"Not known whether these differ: {', '.join(undecided)}.", style="dim")


def _value(row: FormDifference, text: str | None) -> str:
    if text is None:
        return "known by its hash" if row.status == "changed" else "(not there)"
    return text


def shared_lines(found: SideBySide) -> Iterator[str]:
    """A line on the forms that are equal in all contexts, and one on those known in none."""
    count = sum(map(len, found.columns))
    if len(found.columns) == 1 and count > 1:
        yield f"Nothing that is known of all {count:,} contexts differs."
    if count and found.same:
        known = "Known" if count == 1 else f"Known and equal in all {count:,} contexts"
        yield f"{known}: {', '.join(found.same)}."
    if count and found.unknown:
        yield f"Not known of any: {', '.join(found.unknown)}."


def folded_differences(rows: Sequence[FormDifference]) -> tuple[list[FormDifference], list[str]]:
    """Differences to be listed one by one; and a line for settings on one side only, if there are many, as with another torch."""
    shown, lines = list(rows), []
    for status, side in (("removed", "before"), ("added", "after")):
        alone = [row for row in rows if row.status == status]
        if len(alone) > _ALONE_SHOWN:
            names = listed((row.field or row.form for row in alone), 8)
            lines.append(f"Only {side}, {plural(len(alone), 'setting')}: {names}.")
            shown = [row for row in shown if row.status != status]
    return shown, lines


def unpredicted(read: Recording) -> str:
    """What else must be read to say whether a recorded run would find each entry; empty if nothing."""
    if read.asked_torch and read.facts.entries:
        return ""
    lacks = "a cache directory" if read.asked_torch else "the trace or log of a run"
    beside = "cachescope diff DIR SNAPSHOT, or cachescope.will_hit, does it for one that was captured on another machine"
    return f"Read {lacks} as well, and every entry is compared with the process; {beside}."


def prediction_lines(rows: Sequence[PredictionRow]) -> Iterator[Line]:
    """What a process would find: what is unsafe, the number of entries, then each reason with the first of its entries."""
    unsafe = [row for row in rows if row.is_unsafe]
    if unsafe:
        what = plural(len(unsafe), "entry")
        yield Line(f"{what} unsafe: torch would load code that was built for another CPU", style="bold")
        yield from _by_reason("unsafe", ((row.unsafe_reason or "", row) for row in unsafe))
    entries, counts = plural(len(rows), "entry"), Counter(row.will_hit for row in rows)
    said = f"{counts['yes']:,} would be found, {counts['no']:,} not, {counts['unknown']:,} unknown"
    yield Line(f"{entries}: {said}", style="bold")
    yield Line("by a process that compiles the graphs and inputs that they were made for", 3, "dim")
    if any(OWN_FIELDS in row.assuming for row in rows):
        yield Line(f"and has {OWN_FIELDS}", 3, "dim")
    for found in ("no", "unknown"):
        yield from _by_reason(found, ((row.reason, row) for row in rows if row.will_hit == found))
    doubts = ((row.unsafe_reason, row) for row in rows if row.unsafe_reason and not row.is_unsafe)
    yield from _by_reason("not known whether safe", doubts)


def reason_lines(answer: str, reason: str, count: str, names: Iterable[str]) -> Iterator[Line]:
    """A reason with the first entries that it applies to."""
    yield Line(f"{answer}: {reason}", 3, right=count)
    yield Line(listed(names, 3), 6, "dim")


def _by_reason(answer: str, rows: Iterable[tuple[str, PredictionRow]]) -> Iterator[Line]:
    """Each reason with the first of its entries, the most frequent first."""
    for reason, alike in sorted(by_key(rows).items(), key=lambda item: -len(item[1])):
        names = (f"{row.cache} {short_key(row.cache_key)}" for row in alike)
        yield from reason_lines(answer, reason, plural(len(alike), "entry"), names)


def predictions_group(read: Recording) -> Group:
    """Whether a process like the last run would find each entry."""
    if lacks := unpredicted(read):
        return Group("predictions", "Would the last run find each entry?", (Line(lacks),))
    run = max(read.asked_torch)
    found = predictions_of_run(read, run)
    worst_first = sorted(found, key=lambda row: (not row.is_unsafe, _PREDICTED_FIRST.index(row.will_hit)))
    what = "entries, what is unsafe and what is not found first"
    listed_all = table("Predictions", _PREDICTIONS, worst_first, what, f"scope.predictions({run})")
    said = tuple(prediction_lines(found))
    return Group("predictions", f"Would a process like run {run} find each entry?", (*said, listed_all))
