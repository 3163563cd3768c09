"""Computes the isolation key of an isolation context, as torch does.

Pure and without torch. The context is what torch's ``_isolation_context()`` returns, or the
same read back from JSON. The key is part of every key in the caching module of torch 2.10. From 2.11 nothing in
torch calls ``_isolation_key``, and the key only shows whether two processes are alike.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from cachescope.errors import SchemaError
from cachescope.keys.isolation_schema import CONTEXT_FORMS, IsolationSchema, kind_name, listed
from cachescope.keys.json_values import sorted_json

_ALL: Final = IsolationSchema.all()


def select_context(
    context: Mapping[str, object], schema: IsolationSchema | Mapping[str, object]
) -> dict[str, dict[str, object] | None]:
    """Return the part of a context that counts under a schema.

    Parameters
    ----------
    context : mapping
        What torch's ``_isolation_context()`` returns, or the same from JSON.
    schema : IsolationSchema or mapping
        The schema, or torch's plain dict.

    Returns
    -------
    dict
        As torch's ``_isolation_context(schema)``: a section without a chosen form is None.

    Raises
    ------
    SchemaError
        If the schema is malformed, if the context lacks a chosen form, or if it has a form that this
        version of cachescope does not know (its torch is newer, and True would mean more).

    Notes
    -----
    Mirrors ``_collect_runtime_context`` and ``_collect_compile_context`` of
    ``torch/_inductor/runtime/caching/context.py`` (2.11 to 2.15; 2.10 does the same inside
    ``_isolation_context``).

    Examples
    --------
    >>> context = {"runtime_context": None, "compile_context": {"runtime": "CUDA"}}
    >>> select_context(context, IsolationSchema(False, {"runtime": True}))
    {'runtime_context': None, 'compile_context': {'runtime': 'CUDA'}}
    """
    if not isinstance(schema, IsolationSchema):
        schema = IsolationSchema.from_dict(schema)
    sections = _sections(context)
    return {
        section: {form: values[form] for form in _present(section, values, schema)} or None
        for section, values in sections.items()
    }


def isolation_key(
    context: Mapping[str, object],
    schema: IsolationSchema | Mapping[str, object] = _ALL,
) -> str:
    """Return torch's isolation key of a context: 32 hexadecimal digits.

    Parameters
    ----------
    context : mapping
        What torch's ``_isolation_context()`` returns, or the same from JSON.
    schema : IsolationSchema or mapping, optional
        The schema, or torch's plain dict; by default every form counts.

    Raises
    ------
    SchemaError
        As `select_context`.
    UnsupportedValueError
        If a chosen value cannot be written as JSON; its `path` names the value.

    Notes
    -----
    Mirrors ``_isolation_key`` of ``torch/_inductor/runtime/caching/context.py`` (2.10 to
    2.15: the same key in all of them).

    Examples
    --------
    >>> isolation_key({"runtime_context": None, "compile_context": None}, IsolationSchema.none())
    '1e841360f41ae9b518d5fa4e216302a8'
    """
    text = sorted_json(select_context(context, schema))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _sections(context: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    if not isinstance(context, Mapping) or set(context) != set(CONTEXT_FORMS):
        raise SchemaError(
            f"an isolation context has exactly the keys {listed(CONTEXT_FORMS)}; this one "
            f"has {listed(context) if isinstance(context, Mapping) else kind_name(context)}"
        )
    sections: dict[str, Mapping[str, object]] = {}
    for section, known in CONTEXT_FORMS.items():
        values = context[section]
        if values is None:
            values = {}
        if not isinstance(values, Mapping):
            raise SchemaError(f"{section} holds context forms or null, not {kind_name(values)}")
        if unknown := [form for form in values if form not in known]:
            raise SchemaError(
                f"{section} holds {listed(unknown)}, which this version of cachescope does not "
                f"know; it knows {listed(known)}"
            )
        sections[section] = values
    return sections


def _present(section: str, values: Mapping[str, object], schema: IsolationSchema) -> tuple[str, ...]:
    chosen = schema.forms(section)
    if missing := [form for form in chosen if form not in values]:
        raise SchemaError(
            f"the context lacks {listed(missing)} of {section}: it was made under a schema "
            f"without it; choose a schema without it, or capture the whole context"
        )
    return chosen
