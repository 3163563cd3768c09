"""Isolation contexts of recorded runs: what a run recorded about itself at its end, and what its lookups or entries show.

Lookups take precedence: only their keys have the options of a single compile. Nothing is guessed. A printed value counts only if hashing it gives the hash that torch printed with it, and a
form only if all lookups of the run agree. The rest stays in ``missing_forms``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, Final

from cachescope.components import parse_component
from cachescope.details import HashDetails
from cachescope.frames.context_rows import ContextRow
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.grouping import by_key
from cachescope.kept import kept
from cachescope.keys.detail_hash import torch_detail_hashes
from cachescope.keys.isolation import FORMS
from cachescope.keys.json_values import json_ready, sorted_json
from cachescope.keys.key_fields import matmul_settings
from cachescope.keys.printed_values import printed_value

# Which attribute of FxGraphHashDetails carries a form (torch/_inductor/codecache.py, 2.6 to 2.15).
ATTRIBUTE_OF_FORM: Final[Mapping[str, str]] = {
    "inductor_configs": "inductor_config",
    "torch_determinism_configs": "deterministic_algorithms_settings",
    "cuda_matmul_precision_configs": "cuda_matmul_settings",
    "torch_version_hash": "torch_version",
    "system": "system_info",
}
# torch/_inductor/runtime/caching/context.py, `_RuntimeContext`: the names of the same values, in the same order.
_DETERMINISM: Final = (
    "torch.are_deterministic_algorithms_enabled",
    "torch.is_deterministic_algorithms_warn_only_enabled",
    "torch.utils.deterministic.fill_uninitialized_memory",
)
_TORCH: Final = "torch_version_hash"
_UNKNOWN: Final = object()
# A longer printed value is no configuration.
_LONGEST: Final = 100_000

Codes = tuple[int, ...]
"""The components of a set that belong to one form."""


def all_contexts(
    captured: list[ContextRow],
    runs: Iterable[RunRow],
    lookups: Iterable[LookupRow],
    details: HashDetails,
    entries: Iterable[EntryRow] = (),
) -> list[ContextRow]:
    """The contexts captured elsewhere, then one for each run; of directories alone one for all entries that agree.

    Notes
    -----
    Mirrors, backwards, ``FxGraphHashDetails.__init__`` and ``CacheBase.get_system`` (torch/_inductor/codecache.py)
    and ``_isolation_context`` (torch/_inductor/runtime/caching/context.py). ``inductor_config`` of the hash
    details and the form are the same call of ``save_config_portable`` (2.10 to 2.15). A run whose torch key equals
    that of a snapshot has its ``torch_version_hash``, and with it ``runtime`` and ``runtime_version``:
    torch/version.py is among the files of that key.
    """
    # The pickle protocol of the other process depends on its Python.
    torch_of_hash = {one: row for row in captured for one in torch_detail_hashes(row.torch_version_hash)}
    sets_of_run = by_key((row.run, row.detail_set) for row in lookups if row.detail_set is not None)
    reader = _Reader(details)
    found = [(_of_run(run), dict.fromkeys(sets_of_run[run.run])) for run in runs]
    if not captured and not found:
        stored = {row.detail_set: row.root for row in entries if row.detail_set is not None}
        alike = by_key((tuple(reader.forms((one,))[0].items()), (root, one)) for one, root in stored.items())
        found = [
            ({"source": of[0][0], "known_from": "entries"}, dict.fromkeys(one for _, one in of))
            for of in alike.values()
        ]
    own = {row.run: row for row in captured}
    rows = [row for row in captured if row.run is None]
    for of, sets in found:
        said, (forms, differing) = own.get(of.get("run")), reader.forms(sets)
        rows.append(_row(of, forms, torch_of_hash) if said is None else _with_lookups(said, forms, differing))
    return [replace(row, context=number) for number, row in enumerate(rows)]


def _of_run(run: RunRow) -> dict[str, Any]:
    same = {name: getattr(run, name) for name in ("source", "run", "torch_version", "python_version", "pid")}
    return {**same, "time": run.start_time, "known_from": "hash_details"}


def _row(
    of: Mapping[str, Any], forms: Mapping[str, str | None], torch_of_hash: Mapping[str, ContextRow]
) -> ContextRow:
    found = dict(forms)
    torch_hash = found.get("torch_detail_hash")
    twin = torch_of_hash.get(torch_hash or "")
    if twin is not None:
        found[_TORCH] = twin.torch_version_hash
        for form, value in (("runtime", twin.runtime), ("runtime_version", twin.runtime_version)):
            if form not in twin.missing_forms:
                found[form] = value
    nothing = dict.fromkeys(one.name for one in fields(ContextRow))
    told: dict[str, Any] = {
        "missing_forms": tuple(form for form in FORMS if form not in found),
        "hashed_forms": (_TORCH,) if torch_hash and twin is None else (),
        "text_only": (),
        "device_properties": (),
    }
    return ContextRow(**{**nothing, **found, **told, **of})


def _with_lookups(said: ContextRow, forms: Mapping[str, str | None], differing: list[str]) -> ContextRow:
    """What a run recorded about itself, with the forms that its lookups show. Forms in which these differ are not known."""
    unknown = dict.fromkeys(form for form in (*said.missing_forms, *differing) if form not in forms)
    told: dict[str, Any] = {**dict.fromkeys(differing), **forms, "missing_forms": tuple(unknown)}
    return replace(said, **told)


class _Reader:
    """Reads forms from sets of hash details, each distinct component once."""

    def __init__(self, details: HashDetails) -> None:
        self._details = details
        # The attribute that each field is a part of.
        self._attributes = [field.partition("[")[0] for field in details.fields]
        self._numbers: dict[tuple[tuple[int, int], ...], int] = {}

    def forms(self, sets: Iterable[int]) -> tuple[dict[str, str | None], list[str]]:
        """The forms that could be read and on which all sets agree, with torch's hash of its own key; and the forms that differ."""
        of_form = dict(zip(ATTRIBUTE_OF_FORM, zip(*map(self._parts_of, sets), strict=True), strict=False))
        differing = [form for form, parts in of_form.items() if len({number for number, _ in parts}) > 1]
        agreed = tuple(() if form in differing else parts[0][1] for form, parts in of_form.items())
        return self._read_forms(agreed), [form for form in differing if form in FORMS]

    @kept
    def _parts_of(self, number: int) -> tuple[tuple[int, Codes], ...]:
        """The part of a set that belongs to each form, with a number that is equal for equal fields and hashes."""
        chosen: dict[str, list[int]] = {attribute: [] for attribute in ATTRIBUTE_OF_FORM.values()}
        of_field, of_hash = self._details.field_codes, self._details.hash_codes
        for code in self._details.sets[number]:
            if (of_form := chosen.get(self._attributes[of_field[code]])) is not None:
                of_form.append(code)
        numbers = self._numbers
        return tuple(
            (numbers.setdefault(tuple((of_field[c], of_hash[c]) for c in codes), len(numbers)), tuple(codes))
            for codes in chosen.values()
        )

    @kept
    def _read_forms(self, agreed: tuple[Codes, ...]) -> dict[str, str | None]:
        names, of_component = self._details.fields, self._details.field_codes
        of_form = zip(ATTRIBUTE_OF_FORM, agreed, strict=False)
        parts = {form: {names[of_component[c]]: c for c in codes} for form, codes in of_form if codes}
        found = self._system(parts.get("system", {}))
        for form, read in (
            ("inductor_configs", self._configs),
            ("torch_determinism_configs", partial(self._named, lambda value: _DETERMINISM)),
            ("cuda_matmul_precision_configs", partial(self._named, matmul_settings)),
        ):
            if form in parts and (value := read(parts[form])) is not _UNKNOWN:
                found[form] = sorted_json(value)
        for code in list(parts.get(_TORCH, {}).values())[:1]:
            detail = parse_component(self._details.components[code])
            found["torch_detail_hash"] = None if detail is None else detail.detail_hash
        return found

    @kept
    def _value(self, code: int) -> object:
        detail = parse_component(self._details.components[code])
        value = printed_value(detail) if detail and len(detail.value_text) <= _LONGEST else _UNKNOWN
        return _UNKNOWN if json_ready(value)[1] else value

    def _configs(self, part: dict[str, int]) -> object:
        values = {}
        for field, code in part.items():
            if (value := self._value(code)) is _UNKNOWN:
                return _UNKNOWN
            values[field.partition("[")[2][:-1]] = value
        return values

    def _named(self, names_of: Callable[[object], Sequence[str]], part: dict[str, int]) -> object:
        """The values of a tuple by their names."""
        value = self._value(next(iter(part.values())))
        names = names_of(value)
        if not names or not isinstance(value, tuple) or len(value) != len(names):
            return _UNKNOWN
        return dict(zip(names, value, strict=True))

    def _system(self, part: dict[str, int]) -> dict[str, str | None]:
        """Triton's key and the runtime, if ``get_system`` contains them: with a GPU, and Triton's key always from 2.15."""
        code = part.get("system_info[version]")
        version = _UNKNOWN if code is None else self._value(code)
        if not isinstance(version, dict):
            return {}
        found: dict[str, str | None] = {}
        if "triton" in version and isinstance(version["triton"], str | None):
            found["triton_version_hash"] = version["triton"]
        for name, runtime in (("cuda", "CUDA"), ("hip", "HIP")):
            if version.get(name) and isinstance(version[name], str):
                found |= {"runtime": runtime, "runtime_version": version[name]}
        return found
