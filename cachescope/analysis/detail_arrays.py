"""Hash details as arrays of numpy, for what looks at the fields of many sets at once."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cachescope.component_sets import ComponentSets
from cachescope.details import HashDetails

Codes = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.int64]


def as_array(codes: array[int]) -> Codes:
    """Codes of a store as an array of numpy; a copy, for the store may grow."""
    return np.array(codes, dtype=np.int32)


def differing(details: HashDetails, sets: Sequence[int]) -> tuple[Codes, Codes]:
    """The fields in which some sets differ, and the hashes of each set there."""
    bases, sizes, places, codes = joined(details.sets, sets)
    field_codes, hash_codes = as_array(details.field_codes), as_array(details.hash_codes)

    def by_field(components: array[int]) -> Codes:
        found = np.full(len(details.fields), -1, dtype=np.int32)
        found[field_codes[components]] = hash_codes[components]
        return found

    by_base = {base: by_field(details.sets.base(base)) for base in np.unique(bases).tolist()}
    rows = np.repeat(np.arange(len(sets)), sizes)
    # The rows of sets that somewhere have another field than their base, or that have a field twice.
    is_odd = np.zeros(len(sets), dtype=bool)
    for base in by_base:
        if not details.has_each_field_once(base):
            is_odd[bases == base] = True
        mine = bases[rows] == base
        layout = field_codes[details.sets.base(base)]
        is_odd[rows[mine][layout[places[mine]] != field_codes[codes[mine]]]] = True
    by_row = {row: by_field(details.sets[sets[row]]) for row in np.flatnonzero(is_odd).tolist()}
    kept = ~is_odd[rows]
    rows, codes = rows[kept], codes[kept]
    patched = field_codes[codes]
    first = by_base[int(bases[0])]
    varies = np.logical_or.reduce([one != first for one in (*by_base.values(), *by_row.values())])
    varies[patched] = True
    fields = np.flatnonzero(varies).astype(np.int32)
    hashes = np.empty((len(sets), len(fields)), dtype=np.int32)
    for base, held in by_base.items():
        hashes[bases == base] = held[fields]
    hashes[rows, (np.cumsum(varies) - 1)[patched]] = hash_codes[codes]
    for row, held in by_row.items():
        hashes[row] = held[fields]
    differs = (hashes != hashes[0]).any(axis=0)
    return fields[differs], hashes[:, differs]


def joined(sets: ComponentSets, numbers: Sequence[int]) -> tuple[Codes, Numbers, Codes, Codes]:
    """The parts of many sets, concatenated: their bases, the number of positions of each, the positions, the codes."""
    records = [sets.record(number) for number in numbers]
    every = np.frombuffer(b"".join(records), dtype=np.int32)
    lengths = np.array([len(record) for record in records], dtype=np.int64) // every.itemsize
    starts = np.cumsum(lengths) - lengths
    sizes = lengths // 2
    place = np.repeat(starts + 1 - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())
    return every[starts], sizes, every[place], every[place + np.repeat(sizes, sizes)]
