"""What would have hit under other keys."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

from cachescope.analysis.what_if.causes import cause_rows
from cachescope.analysis.what_if.replay import Replayed
from cachescope.analysis.what_if.results import (
    changed_lookups,
    difference_rows,
    lookup_rows,
    rate_rows,
    run_rows,
    warning_rows,
)
from cachescope.answers.chosen import Chosen
from cachescope.answers.read import Read
from cachescope.frames.replay_rows import (
    WhatIfCause,
    WhatIfDifference,
    WhatIfRate,
    WhatIfRow,
    WhatIfRun,
    WhatIfWarning,
)
from cachescope.keys.key_schema import KeySchema, Removed
from cachescope.table import Table, copied, tabled


@dataclass(frozen=True)
class WhatIf:
    """What a replay under other keys says.

    Attributes
    ----------
    schema : KeySchema
        What counted.
    frame, rates, by_cause, by_run, differences, warnings : DataFrame
        See ``describe("what_if")``, ``what_if_rates``, ``what_if_causes``, ``what_if_runs``,
        ``what_if_differences`` and ``what_if_warnings``.
    """

    schema: KeySchema
    read: Read = field(repr=False)
    _replayed: Replayed = field(repr=False, compare=False)

    lookup_table = tabled(WhatIfRow, lambda one: lookup_rows(one._replayed, one.read.facts.lookups))
    rate_table = tabled(WhatIfRate, lambda one: rate_rows(one._replayed))
    cause_table = tabled(
        WhatIfCause, lambda one: cause_rows(one._replayed, one.read.explained.rows, one.read.missed.rows)
    )
    run_table = tabled(WhatIfRun, lambda one: run_rows(one._replayed))
    difference_table = tabled(
        WhatIfDifference, lambda one: difference_rows(one._replayed.replay, one._reasons)
    )
    warning_table = tabled(
        WhatIfWarning,
        lambda one: warning_rows(one._replayed, one.read.generated_code, one.read.missed_before.rows),
    )

    # fmt: off
    frame = copied(lambda one: one.lookup_table, "One row per lookup, before and after.")
    rates = copied(lambda one: one.rate_table, "Hit rates as recorded, and as they would have been.")
    by_cause = copied(lambda one: one.cause_table, "Per cause, how many of its misses would have hit, and why the others would not.")
    by_run = copied(lambda one: one.run_table, "Per run, how many lookups would have hit.")
    differences = copied(lambda one: one.difference_table, "Recorded outcomes that do not follow from what was stored: something happened from outside.")
    warnings = copied(lambda one: one.warning_table, "Pairs of entries that would share a key and hold different code, generated or compiled.")
    # fmt: on

    @property
    def removed(self) -> Removed:
        """What did not count."""
        return self._replayed.removed

    @property
    def _reasons(self) -> dict[int, str]:
        """Why lookups missed, where some outcome does not follow from what was stored."""
        is_any = self._replayed.replay.cells.differences
        return {lookup: miss.reason for lookup, miss in self.read.facts.misses.items()} if is_any else {}

    @property
    def changed(self) -> dict[int, tuple[str | None, int | None]]:
        """The lookups that change sides or of which that is not known: the outcome then, and the compile time won."""
        return changed_lookups(self._replayed)

    def key_counts(self, chosen: Chosen) -> tuple[int, int, int]:
        """Of some lookups the distinct keys, the distinct what-if keys, and how many of these represent several keys."""
        index_of, key_of = self._replayed.replay.history.index_of, self._replayed.replay.history.key
        keys = {key_of[index_of[row.lookup]] for row in chosen.rows} - {None}
        equal = self._replayed.equal
        sizes = Counter(equal[key][0] if key in equal else key for key in keys)
        return len(keys), len(sizes), sum(size > 1 for size in sizes.values())

    def rates_of(self, chosen: Chosen) -> Table[WhatIfRate]:
        """The rates of some of the lookups; all were replayed."""
        if chosen.is_all:
            return self.rate_table
        return Table(WhatIfRate, rate_rows(self._replayed, chosen.rows))

    @cached_property
    def safety(self) -> tuple[tuple[str, str], ...]:
        """What is known about leaving out each field that was left out and that varies."""
        spoken = self.read.field_safety
        left_out = [name for name in self.read.replay.table.varying if name in self.removed.fields]
        return tuple((name, spoken.on([name]).advice) for name in left_out)

    @classmethod
    def of(cls, read: Read, schema: KeySchema) -> Self:
        """Replay the lookups that were read under a schema."""
        table = read.replay.table
        return cls(schema, read, Replayed(read.replay, schema.removed(table.fields, table.is_tensor)))
