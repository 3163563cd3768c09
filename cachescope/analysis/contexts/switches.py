"""Caches that a process does not look into, whatever their keys: judged by its switches, or by its lookups."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from cachescope.analysis.history.rows import LookupRow
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
        outcomes = {row.outcome for row in lookups if row.cache == cache}
        if outcomes == {"disabled"}:
            off[cache] = "the cache was disabled at every lookup of the process"
    has_aot_keys = any(row.cache == AOTAUTOGRAD and row.cache_key is not None for row in lookups)
    if FXGRAPH in off and not has_aot_keys:
        # Without FX graphs AOTAutograd finds nothing, unless its entries contain them.
        off[AOTAUTOGRAD] = off[FXGRAPH]
    return off
