"""The isolation key of an isolation context, as torch computes it, and the schema that says which forms of a context count.

The context is what torch's ``_isolation_context()`` returns, or the same read back from JSON. The key is part of
every key in the caching module of torch 2.10. From 2.11 nothing in torch calls ``_isolation_key``, and the key only
shows whether two processes are alike.

Pure and without torch.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from cachescope.errors import SchemaError
from cachescope.keys.json_values import sorted_json
from cachescope.terms import COMPILE_FORMS, RUNTIME_FORMS

CONTEXT_FORMS: Final = MappingProxyType({"runtime_context": RUNTIME_FORMS, "compile_context": COMPILE_FORMS})

FORMS: Final = (*RUNTIME_FORMS, *COMPILE_FORMS)

Selection = bool | Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class IsolationSchema:
    """Which context forms count: torch's ``IsolationSchema``, validated.

    Two schemas are equal exactly if they give equal keys for every context. All forms true
    equals True; ``{}`` and all forms false equal False.

    Parameters
    ----------
    runtime, compile : bool or mapping of form to bool
        True for all forms, False for none, or a choice; a form that is not named does not
        count.

    Raises
    ------
    SchemaError
        For a form torch does not have (2.10 raises AttributeError if it is selected and
        2.11 to 2.15 ignore it), and for a value that is not a bool.

    Notes
    -----
    Mirrors ``IsolationSchema``, ``SelectedRuntimeContext`` and ``SelectedCompileContext`` of
    ``torch/_inductor/runtime/caching/context.py`` (2.10 to 2.15).

    Examples
    --------
    >>> IsolationSchema(compile={"runtime": True}).to_dict()["runtime_context"]
    True
    >>> IsolationSchema(False, {}) == IsolationSchema.none()
    True
    """

    runtime: Selection = True
    compile: Selection = True

    def __post_init__(self) -> None:
        """Check both selections and normalize them, so that equal schemas compare equal."""
        for name, section in (("runtime", "runtime_context"), ("compile", "compile_context")):
            object.__setattr__(self, name, _normal(section, getattr(self, name)))

    def __hash__(self) -> int:
        """Hash the chosen forms."""
        return hash((self.forms("runtime_context"), self.forms("compile_context")))

    def __reduce__(self) -> tuple[object, ...]:
        """Copy and pickle through `from_dict`."""
        return IsolationSchema.from_dict, (self.to_dict(),)

    @classmethod
    def all(cls) -> IsolationSchema:
        """Return torch's default: every form counts."""
        return cls(True, True)

    @classmethod
    def none(cls) -> IsolationSchema:
        """Return the schema under which every context has the same key."""
        return cls(False, False)

    @classmethod
    def from_dict(cls, schema: Mapping[str, Any]) -> IsolationSchema:
        """Make a schema from torch's own shape.

        Parameters
        ----------
        schema : mapping
            ``{"runtime_context": …, "compile_context": …}``; both are required, as in torch.

        Raises
        ------
        SchemaError
            If one is missing, unknown or malformed.

        Examples
        --------
        >>> IsolationSchema.from_dict({"runtime_context": True, "compile_context": True})
        IsolationSchema(runtime=True, compile=True)
        """
        if not isinstance(schema, Mapping):
            raise SchemaError(f"an isolation schema is a mapping, not {kind_name(schema)}")
        if set(schema) != set(CONTEXT_FORMS):
            raise SchemaError(
                f"an isolation schema has exactly the keys {listed(CONTEXT_FORMS)}; "
                f"this one has {listed(schema)}"
            )
        return cls(schema["runtime_context"], schema["compile_context"])

    def to_dict(self) -> dict[str, bool | dict[str, bool]]:
        """Return torch's own shape, which torch's functions and `from_dict` take."""
        return {
            section: selection if isinstance(selection, bool) else dict(selection)
            for section, selection in (("runtime_context", self.runtime), ("compile_context", self.compile))
        }

    @classmethod
    def from_json(cls, text: str | bytes) -> IsolationSchema:
        """Make a schema from JSON text of torch's own shape.

        Raises
        ------
        SchemaError
            If the text is not JSON or not a schema.
        """
        return cls.from_dict(loaded(text, "an isolation schema"))

    def to_json(self) -> str:
        """Return the schema as JSON text, keys sorted."""
        return json.dumps(self.to_dict(), sort_keys=True)

    def forms(self, section: str) -> tuple[str, ...]:
        """Return the chosen forms of a section, in torch's order.

        Parameters
        ----------
        section : str
            ``runtime_context`` or ``compile_context``.

        Examples
        --------
        >>> IsolationSchema(runtime={"inductor_configs": True}).forms("runtime_context")
        ('inductor_configs',)
        """
        selection = self.to_dict()[section]
        if isinstance(selection, bool):
            return CONTEXT_FORMS[section] if selection else ()
        return tuple(form for form, chosen in selection.items() if chosen)


def all_schemas() -> Iterator[dict[str, bool | dict[str, bool]]]:
    """Yield every way to write a full schema in torch's shape: 340 of them.

    Each section is True, False or one of the choices of its forms: (8 + 2) × (32 + 2).
    As `IsolationSchema` they are 8 × 32 different ones.

    Examples
    --------
    >>> sum(1 for _ in all_schemas()), len({*map(IsolationSchema.from_dict, all_schemas())})
    (340, 256)
    """
    for runtime, compile_ in itertools.product(
        _every_selection(RUNTIME_FORMS), _every_selection(COMPILE_FORMS)
    ):
        yield {"runtime_context": runtime, "compile_context": compile_}


def _every_selection(forms: tuple[str, ...]) -> list[bool | dict[str, bool]]:
    choices = itertools.product((False, True), repeat=len(forms))
    return [True, False, *(dict(zip(forms, choice, strict=True)) for choice in choices)]


def _normal(section: str, selection: object) -> Selection:
    if isinstance(selection, bool):
        return selection
    if not isinstance(selection, Mapping):
        raise SchemaError(
            f"{section} of an isolation schema is true, false or a choice of forms, "
            f"not {kind_name(selection)}"
        )
    for form, chosen in selection.items():
        if form not in CONTEXT_FORMS[section]:
            raise SchemaError(f"{section} has no form {form!r}; it has {listed(CONTEXT_FORMS[section])}")
        if not isinstance(chosen, bool):
            raise SchemaError(f"{section}[{form}] is true or false, not {kind_name(chosen)}")
    full: dict[str, bool] = {form: selection.get(form, False) for form in CONTEXT_FORMS[section]}
    return next(iter(full.values())) if len(set(full.values())) == 1 else MappingProxyType(full)


def loaded(text: str | bytes, what: str) -> Any:
    """Return the value of JSON text; `what` names it in the error message."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"{what} is a JSON object: {error}") from error


def schema_without(forms: Iterable[str], schema: IsolationSchema = IsolationSchema()) -> IsolationSchema:
    """The schema that chooses what another does, every form by default, but for these."""
    left_out = set(forms)
    runtime, compile_ = (
        {form: form in schema.forms(section) and form not in left_out for form in names}
        for section, names in CONTEXT_FORMS.items()
    )
    return IsolationSchema(runtime, compile_)


def forms_off(schema: IsolationSchema) -> tuple[str, ...]:
    """The forms that a schema does not choose, in torch's order."""
    chosen = chosen_forms(schema)
    return tuple(form for form in FORMS if form not in chosen)


def chosen_forms(schema: IsolationSchema) -> tuple[str, ...]:
    """Every form that a schema chooses."""
    return tuple(form for section in CONTEXT_FORMS for form in schema.forms(section))


def listed(names: Iterable[object]) -> str:
    """Return names as an error message lists them."""
    return ", ".join(map(str, names)) or "none"


def kind_name(value: object) -> str:
    """Return the name of a value's kind for an error message."""
    return "null" if value is None else type(value).__name__


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
    context: Mapping[str, object], schema: IsolationSchema | Mapping[str, object] = IsolationSchema()
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
    return hashlib.sha256(sorted_json(select_context(context, schema)).encode()).hexdigest()[:32]


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
