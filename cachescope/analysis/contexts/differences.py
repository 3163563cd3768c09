"""What differs between two contexts: the forms, the fields inside them, and the schema that leaves them out."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from cachescope.analysis.contexts.keys import KnownContext, Token, compared, known_contexts
from cachescope.errors import NotFoundError
from cachescope.frames.context_rows import ContextRow
from cachescope.frames.sharing_rows import FormDifference, ManifestDifference, PairRow
from cachescope.keys.device_text import OF_THE_BOARD, device_difference, device_parts
from cachescope.keys.isolation import schema_without
from cachescope.readers.json_record import well_formed
from cachescope.table import Table
from cachescope.terms import RUNTIME_FORMS
from cachescope.wording import short

if TYPE_CHECKING:
    import pandas as pd

_OPAQUE: Final = {
    "torch_version_hash": "one hash of all of torch's sources: capture both with --torch-manifest to see the files",
    "triton_version_hash": "Triton's version and the hashes of its sources",
}
_SHOWN: Final = 60
# Up to this many contexts are all compared with each other: a fleet has thousands.
_ALL_PAIRS: Final = 64
# These are equal for all boards of a model.
_OF_THE_MODEL: Final = frozenset({"name", "major", "minor", "gcnArchName"})

Parts = Mapping[str, str]
Sides = tuple[str | None, str | None]


def context_pairs(known: Iterable[KnownContext]) -> list[PairRow]:
    """The smallest change of the schema that makes two contexts equal; see ``describe("context_pairs")``.

    Contexts with the same known content, such as all ranks of a job, are represented by the first of them. If many
    differ, the first few are compared with each other, and the rest with the first alone.
    """
    distinct: dict[tuple[Token, ...], KnownContext] = {}
    for one in known:
        distinct.setdefault(tuple(one.tokens.values()), one)
    ordered = list(distinct.values())
    with_first = itertools.product(ordered[:1], ordered[1:])
    others = itertools.combinations(ordered[1:_ALL_PAIRS], 2)
    return [_pair(*pair) for pair in itertools.chain(with_first, others)]


def _pair(before: KnownContext, after: KnownContext) -> PairRow:
    differing, undecided = compared(before, after)
    schema = schema_without([*differing, *undecided])
    return PairRow(
        before=before.number,
        after=after.number,
        differing=differing,
        undecided=undecided,
        schema=schema.to_json(),
        isolation_key=before.key(schema) or after.key(schema),
    )


def context_difference(contexts: Iterable[ContextRow], before: int, after: int) -> list[FormDifference]:
    """The fields that differ between two contexts; see ``describe("context_difference")``."""
    rows = {row.context: row for row in contexts}
    for number in (before, after):
        if number not in rows:
            raise NotFoundError(f"no context {number}; there are {', '.join(map(str, rows)) or 'none'}")
    old, new = rows[before], rows[after]
    differing, undecided = compared(*known_contexts([old, new]))
    found = [row for form in differing for row in _of_form(form, old, new)]
    return [*found, *(_unknown(form, old, new) for form in undecided)]


def _of_form(form: str, old: ContextRow, new: ContextRow) -> Iterator[FormDifference]:
    before, after = _text(form, old), _text(form, new)
    is_device = form == "accelerator_properties"
    if form in RUNTIME_FORMS:
        yield from _by_field(form, _fields(before), _fields(after))
    elif form == "torch_version_hash":
        yield from _torch(form, old, new)
    elif is_device and before and after and device_parts(before) and device_parts(after):
        for row in _by_field(form, device_parts(before), device_parts(after)):
            yield replace(row, note=_device_note(row.field or "", before, after))
    else:
        yield _row(form, None, (before, after), note=_OPAQUE.get(form))


def _text(form: str, context: ContextRow) -> str | None:
    """The value of a form in a context; None also for a form of a newer torch."""
    text: str | None = getattr(context, form, None)
    return text


def _device_note(field: str, before: str, after: str) -> str | None:
    if field in OF_THE_BOARD:
        return "it identifies the board"
    return device_difference(before, after) if field in _OF_THE_MODEL else None


def _fields(text: str | None) -> dict[str, str]:
    value = json.loads(text or "null")
    if not isinstance(value, dict):
        return {"": text or ""}
    return {name: json.dumps(item, sort_keys=True, ensure_ascii=False) for name, item in value.items()}


def _torch(form: str, old: ContextRow, new: ContextRow) -> Iterator[FormDifference]:
    texts = [text for text in (old.torch_manifest, new.torch_manifest) if text is not None]
    note = None if len(texts) == 2 else _OPAQUE[form]
    yield _row(form, None, (old.torch_version_hash, new.torch_version_hash), note=note)
    if note is None:
        yield from _by_field(form, *(json.loads(text)["files"] for text in texts))


def _by_field(form: str, old: Parts, new: Parts) -> Iterator[FormDifference]:
    for field in dict.fromkeys((*old, *new)):
        if old.get(field) != new.get(field):
            status = "added" if field not in old else "removed" if field not in new else "changed"
            yield _row(form, field, (old.get(field), new.get(field)), status)


def _row(
    form: str, field: str | None, sides: Sides, status: str = "changed", note: str | None = None
) -> FormDifference:
    before, after = (None if text is None else short(well_formed(text), _SHOWN) for text in sides)
    return FormDifference(form, well_formed(field) if field else None, status, before, after, note)


def _unknown(form: str, old: ContextRow, new: ContextRow) -> FormDifference:
    where = [str(row.context) for row in (old, new) if form in row.missing_forms]
    note = f"not known of context {' and '.join(where)}"
    return _row(form, None, (_text(form, old), _text(form, new)), "unknown", note)


def manifest_difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> pd.DataFrame:
    """Which source files of torch differ between two manifests; see ``describe("manifest_difference")``.

    Parameters
    ----------
    before, after : dict
        Manifests, or snapshots that hold one (``capture(torch_manifest=True)``).

    Raises
    ------
    NotFoundError
        If a snapshot contains none.
    TypeError
        If one of them is not a mapping.

    Examples
    --------
    >>> old, new = {"files": {"a.py": "1", "b.py": "2"}}, {"files": {"a.py": "3"}}
    >>> manifest_difference(old, new)[["file", "status"]].values.tolist()
    [['a.py', 'changed'], ['b.py', 'removed']]
    """
    for given in (before, after):
        if not isinstance(given, Mapping):
            raise TypeError(
                f"manifest_difference() takes a manifest or a snapshot, a mapping, not {type(given).__name__}"
            )
    found = [manifest.get("torch_manifest") or manifest for manifest in (before, after)]
    for manifest in found:
        if "files" not in manifest:
            raise NotFoundError("this snapshot holds no manifest of torch: capture it with --torch-manifest")
    old, new = (manifest["files"] for manifest in found)
    rows = [
        ManifestDifference(
            file=row.field or "", status=row.status, before=old.get(row.field), after=new.get(row.field)
        )
        for row in _by_field("torch_version_hash", old, new)
    ]
    return Table(ManifestDifference, rows).frame
