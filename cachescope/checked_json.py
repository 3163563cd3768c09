"""JSON that anyone may have written, checked against its published JSON Schema before it is used.

Of JSON Schema (draft 2020-12) what our schemas use: a word that is not known here raises, so that nothing declared stays unchecked.
What has a pattern has a title, which says what it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

Check = Callable[[Any], None]

_TYPES: Final = {"string": str, "integer": int, "array": list, "object": dict, "null": type(None)}
_CALLED: Final = dict(zip(_TYPES, ("a text", "a whole number", "a list", "an object", "null"), strict=True))
_WORDS: Final = frozenset(
    {"$ref", "type", "const", "enum", "oneOf", "pattern", "maxLength", "minimum", "maximum", "items", "prefixItems"}
    | {"minItems", "maxItems", "required", "properties", "additionalProperties", "propertyNames"}
)  # fmt: skip
_SAY_NOTHING: Final = frozenset({"$schema", "$defs", "title", "description"})


class WrongValueError(ValueError):
    """A value that is not as declared; `place` gets the names and indices that lead to it, the innermost first."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what
        self.place: list[str | int] = []

    def __str__(self) -> str:
        steps = (f"[{step}]" if isinstance(step, int) else f".{step[:100]}" for step in reversed(self.place))
        return f"{''.join(steps).removeprefix('.') or 'it'} {self.what}"


def called(value: object) -> str:
    """What a value of JSON is called where another one belongs."""
    match value:
        case None | bool():
            return json.dumps(value)
        case int() | float():
            return "a huge number" if isinstance(value, int) and abs(value) >= 10**24 else repr(value)
        case str():
            return f"the text {value[:40]!r}"
        case list():
            return "a list"
        case _:
            return "an object"


@cache
def declared_in(schema: Path) -> Check:
    """The check of the schema in a file."""
    return check_of(json.loads(schema.read_text(encoding="utf-8")))


def check_of(schema: dict[str, Any], defs: dict[str, Any] | None = None) -> Check:
    """What raises `WrongValueError` for a value that is not as a schema declares."""
    defs = schema.get("$defs", {}) if defs is None else defs
    if unknown := schema.keys() - _WORDS - _SAY_NOTHING:
        raise ValueError(f"a schema with {min(unknown)}, which is not checked")
    checks: list[Check] = []
    if "$ref" in schema:
        checks.append(check_of(defs[schema["$ref"].removeprefix("#/$defs/")], defs))
    if "const" in schema or "enum" in schema:
        checks.append(_among(schema.get("enum", [schema.get("const")])))
    if "oneOf" in schema:
        checks.append(_one_of([check_of(one, defs) for one in schema["oneOf"]]))
    types: list[str] = [schema["type"]] if isinstance(schema.get("type"), str) else schema.get("type", [])
    known = {_TYPES[name]: _MADE_BY[name](schema, defs) for name in types}
    wanted = " or ".join(_CALLED[name] for name in types)

    def refuse(value: Any) -> None:
        raise WrongValueError(f"is {called(value)}, not {wanted}")

    def check(value: Any) -> None:
        for one in checks:
            one(value)
        if known:
            # Not isinstance: in Python a bool is an int.
            known.get(type(value), refuse)(value)

    return checks[0] if len(checks) == 1 and not known else check


def _among(allowed: list[Any]) -> Check:
    def check(value: Any) -> None:
        if not any(type(one) is type(value) and one == value for one in allowed):
            raise WrongValueError(f"is {called(value)}, not {' or '.join(map(json.dumps, allowed))}")

    return check


def _one_of(checks: list[Check]) -> Check:
    def check(value: Any) -> None:
        wrong: list[WrongValueError] = []
        for one in checks:
            try:
                one(value)
            except WrongValueError as error:
                wrong.append(error)
        if len(wrong) != len(checks) - 1:
            raise wrong[-1] if wrong else WrongValueError("is of several kinds")

    return check


def _nothing(schema: dict[str, Any], defs: dict[str, Any]) -> Check:
    return lambda value: None


def _text(schema: dict[str, Any], defs: dict[str, Any]) -> Check:
    most = schema.get("maxLength")
    # In Python, $ is also before a last newline.
    pattern = re.compile(schema["pattern"].replace("$", r"\Z")) if "pattern" in schema else None

    def check(value: str) -> None:
        if most is not None and len(value) > most:
            raise WrongValueError(f"is a text of more than {most} characters")
        if pattern is not None and not pattern.search(value):
            raise WrongValueError(f"is {called(value)}, not {schema['title']}")

    return check


def _number(schema: dict[str, Any], defs: dict[str, Any]) -> Check:
    least, most = schema.get("minimum"), schema.get("maximum")

    def check(value: int) -> None:
        if (least is not None and value < least) or (most is not None and value > most):
            raise WrongValueError(f"is {called(value)}, not a number from {least} to {most}")

    return check


def _list(schema: dict[str, Any], defs: dict[str, Any]) -> Check:
    least, most = schema.get("minItems", 0), schema.get("maxItems")
    first = [check_of(one, defs) for one in schema.get("prefixItems", [])]
    each = check_of(schema.get("items", {}), defs)

    def check(value: list[Any]) -> None:
        if len(value) < least or (most is not None and len(value) > most):
            raise WrongValueError(
                f"has {len(value)} items, not {least}" + ("" if most == least else f" to {most}")
            )
        index = 0
        try:
            for index, item in enumerate(value):
                (first[index] if index < len(first) else each)(item)
        except WrongValueError as error:
            error.place.append(index)
            raise

    return check


def _object(schema: dict[str, Any], defs: dict[str, Any]) -> Check:
    properties = {name: check_of(one, defs) for name, one in schema.get("properties", {}).items()}
    required = frozenset(schema.get("required", ()))
    others = schema.get("additionalProperties", {})
    other = None if others is False else check_of(others, defs)
    named = check_of(schema["propertyNames"], defs) if "propertyNames" in schema else None

    def check(value: dict[str, Any]) -> None:
        if not required <= value.keys():
            raise WrongValueError(f"has no {min(required - value.keys())}")
        name = ""
        try:
            for name, item in value.items():
                if named is not None:
                    named(name)
                one = properties.get(name, other)
                if one is None:
                    raise WrongValueError("is not declared")
                one(item)
        except WrongValueError as error:
            error.place.append(name)
            raise

    return check


_MADE_BY: Final = {"string": _text, "integer": _number, "array": _list, "object": _object, "null": _nothing}
