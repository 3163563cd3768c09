"""What would have hit under other keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import pandas as pd

from cachescope.analysis.what_if.causes import causes_frame
from cachescope.analysis.what_if.evidence import SafetyOfFields
from cachescope.analysis.what_if.frames import (
    ReplayInput,
    differences_frame,
    lookups_frame,
    rates_frame,
    runs_frame,
    warnings_frame,
)
from cachescope.analysis.what_if.key_values import Lanes
from cachescope.analysis.what_if.recorded import Outcomes
from cachescope.answers.chosen import Chosen
from cachescope.answers.names import lookup_in_run, run_name
from cachescope.answers.read import Read
from cachescope.answers.summary import headline
from cachescope.columns import DEEP, rows_of
from cachescope.frames.replay_rows import WhatIfDifference
from cachescope.keys.key_fields import Removed
from cachescope.keys.key_schema import KeySchema


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
    removed: Removed = field(repr=False)
    _input: ReplayInput = field(repr=False, compare=False)
    _after: Outcomes = field(repr=False, compare=False)

    @property
    def frame(self) -> pd.DataFrame:
        """One row per lookup, before and after."""
        return self._frame.copy(deep=DEEP)

    @property
    def rates(self) -> pd.DataFrame:
        """Hit rates as recorded, and as they would have been."""
        return self._rates.copy(deep=DEEP)

    def rates_of(self, chosen: Chosen) -> pd.DataFrame:
        """The rates of some of the lookups; all were replayed."""
        return self.rates if chosen.is_all else rates_frame(self._input, self._after, chosen.rows)

    @cached_property
    def by_cause(self) -> pd.DataFrame:
        """Per cause, how many of its misses would have hit, and why the others would not."""
        frames = self.read.causes, self.read.misses
        return causes_frame(self._input, self.removed, self._after, *frames)

    @cached_property
    def by_run(self) -> pd.DataFrame:
        """Per run, how many lookups would have hit."""
        return runs_frame(self._input, self._after)

    @cached_property
    def differences(self) -> pd.DataFrame:
        """Recorded outcomes that do not follow from what was stored: something happened from outside."""
        replay = self._input.replay
        if not replay.cells.differences:
            return differences_frame(self._input, {})
        reasons = {lookup: miss.reason for lookup, miss in self.read.facts.misses.items()}
        return differences_frame(self._input, reasons)

    @property
    def has_lookups(self) -> bool:
        """Whether there is anything to be replayed."""
        return bool(self.read.facts.lookups)

    @property
    def headline(self) -> str:
        """What was recorded, in one line."""
        return headline(self.read)

    @property
    def not_replayed(self) -> tuple[tuple[str, WhatIfDifference], ...]:
        """The rows of `differences`, each with what its lookup is called."""
        facts = self.read.facts
        return tuple(
            (lookup_in_run(facts, facts.lookups[row.lookup]), row)
            for row in rows_of(self.differences, WhatIfDifference)
        )

    def run_name(self, run: int) -> str:
        """What a run is called."""
        return run_name(self.read.facts.runs[run])

    @property
    def of_vllm(self) -> int:
        """How many lookups of vLLM's own there are, which are not replayed."""
        return int(self._input.replay.recorded.lookups.is_of_vllm.sum())

    @property
    def has_unknown_directories(self) -> bool:
        """Whether some run does not say which cache directory it had."""
        return not self._input.replay.directories.are_all_known

    @property
    def fields(self) -> list[str]:
        """Every field that some key has."""
        return self._input.replay.table.fields

    @property
    def varying(self) -> tuple[str, ...]:
        """The fields that have more than one value in what was recorded."""
        return tuple(self._input.replay.table.varying)

    @property
    def has_generated_code(self) -> bool:
        """Whether entries were read, so that generated code could be compared."""
        return any(entry.code_key is not None for entry in self._input.history.entries)

    @cached_property
    def warnings(self) -> pd.DataFrame:
        """Pairs of entries that would share a key and hold different code, generated or compiled."""
        read = self.read
        return warnings_frame(self._input, self._lanes, read.generated_code, read.past_misses)

    @cached_property
    def safety(self) -> tuple[tuple[str, str], ...]:
        """What is known about leaving out each field that was left out and that varies."""
        spoken = SafetyOfFields(self.read.evidence)
        left_out = [name for name in self.varying if name in self.removed.fields]
        return tuple((name, spoken.on([name]).advice) for name in left_out)

    @cached_property
    def _frame(self) -> pd.DataFrame:
        return lookups_frame(self._input, self.read.lookups, self._after, self._lanes)

    @cached_property
    def _lanes(self) -> Lanes:
        return self._input.replay.table.lanes(self.removed)

    @cached_property
    def _rates(self) -> pd.DataFrame:
        return rates_frame(self._input, self._after)

    @classmethod
    def of(cls, read: Read, schema: KeySchema) -> Self:
        """Replay the lookups that were read under a schema."""
        replayed = read.replayed
        table = replayed.replay.table
        removed = schema.removed(table.fields, table.is_tensor)
        return cls(schema, read, removed, replayed, replayed.replay.outcomes(removed))
