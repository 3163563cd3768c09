from __future__ import annotations

from pathlib import Path

import pytest
from hostile_pickles import Object, detail_line, entry_bytes

from cachescope.frames.directory_rows import EntryRow
from cachescope.keys.hashing import entry_name
from cachescope.readers.directory.cache_dir import read_cache_dir
from cachescope.readers.directory.graph_entries import take_bundled
from cachescope.readers.pickles.inert_pickle import loads_harmless
from cachescope.readers.reading import Reading
from tests.conftest import Recording

KEY = "a" + "b" * 51
FX_KEYS = ("f" + "c" * 51, "f" + "d" * 51)
LINES = [detail_line("gm", "<lambda>()"), detail_line("example_inputs[0]", "TensorMetadata()", "b")]
OLD = "torch._functorch._aot_autograd.autograd_cache"
NEW = "torch._functorch._aot_autograd.aot_autograd_result"


def read_result(folder: Path, result: Object, name: str | None = None) -> tuple[EntryRow, Reading]:
    """Hand-made entries stand for versions that were not recorded."""
    data = entry_bytes(result)
    at = folder / "aotautograd" / KEY
    at.mkdir(parents=True)
    (at / (name or entry_name(data))).write_bytes(data)
    reading = Reading()
    read_cache_dir(str(folder), reading)
    (entry,) = reading.entries
    return entry, reading


@pytest.mark.parametrize("version", ["2.10.0", "2.13.0", "2.15.0"])
def test_a_real_training_entry_gives_both_fx_keys_and_their_details(
    version: str, recording: Recording
) -> None:
    reading = Reading(strict=True)
    read_cache_dir(str(recording(version, "training") / "cache"), reading)
    graphs = {entry.cache_key: entry for entry in reading.entries if entry.cache == "fxgraph"}
    results = [entry for entry in reading.entries if entry.cache == "aotautograd"]
    assert any(len(entry.fx_keys) == 2 for entry in results)
    for entry in results:
        assert entry.status == "ok"
        assert entry.time_taken_ns is not None
        assert entry.time_taken_ns > 1e6
        for key in entry.fx_keys:
            details = reading.details_of_key[key]
            graph = graphs[key].detail_set
            assert graph is not None
            # Texts may hold addresses of the process that saved them; hashes may not differ.
            assert reading.details.changed_fields(details, graph) == ()


def test_the_file_named_entry_of_2_6_is_read(tmp_path: Path) -> None:
    state = {
        "compiled_fw": Object(f"{OLD}.CompiledForward", {"fx_graph_cache_key": FX_KEYS[0]}),
        "compiled_bw": Object(f"{OLD}.CompiledBackward", {"fx_graph_cache_key": FX_KEYS[1]}),
        "forward_time_taken_ns": 3,
        "backward_time_taken_ns": 4,
    }
    entry, reading = read_result(tmp_path, Object(f"{OLD}.AOTAutogradCacheEntry", state), "entry")
    assert (entry.status, entry.fx_keys, entry.time_taken_ns) == ("ok", FX_KEYS, 7)
    assert not reading.details_of_key
    assert not reading.problems


@pytest.mark.parametrize("name", [f"{OLD}.BundledAOTAutogradCacheEntry", f"{NEW}.BundledAOTAutogradResult"])
def test_a_bundled_entry_gives_the_graph_inside(tmp_path: Path, name: str) -> None:
    graph = Object(
        "torch._inductor.output_code.CompiledFxGraph",
        {
            "cache_key": "c" + "e" * 51,
            "guards_expr": "of the graph",
            "source_code": "pass",
            "_fx_graph_cache_key": FX_KEYS[0],
            "_fx_graph_cache_debug_lines": LINES,
        },
    )
    state = {
        "compiled_fw": Object(f"{NEW}.BundledCompiledForward", {"result": graph}),
        "compiled_bw": None,
        "guards_expr": "of the entry",
    }
    entry, reading = read_result(tmp_path, Object(name, state))
    assert (entry.status, entry.fx_keys, entry.code_key) == ("ok", FX_KEYS[:1], "c" + "e" * 51)
    assert (entry.guards_expr, entry.time_taken_ns) == ("of the entry", None)
    details = reading.details.details(reading.details_of_key[FX_KEYS[0]])
    assert [detail.field for detail in details] == ["gm", "example_inputs[0]"]


RESULT = Object(f"{NEW}.BundledAOTAutogradResult", {"guards_expr": "of the entry"})


@pytest.mark.parametrize(
    ("stored", "guards"),
    [
        (RESULT, "of the entry"),
        ((RESULT,), "of the entry"),
        ((RESULT, 1), "of the entry"),
        # What another backend stores.
        ((1, RESULT), None),
        ((), None),
        (("text",), None),
        (None, None),
        ([RESULT], None),
        (Object("backend.Result", {"guards_expr": "of the backend"}), None),
    ],
)
def test_what_a_callable_stores(stored: object, guards: str | None) -> None:
    entry = EntryRow(cache="aot_compile", path="/made/file", root="/made")
    take_bundled(entry, loads_harmless(entry_bytes(stored)), Reading())
    assert entry.guards_expr == guards


@pytest.mark.parametrize(
    ("result", "damage"),
    [
        (Object(f"{NEW}.AOTAutogradResult"), "an object without a state"),
        (Object("users.output_code.Result", {"a": 1}), "not an entry of aotautograd"),
        (
            Object(
                f"{NEW}.AOTAutogradResult",
                {
                    "compiled_fw": Object(
                        f"{NEW}.CompiledForward", {"fx_graph_cache_info": (FX_KEYS[0], ["x"])}
                    )
                },
            ),
            "1 of 1 lines are no hash details",
        ),
    ],
)
def test_what_is_no_sound_result_is_damaged(tmp_path: Path, result: Object, damage: str) -> None:
    entry, reading = read_result(tmp_path, result)
    assert entry.status == "damaged"
    assert entry.damage is not None
    assert damage in entry.damage
    assert [problem.kind for problem in reading.problems] == ["damaged_entry"]
