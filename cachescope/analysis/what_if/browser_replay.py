"""What a replay works on as integers alone, for a replay elsewhere: in a browser, where no hash and no text is needed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from cachescope.analysis.what_if.cells import Cell
from cachescope.analysis.what_if.replay import Replay
from cachescope.keys.isolation import FORMS
from cachescope.keys.key_schema import VERSION_FIELD, form_fields

Column = list[int]


@dataclass(frozen=True, slots=True)
class MissCodes:
    """The recorded misses in time order, by column."""

    at: Column  # the position of each among all lookups
    cell: Column  # its place in the cells; -1 if its key can never become equal to another one
    # For a graph whose AOTAutograd lookup missed too, the place of that miss; -1 for the others.
    aot: Column
    is_open: Column  # whether it may have hit anything under other keys
    taken: Column  # the compile time in nanoseconds; -1 if it has none


@dataclass(frozen=True, slots=True)
class CellCodes:
    """The cells whose keys can become equal to others, by column."""

    home: Column  # the cache, direction and directory of each: cells of different homes never become one
    is_aot: Column


@dataclass(frozen=True, slots=True)
class EventCodes:
    """What happens to the entries of the cells, by column."""

    at: Column  # the position of the first miss that sees it
    cell: Column  # the place in the cells
    source: Column  # the place of the miss that stored the entry; -1 if no recorded miss did
    more: Column  # 1 if it comes, -1 if it goes
    guards: Column  # a number for each, 0 if it has none; -1 if they, or whether it is there, are not known


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
    values: dict[int, Column]


@dataclass(frozen=True, slots=True)
class ReplayCodes:
    """Everything that a replay needs, without a text but the names of fields and forms."""

    misses: MissCodes
    cells: CellCodes
    events: EventCodes
    fields: tuple[str, ...]  # the fields that vary
    # For each field, the value in each cell: equal numbers within a home mean equal hashes, and 0 is the most
    # frequent.
    values: Sequence[Column]
    forms: tuple[Form, ...]  # the context forms that distinguish keys
    parted: Parted | None  # none if no field varies of which forms remove parts

    @classmethod
    def of(cls, replay: Replay) -> ReplayCodes:
        """Take them from what all replays of a scope share."""
        table, keys = replay.table, replay.cells.keys
        chosen = [cell for cell in replay.cells.every if cell.key in table.can_join]
        homes = list(dict.fromkeys(key.home for key in keys))
        directories = replay.cells.directories.count
        of_cell = [homes.index(keys[cell.key].home) * directories + cell.directory for cell in chosen]
        number = {home: at for at, home in enumerate(sorted(set(of_cell)))}
        home = [number[one] for one in of_cell]
        place_of_key = {key: at for at, key in enumerate(table.with_details)}
        places = [place_of_key[cell.key] for cell in chosen]
        fields = tuple(table.varying)
        forms, parts_of = _forms(table.fields, fields)
        values_of = {
            bits: _by_frequency(home, table.column_without(VERSION_FIELD, parts), places)
            for bits, parts in parts_of.items()
        }
        return cls(
            _misses(replay, chosen),
            CellCodes(home, [replay.is_aot(cell) for cell in chosen]),
            _events(replay, chosen),
            fields,
            [_by_frequency(home, table.column(field), places) for field in fields],
            forms,
            Parted(fields.index(VERSION_FIELD), values_of) if values_of else None,
        )


def _misses(replay: Replay, chosen: Sequence[Cell]) -> MissCodes:
    place_of_cell = {cell: place for place, cell in enumerate(chosen)}
    place = {at: number for number, at in enumerate(replay.misses)}
    aot = {at: place[above] for at, above in replay.graphs.items()}
    is_open = set(replay.unknown)
    return MissCodes(
        replay.misses,
        [place_of_cell.get(replay.cell_of(at), -1) for at in replay.misses],
        [aot.get(at, -1) for at in replay.misses],
        [at in is_open for at in replay.misses],
        [-1 if (time := replay.taken[at]) is None else time for at in replay.misses],
    )


def _events(replay: Replay, chosen: Sequence[Cell]) -> EventCodes:
    place = {at: number for number, at in enumerate(replay.misses)}
    codes: dict[str | None, int] = {None: -1, "": 0}
    events = [(event, number) for number, cell in enumerate(chosen) for event in cell.events]
    return EventCodes(
        [event.at for event, _ in events],
        [number for _, number in events],
        [place.get(event.by, -1) for event, _ in events],
        [event.more for event, _ in events],
        [codes.setdefault(event.guards, len(codes) - 1) for event, _ in events],
    )


def _by_frequency(home: Column, column: Column, places: Sequence[int]) -> Column:
    """The values of some keys renumbered within each home: the most frequent is 0, of equally frequent ones the first."""
    pairs = [(one, column[place]) for one, place in zip(home, places, strict=True)]
    rank: dict[tuple[int, int], int] = {}
    of_home: Counter[int] = Counter()
    for pair, _ in Counter(pairs).most_common():
        rank[pair] = of_home[pair[0]]
        of_home[pair[0]] += 1
    return [rank[pair] for pair in pairs]


def _forms(
    fields: Sequence[str], varying: Sequence[str]
) -> tuple[tuple[Form, ...], dict[int, frozenset[str]]]:
    """The forms; and the parts of a varying field that some of them remove, by the sum of their bits."""
    place = {field: at for at, field in enumerate(varying)}
    found, bit_of = [], dict[str, int]()
    for name in FORMS:
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
