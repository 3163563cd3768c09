"""The shape of a set of hash details: its fields, grouped by what decides whether they are present.

From torch/_inductor/codecache.py, `FxGraphHashDetails`, and torch/_functorch/_aot_autograd/autograd_cache.py,
`AOTAutogradCacheDetails` (2.4 to 2.15): which attributes are always set, which only under a condition, and which
are lists or dicts. An empty list or dict leaves no line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from cachescope.component_sets import Codes
from cachescope.details import HashDetails
from cachescope.terms import AOTAUTOGRAD

Group = tuple[object, ...]
"""What decides whether fields of a kind are present: sets with equal groups have the same fields of that kind."""
ALWAYS: Final = "always"
"""The fields that every set of a cache has."""
CONFIG: Final = "config"
"""The fields that are options of Inductor."""
SETTINGS: Final = "settings"
"""The fields that all keys of a process lack together, unless a line was lost."""

_FIELD: Final = re.compile(r"(?P<attr>\w+)(?:\[(?P<key>.*)\])?", re.DOTALL)
_MOST_DIGITS: Final = 9
_LISTS: Final = {
    "example_inputs",
    "inputs_to_check",
    "user_defined_triton_source",
    "triton_kernel_source_codes",
}
_CONFIGS: Final = ("inductor_config", "inductor_config_comms")
_SOMETIMES: Final = {
    "default_cuda_device_index",
    "cudagraph_override",
    "cudagraph_annotation",
    "custom_backend_codegen_configs",
    "custom_backend_codegen_implications",
    "var_to_hint_override",
}
# Attributes that settings outside the key omit or shorten, in all keys of a process.
_SET: Final = ("pre_grad_custom_pass", "_fuse_ddp_communication_passes")
_THREADS: Final = "cpp_runtime_thread_count"
_AUTOCAST: Final = "autocast_state"
_CPU: Final = "device(type='cpu'"
_ALWAYS: Final = ("torch_version", "system_info[hash]")
_DECIDING: Final = (*_ALWAYS, "inductor_config[cpp.threads]", "inductor_config[cpp.dynamic_threads]")
_KINDS: Final = (CONFIG, ALWAYS, "system_info", SETTINGS, _THREADS, _AUTOCAST)
_PARAMETERS: Final = re.compile(r"^def forward\((?P<inside>.*)\)(?: *->.*)?:", re.MULTILINE)
_NESTED: Final = re.compile(r"\[[^\[\]]*\]|\([^()]*\)|\"[^\"]*\"|'[^']*'")


@dataclass(frozen=True, slots=True)
class _Named:
    """The fields of a set that are not list elements, in their order."""

    first: str
    is_double: bool
    of_kind: dict[str, frozenset[int]]
    places: dict[str, int]
    """The positions of the deciding fields."""


class Shapes:
    """Determines the shapes of the sets of a store, which must not grow meanwhile."""

    def __init__(self, store: HashDetails) -> None:
        self.of_process: dict[int, object] = {}
        """The ``torch_version`` of a set's process, by the code of the set; it is used if the set has lost its own."""
        self._store = store
        self._field_codes, self._hash_codes = store.field_codes, store.hash_codes
        self._kinds: list[str] = []
        self._index: list[int] = []
        for name in store.fields:
            kind, index = _kind(name)
            self._kinds.append(kind)
            self._index.append(index)
        self._is_element: npt.NDArray[np.bool_] = np.array(
            [kind in _LISTS for kind in self._kinds], dtype=bool
        )
        self._of_names: dict[bytes, _Named] = {}
        self._fields: dict[bytes, frozenset[int]] = {}
        self._groups: dict[tuple[str, int], list[tuple[Group, frozenset[int]]]] = {}
        self._parameters: dict[int, int] = {}

    def groups(self, cache: str, code: int) -> list[tuple[Group, frozenset[int]]]:
        """The fields of a set that its peers must have too, kind by kind, each with the group that defines the peers."""
        if (cache, code) not in self._groups:
            self._groups[cache, code] = list(self._find_groups(cache, code))
        return self._groups[cache, code]

    def _find_groups(self, cache: str, code: int) -> Iterator[tuple[Group, frozenset[int]]]:
        named, codes = self._named(code)
        build = self.build(code)
        yield (CONFIG, build), named.of_kind[CONFIG]
        yield (ALWAYS, build, cache), named.of_kind[ALWAYS]
        yield (
            ("system_info", build, self._hash(named, codes, "system_info[hash]")),
            named.of_kind["system_info"],
        )
        yield (SETTINGS, build), named.of_kind[SETTINGS]
        if self._store.field_code(_THREADS) is not None:
            threads = [self._hash(named, codes, name) for name in _DECIDING[2:]]
            yield (_THREADS, build, self._has_cpu_input(code), *threads), named.of_kind[_THREADS]
        if cache == AOTAUTOGRAD:
            yield (_AUTOCAST, build), self._lasting_autocast(named, codes)

    def _lasting_autocast(self, named: _Named, codes: Codes) -> frozenset[int]:
        """The autocast fields if they list every device with its state (2.15); none if they list only those that are on."""
        found = named.of_kind[_AUTOCAST]
        if not found:
            return found
        first = codes[np.isin(self._field_codes[codes], list(found)).argmax()]
        return found if ": (" in self._store.components[first] else frozenset()

    def build(self, code: int) -> object:
        """The hash code of ``torch_version``, which identifies torch's sources; the process's if the set's line is lost."""
        own = self._hash(*self._named(code), "torch_version")
        return self.of_process.get(code) if own is None else own

    def config_names(self, code: int) -> frozenset[str]:
        """The names of a set's configuration options."""
        return frozenset(self._store.fields[field] for field in self._named(code)[0].of_kind[CONFIG])

    def fields(self, code: int) -> frozenset[int]:
        """All fields of a set."""
        fields = self._field_codes[self._store.sets[code]]
        key = fields.tobytes()
        if key not in self._fields:
            self._fields[key] = frozenset(fields.tolist())
        return self._fields[key]

    def optional(self, code: int) -> frozenset[int]:
        """The fields that a set may lack. Inputs are not among them: the graph determines their number."""
        return frozenset(field for field in self.fields(code) if self._is_optional(field))

    def is_broken(self, cache: str, code: int) -> bool:
        """Whether a set on its own shows that lines are missing or that lines of another set are mixed in."""
        named, _ = self._named(code)
        if named.is_double or not all(name in named.places for name in _ALWAYS):
            return True
        if named.first != ("aot_config" if cache == AOTAUTOGRAD else "gm"):
            return True
        return self._has_gaps(code) or self._has_too_few_inputs(code)

    def _is_optional(self, field: int) -> bool:
        kind = self._kinds[field]
        return kind in ("sometimes", _AUTOCAST) or (kind in _LISTS and kind != "example_inputs")

    def _named(self, code: int) -> tuple[_Named, Codes]:
        codes = self._store.sets[code]
        fields = self._field_codes[codes]
        keep = ~self._is_element[fields]
        fields = fields[keep]
        key = fields.tobytes()
        if key not in self._of_names:
            self._of_names[key] = self._name(fields.tolist())
        return self._of_names[key], codes[keep]

    def _name(self, fields: list[int]) -> _Named:
        of_kind: dict[str, set[int]] = {kind: set() for kind in _KINDS}
        names = [self._store.fields[field] for field in fields]
        for field in fields:
            of_kind.setdefault(self._kinds[field], set()).add(field)
        return _Named(
            first=names[0] if names else "",
            is_double=len(set(fields)) < len(fields),
            of_kind={kind: frozenset(found) for kind, found in of_kind.items()},
            places={name: names.index(name) for name in _DECIDING if name in names},
        )

    def _hash(self, named: _Named, codes: Codes, name: str) -> int | None:
        place = named.places.get(name)
        return None if place is None else int(self._hash_codes[codes[place]])

    def _elements(self, code: int) -> tuple[Codes, list[int]]:
        codes = self._store.sets[code]
        fields = self._field_codes[codes]
        keep = self._is_element[fields]
        return codes[keep], fields[keep].tolist()

    def _has_gaps(self, code: int) -> bool:
        """Whether a list lacks an element before its last one."""
        expected = dict.fromkeys(_LISTS, 0)
        for field in self._elements(code)[1]:
            kind = self._kinds[field]
            if self._index[field] != expected[kind]:
                return True
            expected[kind] += 1
        return False

    def _has_too_few_inputs(self, code: int) -> bool:
        gm = self._store.component_of(code, "gm")
        if gm is None:
            return True
        if gm not in self._parameters:
            self._parameters[gm] = parameters_of(self._store.components[gm])
        inputs = sum(self._kinds[field] == "example_inputs" for field in self._elements(code)[1])
        return inputs < self._parameters[gm]

    def _has_cpu_input(self, code: int) -> bool:
        return bool(self._is_on_cpu[self._store.sets[code]].any())

    @cached_property
    def _is_on_cpu(self) -> npt.NDArray[np.bool_]:
        """Whether each component is an input on the CPU."""
        inputs = np.array([kind == "example_inputs" for kind in self._kinds], dtype=bool)
        found = np.zeros(len(self._store.components), dtype=bool)
        for code in np.flatnonzero(inputs[self._store.field_codes]).tolist():
            found[code] = _CPU in self._store.components[code]
        return found


def parameters_of(graph: str) -> int:
    r"""How many inputs the printed code of a graph takes; 0 if it does not show them.

    Examples
    --------
    >>> parameters_of("gm: <lambda>()\n\n\n\ndef forward(self, p_0 : torch.Tensor, s : tuple[int, int]):")
    2
    """
    match = _PARAMETERS.search(graph)
    if match is None:
        return 0
    inside, before = match["inside"], ""
    while inside != before:
        inside, before = _NESTED.sub("", inside), inside
    names = [part.strip() for part in inside.split(",")]
    return sum(bool(name) and name != "self" and not name.startswith("*") for name in names)


def _kind(field: str) -> tuple[str, int]:
    """The kind of a field, and its index if it is an element of a list."""
    match = _FIELD.fullmatch(field)
    attr, key = (match["attr"], match["key"]) if match else (field, None)
    if attr in _LISTS:
        return attr, int(key) if key is not None and key.isdecimal() and len(key) < _MOST_DIGITS else -1
    if attr in _CONFIGS:
        return CONFIG, -1
    if attr in ("system_info", _THREADS, _AUTOCAST):
        return attr, -1
    if attr in _SET:
        return SETTINGS, -1
    # A dict that a later version added: an empty one leaves no line.
    is_new_dict = attr != "fx_kwargs" and key is not None
    return "sometimes" if attr in _SOMETIMES or is_new_dict else ALWAYS, -1
