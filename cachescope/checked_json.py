"""JSON that anyone may have written, checked against its published JSON Schema before it is used.

Of JSON Schema (draft 2020-12) what our schemas use: a word that is not known here raises, so that nothing declared stays unchecked.
What has a pattern has a title, which says what it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

Check = Callable[[Any], None]
Schema = dict[str, Any]

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


def check_of(schema: Schema) -> Check:
    """What raises `WrongValueError` for a value that is not as a schema declares."""
    if unknown := {*_words_in(schema)} - _WORDS - _SAY_NOTHING:
        raise ValueError(f"a schema with {min(unknown)}, which is not checked")
    return partial(_check, schema.get("$defs", {}), schema)


def _words_in(schema: Schema) -> Iterator[str]:
    yield from schema
    inner = [*schema.get("oneOf", ()), *schema.get("prefixItems", ())]
    inner += [one for word in ("$defs", "properties") for one in schema.get(word, {}).values()]
    inner += [schema[word] for word in ("items", "additionalProperties", "propertyNames") if schema.get(word)]
    for one in inner:
        yield from _words_in(one)


def _check(defs: Schema, schema: Schema, value: Any) -> None:
    if "$ref" in schema:
        _check(defs, defs[schema["$ref"].removeprefix("#/$defs/")], value)
    if "const" in schema or "enum" in schema:
        allowed = schema.get("enum", [schema.get("const")])
        if not any(type(one) is type(value) and one == value for one in allowed):
            raise WrongValueError(f"is {called(value)}, not {' or '.join(map(json.dumps, allowed))}")
    if "oneOf" in schema:
        _check_one_of(defs, schema["oneOf"], value)
    if "type" not in schema:
        return
    types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    # Not isinstance: in Python a bool is an int.
    if type(value) not in map(_TYPES.get, types):
        raise WrongValueError(f"is {called(value)}, not {' or '.join(map(_CALLED.__getitem__, types))}")
    _check_size(schema, value)
    for step, inner, item in _parts(schema, value):
        try:
            if inner is False:
                raise WrongValueError("is not declared")
            _check(defs, inner, item)
        except WrongValueError as error:
            error.place.append(step)
            raise


def _check_one_of(defs: Schema, schemas: list[Schema], value: Any) -> None:
    wrong: list[WrongValueError] = []
    for one in schemas:
        try:
            _check(defs, one, value)
        except WrongValueError as error:
            wrong.append(error)
    if len(wrong) != len(schemas) - 1:
        raise wrong[-1] if wrong else WrongValueError("is of several kinds")


def _check_size(schema: Schema, value: Any) -> None:
    if isinstance(value, str):
        if len(value) > (most := schema.get("maxLength", len(value))):
            raise WrongValueError(f"is a text of more than {most} characters")
        # In Python, $ is also before a last newline.
        if "pattern" in schema and not re.search(schema["pattern"].replace("$", r"\Z"), value):
            raise WrongValueError(f"is {called(value)}, not {schema['title']}")
    elif isinstance(value, int):
        least, most = schema.get("minimum", value), schema.get("maximum", value)
        if not least <= value <= most:
            raise WrongValueError(f"is {called(value)}, not a number from {least} to {most}")
    elif isinstance(value, list):
        least, most = schema.get("minItems", 0), schema.get("maxItems", len(value))
        if not least <= len(value) <= most:
            items = f"{least}" if most == least else f"{least} to {most}"
            raise WrongValueError(f"has {len(value)} items, not {items}")
    elif isinstance(value, dict) and (missing := {*schema.get("required", ())} - value.keys()):
        raise WrongValueError(f"has no {min(missing)}")


def _parts(schema: Schema, value: Any) -> Iterator[tuple[int | str, Any, Any]]:
    """Each part of a list or an object, where it is, and what it is declared as: False if it is not."""
    if isinstance(value, list):
        first, each = schema.get("prefixItems", ()), schema.get("items", {})
        for index, item in enumerate(value):
            yield index, first[index] if index < len(first) else each, item
    elif isinstance(value, dict):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        for name, item in value.items():
            if "propertyNames" in schema:
                yield name, schema["propertyNames"], name
            yield name, properties.get(name, others), item
