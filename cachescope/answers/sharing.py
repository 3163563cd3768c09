"""Contexts side by side, and which of them share a cache: their keys under a schema, who is equal, what differs between the others."""

from __future__ import annotations

import json
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Self

from cachescope.analysis.contexts.differences import context_difference, context_pairs
from cachescope.analysis.contexts.keys import FORMS, KnownContext, context_groups, key_row, schema_without
from cachescope.answers.names import run_name
from cachescope.answers.recording import Recording
from cachescope.frames.context_rows import ContextRow
from cachescope.frames.sharing_rows import FormDifference, GroupRow, IsolationKeyRow, PairRow
from cachescope.grouping import by_key
from cachescope.keys import IsolationSchema
from cachescope.terms import RUNTIME_FORMS
from cachescope.wording import short_names


@dataclass(frozen=True, slots=True)
class Form:
    """A context form that is not the same in all columns, as far as is known."""

    form: str
    # For each column a number that is equal for equal values; None where it is not known.
    values: tuple[int | None, ...]
    settings: tuple[str, ...]  # the settings in it that differ, where it is made of settings
    # Where one setting differs: its value in each column, None where that is not known. Otherwise empty.
    texts: tuple[str | None, ...]

    @property
    def cells(self) -> tuple[str, ...]:
        """What is shown in each column: the value of the one setting that differs, or a letter for each value."""
        if self.texts:
            return tuple("?" if text is None else text for text in self.texts)
        return tuple("?" if value is None else ascii_uppercase[value % 26] for value in self.values)


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
                numbers = {
                    token: at for at, token in enumerate(dict.fromkeys(t for t in tokens if t is not None))
                }
                values = tuple(None if token is None else numbers[token] for token in tokens)
                forms.append(Form(form, values, *_settings(form, first)))
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
        row.context: files[row.source] if row.run is None else run_name(read.facts.runs[row.run])
        for row in rows
    }


def _settings(form: str, rows: Sequence[ContextRow]) -> tuple[tuple[str, ...], tuple[str | None, ...]]:
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
    return settings, tuple(_text(value, name) if isinstance(value, dict) else None for value in of_column)


def _text(values: Mapping[str, object], name: str) -> str:
    return json.dumps(values[name], sort_keys=True, ensure_ascii=False) if name in values else "not there"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two contexts that differ."""

    row: PairRow
    fields: tuple[FormDifference, ...]  # what is known to differ


@dataclass(frozen=True, slots=True, eq=False)
class Sharing:
    """Which contexts share a cache under a schema."""

    schema: IsolationSchema  # what counts
    contexts: tuple[ContextRow, ...]
    columns: tuple[tuple[ContextRow, ...], ...]  # the same, those that are alike together
    keys: dict[int, IsolationKeyRow]  # for each context
    groups: tuple[GroupRow, ...]  # under the schema
    # Where the schema leaves some undecided: the forms that are known of all, if there are any.
    known_forms: tuple[str, ...]
    alike: tuple[GroupRow, ...]  # the groups under those
    pairs: tuple[Pair, ...]  # the first contexts that differ
    more_pairs: int  # how many further pairs there are

    @property
    def is_decided(self) -> bool:
        """Whether the key of any of several contexts is known; logs alone do not show it."""
        return len(self.contexts) > 1 and any(row.group is not None for row in self.groups)

    @classmethod
    def of(cls, read: Recording, schema: IsolationSchema | None = None, most: int = 3) -> Self:
        """Of all contexts that were read, by default under a schema by which every form counts; `most` pairs."""
        schema = IsolationSchema.all() if schema is None else schema
        contexts, known = tuple(read.all_contexts.rows), read.known_contexts
        groups = tuple(context_groups(known, schema))
        # Where the schema leaves some of several undecided.
        is_open = len(groups) > 1 and any(row.group is None for row in groups)
        forms = _forms_known_of_all(contexts) if is_open else ()
        alike = context_groups(known, schema_without(set(FORMS) - set(forms))) if forms else ()
        pairs = context_pairs(known)
        return cls(
            schema,
            contexts,
            SideBySide.of(read).columns,
            {one.number: key_row(one, schema) for one in known},
            groups,
            forms,
            tuple(alike),
            tuple(_pairs(contexts, pairs[:most])),
            len(pairs[most:]),
        )


def _forms_known_of_all(contexts: Iterable[ContextRow]) -> tuple[str, ...]:
    missing = {form for row in contexts for form in row.missing_forms if form not in row.hashed_forms}
    return tuple(form for form in FORMS if form not in missing)


def _pairs(contexts: Sequence[ContextRow], rows: Iterable[PairRow]) -> Iterator[Pair]:
    for row in rows:
        differing = context_difference(contexts, row.before, row.after)
        yield Pair(row, tuple(field for field in differing if field.status != "unknown"))
