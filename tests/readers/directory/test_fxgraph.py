from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hostile_pickles import Object, detail_line, entry_bytes

from cachescope.frames.directory_rows import EntryRow
from cachescope.keys.hashing import entry_name
from cachescope.readers.directory.cache_dir import read_cache_dir
from cachescope.readers.reading import Reading
from tests.conftest import Recording

KEY = "f" + "a" * 51
LINES = [detail_line("gm", "<lambda>()"), detail_line("inductor_config[epilogue_fusion]", "True", "b")]


def read_graph(folder: Path, graph: Object, data: bytes | None = None) -> tuple[EntryRow, Reading]:
    """Hand-made entries stand for versions and states that were not recorded."""
    data = entry_bytes(graph) if data is None else data
    at = folder / "fxgraph" / "aa" / KEY
    at.mkdir(parents=True)
    (at / entry_name(data)).write_bytes(data)
    reading = Reading()
    read_cache_dir(str(folder), reading)
    (entry,) = reading.entries
    return entry, reading


@pytest.mark.parametrize("version", ["2.10.0", "2.13.0", "2.15.0"])
def test_a_real_entry_gives_its_key_code_time_and_details(version: str, recording: Recording) -> None:
    reading = Reading(strict=True)
    read_cache_dir(str(recording(version, "cold_warm") / "cache"), reading)
    graphs = [entry for entry in reading.entries if entry.cache == "fxgraph"]
    assert graphs
    for entry in graphs:
        assert entry.status == "ok"
        assert entry.damage is None
        assert entry.cache_key is not None
        assert entry.cache_key.startswith("f")
        assert entry.code_key is not None
        assert entry.code_key.startswith("c")
        assert entry.source_code is not None
        assert "import torch" in entry.source_code
        assert entry.device_types == ("cpu",)
        assert entry.time_taken_ns is not None
        assert 1e6 < entry.time_taken_ns < 1e12
        assert entry.detail_set is not None
        fields = [detail.field for detail in reading.details.details(entry.detail_set)]
        assert fields[0] == "gm"
        assert "inductor_config[epilogue_fusion]" in fields
        assert len(fields) > 400


def test_a_real_entry_with_dynamic_shapes_gives_its_guards(recording: Recording) -> None:
    reading = Reading(strict=True)
    read_cache_dir(str(recording("2.13.0", "dynamic_guards_fx") / "cache"), reading)
    guards = {entry.guards_expr for entry in reading.entries}
    assert any(guard and "L['" in guard for guard in guards)


def test_an_entry_without_details_is_sound(tmp_path: Path) -> None:
    # Hand-made after the field table: 2.6 and 2.7 store no debug lines, device types as a set.
    state: dict[str, Any] = {
        "cache_key": "c" + "b" * 51,
        "device_types": {"cpu", "cuda"},
        "guards_expr": "11 <= L['t0']",
        "_time_taken_ns": 5_000,
        "_fx_graph_cache_key": KEY,
    }
    entry, reading = read_graph(tmp_path, Object("torch._inductor.output_code.CompiledFxGraph", state))
    assert (entry.status, entry.detail_set, entry.time_taken_ns) == ("ok", None, 5_000)
    assert set(entry.device_types) == {"cpu", "cuda"}
    assert entry.guards_expr == "11 <= L['t0']"
    assert not reading.problems


def test_the_class_of_torch_2_5_is_known(tmp_path: Path) -> None:
    entry, _ = read_graph(tmp_path, Object("torch._inductor.codecache.CompiledFxGraph", {"cache_key": "x"}))
    assert (entry.status, entry.code_key) == ("ok", "x")


def test_a_graph_of_a_class_that_a_later_torch_may_have_is_not_damaged(tmp_path: Path) -> None:
    graph = Object("torch._inductor.output_code.Other", {"guards_expr": None})
    entry, reading = read_graph(tmp_path, graph)
    assert entry.status == "unreadable"
    assert entry.damage == "not known to be an entry of fxgraph: holds torch._inductor.output_code.Other"
    assert [problem.kind for problem in reading.problems] == ["unreadable"]


@pytest.mark.parametrize(
    ("graph", "damage"),
    [
        (Object("torch._inductor.output_code.CompiledFxGraph"), "an object without a state"),
        (Object("mine.CompiledFxGraph", {"cache_key": "x"}), "holds mine.CompiledFxGraph"),
        ({"cache_key": "x"}, "not an entry of fxgraph: holds dict"),
        (
            Object("torch._inductor.output_code.CompiledFxGraph", {"_fx_graph_cache_key": "f" + "q" * 51}),
            "holds the entry of another key",
        ),
        (
            Object(
                "torch._inductor.output_code.CompiledFxGraph", {"_fx_graph_cache_debug_lines": ["x", *LINES]}
            ),
            "1 of 3 lines are no hash details",
        ),
        (
            Object("torch._inductor.output_code.CompiledFxGraph", {"_fx_graph_cache_debug_lines": [1]}),
            "no list of text",
        ),
        (
            Object(
                "torch._inductor.output_code.CompiledFxGraph",
                {"constants": Object("os.system", args=("true",))},
            ),
            "hostile: names os.system",
        ),
        (
            Object("torch._inductor.output_code.CompiledFxGraph", {"constants": Object("builtins.eval")}),
            "hostile: names builtins.eval",
        ),
    ],
)
def test_what_is_no_sound_graph_is_damaged_and_a_problem(tmp_path: Path, graph: Object, damage: str) -> None:
    entry, reading = read_graph(tmp_path, graph)
    assert entry.status == "damaged"
    assert entry.damage is not None
    assert damage in entry.damage
    (problem,) = reading.problems
    assert (problem.kind, problem.source, problem.message) == ("damaged_entry", entry.path, entry.damage)


def test_values_of_other_types_are_missing_not_errors(tmp_path: Path) -> None:
    state = {
        "cache_key": 1,
        "guards_expr": [],
        "device_types": 5,
        "_time_taken_ns": "soon",
        "source_code": None,
    }
    entry, _ = read_graph(tmp_path, Object("torch._inductor.output_code.CompiledFxGraph", state))
    assert (entry.code_key, entry.guards_expr, entry.device_types, entry.time_taken_ns) == (
        None,
        None,
        (),
        None,
    )
