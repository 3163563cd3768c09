"""Finds incomplete sets of hash details in text logs: rate limits, `head` and rotation lose lines.

A missing field is a change only if its line is known not to have been lost. What torch always writes is
the same in all sets that one build of torch made (`FxGraphHashDetails` of torch/_inductor/codecache.py and
`AOTAutogradCacheDetails` of torch/_functorch/_aot_autograd/autograd_cache.py, 2.4 to 2.15): the details of
``torch_version``, which determine every name of the configuration. A set that lacks fields of its peers is cut.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from cachescope.catalogue.facts import config_names
from cachescope.readers.logs.expected_fields import ALWAYS, CONFIG, SETTINGS, Group, Shapes
from cachescope.readers.reading import Process, Reading
from cachescope.terms import AOTAUTOGRAD, FXGRAPH

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
        self._whole = set(_whole_sets(reading))
        self._of_key: dict[str, set[int]] = defaultdict(set)
        for process in reading.processes:
            for lookup in process.lookups:
                if lookup.detail_set is not None and lookup.cache_key is not None:
                    self._of_key[lookup.cache_key].add(lookup.detail_set)
        for key, code in _stored(reading):
            self._of_key[key].add(code)
        ended = {
            (x.cache, x.detail_set) for p in reading.processes for x in p.lookups if x.outcome != "unknown"
        }
        self._without_end = set(_details_of(reading.processes)) - ended
        for number, process in enumerate(reading.processes):
            self._note_builds([code for _, code in _details_of([process])], -1 - number)

    def _note_builds(self, codes: list[int], otherwise: int) -> None:
        """Note the one build of torch of a process, even if the lines that identify it are lost."""
        builds = [build for code in codes if (build := self._shapes.build(code)) is not None]
        for code in codes:
            self._shapes.of_process.setdefault(code, builds[0] if builds else otherwise)

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
            process
            for process in texts
            if any((x.cache, x.detail_set) in cut or x.is_details_cut for x in process.lookups)
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
    counts: dict[int, int] = defaultdict(int)
    for fields, sets in found.items():
        for field in fields:
            counts[field] += sets
    common = frozenset(field for field, sets in counts.items() if sets > 1)
    return common.union(*(fields for fields in found if common <= fields))


def _whole_sets(reading: Reading) -> Iterator[_Known]:
    yield from _details_of(process for process in reading.processes if process.kind != "text")
    for key, code in _stored(reading):
        yield AOTAUTOGRAD if key.startswith("a") else FXGRAPH, code


def _stored(reading: Reading) -> Iterator[tuple[str, int]]:
    """Keys of entries, with the sets of details that the entries contain."""
    yield from reading.details_of_key.items()
    for entry in reading.entries.opened.values():
        if entry.detail_set is not None and entry.cache_key is not None:
            yield entry.cache_key, entry.detail_set
