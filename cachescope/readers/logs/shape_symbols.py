"""The symbols of a compile and the guards on them, from the records of torch/fx/experimental/symbolic_shapes.py, torch 2.4 to 2.15."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from cachescope.json_types import JsonObject
from cachescope.readers.json_record import Record
from cachescope.readers.logs.trace_compiles import Place, Stacks

_NAMES: Final = re.compile(r"\b[a-z]+\d+\b")
# What runs after Dynamo has traced the program. Its guards are written in the same words where torch suppresses them
# (`ShapeEnv.suppress_guards`), and 2.15 writes stacks of its own code where the program has none.
_AFTER_TRACING: Final = re.compile(
    r"[\\/]torch[\\/](?:fx|_inductor|_subclasses|_functorch[\\/]_aot_autograd)[\\/]"
)

_OF_TORCH: Final = re.compile(r"[\\/](?:site|dist)-packages[\\/]torch[\\/]")


class ShapeGuard(NamedTuple):
    """A guard on symbols that a line of the program added, and that line."""

    expr: str
    place: Place
    code: str | None


class Specialization(NamedTuple):
    """The one value that torch fixed a symbol to, and the line that made it."""

    value: str
    place: Place


@dataclass(slots=True)
class Symbol:
    """A size or a number of the program that became a symbol."""

    name: str
    value: str | None
    source: str | None
    range: str | None
    place: Place
    guards: list[ShapeGuard] = field(default_factory=list)
    specialization: Specialization | None = None


@dataclass(slots=True)
class Symbols:
    """The symbols of one compile, of its last attempt: each attempt begins with none."""

    rows: list[Symbol] = field(default_factory=list)
    attempt: int = 0

    def create(self, envelope: Record, stacks: Stacks) -> None:
        """Read ``create_symbol``, or ``create_unbacked_symbol``: of a number that the program computes, which has no source."""
        record = envelope.record("create_symbol") or envelope.record("create_unbacked_symbol")
        name = None if record is None else record.text("symbol")
        if record is None or name is None:
            return
        stack = record.objects("user_stack")
        of_program = _of_program(stack, stacks)
        if "create_unbacked_symbol" in envelope.values and not of_program:
            return
        self._begin(envelope)
        values = (record.text("val"), record.text("source"), record.text("vr"))
        self.rows.append(Symbol(name, *values, stacks.place_of(of_program or stack, envelope.wrong)))

    def guard(self, envelope: Record, stacks: Stacks) -> None:
        """Read ``guard_added_fast``: torch evaluated a condition on symbols, and relies on its outcome."""
        record = envelope.record("guard_added_fast")
        expr = None if record is None else record.text("expr")
        if record is None or expr is None:
            return
        stack = _of_program(record.objects("user_stack"), stacks)
        if not stack:
            return
        self._begin(envelope)
        place, code = stacks.place_of(stack, envelope.wrong), stacks.code_of(stack, envelope.wrong)
        names = set(_NAMES.findall(expr))
        for symbol in self.rows:
            if symbol.name in names:
                symbol.guards.append(ShapeGuard(expr, place, code))

    def specialize(self, envelope: Record, stacks: Stacks) -> None:
        """Read ``symbolic_shape_specialization``."""
        record = envelope.record("symbolic_shape_specialization")
        if record is None or (value := record.text("value")) is None:
            return
        place = stacks.place_of(_of_program(record.objects("user_stack"), stacks), envelope.wrong)
        self._begin(envelope)
        for symbol in self.rows:
            if symbol.name == record.text("symbol"):
                symbol.specialization = Specialization(value, place)

    def _begin(self, envelope: Record) -> None:
        attempt = envelope.whole("attempt") or 0
        if attempt != self.attempt:
            self.attempt = attempt
            self.rows.clear()


def _of_program(stack: list[JsonObject], stacks: Stacks) -> list[JsonObject]:
    """A stack down to the program's own line, from which modules and functions of torch were called; empty if it is none of the program."""
    files = [stacks.file_of(frame) or "" for frame in stack]
    if any(_AFTER_TRACING.search(file) for file in files):
        return []
    own = [place for place, file in enumerate(files) if not _OF_TORCH.search(file)]
    return stack[: own[-1] + 1] if own else stack
