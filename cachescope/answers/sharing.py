"""Which contexts share a cache: their keys under a schema, who is equal, and what differs between those who are not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

from cachescope.analysis.contexts.keys import FORMS, isolation_keys, schema_without
from cachescope.answers.read import Read
from cachescope.answers.side_by_side import SideBySide
from cachescope.columns import rows_of
from cachescope.frames.context_rows import ContextRow
from cachescope.frames.sharing_rows import FormDifference, GroupRow, IsolationKeyRow, PairRow
from cachescope.keys import IsolationSchema


@dataclass(frozen=True, slots=True)
class Pair:
    """Two contexts that differ.

    Attributes
    ----------
    row : dict
        A plain row of the frame ``context_pairs``.
    fields : tuple of dict
        What is known to differ: plain rows of the frame ``context_difference``.
    """

    row: PairRow
    fields: tuple[FormDifference, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Sharing:
    """Which contexts share a cache under a schema."""

    schema: IsolationSchema  # what counts
    contexts: tuple[ContextRow, ...]  # plain rows of the frame ``contexts``
    columns: tuple[tuple[ContextRow, ...], ...]  # the same, those that are alike together
    keys: dict[int, IsolationKeyRow]  # for each context its row of the frame ``isolation_keys``
    groups: tuple[GroupRow, ...]  # plain rows of the frame ``context_groups`` under the schema
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
    def of(cls, read: Read, schema: IsolationSchema | None = None, most: int = 3) -> Self:
        """Of all contexts that were read, by default under a schema by which every form counts; `most` pairs."""
        schema = IsolationSchema.all() if schema is None else schema
        contexts = tuple(rows_of(read.contexts, ContextRow))
        groups = tuple(rows_of(read.context_groups(schema), GroupRow)) if contexts else ()
        known = _forms_known_of_all(contexts) if _is_open(groups) else ()
        pairs = rows_of(read.context_pairs(), PairRow)
        return cls(
            schema,
            contexts,
            SideBySide.of(read).columns,
            {row.context: row for row in rows_of(isolation_keys(read.contexts, schema), IsolationKeyRow)},
            groups,
            known,
            tuple(rows_of(read.context_groups(schema_without(set(FORMS) - set(known))), GroupRow))
            if known
            else (),
            tuple(_pairs(read, pairs[:most])),
            len(pairs[most:]),
        )


def _is_open(groups: tuple[GroupRow, ...]) -> bool:
    """Whether the schema leaves some of several undecided."""
    return len(groups) > 1 and any(row.group is None for row in groups)


def _forms_known_of_all(contexts: Iterable[ContextRow]) -> tuple[str, ...]:
    missing = {form for row in contexts for form in row.missing_forms if form not in row.hashed_forms}
    return tuple(form for form in FORMS if form not in missing)


def _pairs(read: Read, rows: Iterable[PairRow]) -> Iterator[Pair]:
    for row in rows:
        differing = rows_of(read.context_difference(row.before, row.after), FormDifference)
        yield Pair(row, tuple(field for field in differing if field.status != "unknown"))
