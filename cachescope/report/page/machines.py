"""Other machines: which processes share a key, what differs between them, what one would find, and the devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from cachescope.answers.predictions import PredictionSummary, predictions_of_run
from cachescope.answers.read import Read
from cachescope.answers.sharing import Form, Sharing, SideBySide, context_names
from cachescope.columns import rows_of
from cachescope.figures.context_grid import context_sharing
from cachescope.figures.datasheets import device_rates
from cachescope.frames.context_rows import ContextRow
from cachescope.frames.device_rows import DeviceRow
from cachescope.frames.sharing_rows import PredictionRow
from cachescope.report.contexts import folded_differences, known_from, shared_lines
from cachescope.report.devices import device_lines
from cachescope.report.page.parts import (
    Drawing,
    Group,
    Lines,
    Part,
    Section,
    Text,
    cut_note,
    first_of,
    table,
)
from cachescope.report.tables import Column
from cachescope.wording import SHORT_KEY, and_more, listed, plural, rank_names


def _safety(row: PredictionRow) -> str | None:
    if row.is_unsafe or row.unsafe_reason is None:
        return row.unsafe_reason
    return f"not known: {row.unsafe_reason}"


_DIFFERENCE: Final = (
    Column("Form", "code", "form"),
    Column("Field", "code", "field"),
    Column("Before", "long", lambda row: "(not there)" if row.status == "added" else row.before),
    Column("After", "long", lambda row: "(not there)" if row.status == "removed" else row.after),
    Column("Note", "text", "note", is_optional=True),
)
_PREDICTIONS: Final = (
    Column("Entry", "name", "entry"),
    Column("Cache", "word", "cache"),
    Column("Key", "word", lambda row: f"{row.cache_key[:SHORT_KEY]}…"),
    Column("Would be found", "word", "will_hit"),
    Column("Unsafe", "text", _safety, is_optional=True),
    Column("Fields in the way", "code", lambda row: listed(row.fields, 8) or None, is_optional=True),
    Column("Why", "text", "reason"),
)
_MOST: Final = 8
_SHORT: Final = 12


def contexts_section(scope: Read) -> Section:
    """Question 4: will a cache made on that machine be used on this one."""
    sentence = (
        "torch keys a process by its context: eight forms, from its configs to its accelerator. Two processes share a cache"
        " if their contexts are equal in the forms that count. A recorded run shows only what its hash details prove."
    )
    nothing = (
        "No context was read: neither a snapshot (cachescope capture) nor a run whose hash details say what it"
        " was keyed by."
    )
    parts: list[Part] = []
    if scope.contexts.empty:
        parts.append(Text(nothing))
    else:
        columns = ["context", "source", "run", "known_from", "torch_version", "host"]
        drawn = (scope.context_groups(), scope.contexts[columns])
        found = Sharing.of(scope, most=3)
        parts += _contexts(scope, found)
        if found.is_decided:
            parts.append(Drawing("Which contexts share a key under which schema", context_sharing, drawn))
        parts += _pairs(found)
    parts.append(_predictions(scope))
    return Section("machines", "Would a cache made there be used here?", sentence, tuple(parts))


def devices_section(scope: Read) -> Section:
    """Question 6: which device was each key made for."""
    sentence = (
        "Every device that a key, an entry or a snapshot names, with the peak dense rates of the vendor's"
        " datasheet, and how the name was matched to it; a device without a datasheet gets no number."
    )
    devices = scope.devices
    if devices.empty:
        nothing = "No device is named in what was read: keys, entries of a directory and snapshots name them."
        parts: tuple[Part, ...] = (Text(nothing),)
    else:
        kept, note = first_of(rows_of(devices, DeviceRow), "devices", "scope.devices", most=20)
        lines = Lines(tuple(device_lines(devices.head(len(kept)))))
        parts = (lines, *([Text(note, "faint")] if note else []))
        if devices["datasheet"].notna().any():
            parts = (Drawing("Devices and their datasheets", device_rates, (devices,)), *parts)
        else:
            parts = (*parts, Text("None of them has a datasheet, so no rates are shown.", "faint"))
    return Section("devices", "Which device was each key made for?", sentence, parts)


def _contexts(scope: Read, found: Sharing) -> Iterator[Part]:
    """Who is alike, in which forms they differ, and a line on the others."""
    names, keys = context_names(scope), found.keys
    columns = (
        Column("Context", "word", _numbers),
        Column("From", "text", lambda alike: listed((names[one.context] for one in alike), 4)),
        Column("Known from", "text", lambda alike: known_from(alike[0])),
        Column("torch", "word", lambda alike: alike[0].torch_version),
        Column("Python", "word", lambda alike: alike[0].python_version),
        Column("Host", "word", _hosts, is_optional=True),
        Column("Isolation key", "code", lambda alike: keys[alike[0].context].isolation_key, is_optional=True),
    )
    yield table("Contexts", columns, found.columns, "contexts", "scope.contexts")
    side_by_side = SideBySide.of(scope)
    if side_by_side.forms:
        shown = side_by_side.columns[:_MOST]
        # Letters need little room, values may be long.
        is_short = all(len(cell or "") <= _SHORT for one in side_by_side.forms for cell in one.cells)
        kind: Final = "word" if is_short else "text"
        forms = (
            Column("Form", "code", "form"),
            Column("Settings that differ", "code", lambda one: listed(one.settings, 4), is_optional=True),
            *(Column(f"Context {_numbers(alike)}", kind, _cell(at)) for at, alike in enumerate(shown)),
        )
        caption = "Forms that are not the same everywhere: equal letters are equal values, ? is not known"
        yield table(caption, forms, side_by_side.forms, "forms", "scope.contexts")
        if more := len(side_by_side.columns) - len(shown):
            yield Text(and_more(more, "context", "scope.contexts has all"), "faint")
    for line in shared_lines(side_by_side):
        yield Text(line, "faint")


def _numbers(column: Sequence[ContextRow]) -> str:
    return rank_names([row.context for row in column])


def _hosts(column: Sequence[ContextRow]) -> str | None:
    return listed(dict.fromkeys(one.host for one in column if one.host), 4) or None


def _cell(at: int) -> Callable[[Form], str | None]:
    return lambda form: form.cells[at]


def _pairs(found: Sharing) -> Iterator[Part]:
    """The differences between the first pairs of contexts that are not equal."""
    if not found.pairs:
        one = "There is only one context, so there is nothing to compare it with."
        alike = "No two contexts differ in what is known of them."
        yield Text(one if len(found.contexts) == 1 else alike, "faint")
        return
    for pair in found.pairs:
        before, after, unknown = pair.row.before, pair.row.after, pair.row.undecided
        undecided = f" Not known whether these differ: {', '.join(unknown)}." if unknown else ""
        differing = ", ".join(pair.row.differing)
        text = f"They differ in {differing}." if differing else "Nothing that is known of them differs."
        changed, folded = folded_differences(pair.fields)
        source = f"scope.context_difference({before}, {after})"
        parts: list[Part] = [Text(text + undecided)]
        if changed:
            parts.append(table("What differs, field by field", _DIFFERENCE, changed, "fields", source))
        title = f"Context {before} beside context {after}"
        yield Group(f"contexts-{before}-{after}", title, (*parts, *map(Text, folded)))
    if found.more_pairs:
        every = len(found.pairs) + found.more_pairs
        what, source = "pairs of contexts that differ", "scope.context_pairs()"
        yield Text(cut_note(len(found.pairs), every, what, source), "faint")


def _predictions(scope: Read) -> Group:
    """Whether a process like the last run would find each entry."""
    title = "Would the last run find each entry?"
    looked_up = scope.asked_torch
    if not looked_up or not scope.facts.entries:
        lacks = "cache directory" if looked_up else "trace or log of a run"
        text = (
            f"No {lacks} was read, so there is nothing to compare it with. cachescope diff DIR SNAPSHOT, or"
            " cachescope.will_hit, does it for a process that was captured on another machine."
        )
        return Group("predictions", title, (Text(text),))
    found = PredictionSummary.of(predictions_of_run(scope, max(looked_up)))
    yes, no, unknown = (found.counts[answer] for answer in ("yes", "no", "unknown"))
    entries = plural(len(found.rows), "entry", "entries")
    text = (
        f"For a process like run {max(looked_up)}, {entries}: {yes:,} would be found,"
        f" {no:,} not, {unknown:,} unknown. This assumes the program that made each entry."
    )
    if found.unsafe:
        unsafe = plural(found.unsafe_count, "entry", "entries")
        text = f"{unsafe} unsafe: torch would load code built for another CPU. {text}"
    what = "entries, what is unsafe and what is not found first"
    source = f"scope.predictions({max(looked_up)})"
    return Group(
        "predictions", title, (Text(text), table("Predictions", _PREDICTIONS, found.rows, what, source))
    )
