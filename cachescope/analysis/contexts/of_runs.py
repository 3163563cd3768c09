"""Isolation contexts of recorded runs, reconstructed from the hash details of their lookups.

Nothing is guessed. A printed value counts only if hashing it gives the hash that torch printed with it, and a
form only if all lookups of the run agree. The rest stays in ``missing_forms``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import pandas as pd

from cachescope.columns import frame_of, rows_of
from cachescope.components import parse_component
from cachescope.details import HashDetails
from cachescope.frames.context_rows import ContextRow
from cachescope.frames.recorded_rows import RunRow
from cachescope.keys.detail_hash import PROTOCOLS, detail_hash, torch_detail_hash
from cachescope.keys.json_values import UnsupportedValueError, json_ready, sorted_json
from cachescope.keys.printed_values import literal_value
from cachescope.terms import COMPILE_FORMS, RUNTIME_FORMS

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
_MATMUL: Final = (
    "fp32_precision",
    "allow_fp16_reduced_precision_reduction",
    "allow_bf16_reduced_precision_reduction",
)
_UNKNOWN: Final = object()
# A longer printed value is no configuration.
_LONGEST: Final = 100_000


@dataclass(frozen=True, slots=True)
class _Forms:
    """The forms of a context that could be read, and torch's hash of its own key."""

    torch_hash: str | None
    values: Mapping[str, str | None]


def all_contexts(
    snapshots: pd.DataFrame, runs: pd.DataFrame, lookups: pd.DataFrame, details: HashDetails
) -> pd.DataFrame:
    """Return the captured contexts, and one more for each run.

    Parameters
    ----------
    snapshots : DataFrame
        ``contexts`` from the sources. A run whose torch key equals that of a snapshot has its
        ``torch_version_hash``, and with it ``runtime`` and ``runtime_version``: torch/version.py is among the
        files of that key.
    runs, lookups : DataFrame
        As in the scope.
    details : HashDetails
        The store that ``lookups["detail_set"]`` points into.

    Notes
    -----
    Mirrors, backwards, ``FxGraphHashDetails.__init__`` and ``CacheBase.get_system`` (torch/_inductor/codecache.py)
    and ``_isolation_context`` (torch/_inductor/runtime/caching/context.py). ``inductor_config`` of the hash
    details and the form are the same call of ``save_config_portable`` (2.10 to 2.15).
    """
    captured = rows_of(snapshots, ContextRow)
    if runs.empty:
        return snapshots
    torch_of_hash = _torch_of_hash(captured)
    known = lookups[lookups["detail_set"].notna()]
    sets_of_run = known.groupby("run")["detail_set"].unique().to_dict()
    reader = _Reader(details)
    rows = [
        _row(len(captured) + at, run, reader.forms(sets_of_run.get(run.run, ())), torch_of_hash)
        for at, run in enumerate(rows_of(runs, RunRow))
    ]
    return frame_of([*captured, *rows], ContextRow)


def _torch_of_hash(captured: Iterable[ContextRow]) -> dict[str, ContextRow]:
    found: dict[str, ContextRow] = {}
    for row in captured:
        # The pickle protocol of the other process depends on its Python.
        found |= {
            hashed: row
            for protocol in PROTOCOLS
            if (hashed := torch_detail_hash(row.torch_version_hash, protocol))
        }
    return found


def _row(number: int, run: RunRow, read: _Forms, torch_of_hash: Mapping[str, ContextRow]) -> ContextRow:
    found = dict(read.values)
    twin = None if read.torch_hash is None else torch_of_hash.get(read.torch_hash)
    if twin is not None:
        found["torch_version_hash"] = twin.torch_version_hash
        for form, value in (("runtime", twin.runtime), ("runtime_version", twin.runtime_version)):
            if form not in twin.missing_forms:
                found[form] = value
    forms = (*RUNTIME_FORMS, *COMPILE_FORMS)
    return ContextRow(
        context=number,
        source=run.source,
        run=run.run,
        inductor_configs=found.get("inductor_configs"),
        torch_determinism_configs=found.get("torch_determinism_configs"),
        cuda_matmul_precision_configs=found.get("cuda_matmul_precision_configs"),
        torch_version_hash=found.get("torch_version_hash"),
        triton_version_hash=found.get("triton_version_hash"),
        runtime=found.get("runtime"),
        runtime_version=found.get("runtime_version"),
        accelerator_properties=None,
        missing_forms=tuple(form for form in forms if form not in found),
        hashed_forms=("torch_version_hash",) if read.torch_hash and twin is None else (),
        torch_detail_hash=read.torch_hash,
        text_only=(),
        known_from="hash_details",
        torch_version=run.torch_version,
        python_version=run.python_version,
        platform=None,
        host=None,
        pid=run.pid,
        time=run.start_time,
        environment=None,
        settings=None,
        device_properties=(),
        key_fields=None,
        aot_key_fields=None,
        key_fields_problem=None,
        torch_manifest=None,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """The part of a set that belongs to one form: component codes, and a number that is equal if fields and hashes are."""

    codes: tuple[int, ...]
    number: int


class _Reader:
    """Reads forms from sets of hash details; every distinct component, and what sets share, is processed once."""

    def __init__(self, details: HashDetails) -> None:
        self._details = details
        self._values: dict[int, object] = {}
        self._parts: dict[tuple[tuple[int, ...], ...], tuple[_Part, ...]] = {}
        self._parts_of_set: dict[int, tuple[_Part, ...]] = {}
        self._numbers: dict[tuple[tuple[int, int], ...], int] = {}
        self._read: dict[tuple[tuple[int, ...] | None, ...], _Forms] = {}

    @cached_property
    def _attribute_of_field(self) -> list[str]:
        return [field.partition("[")[0] for field in self._details.fields]

    def forms(self, sets: Iterable[int]) -> _Forms:
        """The forms that all of the sets agree on and that could be read."""
        every = list(dict.fromkeys(self._parts_of(int(number)) for number in sets))
        agreed = tuple(_agreed([parts[at] for parts in every]) for at in range(len(ATTRIBUTE_OF_FORM)))
        if agreed not in self._read:
            self._read[agreed] = self._read_forms(agreed)
        return self._read[agreed]

    def _read_forms(self, agreed: Iterable[tuple[int, ...] | None]) -> _Forms:
        names, of_component = self._details.fields, self._details.field_codes
        parts = {
            form: None if codes is None else {names[of_component[code]]: code for code in codes}
            for form, codes in zip(ATTRIBUTE_OF_FORM, agreed, strict=True)
        }
        found = self._system(parts["system"] or {})
        for form, read in (
            ("inductor_configs", self._configs),
            ("torch_determinism_configs", self._determinism),
            ("cuda_matmul_precision_configs", self._matmul),
        ):
            if (part := parts[form]) and (value := read(part)) is not _UNKNOWN:
                found[form] = sorted_json(value)
        return _Forms(self._torch_hash(parts["torch_version_hash"]), found)

    def _parts_of(self, number: int) -> tuple[_Part, ...]:
        """The part of a set for each form; sets with equal parts share one answer."""
        if number in self._parts_of_set:
            return self._parts_of_set[number]
        chosen: dict[str, list[int]] = {attribute: [] for attribute in ATTRIBUTE_OF_FORM.values()}
        attributes, fields = self._attribute_of_field, self._details.field_codes
        for code in self._details.sets[number]:
            if (attribute := attributes[fields[code]]) in chosen:
                chosen[attribute].append(code)
        memo_key = tuple(map(tuple, chosen.values()))
        if memo_key not in self._parts:
            self._parts[memo_key] = tuple(map(self._part, memo_key))
        self._parts_of_set[number] = self._parts[memo_key]
        return self._parts[memo_key]

    def _part(self, codes: tuple[int, ...]) -> _Part:
        of_field, of_hash = self._details.field_codes, self._details.hash_codes
        same = tuple((of_field[code], of_hash[code]) for code in codes)
        return _Part(codes, self._numbers.setdefault(same, len(self._numbers)))

    def _value(self, code: int) -> object:
        if code not in self._values:
            detail = parse_component(self._details.components[code])
            self._values[code] = (
                _UNKNOWN if detail is None else _verified(detail.value_text, detail.detail_hash)
            )
        return self._values[code]

    def _configs(self, part: dict[str, int]) -> object:
        values = {field.partition("[")[2][:-1]: self._value(code) for field, code in part.items()}
        return _UNKNOWN if any(value is _UNKNOWN for value in values.values()) else values

    def _determinism(self, part: dict[str, int]) -> object:
        value = self._value(next(iter(part.values())))
        if not isinstance(value, tuple) or len(value) != len(_DETERMINISM):
            return _UNKNOWN
        return dict(zip(_DETERMINISM, value, strict=True))

    def _matmul(self, part: dict[str, int]) -> object:
        value = self._value(next(iter(part.values())))
        if not isinstance(value, tuple) or len(value) != len(_MATMUL):
            return _UNKNOWN
        # Through 2.8 the first one is allow_tf32.
        names = ("allow_tf32", *_MATMUL[1:]) if isinstance(value[0], bool) else _MATMUL
        return {f"torch.backends.cuda.matmul.{name}": v for name, v in zip(names, value, strict=True)}

    def _torch_hash(self, part: dict[str, int] | None) -> str | None:
        if not part:
            return None
        detail = parse_component(self._details.components[next(iter(part.values()))])
        return None if detail is None else detail.detail_hash

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


def _agreed(parts: Sequence[_Part]) -> tuple[int, ...] | None:
    """The components of a form if all sets have the same fields with the same hashes; otherwise None."""
    if not parts or not parts[0].codes or any(part.number != parts[0].number for part in parts):
        return None
    return parts[0].codes


def _verified(text: str, expected: str) -> object:
    """The value of a printed text, if its hash is the one that torch printed with it."""
    if len(text) > _LONGEST:
        return _UNKNOWN
    # A text is printed without quotes: try it unchanged before parsing it as a literal.
    for parse in (str, literal_value):
        try:
            value = parse(text)
            if expected in (detail_hash(value, protocol) for protocol in PROTOCOLS):
                return _UNKNOWN if json_ready(value)[1] else value
        except (ValueError, UnsupportedValueError):
            continue
    return _UNKNOWN
