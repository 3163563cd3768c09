"""Other machines: which processes share a key, what differs between them, what one would find, and the devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from cachescope.analysis.contexts.differences import context_pairs
from cachescope.analysis.contexts.keys import context_groups
from cachescope.answers.predictions import predictions_of_run
from cachescope.answers.read import Read
from cachescope.answers.sharing import is_any_decided, known_differences
from cachescope.figures.context_grid import context_sharing
from cachescope.figures.datasheets import device_rates
from cachescope.frames.sharing_rows import PredictionRow
from cachescope.report.blocks import Block, Column, Drawing, Group, cut_note, table
from cachescope.report.comparison import prediction_lines, unpredicted
from cachescope.report.contexts import NO_CONTEXT, difference_blocks, side_by_side_blocks
from cachescope.report.devices import first_devices
from cachescope.report.layout import Line
from cachescope.wording import SHORT_KEY, listed


def _safety(row: PredictionRow) -> str | None:
    if row.is_unsafe or row.unsafe_reason is None:
        return row.unsafe_reason
    return f"not known: {row.unsafe_reason}"


_PREDICTIONS: Final = (
    Column("Entry", "name", "entry"),
    Column("Cache", "word", "cache"),
    Column("Key", "word", lambda row: f"{row.cache_key[:SHORT_KEY]}…"),
    Column("Would be found", "word", "will_hit"),
    Column("Unsafe", "text", _safety, is_optional=True),
    Column("Fields in the way", "code", lambda row: listed(row.fields, 8) or None, is_optional=True),
    Column("Why", "text", "reason"),
)
_PAIRS: Final = 3
_WORST_FIRST: Final = ("no", "unknown", "yes")


def contexts_blocks(scope: Read) -> Iterator[Block]:
    """Question 4: will a cache made on that machine be used on this one."""
    if not scope.all_contexts.rows:
        yield Line(NO_CONTEXT)
    else:
        yield from side_by_side_blocks(scope)
        if is_any_decided(scope):
            drawn = (context_groups(scope.known_contexts), scope.all_contexts.rows)
            yield Drawing("Which contexts share a key under which schema", context_sharing, drawn)
        yield from _pairs(scope)
    yield _predictions(scope)


def devices_blocks(scope: Read) -> Iterator[Block]:
    """Question 6: which device was each key made for."""
    devices = scope.named_devices.rows
    if any(row.datasheet is not None for row in devices):
        yield Drawing("Devices and their datasheets", device_rates, (devices,))
    yield from first_devices(devices)


def _pairs(scope: Read) -> Iterator[Block]:
    """The differences between the first pairs of contexts that are not equal."""
    pairs = context_pairs(scope.known_contexts)
    if not pairs:
        one = "There is only one context, so there is nothing to compare it with."
        alike = "No two contexts differ in what is known of them."
        yield Line(one if len(scope.known_contexts) == 1 else alike, style="dim")
    for pair in pairs[:_PAIRS]:
        before, after = pair.before, pair.after
        source = f"scope.context_difference({before}, {after})"
        differing = difference_blocks(known_differences(scope, before, after), pair.undecided, source)
        title = f"Context {before} beside context {after}"
        yield Group(f"contexts-{before}-{after}", title, tuple(differing))
    if len(pairs) > _PAIRS:
        note = cut_note(_PAIRS, len(pairs), "pairs of contexts that differ", "scope.context_pairs()")
        yield Line(note, style="dim")


def _predictions(scope: Read) -> Group:
    """Whether a process like the last run would find each entry."""
    if lacks := unpredicted(scope):
        return Group("predictions", "Would the last run find each entry?", (Line(lacks),))
    run = max(scope.asked_torch)
    found = predictions_of_run(scope, run)
    worst_first = sorted(found, key=lambda row: (not row.is_unsafe, _WORST_FIRST.index(row.will_hit)))
    what = "entries, what is unsafe and what is not found first"
    listed_all = table("Predictions", _PREDICTIONS, worst_first, what, f"scope.predictions({run})")
    said = tuple(prediction_lines(found))
    return Group("predictions", f"Would a process like run {run} find each entry?", (*said, listed_all))
