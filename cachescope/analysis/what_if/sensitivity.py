"""Which fields would help: for each field and each small set of fields, the misses that only they keep from hitting.

Every field that differs between keys is tried alone, then sets of fields: these are not guessed, but are the differences
between keys of one graph, nearest first. Each gets a whole replay. Misses that only the simultaneous start of their runs keeps from
hitting then are counted apart. Beside each stands what is known about leaving it out: evidence from the data are entries that differ
only in it, and their code.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import compress
from operator import ne
from typing import Final, NamedTuple

from cachescope.analysis.what_if.causes import concurrent_misses
from cachescope.analysis.what_if.replay import Replay, Replayed
from cachescope.catalogue.facts import field_facts
from cachescope.frames.linked_rows import PastMiss
from cachescope.frames.replay_rows import EvidenceRow, SensitivityRow
from cachescope.grouping import by_key
from cachescope.keys.key_schema import Removed

SAFETIES: Final = ("safe", "unknown", "unsafe", "program")
"""Whether fields may be left out, in the order of the ranking: what is part of the program comes last."""
_ORDER: Final = ("graph", "inputs", "generated code", "unknown", "host")


def evidence_rows(past_misses: Iterable[PastMiss]) -> list[EvidenceRow]:
    """What pairs of entries of one graph show about the fields in which they differ; fields with different code come first."""
    groups = by_key((tuple(sorted(pair.changed)), pair) for pair in past_misses if pair.changed)
    found = [_evidence(names, pairs) for names, pairs in groups.items()]
    return sorted(found, key=lambda one: (-one.different_code, -one.pairs, one.fields))


def _is_different(pair: PastMiss) -> bool:
    """Whether the code of two entries, or what was compiled from it, is known to differ."""
    return pair.same_code is False or pair.same_binaries is False


def _evidence(names: tuple[str, ...], pairs: Sequence[PastMiss]) -> EvidenceRow:
    different = [pair for pair in pairs if _is_different(pair)]
    same = [pair for pair in pairs if pair.same_code and not _is_different(pair)]
    example = (different or same or pairs)[0]
    same_binaries = sum(pair.same_binaries is True for pair in same)
    counts = len(pairs), len(same), same_binaries, len(different)
    return EvidenceRow(names, *counts, example.entry, example.baseline_entry)


@dataclass(frozen=True, slots=True)
class Safety:
    """What is known about leaving some fields out of the keys.

    `affects` is the catalogue's most serious effect among them; `same_code` and `different_code` count pairs
    of entries that differ in nothing else; `safety` is one of `SAFETIES`, and `advice` puts it in words.
    """

    affects: str
    same_code: int
    different_code: int
    safety: str
    advice: str


class SafetyOfFields:
    """What entries and torch's sources show about some fields. Evidence against leaving them out decides."""

    def __init__(self, evidence: Iterable[EvidenceRow]) -> None:
        self._found = [(frozenset(one.fields), one) for one in evidence]

    def on(self, fields: Iterable[str]) -> Safety:
        """Whether some fields may be left out. Pairs that differ in a subset of them count too."""
        wanted = frozenset(fields)
        speaking = [one for names, one in self._found if names <= wanted]
        same = sum(one.same_code for one in speaking)
        different = sum(one.different_code for one in speaking)
        facts = map(field_facts, wanted)
        known = {"unknown" if one is None else one.affects for one in facts}
        what = next((word for word in _ORDER if word in known), "unknown")
        return Safety(what, same, different, _safety(what, different), _advice(what, same, different))


def _safety(affects: str, different: int) -> str:
    if affects in ("graph", "inputs"):
        return "program"
    if different or affects == "generated code":
        return "unsafe"
    return "safe" if affects == "host" else "unknown"


def _advice(affects: str, same: int, different: int) -> str:
    pairs = same + different
    if different:
        return f"keep it: entries that differ only there hold other code ({different} of {pairs})"
    seen = f"entries that differ only there hold equal code ({same} of {pairs})" if same else ""
    match affects:
        case "graph" | "inputs":
            return "keep it: it is what is compiled"
        case "generated code":
            base = "keep it: torch's code generation reads it"
            return f"{base}, though {seen}" if seen else base
        case "host":
            base = "it describes the machine, and no code generation of torch reads it"
            return f"{base}; {seen or 'no entries here to compare'}"
        case _:
            return f"not known what it changes; {seen or 'no entries here to compare'}"


Fields = frozenset[str]
# The number of sets to try: the most frequent.
_SETS: Final = 32
# The most comparisons of two values in the search for sets. With few keys, every pair is compared.
_COMPARISONS: Final = 10_000_000
_FEWEST_PARTNERS: Final = 4
# Up to this many fields, each is put back in turn to see whether all of them are needed.
_PUT_BACK: Final = 8


def sensitivity_rows(
    replay: Replay, spoken: SafetyOfFields, largest: int = 2, of_causes: Iterable[tuple[str, ...]] = ()
) -> list[SensitivityRow]:
    """The rows by safety, with what is part of the program last; then by compile time, the most first."""
    trial = _Trial(replay, spoken)
    alone = [frozenset([field]) for field in replay.table.varying]
    tried = dict.fromkeys([*alone, *field_sets(replay, largest), *map(frozenset, of_causes)])
    return sorted((row for row in map(trial.row, tried) if row is not None), key=_rank)


def _rank(row: SensitivityRow) -> tuple[object, ...]:
    saved = -(row.time_alone_ns or 0), -row.misses_alone
    later = -(row.staggered_time_ns or 0), -row.staggered
    return SAFETIES.index(row.safety), *saved, *later, len(row.fields), row.fields


class _Result(NamedTuple):
    turned: list[int]
    staggered: list[int]
    unknown: int


class _Trial:
    """Replays without some fields, each made once."""

    def __init__(self, replay: Replay, spoken: SafetyOfFields) -> None:
        self._replay = replay
        self._spoken = spoken
        self._known: dict[Fields, _Result] = {}

    def row(self, fields: Fields) -> SensitivityRow | None:
        """The misses that some fields keep from hitting; None if there are none, or if smaller sets account for all."""
        result = self._without(fields)
        together, staggered = set(result.turned), set(result.staggered)
        for part in self._known_parts(fields):
            known = self._without(part)
            together.difference_update(known.turned)
            staggered.difference_update(known.staggered)
        if not together and not staggered:
            return None
        taken = self._replay.taken
        costliest = max(result.turned or result.staggered, key=lambda at: (taken[at] is not None, taken[at]))
        return SensitivityRow(
            fields=tuple(sorted(fields, key=_by_number)),
            misses_alone=len(result.turned),
            time_alone_ns=self._replay.total(result.turned),
            misses_together=len(together),
            staggered=len(result.staggered),
            staggered_time_ns=self._replay.total(result.staggered),
            needs_all=len(fields) > 1
            and len(together) == len(result.turned)
            and len(staggered) == len(result.staggered),
            unknown=result.unknown,
            example_lookup=self._replay.history.lookups[costliest].lookup,
            **asdict(self._spoken.on(fields)),
        )

    def _without(self, fields: Fields) -> _Result:
        """The misses that turn into hits without some fields."""
        if fields not in self._known:
            replayed, found = Replayed(self._replay, Removed(fields)), _Result([], [], 0)
            if replayed.groups:
                undecided = len(replayed.undecided())
                found = _Result(replayed.turned(), concurrent_misses(replayed), undecided)
            self._known[fields] = found
        return self._known[fields]

    def _known_parts(self, fields: Fields) -> Iterator[Fields]:
        """The proper subsets of a set that may have turned some of its misses."""
        if len(fields) <= _PUT_BACK:
            yield from (fields - {field} for field in fields)
        else:
            yield from [other for other in self._known if other < fields]


def _by_number(field: str) -> list[tuple[int, str]]:
    """The order of names that puts ``example_inputs[2]`` before ``example_inputs[10]``."""
    return [(len(part) if part.isdecimal() else 0, part) for part in re.split(r"([0-9]+)", field)]


def field_sets(replay: Replay, largest: int) -> list[Fields]:
    """Sets of at least two fields that separate keys of one graph, the most frequent first."""
    table = replay.table
    names = table.varying
    missing = {replay.history.key[at] for at in replay.misses}
    values = list(zip(*map(table.column, names), strict=True)) or [()] * len(table.with_details)
    graph_of = table.column("gm") if "gm" in names else [0] * len(values)
    graphs = by_key(
        ((graph, table.keys[key].home), (one, key in missing))
        for key, graph, one in zip(table.with_details, graph_of, values, strict=True)
    )
    partners = max(_FEWEST_PARTNERS, _COMPARISONS // max(len(names) * len(values), 1))
    count = Counter(found for keys in graphs.values() for found in _differing(keys, partners, largest))
    sets = {frozenset(compress(names, differs)): times for differs, times in count.items()}
    return sorted(sets, key=lambda fields: (-sets[fields], sorted(fields)))[:_SETS]


def _differing(
    keys: Sequence[tuple[tuple[int, ...], bool]], partners: int, largest: int
) -> Iterator[tuple[bool, ...]]:
    """For pairs of keys of one graph, the fields in which they differ. Each key is given by its values and whether it was missed.

    Every key is compared with the first, and with so many before it. Of the larger sets, only that of its nearest counts.
    """
    if sum(len(set(column)) > 1 for column in zip(*(key for key, _ in keys), strict=True)) < 2:
        return
    for at, (key, was_missed) in enumerate(keys[1:], 1):
        nearest: tuple[bool, ...] = ()
        smallest = len(key) + 1
        for other, other_was_missed in (keys[0], *reversed(keys[max(1, at - partners) : at])):
            if not (was_missed or other_was_missed):
                continue
            differs = tuple(map(ne, key, other))
            size = sum(differs)
            if 1 < size <= largest:
                yield differs
            if 0 < size < smallest:
                nearest, smallest = differs, size
        if nearest and max(largest, 1) < smallest:
            yield nearest
