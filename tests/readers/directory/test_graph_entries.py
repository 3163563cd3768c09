"""Entries of the two graph caches: real ones, and made bytes in, the row out; one line for each branch."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hostile_pickles import Object, detail_line, entry_bytes

from cachescope.frames.directory_rows import EntryRow
from cachescope.readers.cache_file import DamagedContent, Fill, ReadFile, marked, read_marked
from cachescope.readers.directory.cache_dir import read_cache_dir
from cachescope.readers.directory.entry_file import (
    add_hash_details,
    entry_reader,
    nanoseconds,
    reader_of_hidden,
    words,
)
from cachescope.readers.directory.graph_entries import (
    check_aotautograd,
    check_fxgraph,
    read_fxgraph_entry,
    take_bundled,
)
from cachescope.readers.pickles.inert_pickle import NotRead, UnreadablePickle, loads_harmless, loads_inert
from cachescope.readers.reading import Reading
from tests.conftest import Recording
from tests.readings import read_by

FX = "f" + "a" * 51
CODE = "c" + "d" * 51
SHAPE = "torch._inductor.output_code.CompiledFxGraph"
RESULT = "torch._functorch._aot_autograd.aot_autograd_result"
BEFORE_2_8 = "torch._functorch._aot_autograd.autograd_cache"
LINES = [detail_line("gm", "g")]
NO_LIST = "its hash details are no list of text"


def row(cache: str = "other", key: str | None = "key", path: str = "/cache/folder/name") -> EntryRow:
    return EntryRow(cache=cache, path=path, root="/cache", cache_key=key)


def graph(**state: object) -> bytes:
    return entry_bytes(Object(SHAPE, state))


@pytest.mark.parametrize("version", ["2.10.0", "2.13.0", "2.15.0"])
def test_a_real_graph_gives_its_key_code_time_and_details(version: str, recording: Recording) -> None:
    reading = read_by(read_cache_dir, str(recording(version, "cold_warm") / "cache"), strict=True)
    graphs = [entry for entry in reading.entries if entry.cache == "fxgraph"]
    assert graphs
    for entry in graphs:
        assert (entry.status, entry.damage, entry.device_types) == ("ok", None, ("cpu",))
        assert (str(entry.cache_key)[0], str(entry.code_key)[0]) == ("f", "c")
        assert "import torch" in str(entry.source_code)
        assert entry.time_taken_ns is not None and 1e6 < entry.time_taken_ns < 1e12
        assert entry.detail_set is not None
        fields = [detail.field for detail in reading.details.details(entry.detail_set)]
        assert fields[0] == "gm" and "inductor_config[epilogue_fusion]" in fields and len(fields) > 400


def test_a_real_graph_with_dynamic_shapes_gives_its_guards(recording: Recording) -> None:
    reading = read_by(read_cache_dir, str(recording("2.13.0", "dynamic_guards_fx") / "cache"), strict=True)
    assert any("L['" in (entry.guards_expr or "") for entry in reading.entries)


@pytest.mark.parametrize("version", ["2.10.0", "2.13.0", "2.15.0"])
def test_a_real_result_of_training_gives_both_keys_and_details(version: str, recording: Recording) -> None:
    reading = read_by(read_cache_dir, str(recording(version, "training") / "cache"), strict=True)
    graphs = {entry.cache_key: entry for entry in reading.entries if entry.cache == "fxgraph"}
    results = [entry for entry in reading.entries if entry.cache == "aotautograd"]
    assert any(len(entry.fx_keys) == 2 for entry in results)
    for entry in results:
        assert entry.status == "ok"
        assert entry.time_taken_ns is not None and entry.time_taken_ns > 1e6
        for key in entry.fx_keys:
            own, inside = reading.details_of_key[key], graphs[key].detail_set
            assert inside is not None
            # Texts may hold addresses of the process that saved them; hashes may not differ.
            assert reading.details.changed_fields(own, inside) == ()


def damage_of(check: Fill, entry: EntryRow, data: bytes) -> str | None:
    try:
        check(entry, "", data, Reading())
    except (DamagedContent, UnreadablePickle) as error:
        return error.what
    return None


@pytest.mark.parametrize(("state", "wanted", "damage"), [
    ({"guards_expr": "s > 4"}, {"guards_expr": "s > 4"}, None),
    ({"guards_expr": 4}, {"guards_expr": None}, None),
    ({"cache_key": CODE, "source_code": "x"}, {"code_key": CODE, "source_code": "x"}, None),
    ({"_time_taken_ns": 5}, {"time_taken_ns": 5}, None),
    ({"_time_taken_ns": -1}, {"time_taken_ns": None}, None),
    ({"_time_taken_ns": "soon", "cache_key": 1, "source_code": None}, {"time_taken_ns": None, "code_key": None, "source_code": None}, None),
    ({"device_types": 5}, {"device_types": ()}, None),
    ({"device_types": {"cuda"}}, {"device_types": ("cuda",)}, None),
    ({"disabled_cudagraphs_reason": "why"}, {"cudagraphs_skipped": "why"}, None),
    ({"_fx_graph_cache_debug_lines": LINES}, {"detail_set": 0}, None),
    ({"_fx_graph_cache_debug_lines": None, "x": 1}, {"detail_set": None}, None),
    ({"_fx_graph_cache_debug_lines": [3]}, {"detail_set": None}, NO_LIST),
    ({"_fx_graph_cache_debug_lines": "text"}, {"detail_set": None}, NO_LIST),
    ({"_fx_graph_cache_debug_lines": [*LINES, "no"]}, {"detail_set": 0}, "1 of 2 lines are no hash details: 'no'"),
    ({"_fx_graph_cache_debug_lines": ["n" * 81, *LINES]}, {"detail_set": 0}, f"1 of 2 lines are no hash details: {'n' * 80!r}"),
    ({"_fx_graph_cache_key": FX}, {}, None),
    ({"_fx_graph_cache_key": CODE}, {}, f"holds the entry of another key: {CODE}"),
    ({"_fx_graph_cache_key": "x" * 61}, {}, f"holds the entry of another key: {'x' * 60}"),
    ({"_triton_bundle": [Object("m.Artifacts", {"kernel_hash": "A" * 52}), 3]}, {"triton_hashes": ("0" * 64,)}, None),
    ({"_triton_bundle": Object("m.TritonBundle", {"kernel_artifacts": [Object("m.A", {"kernel_hash": "1" * 64})]})}, {"triton_hashes": ("1" * 64,)}, None),
    ({"_triton_bundle": Object("m.TritonBundle", {}), "x": 1}, {"triton_hashes": ()}, None),
    ({"_triton_bundle": "text"}, {"triton_hashes": ()}, None),
    ({}, {}, "an object without a state"),
])  # fmt: skip
def test_an_fx_graph(state: dict[str, object], wanted: dict[str, object], damage: str | None) -> None:
    entry = row("fxgraph", FX)
    assert damage_of(check_fxgraph, entry, graph(**state)) == damage
    assert {name: getattr(entry, name) for name in wanted} == wanted


def bundled(key: str | None, **state: object) -> Object:
    inner = Object(SHAPE, {"_fx_graph_cache_key": key, "_fx_graph_cache_debug_lines": LINES, **state})
    return Object(f"{RESULT}.BundledCompiledForward", {"result": inner})


def of_key(key: object, lines: object = None, *more: object) -> Object:
    return Object(f"{RESULT}.CompiledForward", {"fx_graph_cache_info": (key, lines, *more)})


def guarded(expr: object) -> Object:
    """Of torch 2.5 to 2.7, which stored only the key and the guards of a graph."""
    return Object(f"{RESULT}.CompiledForward", {"fx_graph_cache_key": FX, "fx_graph_guard_expr": expr})


@pytest.mark.parametrize(("state", "wanted", "damage"), [
    ({"forward_time_taken_ns": 2, "backward_time_taken_ns": 3}, {"time_taken_ns": 5}, None),
    ({"forward_time_taken_ns": 2, "backward_time_taken_ns": None}, {"time_taken_ns": 2}, None),
    ({"forward_time_taken_ns": -2, "backward_time_taken_ns": 3}, {"time_taken_ns": 3}, None),
    ({"forward_time_taken_ns": None}, {"time_taken_ns": None}, None),
    ({"guards_expr": "s"}, {"guards_expr": "s"}, None),
    ({"compiled_fw": of_key(FX, LINES)}, {"fx_keys": (FX,)}, None),
    ({"compiled_fw": of_key(FX), "compiled_bw": of_key(CODE)}, {"fx_keys": (FX, CODE)}, None),
    ({"compiled_fw": of_key(3)}, {"fx_keys": ()}, None),
    ({"compiled_fw": of_key(FX, LINES, 3)}, {"fx_keys": ()}, None),
    ({"compiled_fw": of_key(FX, "text")}, {"fx_keys": (FX,)}, NO_LIST),
    ({"compiled_fw": of_key(FX, ["no"])}, {"fx_keys": (FX,)}, "1 of 1 lines are no hash details: 'no'"),
    ({"compiled_fw": of_key(FX, "text"), "compiled_bw": of_key(CODE, [3])}, {"fx_keys": (FX, CODE)}, f"{NO_LIST}; {NO_LIST}"),
    ({"compiled_fw": guarded("s > 4")}, {"fx_keys": (FX,), "fx_guards": ("s > 4",)}, None),
    ({"compiled_fw": guarded(None), "compiled_bw": guarded("t")}, {"fx_keys": (FX, FX), "fx_guards": ("", "t")}, None),
    ({"compiled_fw": "text"}, {"fx_keys": ()}, None),
    ({"compiled_fw": bundled(FX, source_code="x")}, {"fx_keys": (FX,), "source_code": "x"}, None),
    # The code is that of the first graph; the guards are those of the whole.
    (
        {
            "compiled_fw": bundled(FX, cache_key=CODE, guards_expr="g"),
            "compiled_bw": bundled(CODE, cache_key="other"),
            "guards_expr": "whole",
        },
        {"fx_keys": (FX, CODE), "code_key": CODE, "guards_expr": "whole"},
        None,
    ),
    ({}, {}, "an object without a state"),
])  # fmt: skip
def test_an_autograd_result(state: dict[str, object], wanted: dict[str, object], damage: str | None) -> None:
    for name in (
        f"{RESULT}.AOTAutogradResult",
        f"{RESULT}.BundledAOTAutogradResult",
        f"{BEFORE_2_8}.AOTAutogradCacheEntry",
    ):
        entry = row("aotautograd", "a" * 52)
        assert damage_of(check_aotautograd, entry, entry_bytes(Object(name, state))) == damage
        assert {name: getattr(entry, name) for name in wanted} == wanted


@pytest.mark.parametrize(("part", "key"), [
    (of_key(FX, LINES), FX),
    (bundled(FX), FX),
    (of_key(FX), None),
    (of_key(3, LINES), None),
    (bundled(None), None),
])  # fmt: skip
def test_the_details_of_the_graphs_of_a_result(part: Object, key: str | None) -> None:
    reading = Reading()
    data = entry_bytes(Object(f"{RESULT}.AOTAutogradResult", {"compiled_fw": part}))
    check_aotautograd(row("aotautograd", "a" * 52), "", data, reading)
    assert reading.details_of_key == ({} if key is None else {key: 0})


RESULT_OF_A_CALLABLE = Object(f"{RESULT}.BundledAOTAutogradResult", {"guards_expr": "of the entry"})


@pytest.mark.parametrize(("stored", "guards"), [(stored, guards) for guards, values in [
    ("of the entry", [RESULT_OF_A_CALLABLE, (RESULT_OF_A_CALLABLE,), (RESULT_OF_A_CALLABLE, 1)]),
    # What another backend stores.
    (None, [(1, RESULT_OF_A_CALLABLE), (), ("text",), None, [RESULT_OF_A_CALLABLE],
     Object("backend.Result", {"guards_expr": "of the backend"})]),
] for stored in values])  # fmt: skip
def test_what_a_callable_stores(stored: object, guards: str | None) -> None:
    entry = row("aot_compile")
    take_bundled(entry, loads_harmless(entry_bytes(stored)), Reading())
    assert entry.guards_expr == guards


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [(DamagedContent, "damaged", "damaged_entry"), (NotRead, "unreadable", "unreadable")],
)
def test_what_is_wrong_is_in_the_row_and_a_problem(
    error: Callable[..., Exception], status: str, kind: str
) -> None:
    entry, reading = row(), Reading()
    with marked(entry, reading):
        raise error("half \ud800", 0)
    assert (entry.status, entry.damage) == (status, "half \\ud800")
    with marked(entry, reading):
        raise error("why")
    found = [(one.source, one.where, one.kind, one.message) for one in reading.problems]
    assert found == [(entry.path, "byte 0", kind, "half \\ud800"), (entry.path, "", kind, "why")]


def test_a_detail_with_half_a_character_is_stored_beside_others() -> None:
    reading = Reading()
    code, wrong = add_hash_details([LINES[0], detail_line("x", "\ud800")], reading)
    assert wrong is None
    assert [one.value_text for one in reading.details.details(code or 0)] == ["g", "\\ud800"]


@pytest.mark.parametrize(("data", "what"), [
    (b"", "empty file"),
    (entry_bytes(3), "not an entry of fxgraph: holds int"),
    (entry_bytes(Object("mine.CompiledFxGraph", {"x": 1})), "not an entry of fxgraph: holds mine.CompiledFxGraph"),
    (b"N", "truncated"),
    # The class of torch 2.5.
    (entry_bytes(Object("torch._inductor.codecache.CompiledFxGraph", {"cache_key": "x"})), None),
])  # fmt: skip
def test_what_is_an_entry(data: bytes, what: str | None) -> None:
    assert damage_of(check_fxgraph, row("fxgraph", FX), data) == what


def test_an_entry_of_a_later_torch_is_not_read() -> None:
    """It may be sound: nothing is known of it."""
    for name, said in (("torch.new.Graph", "torch.new.Graph"), ("torch." + "x" * 200, "torch." + "x" * 194)):
        with pytest.raises(NotRead, match=f"not known to be an entry of fxgraph: holds {said}$"):
            check_fxgraph(row("fxgraph", FX), "", entry_bytes(Object(name, {"x": 1})), Reading())


def test_a_duration_of_an_entry_fits_a_column() -> None:
    assert [nanoseconds(value) for value in (0, 1, 1 << 53)] == [0, 1, 1 << 53]
    assert [nanoseconds(value) for value in (-1, (1 << 53) + 1, True, 1.0, "1", None)] == [None] * 6


def test_words_of_a_set_however_it_is_stored() -> None:
    ordered = loads_inert(entry_bytes(Object("torch.utils._ordered_set.OrderedSet", None, (["b", "a", 3],))))
    empty = loads_inert(entry_bytes(Object("torch.utils._ordered_set.OrderedSet")))
    two = loads_inert(entry_bytes(Object("torch.utils._ordered_set.OrderedSet", None, (["b"], ["z"]))))
    assert words(ordered) == ("b", "a")
    assert words(two) == ("b",)
    assert words(empty) == words("ab") == words(None) == ()
    assert words(("x", None)) == words(["x"]) == words(frozenset({"x"})) == ("x",)


def read(folder: Path, data: bytes, read_it: ReadFile, status: str = "ok", name: str = "name") -> EntryRow:
    path = folder / name
    path.write_bytes(data)
    entry = row("fxgraph", FX, str(path))
    entry.status = status
    assert read_marked(read_it, entry, str(path), name, Reading())
    return entry


@pytest.mark.parametrize(("data", "status", "wanted", "detail"), [
    (graph(x=1), "temporary", "temporary", "a whole entry, which torch before 2.13 loads"),
    (graph(x=1), "foreign", "foreign", "a whole entry, which torch before 2.13 loads"),
    (graph(x=1)[:-3], "temporary", "temporary", None),
    (b"cos\nsystem\n.", "temporary", "damaged", None),
    (b"N" * 1_000_001, "temporary", "unreadable", None),
])  # fmt: skip
def test_a_hidden_entry(data: bytes, status: str, wanted: str, detail: str | None, tmp_path: Path) -> None:
    entry = read(tmp_path, data, reader_of_hidden(read_fxgraph_entry), status)
    assert (entry.status, entry.detail) == (wanted, detail)


def test_problems_of_a_hidden_entry_are_told_only_where_it_is_hostile(tmp_path: Path) -> None:
    for data, count in ((graph(x=1)[:-3], 0), (b"cos\nsystem\n.", 1)):
        (tmp_path / "name").write_bytes(data)
        reading, entry = Reading(), row("fxgraph", FX, str(tmp_path / "name"))
        read_marked(reader_of_hidden(read_fxgraph_entry), entry, entry.path, "name", reading)
        assert len(reading.problems) == count
    gone = str(tmp_path / "absent")
    assert not read_marked(reader_of_hidden(read_fxgraph_entry), row(), gone, "absent", Reading())


def test_a_name_of_fifty_one_letters_is_the_hash_of_the_content(tmp_path: Path) -> None:
    def status(name: str) -> str:
        return read(tmp_path, graph(x=1), read_fxgraph_entry, name=name).status

    assert [status("n" * length) for length in (50, 51, 52)] == ["ok", "damaged", "ok"]
    entry = read(tmp_path, graph(_fx_graph_cache_key="x"), read_fxgraph_entry, name="n" * 51)
    assert entry.damage == "holds the entry of another key: x; content hash differs from the name"
    gone, path = row("fxgraph", FX), str(tmp_path / "absent")
    assert not read_marked(entry_reader(check_fxgraph), gone, path, "absent", Reading())
