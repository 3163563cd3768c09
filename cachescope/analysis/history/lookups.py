"""The lookups in time order, held as columns: each takes about 100 bytes, even for a million, and a row is made only when needed.

Texts are numbered, so that a question about a million texts is answered for the few distinct ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache
from typing import Any, Final, Self, overload

import numpy as np
import numpy.typing as npt
import pandas as pd

from cachescope.analysis.history.places_by_group import NONE, Numbers, numbered, paired
from cachescope.analysis.history.rows import LookupRow
from cachescope.columns import nanoseconds_of, texts_of
from cachescope.details import HashDetails
from cachescope.terms import AOTAUTOGRAD, FXGRAPH, VLLM

Codes = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

MISSING: Final = -(2**63)
"""The time, and the duration, that no log has."""
# Of so many texts at most, all are at hand as Python's; of a million keys each is fetched when it is asked for.
_AT_HAND: Final = 1 << 16
_ROWS_AT_HAND: Final = 1 << 13
_FEW: Final = 1000
_BEFORE_ALL: Final = -(2**62)


class Texts:
    """A column of texts: the number of each, -1 for a missing one, and the distinct texts by their numbers."""

    def __init__(self, codes: Codes, distinct: list[str] | Any) -> None:
        self.codes = codes
        self._distinct = distinct

    @classmethod
    def of(cls, values: pd.Series[Any]) -> Self:
        """The values of a column of a frame."""
        if len(values) < _FEW:
            return cls.of_listed(texts_of(values))
        codes, distinct = pd.factorize(values)
        at_hand = distinct.tolist() if len(distinct) <= _AT_HAND else distinct
        return cls(codes.astype(np.int32), at_hand)

    @classmethod
    def of_listed(cls, values: Iterable[str | None]) -> Self:
        """A list of values; of many, `of` is quicker, and of few, this."""
        numbers: dict[str, int] = {}
        codes = [-1 if text is None else numbers.setdefault(text, len(numbers)) for text in values]
        return cls(np.array(codes, dtype=np.int32), list(numbers))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, at: int) -> str | None:
        return self.text(self.codes[at])

    def text(self, code: int | np.int32) -> str | None:
        """The text that has a number; None for -1."""
        return None if code < 0 else self._distinct[code]

    def listed(self) -> list[str | None]:
        """Every value."""
        distinct: list[str | None] = [*self._distinct, None]
        return [distinct[code] for code in self.codes.tolist()]

    @property
    def distinct(self) -> list[str]:
        """The distinct texts by their numbers."""
        return list(self._distinct)

    @property
    def is_known(self) -> Flags:
        """Which are not missing."""
        known: Flags = self.codes >= 0
        return known

    def codes_of(self, texts: Collection[str]) -> dict[str, int]:
        """The numbers of those of some texts that are in the column."""
        if isinstance(self._distinct, list):
            return {text: code for code, text in enumerate(self._distinct) if text in texts}
        codes = np.flatnonzero(self._distinct.isin(list(texts))).tolist()
        return {self._distinct[code]: code for code in codes}

    def are(self, *texts: str) -> Flags:
        """Which are one of some texts."""
        return np.isin(self.codes, list(self.codes_of(texts).values()))

    def take(self, order: Numbers) -> Texts:
        """The same in another order."""
        return Texts(self.codes[order], self._distinct)


@dataclass(frozen=True, eq=False)
class Lookups(Sequence[LookupRow]):
    """Lookups in time order: a sequence of rows, and the columns that they are made of.

    The columns are named as the attributes of `LookupRow`. A number that no log has is -1, a time or duration `MISSING`.
    """

    lookup: Numbers
    run: Numbers
    order: Numbers
    time: Numbers
    end_time: Numbers
    cache: Texts
    cache_key: Texts
    outcome: Texts
    status_detailed: Texts
    cache_state: Texts
    compile_id: Texts
    direction: Texts
    aot_lookup: Numbers
    bypass_reason: Texts
    save_bypass: Texts
    load_error: Texts
    guards_expr: Texts
    time_taken_ns: Numbers
    detail_set: Numbers
    gm: Numbers
    details: Texts
    segment: Numbers
    save_error: Texts
    compile_error: Texts
    compile_ended: Numbers
    entry_path: Texts
    function: Texts
    file: Texts
    aot_mode: Numbers
    bypass_exception: Texts
    prediction: Texts
    preflight_note: Texts

    @classmethod
    def of_frame(cls, lookups: pd.DataFrame, store: HashDetails) -> Self:
        """The frame lookups, in time order; a run without times keeps the place of its number.

        The lookups of a run stay in the order in which torch made them, even if a clock was set back. What a pre-flight
        predicts comes after all that was made: nothing was stored by it, and it would find what others stored.
        """
        made: dict[str, Any] = {
            name: _column(lookups[name], name) for name in LookupRow.__dataclass_fields__ if name != "gm"
        }
        made["gm"] = _graphs_of(made["detail_set"], store)
        times = _times_to_sort_by(made["time"], made["run"])
        order = np.lexsort((made["lookup"], times, made["prediction"].is_known))
        made = {name: c.take(order) if isinstance(c, Texts) else c[order] for name, c in made.items()}
        return cls(**made)

    @classmethod
    def of_rows(cls, rows: Sequence[LookupRow]) -> Self:
        """Rows that are in time order."""
        listed = {name: [getattr(row, name) for row in rows] for name in LookupRow.__dataclass_fields__}
        made: dict[str, Any] = {name: _listed_column(values, name) for name, values in listed.items()}
        return cls(**made)

    def __len__(self) -> int:
        return len(self.lookup)

    @overload
    def __getitem__(self, at: int) -> LookupRow: ...
    @overload
    def __getitem__(self, at: slice) -> list[LookupRow]: ...
    def __getitem__(self, at: int | slice) -> LookupRow | list[LookupRow]:
        if isinstance(at, slice):
            return [self[one] for one in range(len(self))[at]]
        return self._row(at)

    @cached_property
    def _row(self) -> Callable[[int], LookupRow]:
        # Many lookups are compared with the same few.
        return lru_cache(_ROWS_AT_HAND)(self._made_row)

    def _made_row(self, at: int) -> LookupRow:
        return LookupRow(
            int(self.lookup[at]),
            int(self.run[at]),
            int(self.order[at]),
            known(self.time[at]),
            known(self.end_time[at]),
            self.cache_of(at),
            self.cache_key[at],
            self.outcome[at] or "",
            self.status_detailed[at],
            self.cache_state[at],
            self.compile_id[at],
            self.direction[at],
            _number(self.aot_lookup[at]),
            self.bypass_reason[at],
            self.save_bypass[at],
            self.load_error[at],
            self.guards_expr[at],
            known(self.time_taken_ns[at]),
            _number(self.detail_set[at]),
            _number(self.gm[at]),
            self.details[at],
            int(self.segment[at]),
            self.save_error[at],
            self.compile_error[at],
            _flag(self.compile_ended[at]),
            self.entry_path[at],
            self.function[at],
            self.file[at],
            _flag(self.aot_mode[at]),
            self.bypass_exception[at],
            self.prediction[at],
            self.preflight_note[at],
        )

    def __iter__(self) -> Iterator[LookupRow]:
        return map(self.__getitem__, range(len(self)))

    def with_outcome(self, outcome: str, places: Sequence[int]) -> Lookups:
        """The same, but for the outcome at some places."""
        texts = self.outcome.distinct
        texts += [] if outcome in texts else [outcome]
        codes = self.outcome.codes.copy()
        codes[list(places)] = texts.index(outcome)
        return replace(self, outcome=Texts(codes, texts))

    @cached_property
    def is_hit(self) -> Flags:
        """Which found an entry and used it."""
        return self.outcome.are("hit")

    @cached_property
    def is_miss(self) -> Flags:
        """Which found no usable entry."""
        return self.outcome.are("full_miss", "guard_miss")

    @cached_property
    def is_aot(self) -> Flags:
        """Which were made in the AOTAutograd cache."""
        return self.cache.are(AOTAUTOGRAD)

    @cached_property
    def is_fx(self) -> Flags:
        """Which were made in the FX graph cache."""
        return self.cache.are(FXGRAPH)

    @cached_property
    def is_of_vllm(self) -> Flags:
        """Which are vLLM's own, which no rule of torch's caches holds for."""
        return self.cache.are(VLLM)

    @cached_property
    def key(self) -> Numbers:
        """The number of the key of each in its cache; -1 for a lookup without a key."""
        return paired(self.cache_key.codes.astype(np.int64), self.cache.codes.astype(np.int64))

    @cached_property
    def run_number(self) -> Numbers:
        """The number of the run of each, counted from 0 in the order in which they appear."""
        return numbered(self.run)

    @cached_property
    def compiled_in(self) -> Numbers:
        """The number of the compile of each: one compile id in one run."""
        return paired(self.run_number, self.compile_id.codes.astype(np.int64))

    @cached_property
    def aot(self) -> Numbers:
        """The place of the AOTAutograd lookup that each was made under; -1 if there is none."""
        return self.places_of(self.aot_lookup)

    def cache_of(self, at: int) -> str:
        """The cache that a lookup was made in; every lookup has one."""
        return self.cache[at] or ""

    def place_of(self, lookup: int) -> int | None:
        """The place of the lookup that has an id; None if there is none."""
        ids, order = self._by_id
        at = int(ids.searchsorted(lookup))
        return int(order[at]) if at < len(ids) and ids[at] == lookup else None

    @cached_property
    def _by_id(self) -> tuple[Numbers, Numbers]:
        order = np.argsort(self.lookup, kind="stable")
        return self.lookup[order], order

    def places_of(self, lookups: Numbers) -> Numbers:
        """The places of lookups, given by their ids; -1 for an id that none has."""
        if not len(self):
            return np.full(len(lookups), NONE, dtype=np.int64)
        ids, order = self._by_id
        found = order[np.minimum(ids.searchsorted(lookups), len(order) - 1)]
        places: Numbers = np.where(self.lookup[found] == lookups, found, NONE)
        return places


def known(value: np.int64) -> int | None:
    """A time or duration; None for one that no log has."""
    return None if value == MISSING else int(value)


def _number(value: np.int64) -> int | None:
    return None if value < 0 else int(value)


def _flag(value: np.int64) -> bool | None:
    return None if value < 0 else bool(value)


_TEXTS: Final = frozenset(field.name for field in fields(Lookups) if field.type == "Texts")
_TIMES: Final = frozenset({"time", "end_time", "time_taken_ns"})


def _column(values: pd.Series[Any], name: str) -> Numbers | Texts:
    if name in _TEXTS:
        return Texts.of(values)
    if isinstance(values.dtype, pd.DatetimeTZDtype):
        # A missing time is the smallest number already.
        return nanoseconds_of(values)
    missing = MISSING if name in _TIMES else NONE
    numbers: Numbers = values.to_numpy(dtype=np.int64, na_value=missing)
    return numbers


def _listed_column(values: Sequence[Any], name: str) -> Numbers | Texts:
    if name in _TEXTS:
        return Texts.of_listed(values)
    missing = MISSING if name in _TIMES else NONE
    return np.array([missing if value is None else value for value in values], dtype=np.int64)


def _times_to_sort_by(time: Numbers, run: Numbers) -> Numbers:
    """The time of each lookup in the order of a frame; never less than that of the lookup before it in its run."""
    is_known = time != MISSING
    begins_again = is_known & (np.diff(run, prepend=NONE) != 0)
    stretch = np.cumsum(begins_again)
    latest = pd.Series(np.where(is_known, time, _BEFORE_ALL)).groupby(stretch).cummax().to_numpy()
    times: Numbers = np.where(stretch == 0, np.maximum(latest, 0), latest)
    return times


def _graphs_of(sets: Numbers, store: HashDetails) -> Numbers:
    """The hash code of the graph of each set; -1 if it has none."""
    distinct, which = np.unique(sets, return_inverse=True)
    found = [store.hash_code(code, "gm") if code >= 0 else None for code in distinct.tolist()]
    graphs: Numbers = np.array([NONE if graph is None else graph for graph in found], dtype=np.int64)[which]
    return graphs
