"""What a replay works on as integers alone, for a replay elsewhere: in a browser, where no hash and no text is needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from cachescope.analysis.detail_arrays import Codes
from cachescope.analysis.what_if.entries import Entries
from cachescope.analysis.what_if.frames import ReplayInput
from cachescope.analysis.what_if.recorded import MISS, NEVER, Flags, Positions
from cachescope.keys.isolation import CONTEXT_FORMS
from cachescope.keys.key_fields import VERSION_FIELD, form_fields


@dataclass(frozen=True, slots=True)
class MissCodes:
    """The recorded misses in time order, by column."""

    at: Positions  # the position of each among all lookups
    cell: Positions  # its place in the cells; -1 if its key can never become equal to another one
    # For a graph whose AOTAutograd lookup missed too, the place of that miss; -1 for the others.
    aot: Positions
    is_open: Flags  # whether it may have hit anything under other keys
    since: Positions  # from which position its result exists; `NEVER` if it stored nothing
    taken: Positions  # the compile time in nanoseconds; -1 if it has none


@dataclass(frozen=True, slots=True)
class CellCodes:
    """The cells whose keys can become equal to others, by column."""

    home: Positions  # the cache, direction and directory of each: cells of different homes never become one
    is_aot: Flags  # as `Replay` and `Cells` have them
    is_plain: Flags
    early: Positions  # since when it has an entry that no recorded miss stored


@dataclass(frozen=True, slots=True)
class Form:
    """A context form that removes something that varies."""

    name: str
    fields: tuple[int, ...]  # the varying fields that it removes, by their places
    part: int  # A bit of its own if it removes parts of a varying field; 0 if it does not


@dataclass(frozen=True, slots=True)
class Parted:
    """The field of which forms remove parts: its place, and its values without the parts of some forms, by the sum of their bits."""

    field: int
    values: dict[int, Positions]


@dataclass(frozen=True, slots=True)
class ReplayCodes:
    """Everything that a replay needs, without a text but the names of fields and forms."""

    misses: MissCodes
    cells: CellCodes
    # Those of the cells that are not plain; ``cell`` and ``source`` are places in `cells` and `misses`.
    entries: Entries
    fields: tuple[str, ...]  # the fields that vary
    # For each field, the value in each cell: equal numbers within a home mean equal hashes, and 0 is the most
    # frequent.
    values: Sequence[Positions]
    forms: tuple[Form, ...]  # the context forms that distinguish keys
    parted: Parted | None  # none if no field varies of which forms remove parts

    @classmethod
    def of(cls, replayed: ReplayInput) -> ReplayCodes:
        """Take them from what all replays of a scope share."""
        replay = replayed.replay
        table, cells = replay.table, replay.cells
        chosen = np.flatnonzero(table.set_of_key[cells.key] >= 0)
        keys = cells.key[chosen]
        home = table.keys.home[keys] * replay.directories.count + cells.directory[chosen]
        home = np.unique(home, return_inverse=True)[1]
        misses = np.flatnonzero(replay.recorded.outcome == MISS)
        fields = tuple(table.varying)
        forms, parts_of = _forms(table.fields, fields)
        values_of = {
            bits: _by_frequency(home, table.column_without(VERSION_FIELD, parts, keys))
            for bits, parts in parts_of.items()
        }
        return cls(
            _misses(replayed, misses, _places(chosen, len(cells))),
            CellCodes(home, replay.is_aot[chosen], cells.is_plain[chosen], cells.early[chosen]),
            _entries(replayed, chosen, _places(misses, len(replay.recorded.outcome))),
            fields,
            [_by_frequency(home, table.column(field, keys)) for field in fields],
            forms,
            Parted(fields.index(VERSION_FIELD), values_of) if values_of else None,
        )


def _places(chosen: Positions, count: int) -> Positions:
    """For each of so many, its place among those that are chosen; -1 if it is not; and -1 in the end, for the number -1."""
    places = np.full(count + 1, -1, dtype=np.int64)
    places[chosen] = np.arange(len(chosen))
    return places


def _misses(replayed: ReplayInput, misses: Positions, place_of_cell: Positions) -> MissCodes:
    replay = replayed.replay
    recorded, count = replay.recorded, len(replay.recorded.outcome)
    place = _places(misses, count)
    aot = np.full(count, -1, dtype=np.int64)
    aot[replay.graphs] = place[recorded.lookups.aot[replay.graphs]]
    is_open = np.zeros(count, dtype=bool)
    is_open[replay.unknown] = True
    return MissCodes(
        misses,
        place_of_cell[replay.cells.of_lookup[misses]],
        aot[misses],
        is_open[misses],
        np.where(recorded.storing, recorded.since, NEVER)[misses],
        replayed.times.taken[misses],
    )


def _entries(replayed: ReplayInput, chosen: Positions, place_of_miss: Positions) -> Entries:
    replay = replayed.replay
    of_walked = np.flatnonzero(~replay.cells.is_plain[chosen])
    entries, which = replay.entries.of(chosen[of_walked])
    return entries._replace(cell=of_walked[which], source=place_of_miss[entries.source])


def _by_frequency(home: Positions, values: Positions | Codes) -> Positions:
    """The values renumbered within each home: the most frequent is 0."""
    both = home * (int(values.max(initial=0)) + 1) + values
    distinct, first, number, count = np.unique(
        both, return_index=True, return_inverse=True, return_counts=True
    )
    of_home = home[first]
    order = np.lexsort((first, -count, of_home))
    rank = np.empty(len(distinct), dtype=np.int64)
    rank[order] = np.arange(len(distinct)) - np.searchsorted(of_home, of_home)[order]
    found: Positions = rank[number]
    return found


def _forms(
    fields: Sequence[str], varying: Sequence[str]
) -> tuple[tuple[Form, ...], dict[int, frozenset[str]]]:
    """The forms; and the parts of a varying field that some of them remove, by the sum of their bits."""
    place = {field: at for at, field in enumerate(varying)}
    found, bit_of = [], dict[str, int]()
    for name in (form for forms in CONTEXT_FORMS.values() for form in forms):
        removed = form_fields([name], fields)
        if place.keys() & removed.parts:
            bit_of[name] = 1 << len(bit_of)
        mine = tuple(sorted(place[field] for field in removed.fields if field in place))
        if mine or name in bit_of:
            found.append(Form(name, mine, bit_of.get(name, 0)))
    # All of them together remove the whole field.
    some = [chosen for count in range(1, len(bit_of)) for chosen in combinations(bit_of, count)]
    parts_of = {
        sum(map(bit_of.__getitem__, chosen)): form_fields(chosen, fields).parts[VERSION_FIELD]
        for chosen in some
    }
    return tuple(found), parts_of
