"""What is known of a process that would look entries up: the fields of its keys, and which caches it asks or has switched off."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from cachescope.analysis.contexts.outside_keys import CPU_CAPABILITY, vector_width
from cachescope.details import HashDetails
from cachescope.frames.recorded_rows import LookupRow
from cachescope.grouping import by_key
from cachescope.keys.detail_hash import default_hashes
from cachescope.keys.key_fields import is_of_the_program
from cachescope.terms import (
    AOT_REMOTE_SWITCH,
    AOT_SWITCH,
    AOTAUTOGRAD,
    BUNDLED_SWITCH,
    CACHE_SWITCHES,
    CACHES,
    FORCE_DISABLE,
    FX_REMOTE_SWITCH,
    FX_SWITCH,
    FXGRAPH,
    PRECOMPILE_SWITCH,
    WOULD_BYPASS,
)

# Which switch turns which caches off, at which value. torch/_inductor/compile_fx.py, `use_cache`, and
# torch/_functorch/_aot_autograd/autograd_cache.py, `should_use_local_autograd_cache` and `check_cacheable`.
_SWITCHES: Final = (
    (FORCE_DISABLE, "True", CACHES),
    (FX_SWITCH, "False", CACHES),
    (AOT_SWITCH, "False", (AOTAUTOGRAD,)),
    (BUNDLED_SWITCH, "True", (FXGRAPH,)),
)
_REMOTE_SWITCHES: Final = {FXGRAPH: FX_REMOTE_SWITCH, AOTAUTOGRAD: AOT_REMOTE_SWITCH}

# torch/_inductor/cpu_vec_isa.py: with it, not the CPU decides how wide vectors are.
_WIDTH_OPTION: Final = "inductor_config[cpp.simdlen]"

Program = frozenset[tuple[str, str]]
"""The hashes of a graph and its inputs."""


def switched_off(settings: Mapping[str, str]) -> dict[str, str]:
    """The caches that the settings of a snapshot turn off, with the reason.

    Examples
    --------
    >>> switched_off({"torch._functorch.config.enable_autograd_cache": "False"})
    {'aotautograd': 'the process has torch._functorch.config.enable_autograd_cache = False'}
    """
    return _off(settings, CACHE_SWITCHES)


def switched_off_remotely(settings: Mapping[str, str]) -> dict[str, str]:
    """The caches of which the settings of a snapshot ask no remote cache, with the reason.

    Examples
    --------
    >>> switched_off_remotely({"torch._inductor.config.fx_graph_remote_cache": "None"})
    {'fxgraph': 'the process has torch._inductor.config.fx_graph_remote_cache = None'}
    """
    # Each remote cache is asked whether or not the local one is on.
    off = _off(settings, (FORCE_DISABLE, BUNDLED_SWITCH))
    for cache, name in _REMOTE_SWITCHES.items():
        if settings.get(name, "True") != "True":
            off.setdefault(cache, f"the process has {name} = {settings[name]}")
    return off


def _off(settings: Mapping[str, str], switches: Collection[str]) -> dict[str, str]:
    off: dict[str, str] = {}
    for name, value, caches in _SWITCHES:
        if name in switches and settings.get(name) == value:
            for cache in caches:
                off.setdefault(cache, f"the process has {name} = {value}")
    return off


def keeps_graphs_inside(settings: Mapping[str, str]) -> bool | None:
    """Whether a process stores graphs inside its AOTAutograd entries; None if its snapshot does not record it.

    ``should_bundle_autograd_cache`` of torch/_functorch/_aot_autograd/autograd_cache.py (2.13). It goes into the
    key: such a process finds no other entries, and no other process finds its own.
    """
    switches = [settings[name] for name in (BUNDLED_SWITCH, PRECOMPILE_SWITCH) if name in settings]
    return "True" in switches if switches else None


def never_looked(lookups: Sequence[LookupRow]) -> dict[str, str]:
    """The caches that were disabled at every lookup of a run, with the reason."""
    off = {}
    for cache in CACHES:
        if {row.outcome for row in lookups if row.cache == cache} == {"disabled"}:
            off[cache] = "the cache was disabled at every lookup of the process"
    has_aot_keys = any(row.cache == AOTAUTOGRAD and row.cache_key is not None for row in lookups)
    if FXGRAPH in off and not has_aot_keys:
        # Without FX graphs AOTAutograd finds nothing, unless its entries contain them.
        off[AOTAUTOGRAD] = off[FXGRAPH]
    return off


@dataclass(frozen=True, slots=True)
class ProcessFields:
    """What is known of a process: for each of its fields, the hashes it was seen with.

    A snapshot has one hash per field; a run may have several if a compile had its own options. For a run, the keys
    that it looked up (as cache and key) and their programs are known too.
    """

    hashes: Mapping[str, frozenset[str]]
    off: Mapping[str, str] = field(default_factory=dict)  # caches it does not look into, and why
    off_remotely: Mapping[str, str] = field(default_factory=dict)
    """Caches of which it asks no remote cache, and why."""
    version: str | None = None  # its version of torch
    keeps_graphs_inside: bool | None = None  # whether its AOTAutograd entries contain their graphs
    keys: frozenset[tuple[str, str]] = field(default=frozenset())
    programs: frozenset[Program] = field(default=frozenset())
    vector_width: int | None = None
    """Vector width that it generates code for, in bits; 0 if it uses no vectors, None if unknown."""
    cpu_capability: str = ""
    problem: str | None = None  # why its snapshot does not hold the fields of its keys

    @classmethod
    def of_snapshot(cls, snapshot: Mapping[str, Any]) -> ProcessFields:
        """Create from what `cachescope.capture` returns."""
        settings, problem = snapshot.get("settings") or {}, snapshot.get("key_fields_problem")
        off, off_remotely = switched_off(settings), switched_off_remotely(settings)
        if problem is not None and problem.startswith(WOULD_BYPASS):
            off, off_remotely = (dict.fromkeys(CACHES, problem) | one for one in (off, off_remotely))
        known = {name: frozenset({hash_}) for name, hash_ in (snapshot.get("key_fields") or {}).items()}
        own = {name: found for name, found in known.items() if not is_of_the_program(name)}
        is_set = own.keys() & {_WIDTH_OPTION} and not own[_WIDTH_OPTION] <= default_hashes(_WIDTH_OPTION)
        return cls(
            own,
            off,
            off_remotely,
            snapshot.get("torch_version"),
            keeps_graphs_inside(settings),
            vector_width=None if is_set else vector_width(settings, snapshot.get("platform") or ""),
            cpu_capability=settings.get(CPU_CAPABILITY, ""),
            problem=None if own or off else problem or "it is a bare context, or an older cachescope made it",
        )

    @classmethod
    def of_lookups(
        cls, lookups: Sequence[LookupRow], details: HashDetails, version: str | None
    ) -> ProcessFields:
        """Create from the FX lookups of a run whose hash details are its own or equal to its own."""
        keys = {(row.cache, row.cache_key) for row in lookups if row.cache_key is not None}
        sets = {row.detail_set for row in lookups if row.cache == FXGRAPH and row.detail_set is not None}
        of_process = (
            one for of_set in sets for one in details.details(of_set) if not is_of_the_program(one.field)
        )
        hashes = by_key((one.field, one.detail_hash) for one in of_process)
        known = {name: frozenset(found) for name, found in hashes.items()}
        off, programs = never_looked(lookups), {program_of(of_set, details) for of_set in sets}
        return cls(known, off, off, version, keys=frozenset(keys), programs=frozenset(programs))

    def with_captured(self, captured: ProcessFields) -> ProcessFields:
        """Add to what lookups say what the process said of itself at its end."""
        asked = {cache for cache, _ in self.keys}
        width = self.hashes.get(_WIDTH_OPTION, captured.hashes.get(_WIDTH_OPTION))
        return replace(
            captured,
            hashes={**captured.hashes, **self.hashes},
            off={**{one: why for one, why in captured.off.items() if one not in asked}, **self.off},
            keys=self.keys,
            programs=self.programs,
            vector_width=captured.vector_width if width == captured.hashes.get(_WIDTH_OPTION) else None,
        )


def program_of(detail_set: int, details: HashDetails) -> Program:
    """The part of a key that describes the graph and its inputs; their ``fx_kwargs`` follow from options too."""
    return frozenset(
        (name, details.components[code][1:52])
        for code in details.sets[detail_set]
        if is_of_the_program(name := details.fields[details.field_codes[code]])
        and not name.startswith("fx_kwargs")
    )
