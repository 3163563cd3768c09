"""Finds incomplete sets of hash details in text logs: rate limits, `head` and rotation lose lines.

A missing field is a change only if its line is known not to have been lost. What torch always writes is
the same in all sets that one build of torch made (`FxGraphHashDetails` of torch/_inductor/codecache.py and
`AOTAutogradCacheDetails` of torch/_functorch/_aot_autograd/autograd_cache.py, 2.4 to 2.15): the details of
``torch_version``, which determine every name of the configuration. A set that lacks fields of its peers is cut.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from cachescope.catalogue.facts import config_names
from cachescope.details import HashDetails
from cachescope.kept import kept
from cachescope.keys.printed_values import graph_inputs
from cachescope.readers.reading import Process, Reading
from cachescope.terms import AOTAUTOGRAD, FXGRAPH

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
    "example_inputs", "inputs_to_check", "user_defined_triton_source", "triton_kernel_source_codes",
}  # fmt: skip
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


class _Layout(NamedTuple):
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

    @kept
    def groups(self, cache: str, code: int) -> list[tuple[Group, frozenset[int]]]:
        """The fields of a set that its peers must have too, kind by kind, each with the group that defines the peers."""
        return list(self._find_groups(cache, code))

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
        return self._read_layout(self._store.layout(code))

    @kept
    def _read_layout(self, number: int) -> _Layout:
        of_kind: dict[str, set[int]] = {kind: set() for kind in _KINDS}
        expected = dict.fromkeys(_LISTS, 0)
        has_gaps = False
        others = []
        inputs = []
        for place, field in enumerate(self._store.layouts[number]):
            kind, index = self._kinds[field]
            if kind == "example_inputs":
                inputs.append(place)
            if kind in _LISTS:
                has_gaps |= index != expected[kind]
                expected[kind] += 1
            else:
                others.append(field)
                of_kind.setdefault(kind, set()).add(field)
        fields = frozenset(self._store.layouts[number])
        first = self._store.fields[others[0]] if others else ""
        kinds = {kind: frozenset(found) for kind, found in of_kind.items()}
        return _Layout(fields, first, len(set(others)) < len(others), kinds, has_gaps, tuple(inputs))

    def _has_too_few_inputs(self, code: int) -> bool:
        gm = self._store.component_of(code, "gm")
        return True if gm is None else len(self._layout(code).inputs) < self._parameters(gm)

    @kept
    def _parameters(self, gm: int) -> int:
        return len(graph_inputs(self._store.components[gm]))

    def _has_cpu_input(self, code: int) -> bool:
        codes, components = self._store.sets[code], self._store.components
        return any(_CPU in components[codes[place]] for place in self._layout(code).inputs)


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


_Known = tuple[str, int]
"""A cache, and the code of a set of details."""
_Seen = dict[Group, dict[frozenset[int], int]]


def mark_cut_details(reading: Reading) -> None:
    """Remove details that have lost lines from the lookups of text logs, and report a problem.

    Traces and entries store the details of a key as one value. Theirs are complete and show what others lack.
    """
    texts = [process for process in reading.processes if process.kind == "text"]
    of_texts = set(_details_of(texts))
    if of_texts:
        cut = _Peers(reading).cut_among(of_texts, texts)
        for process in texts:
            _take_cut(process, cut, reading)


def _details_of(processes: Iterable[Process]) -> Iterator[_Known]:
    for process in processes:
        yield from ((x.cache, x.detail_set) for x in process.lookups if x.detail_set is not None)


def _take_cut(process: Process, cut: set[_Known], reading: Reading) -> None:
    taken = 0
    for lookup in process.lookups:
        if (lookup.cache, lookup.detail_set) in cut:
            lookup.detail_set, lookup.is_details_cut = None, True
            taken += 1
    if taken:
        lookups = "a lookup" if taken == 1 else f"{taken} lookups"
        message = f"lines of the hash details of {lookups} are missing: these details are not used"
        reading.problem(process.source, f"pid {process.pid}", "incomplete_details", message)


class _Peers:
    """All sets of hash details, and the fields of the sets that must agree."""

    def __init__(self, reading: Reading) -> None:
        self._shapes = Shapes(reading.details)
        self._whole = set(_details_of(process for process in reading.processes if process.kind != "text"))
        self._of_key: dict[str, set[int]] = defaultdict(set)
        for process in reading.processes:
            for lookup in process.lookups:
                if lookup.detail_set is not None and lookup.cache_key is not None:
                    self._of_key[lookup.cache_key].add(lookup.detail_set)
        for key, code in reading.details_in_entries():
            self._of_key[key].add(code)
            self._whole.add((AOTAUTOGRAD if key.startswith("a") else FXGRAPH, code))
        ended = {
            (x.cache, x.detail_set) for p in reading.processes for x in p.lookups if x.outcome != "unknown"
        }
        self._without_end = set(_details_of(reading.processes)) - ended
        for number, process in enumerate(reading.processes):
            # Its one build of torch, even if the lines that identify it are lost.
            codes = [code for _, code in _details_of([process])]
            builds = [build for code in codes if (build := self._shapes.build(code)) is not None]
            for code in codes:
                self._shapes.of_process.setdefault(code, builds[0] if builds else -1 - number)

    def cut_among(self, known: set[_Known], texts: list[Process]) -> set[_Known]:
        """The incomplete ones among these sets."""
        judged = known - self._whole
        seen = self._seen(known | self._whole)
        required = {group: _required(found) for group, found in seen.items()}
        cut = {one for one in judged if self._is_cut(one, seen, required)}
        less = self._less_than_their_equals()
        cut |= {one for one in judged if one[1] in less}
        return cut | self._doubtful(judged - cut, cut, texts)

    def _seen(self, sets: Iterable[_Known]) -> _Seen:
        """For each group of sets, their combinations of fields with the number of sets; a complete set counts twice."""
        seen: _Seen = defaultdict(lambda: defaultdict(int))
        for cache, code in sets:
            weight = 2 if (cache, code) in self._whole else 1
            for group, fields in self._shapes.groups(cache, code):
                seen[group][fields] += weight
        return seen

    def _is_cut(self, one: _Known, seen: _Seen, required: dict[Group, frozenset[int]]) -> bool:
        for group, fields in self._shapes.groups(*one):
            is_shared = group[0] == SETTINGS and seen[group][fields] > 1
            if not required[group] <= fields and not is_shared:
                return True
            if seen[group][fields] > 1:
                continue
            # No other set has the same fields: they must be those of a release, and a line must follow the last one.
            if group[0] == CONFIG and self._is_less_than_a_release(one[1]):
                return True
            if group[0] == ALWAYS and one in self._without_end:
                return True
        return self._shapes.is_broken(*one)

    def _is_less_than_a_release(self, code: int) -> bool:
        """Whether a set has some, but not all, of the option names of a torch release."""
        names = self._shapes.config_names(code)
        return names not in config_names() and any(names < known for known in config_names())

    def _less_than_their_equals(self) -> set[int]:
        """Sets that lack fields of another set with the same key: equal keys have equal details."""
        found: set[int] = set()
        for codes in self._of_key.values():
            fields = {code: self._shapes.fields(code) for code in codes}
            if len(set(fields.values())) > 1:
                together = frozenset[int]().union(*fields.values())
                found |= {code for code, own in fields.items() if own != together}
        return found

    def _doubtful(self, rest: set[_Known], cut: set[_Known], texts: list[Process]) -> set[_Known]:
        """Sets that lack optional fields, in processes whose log is known to have lost lines."""
        optional: dict[tuple[str, object], set[int]] = defaultdict(set)
        thinned = [
            p for p in texts if any((x.cache, x.detail_set) in cut or x.is_details_cut for x in p.lookups)
        ]
        if not thinned:
            return set()
        for cache, code in rest | cut | self._whole:
            optional[cache, self._shapes.build(code)] |= self._shapes.optional(code)
        return {
            (cache, code)
            for cache, code in rest.intersection(_details_of(thinned))
            if not optional[cache, self._shapes.build(code)] <= self._shapes.optional(code)
        }


def _required(found: dict[frozenset[int], int]) -> frozenset[int]:
    """The fields that a group requires: those of at least two sets, and all fields of any set that has all of these.

    A name that occurs only in a damaged line is not required of the others.
    """
    counts = Counter[int]()
    for fields, sets in found.items():
        counts.update(dict.fromkeys(fields, sets))
    common = frozenset(field for field, sets in counts.items() if sets > 1)
    return common.union(*(fields for fields in found if common <= fields))
