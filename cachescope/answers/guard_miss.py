"""The sizes for which guards of stored entries, or of another graph, did not hold; their lines in the program; and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Self

from cachescope.analysis.compiles.ranges import bounds_of
from cachescope.analysis.guards import (
    FailedGuards,
    failed_guards,
    failed_in,
    fails,
    in_words,
    is_one_size,
    is_same,
    only_placeholder,
    placeholders,
)
from cachescope.analysis.verdicts.misses import compile_of
from cachescope.answers.recording import Recording
from cachescope.frames.compile_rows import SymbolRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.readers.logs.trace_compiles import first_attempt
from cachescope.terms import AOTAUTOGRAD, FXGRAPH
from cachescope.wording import listed, short_names

_EXAMPLE_INPUTS: Final = "example_inputs["
# So many of the latest compiles that stored under the key: their traces are read.
_STORED: Final = 3


@dataclass(frozen=True, slots=True)
class GuardMiss:
    """A guard miss in full."""

    # ``x.size(0) is 5; the stored entry needs 11 to 4096, from `if x.shape[0] > 10` at model.py:88``.
    text: str
    advice: str  # what can be done

    @classmethod
    def of(cls, read: Recording, lookup: int, most_bytes: int | None = None) -> Self | None:
        """The guard miss of a lookup with the verdict ``guard_failed``; None if the traces do not show it, or there are none.

        Traces that were not yet read for compiles are read if they have no more than `most_bytes` together.
        """
        row = read.facts.lookups[lookup]
        stored = [read.facts.lookups[one.lookup] for one in _that_stored(read, row)[-_STORED:]]
        if not read.has_symbols_of({row.run, *(one.run for one in stored)}, most_bytes):
            return None
        failed = _failed(read, row, stored)
        if failed is None:
            return None
        needs = _entries(failed, how_many := _how_many_stored(read, row))
        text = _text(failed, needs, _lines(read, failed, stored))
        text += "; what the others need is not known" if failed.entries < how_many else ""
        why = " a key holds one entry for each set of guards (in AOTAutograd's cache since torch 2.8)."
        return cls(text, f"{_advice(failed, _inputs_of_graph(read, row))}:{why}")

    @classmethod
    def of_changed(
        cls, read: Recording, lookup: int, baseline: int, most_bytes: int | None = None
    ) -> Self | None:
        """The same for a lookup whose graph differs from the baseline's, if one line of the program decided differently about a size."""
        row, other = read.facts.lookups[lookup], read.facts.lookups[baseline]
        if not read.has_symbols_of({row.run, other.run}, most_bytes):
            return None
        symbols = _symbols(read, row)
        failed = failed_in([_symbols(read, other)], symbols)
        # An edited graph may have other guards, too. Here both compiles have one at this line, and only one of these can hold.
        decided = {text.rpartition(": ")[0] for one in symbols for text in one.guards}
        if failed is None or decided.isdisjoint(
            where for where, _ in _lines_of(_symbols(read, other), failed)
        ):
            return None
        # Where both compiles fixed the size, each to its own number, there is no other side of the condition.
        ranges = [*failed.bounds, *(bounds_of(symbol.range_after) for symbol, _ in failed.sizes)]
        if failed.bounds and all(one is not None and one.in_words.isdigit() for one in ranges):
            return None
        text = _text(failed, "the graph that it is compared with needs", _lines(read, failed, [other]))
        return cls(text, f"{_advice(failed, _inputs_of_graph(read, row))}.")


def _failed(read: Recording, row: LookupRow, stored: Sequence[LookupRow]) -> FailedGuards | None:
    symbols, guards = _symbols(read, row), _guards(read, row)
    if row.detail_set is None:
        # As for AOTAutograd's guard misses in a trace.
        of = only_placeholder(guards, symbols)
    else:
        of = placeholders(_inputs(read, row.detail_set), symbols)
    if guards and (of or row.detail_set is not None):
        return failed_guards(guards, of) if of else None
    # The compiles that stored the entries added these guards: they are part of what the entries need.
    return failed_in([_symbols(read, one) for one in stored], symbols)


def _inputs(read: Recording, detail_set: int) -> list[str]:
    details = read.tables.hash_details.details(detail_set)
    return [one.value_text or "" for one in details if one.field.startswith(_EXAMPLE_INPUTS)]


def _inputs_of_graph(read: Recording, row: LookupRow) -> list[str]:
    """The inputs of the forward graph, from the FX lookup of the same compile; none if no details of it are known."""
    for other in read.facts.lookups.values():
        is_graph = other.cache == FXGRAPH and compile_of(other) == compile_of(row)
        if is_graph and other.detail_set is not None and other.is_backward is False:
            return _inputs(read, other.detail_set)
    return []


def _guards(read: Recording, row: LookupRow) -> list[str]:
    """The guards of the existing entries: the one that torch names, and those that earlier lookups of the key show."""
    before = read.history.guards_before(read.history.index_of[row.lookup])
    return list(dict.fromkeys(text for text in (row.guards_expr, *before) if text))


def _how_many_stored(read: Recording, row: LookupRow) -> int:
    """How many entries lookups had stored under the key, if none is known to be in another directory; else 0."""
    if row.cache == AOTAUTOGRAD and row.guards_expr is None:
        # Before torch 2.8 an AOTAutograd key has one entry, from the latest miss.
        return 0
    runs = read.facts.runs
    pairs = ({runs[row.run].cache_dir, runs[other.run].cache_dir} for other in _that_stored(read, row))
    return sum(len(pair - {None}) < 2 for pair in pairs)


def _that_stored(read: Recording, row: LookupRow) -> list[LookupRow]:
    """The earlier lookups of the key that stored an entry."""
    history = read.history
    at = history.index_of[row.lookup]
    key = history.key[at]
    earlier = [] if key is None else [one for one in history.of_key[key] if one < at]
    return [history.lookups[one] for one in earlier if history.has_stored(one)]


def _symbols(read: Recording, row: LookupRow) -> list[SymbolRow]:
    """The symbols of the compile that a lookup was made in."""
    if row.compile_id is None or not row.segment:
        return []
    compile_of_row = first_attempt(row.compile_id), row.segment
    return [one for one in read.symbols_of(row.run) if (one.compile_id, one.segment) == compile_of_row]


def _lines(read: Recording, failed: FailedGuards, stored: Sequence[LookupRow]) -> list[str]:
    """The lines that added guards which do not hold for these sizes, in compiles that stored an entry."""
    found = dict.fromkeys(line for row in stored for line in _lines_of(_symbols(read, row), failed))
    files = short_names([*read.facts.files, *(where.rpartition(":")[0] for where, _ in found)])
    texts = []
    for where, code in found:
        file, _, line = where.rpartition(":")
        text = f"{files[file]}:{line}"
        texts.append(f"`{code.removesuffix(':')}` at {text}" if code else text)
    return texts


def _lines_of(symbols: Sequence[SymbolRow], failed: FailedGuards) -> Iterator[tuple[str, str]]:
    values = {one.symbol: value for one, value in failed.sizes if any(is_same(row, one) for row in symbols)}
    for row in symbols:
        if row.symbol not in values:
            continue
        for text, code in zip(row.guards, row.guard_code, strict=True):
            where, _, expr = text.rpartition(": ")
            if fails(expr, values):
                yield where, code


def _text(failed: FailedGuards, needs: str, lines: Sequence[str]) -> str:
    sizes = ", ".join(f"{in_words(symbol.source or '')} is {value}" for symbol, value in failed.sizes)
    needed = " or ".join(bounds.in_words for bounds in failed.bounds) or ", or ".join(failed.conditions)
    return f"{sizes}; {needs} {needed}" + (f", from {listed(lines, 2, ', ')}" if lines else "")


def _entries(failed: FailedGuards, stored: int) -> str:
    """``the stored entry needs``; with a count and the total if the guards of only some entries are known."""
    if failed.entries < stored:
        which = "one" if failed.entries == 1 else f"{failed.entries}"
        return f"{which} of {stored} stored entries need{'s' if failed.entries == 1 else ''}"
    return "the stored entry needs" if len(failed.conditions) == 1 else "the stored entries need"


def _advice(failed: FailedGuards, inputs: Sequence[str]) -> str:
    names = ", ".join(in_words(symbol.source or "") for symbol, _ in failed.sizes)
    warm = f"call it once with {names} on each side of that condition, and later processes find both"
    (symbol, value), *others = failed.sizes
    least = [bounds.least for bounds in failed.bounds if bounds.least is not None and bounds.least > value]
    if not others and least and is_one_size(symbol, inputs):
        return f"Pad {names} to {min(least)} or more where the result allows it; or {warm}"
    return warm[0].upper() + warm[1:]
