"""The shape of a set of hash details: its fields, grouped by what decides whether they are present.

From torch/_inductor/codecache.py, `FxGraphHashDetails`, and torch/_functorch/_aot_autograd/autograd_cache.py,
`AOTAutogradCacheDetails` (2.4 to 2.15): which attributes are always set, which only under a condition, and which
are lists or dicts. An empty list or dict leaves no line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

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
    "default_cuda_device_index", "cudagraph_override", "cudagraph_annotation",
    "custom_backend_codegen_configs", "custom_backend_codegen_implications", "var_to_hint_override",
}  # fmt: skip
# Attributes that settings outside the key omit or shorten, in all keys of a process.
_SET: Final = ("pre_grad_custom_pass", "_fuse_ddp_communication_passes")
_THREADS: Final = "cpp_runtime_thread_count"
_AUTOCAST: Final = "autocast_state"
_CPU: Final = "device(type='cpu'"
_ALWAYS: Final = ("torch_version", "system_info[hash]")
_DECIDING_THREADS: Final = ("inductor_config[cpp.threads]", "inductor_config[cpp.dynamic_threads]")
_KINDS: Final = (CONFIG, ALWAYS, "system_info", SETTINGS, _THREADS, _AUTOCAST)
_PARAMETERS: Final = re.compile(r"^def forward\((?P<inside>.*)\)(?: *->.*)?:", re.MULTILINE)
_NESTED: Final = re.compile(r"\[[^\[\]]*\]|\([^()]*\)|\"[^\"]*\"|'[^']*'")


@dataclass(frozen=True, slots=True)
class _Layout:
    """What the fields of a set and their order say; elements of lists are apart from the other fields."""

    fields: frozenset[int]
    first: str
    """The first field that is no element of a list."""
    is_double: bool
    of_kind: dict[str, frozenset[int]]
    has_gaps: bool
    """Whether a list lacks an element before its last one."""
    inputs: tuple[int, ...]
    """The places of the graph's inputs."""


class Shapes:
    """Determines the shapes of the sets of a store, which must not grow meanwhile."""

    def __init__(self, store: HashDetails) -> None:
        self.of_process: dict[int, object] = {}
        """The ``torch_version`` of a set's process, by the code of the set; it is used if the set has lost its own."""
        self._store = store
        self._kinds = list(map(_kind, store.fields))
        self._layouts: dict[int, _Layout] = {}
        self._groups: dict[tuple[str, int], list[tuple[Group, frozenset[int]]]] = {}
        self._parameters: dict[int, int] = {}

    def groups(self, cache: str, code: int) -> list[tuple[Group, frozenset[int]]]:
        """The fields of a set that its peers must have too, kind by kind, each with the group that defines the peers."""
        if (cache, code) not in self._groups:
            self._groups[cache, code] = list(self._find_groups(cache, code))
        return self._groups[cache, code]

    def _find_groups(self, cache: str, code: int) -> Iterator[tuple[Group, frozenset[int]]]:
        of_kind = self._layout(code).of_kind
        build = self.build(code)
        yield (CONFIG, build), of_kind[CONFIG]
        yield (ALWAYS, build, cache), of_kind[ALWAYS]
        yield ("system_info", build, self._store.hash_code(code, "system_info[hash]")), of_kind["system_info"]
        yield (SETTINGS, build), of_kind[SETTINGS]
        if self._store.field_code(_THREADS) is not None:
            threads = [self._store.hash_code(code, name) for name in _DECIDING_THREADS]
            yield (_THREADS, build, self._has_cpu_input(code), *threads), of_kind[_THREADS]
        if cache == AOTAUTOGRAD:
            yield (_AUTOCAST, build), self._lasting_autocast(code, of_kind[_AUTOCAST])

    def _lasting_autocast(self, code: int, found: frozenset[int]) -> frozenset[int]:
        """The autocast fields if they list every device with its state (2.15); none if they list only those that are on."""
        if not found:
            return found
        of_field = self._store.field_codes
        first = next(one for one in self._store.sets[code] if of_field[one] in found)
        return found if ": (" in self._store.components[first] else frozenset()

    def build(self, code: int) -> object:
        """The hash code of ``torch_version``, which identifies torch's sources; the process's if the set's line is lost."""
        own = self._store.hash_code(code, "torch_version")
        return self.of_process.get(code) if own is None else own

    def config_names(self, code: int) -> frozenset[str]:
        """The names of a set's configuration options."""
        return frozenset(self._store.fields[field] for field in self._layout(code).of_kind[CONFIG])

    def fields(self, code: int) -> frozenset[int]:
        """All fields of a set."""
        return self._layout(code).fields

    def optional(self, code: int) -> frozenset[int]:
        """The fields that a set may lack. Inputs are not among them: the graph determines their number."""
        kinds = {"sometimes", _AUTOCAST, *_LISTS} - {"example_inputs"}
        return frozenset(field for field in self.fields(code) if self._kinds[field][0] in kinds)

    def is_broken(self, cache: str, code: int) -> bool:
        """Whether a set on its own shows that lines are missing or that lines of another set are mixed in."""
        layout = self._layout(code)
        if layout.is_double or None in (self._store.component_of(code, name) for name in _ALWAYS):
            return True
        if layout.first != ("aot_config" if cache == AOTAUTOGRAD else "gm"):
            return True
        return layout.has_gaps or self._has_too_few_inputs(code)

    def _layout(self, code: int) -> _Layout:
        number = self._store.layout(code)
        if number not in self._layouts:
            self._layouts[number] = self._read_layout(self._store.layouts[number])
        return self._layouts[number]

    def _read_layout(self, fields: Sequence[int]) -> _Layout:
        of_kind: dict[str, set[int]] = {kind: set() for kind in _KINDS}
        expected = dict.fromkeys(_LISTS, 0)
        has_gaps = False
        others = []
        inputs = []
        for place, field in enumerate(fields):
            kind, index = self._kinds[field]
            if kind == "example_inputs":
                inputs.append(place)
            if kind in _LISTS:
                has_gaps |= index != expected[kind]
                expected[kind] += 1
            else:
                others.append(field)
                of_kind.setdefault(kind, set()).add(field)
        return _Layout(
            fields=frozenset(fields),
            first=self._store.fields[others[0]] if others else "",
            is_double=len(set(others)) < len(others),
            of_kind={kind: frozenset(found) for kind, found in of_kind.items()},
            has_gaps=has_gaps,
            inputs=tuple(inputs),
        )

    def _has_too_few_inputs(self, code: int) -> bool:
        gm = self._store.component_of(code, "gm")
        if gm is None:
            return True
        if gm not in self._parameters:
            self._parameters[gm] = parameters_of(self._store.components[gm])
        return len(self._layout(code).inputs) < self._parameters[gm]

    def _has_cpu_input(self, code: int) -> bool:
        codes, components = self._store.sets[code], self._store.components
        return any(_CPU in components[codes[place]] for place in self._layout(code).inputs)


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
