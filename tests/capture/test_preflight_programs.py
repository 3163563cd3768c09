"""Every program of `programs`: each key, outcome and entry that is predicted, held against torch's real runs.

`CACHESCOPE_MODELS_PYTHON` names another Python whose torch runs them.
"""

import json
import os
import shutil
from pathlib import Path

import pytest

from cachescope.scope.preflight import read_preflight
from tests.capture import preflights
from tests.capture.program_names import ALONE, BYPASSED, PROGRAMS, RANKS
from tests.programs import ran

# One command runs many programs.
pytestmark = [pytest.mark.torch, pytest.mark.models, pytest.mark.timeout(3600)]

GROUPS = {name: name for name in ALONE}
for name in PROGRAMS:
    if name not in ALONE:
        group = PROGRAMS[name]
        GROUPS[group] = f"{GROUPS[group]},{name}" if group in GROUPS else name
"""What is run in one command: a program, or all of a module; importing torch takes longer than most of them."""
_SETTING = [
    "bisector_bypassed",
    "freezing_without_prepacking_bypassed",
    "own_function_as_an_operator_bypassed",
    "own_function_bypassed",
]
"""Programs that set something for the rest of their process."""
BYPASSES = {name: name for name in _SETTING}
BYPASSES["others"] = ",".join(name for name in BYPASSED if name not in _SETTING)
CHANGED = {"PREFLIGHT_PROGRAM_CONFIG": "epilogue_fusion"}
_RACE = "the ranks start together, and which of them is first decides who misses"
NOT_KNOWN = {
    ("ddp", "cold"): _RACE,
    ("ddp", "changed"): _RACE,
    ("collective", "cold"): _RACE,
    ("collective", "changed"): _RACE,
}
"""The programs, and the states of the cache, for which some outcomes cannot be predicted; the keys always are."""


def held(name: str, state: str, traces: Path, cache: Path, **changed: str) -> None:
    """Predict a run from a pre-flight, run it for real, and hold one against the other."""
    before = preflights.stored_in(cache)
    scope = read_preflight(str(traces), None)
    told = preflights.lookups_of(scope)
    assert told
    went = preflights.really(preflights.program(name), cache, cache.with_name(state), **changed)
    if (name, state) in NOT_KNOWN:
        assert preflights.open_of(told), "it is predicted by now: take it out of the table"
        preflights.assert_nothing_else_came(told, went)
    else:
        preflights.assert_came_true(told, went)
    assert preflights.stored_in(cache) == before | preflights.would_store(scope)


def test_names_are_those_that_are_registered() -> None:
    code = "import json; from tests.capture import programs as p; print(json.dumps([[*p.PROGRAMS], p.RANKS, [*p.BYPASSED]]))"
    done = ran([preflights.TORCH_PYTHON, "-c", code], os.environ | {"PYTHONPATH": str(preflights.ROOT)})
    names, ranks, bypassed = json.loads(done.stdout)
    assert (sorted(names), ranks, sorted(bypassed)) == (sorted(PROGRAMS), RANKS, sorted(BYPASSED))


@pytest.mark.parametrize("group", GROUPS)
def test_what_is_predicted_comes_true(tmp_path: Path, group: str) -> None:
    if group == "models" and not preflights.has_transformers():
        pytest.skip(f"transformers is not installed for {preflights.TORCH_PYTHON}")
    name, cache = GROUPS[group], tmp_path / "cache"
    traces = preflights.preflown(preflights.program(name), cache, tmp_path / "preflight")
    assert not cache.exists()
    held(name, "cold", traces, cache)
    held(name, "warm", traces, cache)
    before = preflights.tree_hash(cache)
    traces = preflights.preflown(preflights.program(name), cache, tmp_path / "changed preflight", **CHANGED)
    assert preflights.tree_hash(cache) == before
    held(name, "changed", traces, cache, **CHANGED)


@pytest.mark.parametrize("group", BYPASSES)
def test_every_bypass_is_predicted(tmp_path: Path, group: str) -> None:
    name, cache = BYPASSES[group], tmp_path / "cache"
    held(name, "cold", preflights.preflown(preflights.program(name), cache, tmp_path / "preflight"), cache)


def broken(entry: Path, how: str) -> None:
    data = entry.read_bytes()
    if how == "deleted":
        entry.unlink()
    elif how == "truncated":
        entry.write_bytes(data[: len(data) // 2])
    elif how == "emptied":
        entry.write_bytes(b"")
    else:
        entry.write_bytes(bytes(reversed(data)))


@pytest.mark.parametrize("name", ["graph_break", "automatic_dynamic", "bundled", "fx_cache_alone"])
def test_what_deleted_and_damaged_entries_come_to_is_predicted(tmp_path: Path, name: str) -> None:
    whole = tmp_path / "cache"
    traces = preflights.preflown(preflights.program(name), whole, tmp_path / "preflight")
    preflights.really(preflights.program(name), whole, tmp_path / "cold")
    paths = (path for which in ("aotautograd", "fxgraph") for path in preflights.entries_of(whole, which))
    entries = [path.relative_to(whole) for path in paths]
    for how, at in (("deleted", -1), ("truncated", 0), ("emptied", -1), ("reversed", 1)):
        kept = preflights.copied(whole, tmp_path / "kept")
        broken(whole / entries[at % len(entries)], how)
        held(name, how, traces, whole)
        shutil.rmtree(whole)
        kept.rename(whole)
