"""Rows: one class for each grain, whose fields say what their columns mean.

The frames, the Arrow schemas, `describe` and the docs are made of these classes. Nothing here loads pandas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from types import NoneType
from typing import Annotated, Any, Final, TypeVar, dataclass_transform, get_args, get_origin, get_type_hints

SomeRow = TypeVar("SomeRow")

WHOLE: Final = "Int64"
TEXT: Final = "str"
FLAG: Final = "boolean"
REAL: Final = "Float64"
TIME: Final = "datetime64[ns, UTC]"
TUPLE: Final = "object"

Time = Annotated[int, TIME]
"""A moment, in nanoseconds since the epoch, UTC."""
_DTYPES: Final = {int: WHOLE, str: TEXT, bool: FLAG, float: REAL, Time: TIME}


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a frame."""

    name: str
    dtype: str
    meaning: str
    unit: str = ""
    missing: str = "never"
    torch_name: str = ""
    words: frozenset[str] = frozenset()
    """All that it may hold, where it has words of its own."""
    is_of_numbers: bool = False
    """Whether its values are tuples of numbers, not of texts."""


def col(meaning: str, *, words: Iterable[str] = (), default: Any = MISSING, **told: str) -> Any:
    """A field of a row that is a column of its frame; `told` are its unit, what is said where it is missing, and torch's name of it."""
    return field(default=default, metadata={_COLUMN: {"meaning": meaning, "words": frozenset(words), **told}})


def same_as(kind: type, name: str, *, default: Any = MISSING) -> Any:
    """A field that is the column of that name of another row."""
    return field(default=default, metadata=kind.__dataclass_fields__[name].metadata)  # type: ignore[attr-defined]


_COLUMN: Final = "column"


@dataclass_transform(frozen_default=True, field_specifiers=(col, same_as, field))
def row(name: str, *, frozen: bool = True) -> Callable[[type[SomeRow]], type[SomeRow]]:
    """Make a class the row of a frame.

    The first sentence of its docstring says what one row is. Fields that are made without `col` are no columns. Whether it is
    frozen is for type checkers: where Python checks it too, each class, and each row, takes twice as long to make.
    """

    def made(kind: type[SomeRow]) -> type[SomeRow]:
        kind = dataclass(slots=True, eq=False, repr=False)(kind)
        kind.__eq__, kind.__repr__, kind.__hash__ = _is_equal, _said, None  # type: ignore[assignment, method-assign]
        kind.frame_name = name  # type: ignore[attr-defined]
        return kind

    return made


# One for all rows: compiling one for each, as a dataclass does, would be a twentieth of the time to explain a short log.
def _is_equal(one: object, other: object) -> bool:
    return type(one) is type(other) and all(
        getattr(one, name) == getattr(other, name)
        for name in one.__dataclass_fields__  # type: ignore[attr-defined]
    )


def _said(one: object) -> str:
    told = ", ".join(f"{name}={getattr(one, name)!r}" for name in one.__dataclass_fields__)  # type: ignore[attr-defined]
    return f"{type(one).__qualname__}({told})"


def like(kind: type[SomeRow], one: object, **others: Any) -> SomeRow:
    """A row that has the columns of the same names of something else, and others."""
    names = names_of(kind)  # type: ignore[arg-type]
    same = {name: getattr(one, name) for name in names if name not in others and hasattr(one, name)}
    return kind(**same, **others)


def frame_name(kind: type) -> str:
    """The name of the frame whose rows a class is."""
    return kind.frame_name  # type: ignore[attr-defined, no-any-return]


def grain(kind: type) -> str:
    """What one row of a class is."""
    said = " ".join((kind.__doc__ or "").split("\n\n")[0].split())
    return said[:1].lower() + said[1:].removesuffix(".")


@cache
def columns_of(kind: type) -> tuple[Column, ...]:
    """The columns that the fields of a class declare."""
    hints = get_type_hints(kind, include_extras=True)
    declared = (one for one in fields(kind) if _COLUMN in one.metadata)
    return tuple(_column(one.name, hints[one.name], one.metadata[_COLUMN]) for one in declared)


@cache
def names_of(kind: type) -> tuple[str, ...]:
    """The columns that rows of a class are read from; a dataclass that is no row of a frame has one for each field."""
    if "frame_name" in vars(kind):
        return tuple(column.name for column in columns_of(kind))
    return tuple(one.name for one in fields(kind))


def _column(name: str, hint: Any, told: dict[str, Any]) -> Column:
    if NoneType in get_args(hint):
        (hint,) = (part for part in get_args(hint) if part is not NoneType)
    if get_origin(hint) is tuple:
        return Column(name, TUPLE, is_of_numbers=get_args(hint)[0] is int, **told)
    return Column(name, _DTYPES[hint], **told)
