"""Why one lookup missed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final, Self

from cachescope.analysis.differences import FieldChange
from cachescope.analysis.fixes import OPTION, VARIABLE, ways_to_set
from cachescope.analysis.resolve_name import lookup_named
from cachescope.analysis.verdicts.change_advice import INNER_NOT_PRINTED, graph_advice
from cachescope.answers.chosen import Chosen
from cachescope.answers.names import (
    baseline_name,
    is_named_by_fields,
    lookup_in_run,
    lookup_name,
    other_directory,
    why_never_stored,
)
from cachescope.answers.recording import Recording
from cachescope.answers.summary import WHY_UNKNOWN, counts_text, hits_call
from cachescope.errors import NotFoundError
from cachescope.frames.answer_rows import ChangeRow, MissRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.grouping import by_key
from cachescope.keys.key_fields import FUNCTORCH_CONFIG
from cachescope.rows import like
from cachescope.table import Table, copied
from cachescope.terms import VLLM, Evidence
from cachescope.verdict_kinds import ONE_DIRECTORY, kind_of
from cachescope.wording import duration

if TYPE_CHECKING:
    from cachescope.answers.guard_miss import GuardMiss

# A fleet may have a hundred thousand equal misses.
_SAME_CAUSE: Final = 100
_FIELDS: Final = 4
_OF_COMPILE: Final = " (or in mode or options of torch.compile, if set there)"
# A single word or number. The text of a collection, or of a printed object, does not say all.
_PLAIN: Final = re.compile(r"[\w ./-]{1,200}")
_PREDICTED: Final = "predicted by a pre-flight, from what was read with it"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one lookup missed.

    Attributes
    ----------
    lookup : int
        The lookup.
    verdict : str or None
        One of ``describe("verdicts")``; None where it did not miss, or that is not known.
    title, reason : str
        Which lookup it is, and the sentence that says why.
    evidence : str
        What the verdict rests on: one of ``describe("evidence_kinds")``.
    evidence_text : str
        What exactly that is.
    baseline : str or None
        What it was compared with.
    changes : tuple of FieldChange
        Every field whose hash differs.
    same_cause : tuple of str
        The other misses of the same cause, the first hundred of them.
    more_of_same_cause : int
        How many more there are.
    settings : dict
        By where they belong, the lines of a program or a shell that give changed fields the values of the baseline.
    advice : str or None
        What can be done besides.
    sizes : str or None
        Of a guard miss, which size the guards of stored entries did not hold for, and the line that they are from; None where traces
        do not tell.
    outcome : str
        The outcome of the lookup.
    """

    lookup: int
    verdict: str | None
    title: str
    reason: str
    evidence: str
    evidence_text: str
    baseline: str | None = None
    changes: tuple[FieldChange, ...] = ()
    same_cause: tuple[str, ...] = ()
    more_of_same_cause: int = 0
    settings: dict[str, tuple[str, ...]] = field(default_factory=dict)
    advice: str | None = None
    root: bool = True
    outcome: str = "full_miss"
    sizes: str | None = None

    @property
    def word(self) -> str:
        """The verdict, or the outcome if there is none."""
        return self.verdict or self.outcome

    frame = copied(
        lambda one: Table(ChangeRow, [like(ChangeRow, change) for change in one.changes]),
        """One row per changed field; see ``describe("changes")``.""",
    )

    @classmethod
    def of(cls, read: Recording, which: int | str | None = None) -> Self:
        """Collect everything that is known about one lookup; `which` is as in `Scope.explain`."""
        lookup = costliest_root(Chosen(read)) if which is None else lookup_named(read.tables, which)
        facts = read.facts
        row = facts.lookups[lookup]
        title = f"lookup {lookup}, {lookup_in_run(facts, row)}"
        if (known := _not_missed(read, row)) is not None:
            return cls(lookup, None, title, *known, outcome=row.outcome)
        miss = facts.misses[lookup]
        of_cause = facts.misses_of(miss.cause)
        first = (m.lookup for m in of_cause[: _SAME_CAUSE + 1] if m.lookup != lookup)
        others = [facts.lookups[number] for number in islice(first, _SAME_CAUSE)]
        changes, guards = read.changes(lookup), guard_miss(read, miss)
        settings, advice = what_to_do(read, miss, changes, guards)
        return like(
            cls,
            miss,
            title=title,
            baseline=baseline_name(facts, miss, read.history),
            changes=changes,
            same_cause=tuple(f"run {other.run}: {lookup_name(other)}" for other in others),
            more_of_same_cause=len(of_cause) - 1 - len(others),
            settings=settings,
            advice=advice,
            outcome=row.outcome,
            sizes=None if guards is None else guards.text,
        )


def costliest_root(chosen: Chosen) -> int:
    """The root miss of the costliest cause other than first lookups."""
    causes = chosen.causes
    if not causes:
        raise NotFoundError(f"no miss is recorded: {counts_text(chosen.read)}")
    cause = next((one for one in causes if not kind_of(one).may_be_first), causes[0]).cause
    return chosen.roots_of(cause)[0].lookup


def _not_missed(read: Recording, row: LookupRow) -> tuple[str, Evidence, str] | None:
    """The reason and the evidence for a lookup that did not miss, or is not known to have missed."""
    is_of_vllm = row.cache == VLLM
    match row.outcome:
        case "would_hit":
            return row.prediction or "", "inferred", _PREDICTED
        case "not_known":
            return row.prediction or "", "not_known", _PREDICTED
        case "hit" if is_of_vllm:
            reason = "what had been compiled was loaded, and nothing was compiled"
            return reason, "recorded", "vLLM logged that it loaded it"
        case "hit":
            saved = "" if row.time_saved_ns is None else f", which saved {duration(row.time_saved_ns)}"
            operators = hits_call(read, [row])
            calls = f". The graph calls {operators}" if operators else ""
            return f"an entry was found{saved}{calls}", "recorded", "torch recorded the hit"
        case "unknown":
            return "whether it hit or missed is not known", "not_known", WHY_UNKNOWN[is_of_vllm]
    return None


def guard_miss(read: Recording, miss: MissRow, most_bytes: int | None = None) -> GuardMiss | None:
    """The guards that did not hold, if traces show them: of a guard miss, or of the graph that a changed one is compared with."""
    kind = kind_of(miss)
    if not kind.is_by_guards and ("gm" not in miss.changed or kind.is_of_function):
        return None
    from cachescope.answers.guard_miss import GuardMiss

    if kind.is_by_guards:
        return GuardMiss.of(read, miss.lookup, most_bytes)
    baseline = miss.baseline_lookup
    return None if baseline is None else GuardMiss.of_changed(read, miss.lookup, baseline, most_bytes)


def what_to_do(
    read: Recording, miss: MissRow, changes: Sequence[FieldChange], guards: GuardMiss | None
) -> tuple[dict[str, tuple[str, ...]], str | None]:
    """The lines that give the changed fields of a miss the values of its baseline, by where they belong; and what else can be done."""
    cause = read.explained.rows[miss.cause]
    advice = cause.advice if guards is None else guards.advice
    for change in changes:
        if advice and change.field == "gm" and change.diff:
            # A trace had what torch does not print.
            advice = advice.replace(INNER_NOT_PRINTED, graph_advice(change))
    if not (changes and is_named_by_fields(cause)) or read.facts.lookups[miss.lookup].cache == VLLM:
        return {}, advice
    if (never := why_never_stored(miss, read.history)) is not None:
        return {}, f"What it is compared with stored nothing that could be found: {never.why.rstrip('.')}."
    settings, is_all = _settings(read, miss.lookup, changes)
    # Where every field gets its earlier value, the lines say it all. But nothing may set the order of a collection.
    is_told = is_all and all(
        _PLAIN.fullmatch(one.before or "") or one.field == FUNCTORCH_CONFIG for one in changes
    )
    # A key with its earlier fields finds the entry only in the directory that holds it.
    is_elsewhere = settings and other_directory(miss, read.history)
    told = (None if is_told else advice, ONE_DIRECTORY if is_elsewhere else None)
    return settings, " ".join(filter(None, told)) or None


def _settings(
    read: Recording, lookup: int, changes: Sequence[FieldChange]
) -> tuple[dict[str, tuple[str, ...]], bool]:
    """The smallest changes that give fields the value of the baseline, by where they belong; and whether they cover all fields."""
    found: list[tuple[str, str]] = []
    of_compile = set[str]()
    # A value of one process does not suit another.
    fields = {change.field for change in changes if change.process_values is None}
    set_back = set[str]()
    if "deterministic_algorithms_settings" in fields:
        # torch.use_deterministic_algorithms sets Inductor's option, too.
        set_back = {"inductor_config[deterministic]"} & fields
    fields -= set_back
    details = read.tables.hash_details
    for before, after in read.changed_details(lookup):
        if before is None or after is None or before.field not in fields or len(set_back) == _FIELDS:
            continue
        # No log has the variables, and a program may set the same in Python. What comes last decides.
        ways = sorted(ways_to_set(details, before, after, {}), key=lambda way: way[0].kind == VARIABLE)
        for way in ways[:1]:
            found += ((way[0].where, setting.code) for setting in way)
            if any(other[0].kind == OPTION for other in ways):
                of_compile.add(way[0].where)
            set_back.add(before.field)
    # An option given to torch.compile takes precedence over the module's.
    lines = {
        where + (_OF_COMPILE if where in of_compile else ""): tuple(dict.fromkeys(codes))
        for where, codes in by_key(found).items()
    }
    return lines, len(set_back) == len(changes)
