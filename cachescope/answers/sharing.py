"""Contexts side by side: which are alike, in which forms the others differ, and what is known to differ between two."""

from __future__ import annotations

import json
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Self

from cachescope.analysis.contexts.keys import FORMS, KnownContext, context_groups
from cachescope.answers.names import run_name
from cachescope.answers.recording import Recording
from cachescope.frames.context_rows import ContextRow
from cachescope.grouping import by_key
from cachescope.keys import IsolationSchema
from cachescope.terms import RUNTIME_FORMS
from cachescope.wording import short_names


@dataclass(frozen=True, slots=True)
class Form:
    """A context form that is not the same in all columns, as far as is known."""

    form: str
    settings: tuple[str, ...]  # the settings in it that differ, where it is made of settings
    # For each column the value of the one setting that differs, or a letter that is equal for equal values; ? is not known.
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Contexts that were read."""

    # Contexts that are alike in all that a key may hold, and in what is known of it, are one column.
    columns: tuple[tuple[ContextRow, ...], ...]
    forms: tuple[Form, ...]  # those in which columns differ, or which are known of some alone
    same: tuple[str, ...]  # the forms that are known and equal everywhere, and those that are known of none
    unknown: tuple[str, ...]

    @classmethod
    def of(cls, read: Recording, runs: Collection[int] | None = None) -> Self:
        """Of all contexts that were read; or of those of some runs, beside those that were captured."""
        known = {one.number: one for one in read.known_contexts}
        contexts = read.all_contexts.rows
        columns = folded(
            [row for row in contexts if runs is None or row.run is None or row.run in runs], known
        )
        first = [column[0] for column in columns]
        forms, same, unknown = [], [], []
        for form in FORMS:
            tokens = [known[row.context].tokens[form] for row in first]
            if all(token is None for token in tokens):
                unknown.append(form)
            elif len(set(tokens)) == 1:
                same.append(form)
            else:
                settings, cells = _settings(form, first)
                there = dict.fromkeys(token for token in tokens if token is not None)
                letters = {token: ascii_uppercase[at % 26] for at, token in enumerate(there)}
                forms.append(
                    Form(
                        form,
                        settings,
                        cells or tuple("?" if token is None else letters[token] for token in tokens),
                    )
                )
        return cls(tuple(columns), tuple(forms), tuple(same), tuple(unknown))


def folded(rows: Iterable[ContextRow], known: Mapping[int, KnownContext]) -> list[tuple[ContextRow, ...]]:
    """Contexts by what they are, whatever process and machine they are of; in the order of the first."""

    def likeness(row: ContextRow) -> Hashable:
        what = tuple(known[row.context].tokens.values()), row.text_only, row.missing_forms, row.hashed_forms
        return what, row.known_from, row.torch_version, row.python_version

    return [tuple(group) for group in by_key((likeness(row), row) for row in rows).values()]


def context_names(read: Recording) -> dict[int, str]:
    """What each context is called: its run, or the file of its snapshot."""
    rows = read.all_contexts.rows
    files = short_names(row.source for row in rows if row.run is None)
    return {
        row.context: files[row.source] if row.run is None else run_name(read.facts, row.run) for row in rows
    }


def _settings(form: str, rows: Sequence[ContextRow]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The settings of a form that differ between some contexts of which it is known; and the values, if it is one."""
    if form not in RUNTIME_FORMS:
        return (), ()
    of_column = [json.loads(getattr(row, form) or "null") for row in rows]
    values = [value for value in of_column if isinstance(value, dict)]
    names = dict.fromkeys(name for value in values for name in value)
    settings = tuple(name for name in names if len({_text(value, name) for value in values}) > 1)
    if len(settings) != 1:
        return settings, ()
    (name,) = settings
    return settings, tuple(_text(value, name) if isinstance(value, dict) else "?" for value in of_column)


def _text(values: Mapping[str, object], name: str) -> str:
    return json.dumps(values[name], sort_keys=True, ensure_ascii=False) if name in values else "not there"


def is_any_decided(read: Recording) -> bool:
    """Whether the key of any of several contexts is known; logs alone do not show it."""
    groups = context_groups(read.known_contexts, IsolationSchema.all())
    return len(read.known_contexts) > 1 and any(row.group is not None for row in groups)
