"""What to fix first: one item for each cause that can be acted on, the costliest first, with what to do about each changed field; the rest stands apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from cachescope.analysis.differences import FieldChange
from cachescope.analysis.fixes import ways_to_set
from cachescope.analysis.verdicts.advice import AdviceFacts, field_sentences
from cachescope.analysis.vllm.advice import factor_advice
from cachescope.analysis.what_if.evidence import left_out_text
from cachescope.answers.causes import Causes, Struck
from cachescope.answers.chosen import Chosen
from cachescope.answers.explanation import Explanation
from cachescope.answers.names import lookups_of_cause, place_name
from cachescope.answers.recording import Recording
from cachescope.answers.summary import footer
from cachescope.frames.answer_rows import CauseRow
from cachescope.grouping import by_key
from cachescope.terms import FXGRAPH
from cachescope.verdict_kinds import kind_of
from cachescope.wording import duration, harmless, listed, percent, plural

MOST: Final = 20
_FIELDS: Final = 4
_LONGEST_NAME: Final = 80
_NAMES: Final = {"gm": "graph (gm)"}
# What names of options share; the rest of the name tells them apart.
_OPTION: Final = re.compile(r"(?:inductor_config|fx_kwargs)\[(?P<name>[^\[\]]+)\]")


@dataclass(frozen=True, slots=True)
class Work:
    """One cause of misses, as an item of the worklist."""

    cause: int  # the cause
    title: str  # what is to be looked at: the changed fields without what their names share, or the reason
    # The first changed fields; empty where no field differs, or another torch made them all differ.
    changes: tuple[FieldWork, ...]
    other_values: tuple[tuple[int, str], ...]  # the one changed field where it changed to other values
    more_changes: int  # how many more changed fields there are
    cost: str  # seconds, share of the time lost, and misses, in words
    # Share of the compile time that all misses, bypasses and switched-off lookups cost; None where no time is
    # known.
    share: float | None
    where: str  # the place in the program of the first root, and the runs and ranks it struck
    advice: str | None  # what can be done, besides what stands at the fields
    lookup: int  # the first root, which explains it


@dataclass(frozen=True, slots=True)
class Worklist:
    """What to fix first."""

    works: tuple[Work, ...]  # misses with a cause that can be acted on; the costliest first
    apart: tuple[Work, ...]  # lookups that never reached the cache: bypassed, or with caching switched off
    more: int  # how many further causes there are, and how many misses they made
    more_misses: int
    rest: str  # what is in none of them: first lookups, misses that nothing explains, problems

    @classmethod
    def of(cls, read: Recording, chosen: Chosen | None = None, most: int = MOST) -> Self:
        """The worklist of all that was read or of some lookups, with so many items at most."""
        among = Chosen(read) if chosen is None else chosen
        causes = Causes.of(read, among, most=most, places=0)
        lost = sum(cause.time_lost_ns or 0 for cause in among.causes)
        titles = _titles(read, causes.struck)
        works = [_work(read, struck, titles[struck.row.cause], lost) for struck in causes.struck]
        apart = {struck.row.cause for struck in causes.struck if not kind_of(struck.row).is_miss}
        return cls(
            tuple(work for work in works if work.cause not in apart),
            tuple(work for work in works if work.cause in apart),
            causes.more,
            causes.more_misses,
            footer(read, among.causes),
        )


def cause_names(read: Recording) -> list[tuple[str, int]]:
    """Every cause with a short name of its own: those of the worklist in its order and by its titles, then the others."""
    found = Worklist.of(read)
    listed_first = [(work.title, work.cause) for work in (*found.works, *found.apart)]
    taken = {cause for _, cause in listed_first}
    named = [
        *listed_first,
        *((_title(row), row.cause) for row in read.facts.causes if row.cause not in taken),
    ]
    short = [(_cut(harmless(name)), cause) for name, cause in named]
    count = Counter(name for name, _ in short)
    return [(name if count[name] == 1 else _cut(name, f" (cause {cause})"), cause) for name, cause in short]


def _cut(name: str, end: str = "") -> str:
    room = _LONGEST_NAME - len(end)
    return (name if len(name) <= room else f"{name[: room - 1]}…") + end


def nothing_to_fix(chosen: Chosen) -> str:
    """Why the worklist of some lookups is empty."""
    if not len(chosen):
        nothing = "was read" if chosen.is_all else "is of this time"
        return f"No lookup {nothing}, so none can have missed."
    if not chosen.causes:
        if any(row.outcome == "unknown" for row in chosen.rows):
            return "No lookup is known to have missed; the outcome of some was not seen."
        return f"Nothing missed: every lookup {'that was read' if chosen.is_all else 'of this time'} hit."
    text = "Every miss is a first lookup, with nothing earlier to compare with."
    concurrent = sum(cause.misses for cause in chosen.causes if kind_of(cause).is_beside)
    if not concurrent:
        return text
    were = "1 was" if concurrent == 1 else f"{concurrent:,} were"
    return (
        f"{text} {were} made while another run was compiling the same graph under another key: "
        "Compare shows what differs, What-if what a staggered start would do."
    )


def _work(read: Recording, struck: Struck, title: str, lost: int) -> Work:
    cause, time = struck.row, struck.time_lost_ns
    share = None if time is None or not lost else time / lost
    cost = [] if time is None else [duration(time)]
    if share is not None:
        cost.append(f"{percent(share)} of the time lost")
    cost.append(lookups_of_cause(cause, struck.misses))
    works: list[FieldWork] = []
    advice = struck.advice
    if _is_named_by_fields(cause):
        works, on_several = field_works(read, struck, _FIELDS)
        advice = " ".join(on_several) or None
    return Work(
        cause.cause,
        title,
        tuple(works),
        struck.other_values,
        max(0, len(struck.changes) - len(works)) if works else 0,
        " · ".join(cost),
        share,
        _where(read, struck),
        advice,
        struck.first.lookup,
    )


def _where(read: Recording, struck: Struck) -> str:
    cause, first = struck.row, read.facts.lookups[struck.first.lookup]
    place = place_name(first, read.facts.files)
    runs = f"run {first.run}" if struck.runs == 1 else plural(struck.runs, "run")
    ranks = (
        f", {'rank' if len(cause.ranks) == 1 else 'ranks'} {listed(cause.ranks, 8)}" if cause.ranks else ""
    )
    return f"{place}, in {runs}{ranks}" if place else f"in {runs}{ranks}"


def _titles(read: Recording, causes: Sequence[Struck]) -> dict[int, str]:
    """A title for each cause; two that would be the same say where they struck."""
    titles = {struck.row.cause: _title(struck.row) for struck in causes}
    for way in (_at_place, _by_number):
        count = Counter(titles.values())
        same = [struck for struck in causes if count[titles[struck.row.cause]] > 1]
        titles |= {struck.row.cause: way(read, struck, titles[struck.row.cause]) for struck in same}
    return titles


def _title(cause: CauseRow) -> str:
    return listed(map(short_field, cause.fields), _FIELDS) if _is_named_by_fields(cause) else cause.summary


def _is_named_by_fields(cause: CauseRow) -> bool:
    return cause.summary == ", ".join(cause.fields)


def short_field(field: str) -> str:
    """A field without what the names of options share.

    Examples
    --------
    >>> short_field("inductor_config[epilogue_fusion]"), short_field("gm")
    ('epilogue_fusion', 'graph (gm)')
    """
    return _NAMES.get(field) or _OPTION.sub(r"\g<name>", field)


def short_fields(fields: Iterable[str]) -> dict[str, str]:
    """The short name of each field; the whole one where two fields have the same short name.

    Examples
    --------
    >>> short_fields(["inductor_config[cpp_wrapper]", "fx_kwargs[cpp_wrapper]", "gm"])["gm"]
    'graph (gm)'
    """
    names = {field: short_field(field) for field in fields}
    count = Counter(names.values())
    return {field: name if count[name] == 1 else field for field, name in names.items()}


def _at_place(read: Recording, struck: Struck, title: str) -> str:
    place = place_name(read.facts.lookups[struck.first.lookup], read.facts.files)
    return f"{title} of {place}" if place else title


def _by_number(read: Recording, struck: Struck, title: str) -> str:
    return f"{title} (cause {struck.row.cause})"


@dataclass(frozen=True, slots=True)
class FieldWork:
    """One changed field."""

    field: str  # its path
    change: str  # before and after
    # What sets it and how to keep it equal, a sentence each; empty where nothing is certain.
    advice: tuple[str, ...]
    # The lines of a program or a shell that give it the value of the baseline; empty where none is known, or
    # where the value is of one process.
    lines: tuple[str, ...]
    where: str  # where those lines belong
    # Whether a key may do without it; empty where it is of vLLM's key, which torch does not make.
    left_out: str


def field_works(read: Recording, struck: Struck, most: int) -> tuple[list[FieldWork], list[str]]:
    """The first so many changed fields of a cause, and the sentences that are on several of them."""
    shown = struck.changes[:most]
    if struck.is_of_vllm:
        return [
            FieldWork(one.field, one.summary, (factor_advice(one.field),), (), "", "") for one in shown
        ], []
    sentences = _sentences(read, struck.row, struck.changes, struck.first.lookup)
    settings = _settings(read, struck, [change.field for change in shown if change.process_values is None])
    works = []
    for change in shown:
        lines, where = settings.get(change.field, ((), ""))
        advice = tuple(sentence for field, sentence in sentences if field == change.field)
        works.append(
            FieldWork(change.field, change.summary, advice, lines, where, left_out_text(change.field))
        )
    return works, [sentence for field, sentence in sentences if not field]


def advice_by_field(read: Recording, explained: Explanation) -> list[tuple[tuple[str, ...], str]]:
    """The advice on a changed key taken apart: each sentence with its fields, none where it is on all; empty where it cannot be."""
    miss = read.facts.misses.get(explained.lookup)
    if miss is None or not miss.changed:
        return []
    sentences = _sentences(read, read.facts.causes[miss.cause], explained.changes, explained.lookup)
    fields = by_key((sentence, field) for field, sentence in sentences)
    if " ".join(fields) != explained.advice:
        # That of the cause is on other fields as well, or is shortened.
        return []
    return [(tuple(filter(None, of)), sentence) for sentence, of in fields.items()]


def _settings(
    read: Recording, struck: Struck, fields: Sequence[str]
) -> dict[str, tuple[tuple[str, ...], str]]:
    """The smallest change that gives each field the value of the baseline, and where it belongs."""
    found = {}
    for before, after in read.changed_details(struck.first.lookup):
        if before is None or after is None or before.field not in fields:
            continue
        # Which variables were set is in no log.
        for way in ways_to_set(before, after, {})[:1]:
            found[before.field] = tuple(setting.code for setting in way), way[0].where
    return found


def _sentences(
    read: Recording, cause: CauseRow, changes: tuple[FieldChange, ...], lookup: int
) -> list[tuple[str, str]]:
    """The advice on the changed key of a lookup, each sentence with the field that it is on."""
    # Whether the FX lookups below an AOTAutograd lookup hit.
    outcomes = {below.outcome for below in read.facts.below(lookup) if below.cache == FXGRAPH}
    return field_sentences(
        AdviceFacts("key_changed", cause.kind, changes=changes, were_graphs_found=outcomes == {"hit"})
    )
