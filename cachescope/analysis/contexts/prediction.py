"""Whether a process would find the entries of a directory: their stored hash details against its own fields.

A key is the hash of the graph, its inputs and the state of the process (configuration, versions, settings). The
first two follow from the program, so a prediction assumes the program that made the entry. The state is compared
field by field, by hash. Options given to one ``torch.compile`` are in the key as if the whole process had them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from cachescope.analysis.contexts.cpu_safety import NOT_CHECKED, CpuSafety, Safety, worst
from cachescope.analysis.contexts.outside_keys import OF_EVERY_LATER_KEY, OUTSIDE_KEYS
from cachescope.analysis.contexts.process_fields import ProcessFields, program_of
from cachescope.analysis.directory.equal_code import SourceOf
from cachescope.details import HashDetails
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.sharing_rows import PredictionRow
from cachescope.grouping import by_key
from cachescope.kept import kept
from cachescope.keys.detail_hash import default_hashes
from cachescope.keys.key_fields import is_of_the_program
from cachescope.keys.paths import is_in_remote_cache
from cachescope.rows import like
from cachescope.terms import AOTAUTOGRAD, CACHES, FXGRAPH
from cachescope.wording import listed

# Fields that torch adds only to graphs that they matter to, so one side may lack them: C++ kernels, no tensor
# inputs, a pass that is set.
_NOT_ALWAYS: Final = re.compile(
    r"cpp_runtime_thread_count|default_cuda_device_index|pre_grad_custom_pass"
    r"|custom_backend_codegen_implications(?:\[.*)?",
    re.DOTALL,
)
# No log names the server that a process uses.
_SAME_REMOTE_CACHE: Final = "a process that asks this remote cache"
_SAME_PROGRAM: Final = "the same graph and inputs"
# Kernels are compiled with -march=native (torch/_inductor/cpp_builder.py): the same text, and so the same file name, on
# every CPU. A mega-cache contains no binaries (the root of its entries is the file itself), nor does a remote cache.
_SAME_CPU: Final = "a CPU that runs the kernels compiled with it (-march=native)"
OWN_FIELDS: Final = "equal AOTAutograd fields, which entries do not store"
"""The assumption about an AOTAutograd entry: it covers gradient mode and ``torch._functorch.config``."""


def predictions_of(
    entries: Iterable[EntryRow], details: HashDetails, process: ProcessFields, source_of: SourceOf
) -> list[PredictionRow]:
    """Whether the process would find each FX and AOTAutograd entry."""
    rows = [row for row in entries if row.cache in CACHES and row.cache_key is not None]
    compare = _Comparison(details, process, rows, source_of)
    found = {row.entry: compare.graph(row) for row in rows if row.cache == FXGRAPH}
    graphs = by_key(((row.root, row.cache_key), found[row.entry]) for row in rows if row.cache == FXGRAPH)
    for row in rows:
        if row.cache == AOTAUTOGRAD:
            found[row.entry] = compare.autograd(row, [graphs[row.root, key] for key in row.fx_keys])
    return [_row(row, found[row.entry]) for row in rows]


def _row(entry: EntryRow, found: _Prediction) -> PredictionRow:
    return like(
        PredictionRow,
        found,
        entry=entry.entry,
        cache=entry.cache,
        cache_key=entry.cache_key or "",
        is_unsafe=found.safety.is_unsafe,
        unsafe_reason=found.safety.reason,
    )


class _Prediction(NamedTuple):
    will_hit: str
    reason: str
    fields: tuple[str, ...] = ()
    assuming: tuple[str, ...] = ()
    is_lost: bool = False  # no process would find it: it is gone, or cannot be loaded
    safety: Safety = NOT_CHECKED


class _Comparison:
    def __init__(
        self, details: HashDetails, process: ProcessFields, rows: Iterable[EntryRow], source_of: SourceOf
    ) -> None:
        self._details = details
        self._process = process
        self._safety = CpuSafety(source_of, process.vector_width, process.cpu_capability)
        self._always = {name for name in process.hashes if not _NOT_ALWAYS.fullmatch(name)}
        self._everywhere: dict[str, set[str]] = {}
        for row in rows:
            if row.detail_set is not None:
                differing = set(self._differing(row.detail_set))
                self._everywhere.setdefault(row.root, differing).intersection_update(differing)

    def graph(self, row: EntryRow) -> _Prediction:
        """Whether an FX entry would be found."""
        found = self._refused(row) or _unless_altered(row, self._by_fields(row))
        return found if found.will_hit == "no" else found._replace(safety=self._safety.of_graph(row))

    def _refused(self, row: EntryRow) -> _Prediction | None:
        """The prediction for an entry whose key fields need not be compared."""
        if row.is_loadable is False:
            damage = f"it is {row.status}: {row.damage or 'not an entry yet'}"
            return _Prediction("no", damage, is_lost=True)
        off = self._process.off_remotely if is_in_remote_cache(row.path) else self._process.off
        if (reason := off.get(row.cache)) is not None:
            return _Prediction("no", reason)
        if row.is_loadable is None:
            return _Prediction("unknown", f"it could not be read here: {row.damage}")
        return None

    def _by_fields(self, row: EntryRow) -> _Prediction:
        assuming = self._assumptions(row)
        if (FXGRAPH, row.cache_key) in self._process.keys:
            return _looked_up(row)
        if not self._process.hashes:
            return _Prediction("unknown", "nothing is known of the fields of the process")
        if row.detail_set is None:
            return _Prediction("unknown", "the entry does not store its hash details (torch before 2.8)")
        differing = self._differing(row.detail_set)
        if not differing:
            return _Prediction("yes", "every field of the process is equal", assuming=assuming)
        if program_of(row.detail_set, self._details) in self._process.programs:
            reason = f"the process looked this graph up, and {_listed(differing)}"
            return _Prediction("no", reason, differing)
        if all(one.startswith("inductor_config[") and self._may_be_option(row, one) for one in differing):
            where = "an option or mode of this compile, or set where the entry was made"
            return _Prediction("unknown", f"{_listed(differing)}: {where}", differing)
        return _Prediction("no", _listed(differing), differing)

    def autograd(self, row: EntryRow, graphs: Sequence[Sequence[_Prediction]]) -> _Prediction:
        """Whether an AOTAutograd entry would be found, from the FX entries it points to."""
        # torch._functorch.config.bundled_autograd_cache: the entry itself contains the graphs.
        is_bundled = not row.fx_keys
        # Torch loads the first one it encounters: it may be any of them.
        candidates = [one for of_key in graphs for one in of_key if one.will_hit != "no"]
        if row.detail_set is not None:
            graphs = [[self._by_fields(row)]]
        best = [_best(of_key) for of_key in graphs]
        lost = next((p for p in best if p.is_lost), None)
        refused = self._refused(row) or lost or self._other_form(is_bundled)
        found = refused or _unless_altered(row, self._by_graphs(row, best))
        if found.will_hit == "no":
            return found
        loaded = [self._safety.of_graph(row)] if is_bundled else [one.safety for one in candidates]
        return found._replace(safety=worst(loaded))

    def _other_form(self, is_bundled: bool) -> _Prediction | None:
        if self._process.keeps_graphs_inside in (None, is_bundled):
            return None
        has = "holds" if is_bundled else "points to"
        return _Prediction("no", f"it {has} its graphs, unlike the process's own")

    def _by_graphs(self, row: EntryRow, best: Sequence[_Prediction]) -> _Prediction:
        if (AOTAUTOGRAD, row.cache_key) in self._process.keys:
            return _looked_up(row)
        if row.fx_keys and all((FXGRAPH, key) in self._process.keys for key in row.fx_keys):
            return self._other_key()
        if not best:
            return _Prediction("unknown", "it points to no FX entry that could be compared")
        # All state of the process that goes into an FX key goes into the AOTAutograd key too.
        for will_hit in ("no", "unknown"):
            if (one := next((one for one in best if one.will_hit == will_hit), None)) is not None:
                return _Prediction(will_hit, one.reason, one.fields)
        assuming = (*self._assumptions(row), OWN_FIELDS)
        return _Prediction("yes", "every field of the process is equal in its graphs", assuming=assuming)

    def _other_key(self) -> _Prediction:
        """The prediction for an AOTAutograd entry whose graphs the process looked up, but not its own key."""
        if any(cache == AOTAUTOGRAD for cache, _ in self._process.keys):
            return _Prediction("no", "the process looked its graphs up under another AOTAutograd key")
        reason = "the process looked its graphs up; of AOTAutograd no lookup is recorded"
        return _Prediction("unknown", reason)

    def _may_be_option(self, row: EntryRow, name: str) -> bool:
        """Whether this may be an option of the compile itself: ``torch.compile(options=…)`` and ``mode=…``.

        An option is a value that the entry has and torch's default does not. If the default is unknown: values set for the
        whole process differ in every entry of its directory.
        """
        detail = None if row.detail_set is None else self._details.detail(row.detail_set, name)
        defaults = default_hashes(name, self._process.version)
        if detail is None or not defaults:
            return name not in self._everywhere[row.root]
        return detail.detail_hash not in defaults

    def _assumptions(self, row: EntryRow) -> tuple[str, ...]:
        has_binaries = row.root != row.path and not is_in_remote_cache(row.path)
        compiled = (_SAME_CPU,) if "cpu" in row.device_types and has_binaries else ()
        return (_SAME_PROGRAM, *_guards(row), *_same_remote_cache(row), *self._left_out(row), *compiled)

    def _left_out(self, row: EntryRow) -> tuple[str, ...]:
        """Facts that decide the code of an entry but that the keys of its older torch lack."""
        of_set = row.detail_set
        if of_set is None or self._details.component_of(of_set, OF_EVERY_LATER_KEY) is not None:
            return ()
        is_of_cpu = "cpu" in row.device_types
        return tuple(
            f"the same {fact.name}, which its key does not hold"
            for fact in OUTSIDE_KEYS
            if fact.field is not None and (is_of_cpu or not fact.is_of_cpu_code)
        )

    @kept
    def _differing(self, detail_set: int) -> tuple[str, ...]:
        codes = self._details.sets[detail_set]
        differing = [name for code in codes if (name := self._check(code)) is not None]
        there = {self._details.fields[self._details.field_codes[code]] for code in codes}
        return (*differing, *sorted(self._always - there))

    @kept
    def _check(self, component: int) -> str | None:
        """The field of a component if the process has another hash for it."""
        name = self._details.fields[self._details.field_codes[component]]
        known = self._process.hashes.get(name)
        if is_of_the_program(name) or (known is None and _NOT_ALWAYS.fullmatch(name)):
            return None
        is_other = known is None or self._details.components[component][1:52] not in known
        return name if is_other else None


def _best(candidates: Sequence[_Prediction]) -> _Prediction:
    """The best of several entries under one key: one that would be found is enough."""
    if not candidates:
        return _Prediction("no", "the FX entry it points to is gone", is_lost=True)
    order = ("yes", "unknown", "no")
    return min(candidates, key=lambda prediction: order.index(prediction.will_hit))


def _unless_altered(row: EntryRow, found: _Prediction) -> _Prediction:
    """The prediction for an entry whose name does not match its content: torch does not compare, and loads what loads."""
    if row.status == "ok" or found.will_hit != "yes":
        return found
    return _Prediction("unknown", f"{row.damage}: renamed or altered, torch loads it if it can")


def _looked_up(row: EntryRow) -> _Prediction:
    assuming = (*_guards(row), *_same_remote_cache(row))
    return _Prediction("yes", "the process looked this very key up", assuming=assuming)


def _same_remote_cache(row: EntryRow) -> tuple[str, ...]:
    return (_SAME_REMOTE_CACHE,) if is_in_remote_cache(row.path) else ()


def _guards(row: EntryRow) -> tuple[str, ...]:
    return (f"sizes for which {row.guards_expr}",) if row.guards_expr else ()


def _listed(names: tuple[str, ...]) -> str:
    return f"{listed(names, 3)} {'differs' if len(names) == 1 else 'differ'}"
