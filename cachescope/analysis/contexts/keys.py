"""The isolation keys of contexts, and which contexts are equal under which schema.

Contexts are compared form by form. If only torch's hash of a form is known, it can still be compared with
another such hash; then the group is known, but not its key.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from cachescope.frames.context_rows import ContextRow
from cachescope.frames.sharing_rows import GroupRow, IsolationKeyRow
from cachescope.keys import CONTEXT_FORMS, IsolationSchema, isolation_key, select_context
from cachescope.keys.isolation import FORMS, chosen_forms, forms_off, schema_without
from cachescope.keys.json_values import json_ready
from cachescope.terms import COMPILE_FORMS, RUNTIME_FORMS

if TYPE_CHECKING:
    import pandas as pd

# What is known about a form: its JSON text (null is "null"), or only torch's hash of it.
Token = str | None


class KnownContext(NamedTuple):
    """One context, as far as it is known."""

    number: int  # its number
    context: dict[str, dict[str, object]]  # in torch's shape, with the known forms
    # Equal tokens mean equal values, and different tokens different values. None is unknown.
    tokens: dict[str, Token]
    newer: tuple[str, ...]  # forms of a newer torch, which "all" would choose as well
    text_only: tuple[str, ...]  # paths of values that JSON cannot hold

    def lacking(self, schema: IsolationSchema) -> tuple[str, ...]:
        """The chosen forms whose values are unknown."""
        missing = [
            one for one in chosen_forms(schema) if not any(one in values for values in self.context.values())
        ]
        return (*missing, *self.chosen_newer(schema))

    def chosen_newer(self, schema: IsolationSchema) -> tuple[str, ...]:
        """Forms of a newer torch, if the schema chooses a whole section: "all" may include them."""
        return self.newer if True in (schema.runtime, schema.compile) else ()

    def chosen_text_only(self, schema: IsolationSchema) -> tuple[str, ...]:
        """The paths of chosen values that JSON cannot hold."""
        chosen = chosen_forms(schema)
        return tuple(path for path in self.text_only if any(f"[{form}]" in path for form in chosen))

    def key(self, schema: IsolationSchema) -> str | None:
        """Torch's key; None if it cannot be made."""
        if self.lacking(schema) or self.chosen_text_only(schema):
            return None
        return isolation_key(self.context, schema)


def as_schema(schema: IsolationSchema | Mapping[str, object]) -> IsolationSchema:
    """Convert a schema, or torch's plain dict, to a schema."""
    return schema if isinstance(schema, IsolationSchema) else IsolationSchema.from_dict(schema)


def known_contexts(rows: Iterable[ContextRow]) -> list[KnownContext]:
    """The known parts of contexts."""
    # Thousands of ranks have equal values, and some are long.
    read = cache(json.loads)
    return [_of_row(row, read) for row in rows]


def known_snapshots(snapshots: Iterable[Mapping[str, object]]) -> list[KnownContext]:
    """The known parts of snapshots and bare contexts, numbered by their place in the list."""
    return [_of_snapshot(at, item) for at, item in enumerate(snapshots)]


def isolation_keys(
    contexts: pd.DataFrame | Sequence[Mapping[str, object]],
    schema: IsolationSchema | Mapping[str, object] = IsolationSchema.all(),  # noqa: B008 - frozen
) -> pd.DataFrame:
    """Torch's exact isolation key of each context; see ``describe("isolation_keys")``.

    Parameters
    ----------
    contexts : DataFrame or list of dict
        The frame ``contexts`` of a scope or rows of it, snapshots as returned by `capture`, or the results of torch's
        ``_isolation_context()``.
    schema : IsolationSchema or mapping, optional
        The schema, or torch's plain dict; by default every form counts.

    Returns
    -------
    DataFrame
        A key is missing if the schema chooses a form that is unknown for the context.

    Raises
    ------
    SchemaError
        If the schema is malformed, or an item of the list is no context.

    Notes
    -----
    Mirrors ``_isolation_key`` of torch/_inductor/runtime/caching/context.py (2.10 to 2.15).

    Examples
    --------
    >>> isolation_keys([{"runtime_context": None, "compile_context": {"runtime": "CUDA"}}],
    ...                IsolationSchema(False, {"runtime": True}))["isolation_key"].tolist()
    ['ec901e1948d20d766e24066f7819a680']
    """
    import pandas as pd

    from cachescope.columns import frame_of, rows_of

    schema = as_schema(schema)
    if isinstance(contexts, pd.DataFrame):
        known = known_contexts(rows_of(contexts, ContextRow))
    else:
        known = known_snapshots(contexts)
    return frame_of((key_row(one, schema) for one in known), IsolationKeyRow)


def key_row(known: KnownContext, schema: IsolationSchema) -> IsolationKeyRow:
    """The key of a context under a schema, or why it has none."""
    lacking, text_only = known.lacking(schema), known.chosen_text_only(schema)
    return IsolationKeyRow(known.number, known.key(schema), lacking, text_only)


def context_groups(
    known: Sequence[KnownContext], schema: IsolationSchema | Mapping[str, object] | None = None
) -> list[GroupRow]:
    """Which contexts are equal under which schema; see ``describe("context_groups")``."""
    schemas = joining_schemas(known) if schema is None else [as_schema(schema)]
    return [row for one in schemas for row in _group_rows(known, one)]


def _group_rows(contexts: Sequence[KnownContext], schema: IsolationSchema) -> Iterator[GroupRow]:
    chosen, text = chosen_forms(schema), schema.to_json()
    groups: dict[tuple[Token, ...], list[KnownContext]] = defaultdict(list)
    undecided: list[KnownContext] = []
    for known in contexts:
        tokens = tuple(known.tokens[form] for form in chosen)
        is_open = None in tokens or known.chosen_newer(schema)
        (undecided if is_open else groups[tokens]).append(known)
    for number, group in enumerate(sorted(groups.values(), key=lambda g: (-len(g), g[0].number))):
        keys = (key for known in group if (key := known.key(schema)) is not None)
        yield GroupRow(
            text, forms_off(schema), number, tuple(known.number for known in group), next(keys, None)
        )
    yield from (GroupRow(text, forms_off(schema), None, (known.number,), None) for known in undecided)


def joining_schemas(contexts: Sequence[KnownContext]) -> list[IsolationSchema]:
    """All forms, then every smallest change that makes two different contexts equal, the least change first."""
    distinct = {tuple(known.tokens.values()): known for known in contexts}
    joining = {
        tuple(form for form in FORMS if form in {*differing, *undecided})
        for one, other in itertools.combinations(distinct.values(), 2)
        for differing, undecided in [compared(one, other)]
        if differing
    }
    return [
        IsolationSchema.all(),
        *map(schema_without, sorted(joining, key=lambda left_out: (len(left_out), left_out))),
    ]


def compared(before: KnownContext, after: KnownContext) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The forms that differ between two contexts, and those for which that is unknown."""
    pairs = {form: (before.tokens[form], after.tokens[form]) for form in FORMS}
    newer = tuple(dict.fromkeys((*before.newer, *after.newer)))
    return (
        tuple(form for form, (old, new) in pairs.items() if None not in (old, new) and old != new),
        (*(form for form, pair in pairs.items() if None in pair), *newer),
    )


def _of_row(row: ContextRow, read: Callable[[str], object]) -> KnownContext:
    texts: dict[str, str | None] = {one: getattr(row, one) for one in FORMS if one not in row.missing_forms}
    context: dict[str, dict[str, object]] = {
        "runtime_context": {form: read(texts[form] or "null") for form in RUNTIME_FORMS if form in texts},
        "compile_context": {form: texts[form] for form in COMPILE_FORMS if form in texts},
    }
    tokens: dict[str, Token] = dict.fromkeys(FORMS)
    tokens |= {form: text if form in RUNTIME_FORMS else json.dumps(text) for form, text in texts.items()}
    tokens |= dict.fromkeys(row.hashed_forms, f"hash {row.torch_detail_hash}")
    newer = tuple(form for form in row.missing_forms if form not in FORMS)
    return KnownContext(row.context, context, tokens, newer, row.text_only)


def _of_snapshot(number: int, item: Mapping[str, object]) -> KnownContext:
    # A value that JSON cannot hold becomes text, as in a snapshot, and torch makes no key from it.
    given: Any = item.get("context", item)
    kept, text_only = json_ready(dict(given))
    context: Any = kept
    newer: list[str] = []
    for section, forms in CONTEXT_FORMS.items():
        values = context.get(section)
        if isinstance(values, dict):
            newer += [form for form in values if form not in forms]
            context[section] = {form: value for form, value in values.items() if form in forms}
    # Raises SchemaError if it is no context.
    context = {section: values or {} for section, values in context.items()}
    select_context(context, IsolationSchema.none())
    tokens: dict[str, Token] = dict.fromkeys(FORMS)
    for values in context.values():
        tokens |= {form: json.dumps(value, sort_keys=True) for form, value in values.items()}
    not_json: Any = item.get("not_json") or ()
    return KnownContext(number, context, tokens, tuple(newer), (*text_only, *not_json))
