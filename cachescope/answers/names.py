"""Short names of runs, lookups, baselines and fields."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from cachescope.analysis.history.history import History
from cachescope.analysis.history.timeline import NotStored
from cachescope.analysis.verdicts.replaced_graphs import SeenKey
from cachescope.answers.facts import Facts
from cachescope.frames.answer_rows import CauseRow, MissRow
from cachescope.frames.compile_rows import CompileRow, RecompileRow, SymbolRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.keys.key_fields import is_input
from cachescope.notebook_cells import code_file
from cachescope.readers.kinds import shown
from cachescope.verdict_kinds import kind_of
from cachescope.wording import function_name, harmless, listed, numbered, place_text, plural, short, short_key

Placed = LookupRow | CompileRow | SymbolRow | RecompileRow

_NAMES: Final = {"gm": "graph (gm)"}
_LABEL: Final = 40
# The part that names of options share. The rest tells them apart.
_OPTION: Final = re.compile(r"(?:inductor_config|fx_kwargs)\[(?P<name>[^\[\]]+)\]")


def in_compile(facts: Facts, row: LookupRow, *, beside: LookupRow | None = None) -> str:
    """``, compile 0/0 of forward (model.py:88)``, without the function if it is unknown or that of `beside`; empty without a compile id."""
    if row.compile_id is None:
        return ""
    is_same = beside is not None and place_of(beside) == place_of(row)
    place = None if is_same else place_name(row, facts.files)
    return harmless(f", compile {row.compile_id}" + (f" of {place}" if place else ""))


def place_name(place: Placed, files: Mapping[str, str], *others: Placed) -> str | None:
    """``Net.forward (model.py:88)``; None if neither function nor file is known."""
    file = None if place.file is None else files.get(place.file, place.file)
    return place_text(function_name(place, *others), file, place.line)


def lookup_name(row: LookupRow | SeenKey) -> str:
    """``fxgraph fuyebj4t…``, with the direction of a backward graph."""
    key = "(no key)" if row.cache_key is None else short_key(row.cache_key)
    return f"{cache_name(row)} {harmless(key)}"


def cache_name(row: LookupRow | SeenKey) -> str:
    """The cache that was used, and whether for a backward graph."""
    return f"{row.cache} backward" if row.direction == "backward" else row.cache


def run_name(facts: Facts, run: int) -> str:
    """``run 1 (--bs 16, rank 0, pid 17905, 13:49:03)``, with what tells its command from others; times are UTC."""
    row = facts.runs[run]
    told = [] if row.label is None else [harmless(short(row.label, _LABEL))]
    told += ["pre-flight"] if row.is_preflight else []
    told += [f"{name} {one}" for name, one in (("rank", row.rank), ("pid", row.pid)) if one is not None]
    if row.start_time is not None:
        told.append(facts.clock(row.start_time))
    return f"run {run}" + (f" ({', '.join(told)})" if told else "")


def runs_name(facts: Facts, runs: Sequence[int]) -> str:
    """``4 runs (--bs 16, ranks 0-3, 13:49:03)``: how many, what they share, and when the first began. A single run has its own name."""
    if len(runs) == 1:
        return run_name(facts, runs[0])
    rows = [facts.runs[run] for run in runs]
    labels = {row.label for row in rows}
    ranks = sorted({row.rank for row in rows if row.rank is not None})
    begun = [row.start_time for row in rows if row.start_time is not None]
    told = [harmless(short(label, _LABEL)) for label in labels if label is not None and len(labels) == 1]
    told.append(numbered("rank", ranks) if ranks else f"first run {min(runs)}")
    told += [facts.clock(min(begun))] if begun else []
    return f"{len(rows):,} runs ({', '.join(told)})"


def baseline_name(facts: Facts, miss: MissRow, history: History) -> str | None:
    """What a miss was compared with, in words; None if there is nothing."""
    if miss.baseline_lookup is not None:
        row, own = facts.lookups[miss.baseline_lookup], facts.lookups[miss.lookup]
        there = other_directory(miss, history)
        where = f", in another directory ({harmless(shown(there))})" if there else ""
        return f"{run_name(facts, row.run)}, {lookup_name(row)}{in_compile(facts, row, beside=own)}{where}"
    if miss.baseline_entry is not None:
        entry = facts.entries[miss.baseline_entry]
        return f"the entry {harmless(short_key(entry.cache_key or ''))} of {harmless(shown(entry.root))}"
    return None


def other_directory(miss: MissRow, history: History) -> str | None:
    """The directory of the baseline, if its key and directory differ from those of the miss; None otherwise, or if not known."""
    if miss.baseline_lookup is None:
        return None
    at, before = history.index_of[miss.lookup], history.index_of[miss.baseline_lookup]
    here, there = history.folders[at], history.folders[before]
    # For an equal key, the reason says so.
    is_of_key = history.lookups[before].cache_key == history.lookups[at].cache_key
    if is_of_key or here is None or here == there or _may_lie_there_too(history, history.lookups[before], at):
        return None
    return there


def _may_lie_there_too(history: History, before: LookupRow, at: int) -> bool:
    """Whether the directory of a lookup may hold what another one had stored elsewhere: it is a copy, or a mega-cache was loaded."""
    here, row = history.folders[at], history.lookups[at]
    first = history.lookups[history.folders.index(here)].run
    filled = next(run.filled_dir for run in history.runs if run.run == first)
    if filled is not None and history.place_of(filled) == here:
        return True  # what others had stored in it is not known
    held = (one for one in history.entries_of(before) if history.place_of(one.root) == here)
    own = [one for one in held if row.time and one.modified_time and one.modified_time <= row.time]
    # The entry may be one that a later run stored there.
    return bool(own) and not any(
        one > at and history.folders[one] == here and history.has_stored(one)
        for one in history.lookups_of(own[0])
    )


def why_never_stored(miss: MissRow, history: History) -> NotStored | None:
    """Why nothing was stored under the baseline's key, so that its fields would find nothing; None if something may be stored."""
    if miss.baseline_lookup is None or not miss.changed or kind_of(miss).cost not in ("fields", "avoidable"):
        return None
    return history.never_stored(history.index_of[miss.baseline_lookup])


def is_named_by_fields(cause: CauseRow) -> bool:
    """Whether the changed fields are all that is said of a cause in short."""
    return cause.summary == ", ".join(cause.fields)


def lookups_of_cause(cause: CauseRow) -> str:
    """``3 misses``, ``2 bypassed``: a cause counts in the words of the headline, where a bypass is no miss."""
    count = cause.misses
    return plural(count, "miss") if kind_of(cause).is_miss else f"{count:,} {cause.verdict}"


def lookup_in_run(facts: Facts, row: LookupRow) -> str:
    """A lookup with the run and the compile it is of."""
    return f"{run_name(facts, row.run)}{in_compile(facts, row)}: {lookup_name(row)}"


def place_of(row: Placed) -> tuple[str | None, str | None, int | None]:
    """What is the same of a place in all processes."""
    return row.function, code_file(row.file), row.line


def short_field(field: str) -> str:
    """A field without what the names of options share.

    Examples
    --------
    >>> short_field("inductor_config[epilogue_fusion]"), short_field("gm")
    ('epilogue_fusion', 'graph (gm)')
    """
    return _NAMES.get(field) or _OPTION.sub(r"\g<name>", field)


def fields_text(fields: Sequence[str], most: int, names: Mapping[str, str] | None = None) -> str:
    """Changed fields in short, several inputs by their number and last; under `names` where fields of one short name are to be told apart.

    Examples
    --------
    >>> fields_text(["example_inputs[0]", "example_inputs[2]", "gm"], 4)
    'graph (gm), 2 inputs'
    """
    inputs = [field for field in fields if is_input(field)]
    others = [field for field in fields if not is_input(field)]
    shown = dict.fromkeys(short_field(field) if names is None else names[field] for field in others)
    told = inputs if len(inputs) < 2 else [f"{len(inputs)} inputs"]
    return listed([*shown, *told], most)


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
