"""What counts in a cache key: torch's isolation schema, plus fields or patterns.

Pure and without torch. torch itself has only the isolation schema, and applies it to isolation contexts.
Applied to the hash details of FX and AOTAutograd keys, it gives cachescope's own what-if keys.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cachescope.errors import SchemaError
from cachescope.json_types import JsonObject
from cachescope.keys.isolation import CONTEXT_FORMS, IsolationSchema, kind_name, listed, loaded
from cachescope.keys.key_fields import Removed, form_fields, pattern_fields


@dataclass(frozen=True, slots=True)
class KeySchema:
    """What counts in a what-if key.

    Parameters
    ----------
    isolation : IsolationSchema
        Which context forms count; each covers the fields that represent it.
    without : tuple of str
        Fields that do not count: names, patterns with ``*``, parts of tensors
        (``example_inputs[*].device``), or context forms, which are moved to `isolation`.

    Raises
    ------
    SchemaError
        If `isolation` is no schema, `without` no list, or a field not a text.

    Notes
    -----
    Order and repetition in `without` do not matter. A form in `without` is the same as a form left out of
    `isolation`; equal schemas compare equal.

    Examples
    --------
    >>> KeySchema(without=("gm", "inductor_configs")).isolation.forms("runtime_context")
    ('torch_determinism_configs', 'cuda_matmul_precision_configs')
    >>> KeySchema(IsolationSchema(False, {})) == KeySchema(IsolationSchema.none())
    True
    """

    isolation: IsolationSchema = IsolationSchema()  # noqa: RUF009 (frozen)
    without: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Sort the fields, and move the forms among them to the isolation schema."""
        if not isinstance(self.isolation, IsolationSchema):
            raise SchemaError(
                f"the isolation of a key schema is an IsolationSchema, not {kind_name(self.isolation)}"
            )
        without: object = self.without
        if isinstance(without, str) or not isinstance(without, Iterable):
            raise SchemaError(f"without is a list of fields, not {kind_name(without)}")
        wanted: list[object] = list(without)
        named = [name for name in wanted if isinstance(name, str) and name]
        if len(named) < len(wanted):
            odd = next(name for name in wanted if name not in named)
            what = "the empty one" if odd == "" else f"{kind_name(odd)} {odd!r}"
            raise SchemaError(f"a field that does not count is named by a text, not {what}")
        object.__setattr__(self, "isolation", _without_forms(self.isolation, named))
        forms = {form for names in CONTEXT_FORMS.values() for form in names}
        object.__setattr__(self, "without", tuple(sorted(set(named) - forms)))

    @classmethod
    def from_dict(cls, schema: Mapping[str, Any]) -> KeySchema:
        """Make a schema from ``{"runtime_context": …, "compile_context": …, "without": […]}``.

        torch's own two keys may both be omitted, and so may ``without``.

        Raises
        ------
        SchemaError
            If a key is unknown or malformed.
        """
        if not isinstance(schema, Mapping):
            raise SchemaError(f"a key schema is a mapping, not {kind_name(schema)}")
        rest = {key: value for key, value in schema.items() if key != "without"}
        without = schema.get("without", ())
        if not isinstance(without, Sequence) or isinstance(without, str):
            raise SchemaError(f"without is a list of fields, not {kind_name(without)}")
        isolation = IsolationSchema.from_dict(rest) if rest else IsolationSchema.all()
        return cls(isolation, tuple(without))

    def to_dict(self) -> JsonObject:
        """Return torch's own two keys and ``without``."""
        return {**self.isolation.to_dict(), "without": list(self.without)}

    @classmethod
    def from_json(cls, text: str | bytes) -> KeySchema:
        """Make a schema from JSON text.

        Raises
        ------
        SchemaError
            If the text is not JSON or not a schema.
        """
        return cls.from_dict(loaded(text, "a key schema"))

    def to_json(self) -> str:
        """Return the schema as JSON text, keys sorted."""
        return json.dumps(self.to_dict(), sort_keys=True)

    @property
    def forms_off(self) -> tuple[str, ...]:
        """The context forms that do not count, in torch's order."""
        return tuple(
            form
            for section, forms in CONTEXT_FORMS.items()
            for form in forms
            if form not in self.isolation.forms(section)
        )

    def removed(self, fields: Sequence[str], is_tensor: Callable[[str], bool]) -> Removed:
        """Which of the given fields, and parts of fields, the schema removes.

        Raises
        ------
        NotFoundError
            If a field or pattern of `without` matches none of them.
        """
        found = form_fields(self.forms_off, fields)
        for pattern in self.without:
            found |= pattern_fields(pattern, fields, is_tensor)
        return found

    def __str__(self) -> str:
        """Describe what does not count."""
        off = (*self.forms_off, *self.without)
        return f"without {listed(off)}" if off else "everything counts"


def _without_forms(isolation: IsolationSchema, names: Iterable[str]) -> IsolationSchema:
    off = set(names)
    chosen = {
        section: {form: form in isolation.forms(section) and form not in off for form in forms}
        for section, forms in CONTEXT_FORMS.items()
    }
    return IsolationSchema(chosen["runtime_context"], chosen["compile_context"])


def key_schema(
    schema: KeySchema | IsolationSchema | Mapping[str, Any] | None, without: Iterable[str] | str = ()
) -> KeySchema:
    """Make a schema from any accepted form, plus more fields that do not count."""
    if schema is None:
        schema = KeySchema()
    elif isinstance(schema, IsolationSchema):
        schema = KeySchema(schema)
    elif not isinstance(schema, KeySchema):
        schema = KeySchema.from_dict(schema)
    more = (without,) if isinstance(without, str) else tuple(without)
    return KeySchema(schema.isolation, (*schema.without, *more))
