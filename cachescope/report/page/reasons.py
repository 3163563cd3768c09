"""Why it missed: what to fix first, each cause explained, every miss, and what if a field did not count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Final

from cachescope.answers.causes import Causes, Struck, ways
from cachescope.answers.chosen import Chosen
from cachescope.answers.directory import past_misses
from cachescope.answers.explanation import Explanation
from cachescope.answers.names import lookups_of_cause
from cachescope.answers.read import Read
from cachescope.answers.vllm import VllmFolders
from cachescope.answers.worklist import Work, Worklist, nothing_to_fix
from cachescope.columns import rows_of
from cachescope.figures.key_strip import key_difference
from cachescope.figures.texts import run_labels
from cachescope.frames.answer_rows import MissRow
from cachescope.frames.checks import FalseHit
from cachescope.frames.recorded_rows import LookupRow
from cachescope.frames.replay_rows import CauseSaving, SensitivityRow
from cachescope.report.explanation import sentences
from cachescope.report.page.lookups import lookup_table
from cachescope.report.page.outcomes import timed
from cachescope.report.page.parts import (
    Cell,
    Diff,
    Drawing,
    Group,
    Head,
    Items,
    Lines,
    Part,
    Section,
    Sorted,
    Text,
    WorkItem,
    WorkItems,
)
from cachescope.report.page.replay import replay_parts
from cachescope.report.page.truncation import bounded, diff_lines, table
from cachescope.report.vllm import vllm_lines
from cachescope.report.what_if_forms import BY_CAUSE, SAFETY, field_note, saving_text
from cachescope.report.why_missed import past_lines, place_text
from cachescope.report.worklist import NEVER_ASKED, changes_of, notes_of
from cachescope.verdict_kinds import VERDICTS, kind_of
from cachescope.wording import duration, listed, plural, short_key

if TYPE_CHECKING:
    from cachescope.analysis.differences import FieldChange


_WAYS: Final = 3
_MOST_FIELDS: Final = 20
_DIFFS: Final = 2
_CHANGES: Final = (Head("Field", "code"), Head("Before", "long"), Head("After", "long"))
_NOT_THERE: Final = "(not there)"
_EMPTY: Final = "(empty)"

# Each is a picture, a table and a diff of code.
EXPLAINED: Final = 10
_PLACES: Final = 8
_MISSES: Final = (
    Head("Lookup", "name"),
    Head("Run", "word"),
    Head("Cache", "word"),
    Head("Compile", "word"),
    Head("Function", "word"),
    Head("Key", "word"),
    Head("Verdict", "word"),
    Head("Role", "word"),
    Head("Time lost", "number"),
    Head("Why"),
)
_FALSE_HITS: Final = (
    Head("Kind", "word"),
    Head("Cache", "word"),
    Head("Key", "word"),
    Head("Hits", "number"),
    Head("What was seen"),
)
_FIELDS: Final = (
    Head("Fields", "code"),
    Head("Misses that would hit", "number"),
    Head("Time saved", "number"),
    Head("Affects"),
    Head("What is known of leaving it out"),
)
_SAVINGS: Final = (
    Head("Cause"),
    Head("Verdict", "word"),
    Head("Time lost", "number"),
    Head("Without its fields"),
    Head("Why the rest stays", is_optional=True),
)


def anchor_of(number: int) -> str:
    """Where a cause is explained."""
    return f"cause-{number}"


def cause_group(scope: Read, number: int, struck: Struck) -> Group:
    """The explanation of one cause."""
    cause = struck.row
    lost = "" if cause.time_lost_ns is None else f", {duration(cause.time_lost_ns)} lost"
    told = f"{cause.verdict}: {VERDICTS[cause.verdict]}. {lookups_of_cause(cause, cause.misses)}{lost}."
    parts: list[Part] = [Text(told, "faint")]
    found = ways(scope, cause.cause, _WAYS)
    for place, explained in enumerate(found):
        parts += _explained(scope, explained, first=place == 0)
    if struck.advice:
        parts.append(Text(f"What to do: {struck.advice}"))
    parts += _places(struck)
    return Group(anchor_of(number), f"{number}. {cause.summary}{_one_change(found)}", tuple(parts))


def _one_change(found: Sequence[Explanation]) -> str:
    """The change from one value to another, if there is only one."""
    changes = found[0].changes if len(found) == 1 else ()
    return f": {changes[0].summary}" if len(changes) == 1 else ""


def _explained(scope: Read, explained: Explanation, *, first: bool) -> list[Part]:
    said = {sentence.kind: sentence.text for sentence in sentences(explained)}
    baseline = f"; {said['baseline']}" if "baseline" in said else ""
    opening = "" if first else "In another way: "
    parts: list[Part] = [
        Text(f"{opening}{explained.reason}", "strong"),
        Text(f"{said['evidence']}.", "faint"),
        Text(f"{said['title']}{baseline}.", "faint"),
    ]
    if explained.sizes is not None:
        parts.insert(1, Text(f"{explained.sizes}."))
    changes = explained.changes
    # A key of vLLM is no list of hash details.
    if first and changes and scope.facts.lookups[explained.lookup].detail_set is not None:
        parts.append(_strip(scope, explained))
    if changes:
        source = f"scope.explain({explained.lookup}).frame"
        rows = [_change_row(change) for change in changes]
        name = "Changed fields of the key, before and after"
        parts.append(table(name, _CHANGES, rows, "changed fields", source, most=_MOST_FIELDS))
    # The table has both values in full, where the other forms say in one line what they are.
    recognised = [(one.field, one.process_values.words) for one in changes if one.process_values is not None]
    if recognised:
        parts.append(Items(tuple(f"{field} {words}" for field, words in recognised[:_MOST_FIELDS])))
    for change in [change for change in changes if change.diff][:_DIFFS]:
        lines, more = diff_lines(change.diff)
        parts.append(Diff(f"Changed code of {change.field}", lines, more))
    return parts


def _strip(scope: Read, explained: Explanation) -> Drawing:
    fields = scope.hash_details(lookup=explained.lookup)
    # The hover text of a cell is a line: the values are in the table.
    fields = fields.assign(value_text=fields["value_text"].str.slice(0, 200))
    frame = replace(explained, changes=explained.changes).frame.drop(columns=["before", "after"])
    return Drawing("All fields of the key, the changed ones numbered", key_difference, (frame, fields))


def _change_row(change: FieldChange) -> tuple[Cell, ...]:
    """Before and after: the parts that differ, or the whole."""
    if change.kind == "opaque":
        return change.field, change.summary, bounded(change.after)
    if change.parts:
        before = ", ".join(f"{name} = {side}" for name, side, _ in change.parts)
        after = ", ".join(f"{name} = {side}" for name, _, side in change.parts)
        return change.field, bounded(before), bounded(after)
    return change.field, _value(change.before), _value(change.after)


def _value(text: str | None) -> str | None:
    return _NOT_THERE if text is None else bounded(text) or _EMPTY


def _places(struck: Struck) -> list[Part]:
    more = struck.roots - len(struck.places)
    rest = (f"and {plural(more, 'more lookup')}, in the table of misses below",) if more else ()
    return [Text("Where it struck:"), Items((*map(place_text, struck.places), *rest))]


def why_section(scope: Read) -> Section:
    """Question 2: why, cause by cause, then every miss, then warnings."""
    sentence = (
        "Each cause with its costliest miss: which fields of the key changed, from what to what, against which earlier lookup"
        " it was held, and where else it struck. Hashes are compared, never texts."
    )
    causes = Causes.of(scope, most=EXPLAINED, places=_PLACES)
    parts: list[Part] = [cause_group(scope, number, struck) for number, struck in enumerate(causes.struck, 1)]
    if not causes.struck:
        parts.append(Text(nothing_to_fix(Chosen(scope))))
    if causes.more:
        more = plural(causes.more, "more cause is", "more causes are")
        parts.append(Text(f"{more} in the list above and in scope.causes.", "faint"))
    if past := past_lines(past_misses(scope)):
        intro = Text("Read from the directory itself: which field made each further entry of a graph.")
        parts.append(Group("past", "Past misses", (intro, Lines(tuple(past)))))
    if (vllm := VllmFolders.of(scope)) is not None:
        parts.append(Group("vllm", "vLLM's torch_compile_cache", (Lines(tuple(vllm_lines(vllm))),)))
    explained = {struck.row.cause: number for number, struck in enumerate(causes.struck, 1)}
    parts += [*_lookups(scope, explained), *_false_hits(scope)]
    return Section("why", "Why did each one miss?", sentence, tuple(parts))


def what_if_section(scope: Read) -> Section:
    """Question 3: would it have hit without that field."""
    sentence = (
        "All lookups in torch's caches are replayed, in time order, as if a field were not in the key. The keys of a replay are what-if keys,"
        " cachescope's own, made from the remaining hash details; torch's keys cannot be rebuilt."
    )
    parts: tuple[Part, ...] = (Text("No lookup in torch's caches was read, so none can be replayed."),)
    if scope.asked_torch:
        parts = (*_ranking(scope), *replay_parts(scope), *_by_cause(scope))
    return Section("what-if", "What if a field did not count?", sentence, parts)


def _ranking(scope: Read) -> Iterator[Part]:
    """The fields that would help, those that may be left out apart from those that may not."""
    rows = rows_of(scope.sensitivity(), SensitivityRow)
    if not rows:
        yield Text("No field, and no small set of fields, keeps a recorded lookup from hitting.")
    for safety, group in groupby(rows, key=lambda row: row.safety):
        shown = [_field_row(row) for row in group]
        yield table(SAFETY[safety], _FIELDS, shown, "sets of fields by time saved", "scope.sensitivity()")


def _by_cause(scope: Read) -> Iterator[Part]:
    """What leaving out the changed fields of each cause would do, as the worklist names them."""
    works = Worklist.of(scope)
    named = {work.cause: work.title for work in (*works.works, *works.apart)}
    rows = [
        (
            named.get(row.cause) or (listed(row.fields, 8) if row.fields else row.summary),
            row.verdict,
            timed(row.time_lost_ns),
            saving_text(row),
            row.why,
        )
        for row in rows_of(scope.cause_savings(), CauseSaving)
    ]
    if rows:
        yield table(BY_CAUSE, _SAVINGS, rows, "causes by time lost", "scope.cause_savings()")


def _lookups(scope: Read, explained: dict[int, int]) -> list[Part]:
    """All of them to sort and to filter; those that missed for paper, and where no script runs."""
    if not scope.facts.lookups:
        return []
    return [Group("misses", "Every lookup", (lookup_table(scope, explained), *_misses(scope)))]


def _misses(scope: Read) -> list[Part]:
    facts = scope.facts
    if not facts.misses:
        return []
    labels = run_labels(scope.runs)
    costliest = sorted(
        facts.misses.values(), key=lambda miss: -(facts.lookups[miss.lookup].time_taken_ns or 0)
    )
    rows = [_miss_row(facts.lookups[miss.lookup], miss, labels) for miss in costliest]
    return [table("Lookups that missed, by time lost", _MISSES, rows, "misses by time lost", "scope.misses")]


def _miss_row(lookup: LookupRow, miss: MissRow, labels: dict[int, str]) -> tuple[Cell, ...]:
    key = lookup.cache_key
    return (
        lookup.lookup,
        labels[lookup.run],
        lookup.cache + (" backward" if lookup.direction == "backward" else ""),
        lookup.compile_id,
        lookup.function,
        None if key is None else short_key(key),
        miss.verdict,
        "root" if miss.root else "follows",
        timed(lookup.time_taken_ns),
        miss.reason,
    )


def _false_hits(scope: Read) -> list[Part]:
    rows = [
        (
            row.kind,
            row.cache,
            None if row.cache_key is None else short_key(row.cache_key),
            row.hits,
            row.evidence,
        )
        for row in rows_of(scope.false_hits, FalseHit)
    ]
    if not rows:
        return []
    intro = Text(
        "Keys that seem to stand for more than one thing: warnings with their evidence, not certainties."
    )
    shown = table("Possible false hits", _FALSE_HITS, rows, "warnings", "scope.false_hits")
    return [Group("false-hits", "Possible false hits", (intro, shown))]


def _field_row(row: SensitivityRow) -> tuple[Cell, ...]:
    time = timed(row.time_alone_ns) if row.misses_alone else Sorted("nothing", 0)
    return listed(row.fields, 8), row.misses_alone, time, row.affects, field_note(row)


def causes_section(scope: Read) -> Section:
    """What to fix first."""
    sentence = (
        "Misses with one reason are one cause, the costliest on top. One miss brings others: an AOTAutograd miss is followed"
        " by lookups of its FX graphs, and they count with it. First lookups cannot be avoided and are listed separately."
    )
    found = Worklist.of(scope)
    order = [cause.cause for cause in scope.facts.causes if not kind_of(cause).is_first]
    anchors = {cause: anchor_of(number) for number, cause in enumerate(order[:EXPLAINED], 1)}
    parts: list[Part] = []
    if found.works:
        parts.append(WorkItems("What to fix, the costliest on top", _items(found.works, anchors)))
    if found.apart:
        parts += [Text(f"{NEVER_ASKED}:"), WorkItems(NEVER_ASKED, _items(found.apart, anchors))]
    if not parts:
        parts.append(Text(nothing_to_fix(Chosen(scope))))
    parts += [Text(note, "faint") for note in notes_of(found)]
    return Section("causes", "What should be fixed first?", sentence, tuple(parts))


def _items(works: tuple[Work, ...], anchors: dict[int, str]) -> tuple[WorkItem, ...]:
    return tuple(
        WorkItem(
            title=work.title,
            cost=work.cost,
            where=work.where,
            share=work.share,
            changes=tuple(changes_of(work)),
            advice=work.advice,
            anchor=anchors.get(work.cause),
        )
        for work in works
    )
