"""What each kind of file says of itself: made bytes in, the row out; one line for each branch."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hostile_pickles import Object, detail_line, entry_bytes, plain

from cachescope.frames.directory_rows import EntryRow
from cachescope.keys.hashing import system_hash
from cachescope.readers import cache_file
from cachescope.readers.cache_file import DamagedContent, content_reader, mark_damaged, mark_unreadable
from cachescope.readers.directory.autotune import fill_autotune, fill_cutlass_configs
from cachescope.readers.directory.caching_package import fill_imc, fill_memoized, fill_memoizer_dump, imc_keys
from cachescope.readers.directory.dynamo_packages import fill_precompile
from cachescope.readers.directory.entry_file import (
    add_hash_details,
    nanoseconds,
    read_entry_file,
    reader_of_hidden,
    words,
)
from cachescope.readers.directory.file_contents import read_source_code
from cachescope.readers.directory.generated_files import defined_kernels, included_header, kernels_of
from cachescope.readers.directory.graph_entries import check_aotautograd, check_fxgraph, read_fxgraph_entry
from cachescope.readers.directory.pgo import fill_code_state
from cachescope.readers.directory.triton_files import (
    fill_best_config,
    fill_group,
    fill_intermediate,
    fill_kernel_metadata,
    triton_hashes,
)
from cachescope.readers.pickles.inert_pickle import NotRead, UnreadablePickle, loads_inert
from cachescope.readers.reading import Reading

HEADER = bytes.fromhex("5feceb66")
FX = "f" + "a" * 51
CODE = "c" + "d" * 51
SHAPE = "torch._inductor.output_code.CompiledFxGraph"
RESULT = "torch._functorch._aot_autograd.aot_autograd_result"
LINES = [detail_line("gm", "g")]


def row(cache: str = "other", key: str | None = "key", path: str = "/cache/folder/name") -> EntryRow:
    return EntryRow(cache=cache, path=path, root="/cache", cache_key=key)


def filled(
    fill: Callable[..., None], data: object, name: str = "name", **told: Any
) -> tuple[EntryRow, str | None]:
    """The row, and what is wrong with the content."""
    entry, damage = row(**told), None
    try:
        fill(entry, name, data if isinstance(data, bytes) else json.dumps(data).encode(), Reading())
    except (DamagedContent, UnreadablePickle) as error:
        damage = error.what
    return entry, damage


@pytest.mark.parametrize(
    ("said", "name", "detail", "devices", "damage"),
    [
        ({}, "k", "", (), None),
        ({"name": "n"}, "n", "", (), None),
        ({"name": None}, "k", "", (), None),
        ({"name": ["n"]}, "k", "", (), None),
        ({"name": "n" * 201, "num_warps": "4" * 201}, "n" * 200, f"num_warps {'4' * 200}", (), None),
        ({"target": {"backend": "hip", "arch": "gfx942"}}, "k", "arch gfx942", ("hip",), None),
        ({"target": {"backend": 3, "arch": 90}}, "k", "arch 90", (), None),
        ({"target": "cuda:80:32"}, "k", "", (), None),
        ({"num_warps": 4, "num_stages": None, "triton_version": "3.6.0"}, "k", "num_warps 4, triton_version 3.6.0", (), None),
        ({"num_warps": [4]}, "k", "", (), None),
        ({"hash": "key"}, "k", "", (), None),
        ({"hash": "other"}, "k", "", (), "its hash differs from the folder's name"),
        ({"hash": None}, "k", "", (), None),
        ([], None, None, (), "holds a JSON list, not an object"),
        (b"{", None, None, (), "no JSON: Expecting property name enclosed in double quotes"),
        (b"\xff", None, None, (), "no JSON: UnicodeDecodeError"),
    ],
)  # fmt: skip
def test_the_metadata_of_a_triton_kernel(
    said: object, name: str | None, detail: str | None, devices: tuple[str, ...], damage: str | None
) -> None:
    entry, found = filled(fill_kernel_metadata, said, "k.json")
    assert (entry.name, entry.detail, entry.device_types, found) == (name, detail, devices, damage)


@pytest.mark.parametrize(
    ("paths", "detail", "damage"),
    [
        ({"a": "/cache/folder/a", "b": "/cache/folder/b"}, "2 files", None),
        (
            {"a": "/z/a", "b": "/old/b", "c": "/cache/folder/c"},
            "3 files, at /old: the directory was moved",
            None,
        ),
        ({"a": "/" + "z" * 300 + "/a"}, f"1 files, at /{'z' * 299}: the directory was moved", None),
        ({}, "0 files", None),
        ({"a": 3}, None, "no group: holds no child_paths"),
        (["a"], None, "no group: holds no child_paths"),
        (None, None, "no group: holds no child_paths"),
    ],
)
def test_the_files_of_a_triton_group(paths: object, detail: str | None, damage: str | None) -> None:
    entry, found = filled(fill_group, {"child_paths": paths}, "__grp__k.json")
    assert (entry.detail, found) == (detail, damage)
    assert entry.name == (None if damage else "k")


def test_an_intermediate_form_of_a_kernel() -> None:
    location = f'#loc = loc("/cache/dd/{CODE}.py":1:0)'.encode()
    entry, _ = filled(fill_intermediate, location, "k.ttir")
    assert (entry.name, entry.code_key) == ("k", CODE)
    # The first line has it or none.
    assert filled(fill_intermediate, b"\n" + location, "k.ttir")[0].code_key is None
    long = b'#loc = loc("' + b"/" * 4_000 + f'{CODE}.py":1:0)'.encode()
    assert filled(fill_intermediate, long, "k.ttir")[0].code_key == CODE
    longer = b'#loc = loc("' + b"/" * 4_090 + f'{CODE}.py":1:0)'.encode()
    assert filled(fill_intermediate, longer, "k.ttir")[0].code_key is None


def test_keys_of_triton_in_a_list_of_anything() -> None:
    assert triton_hashes(["A" * 52, None, "A" * 43, "short", "0" * 64, "1" * 64]) == ("0" * 64, "1" * 64)


def graph(**state: object) -> bytes:
    return entry_bytes(Object(SHAPE, state))


@pytest.mark.parametrize(
    ("state", "wanted", "damage"),
    [
        ({"guards_expr": "s > 4"}, {"guards_expr": "s > 4"}, None),
        ({"guards_expr": 4}, {"guards_expr": None}, None),
        ({"cache_key": CODE, "source_code": "x"}, {"code_key": CODE, "source_code": "x"}, None),
        ({"_time_taken_ns": 5}, {"time_taken_ns": 5}, None),
        ({"_time_taken_ns": -1}, {"time_taken_ns": None}, None),
        ({"device_types": {"cuda"}}, {"device_types": ("cuda",)}, None),
        ({"disabled_cudagraphs_reason": "why"}, {"cudagraphs_skipped": "why"}, None),
        ({"_fx_graph_cache_debug_lines": LINES}, {"detail_set": 0}, None),
        ({"_fx_graph_cache_debug_lines": None, "x": 1}, {"detail_set": None}, None),
        ({"_fx_graph_cache_debug_lines": [3]}, {"detail_set": None}, "its hash details are no list of text"),
        ({"_fx_graph_cache_debug_lines": "text"}, {"detail_set": None}, "its hash details are no list of text"),
        (
            {"_fx_graph_cache_debug_lines": [*LINES, "no"]},
            {"detail_set": 0},
            "1 of 2 lines are no hash details: 'no'",
        ),
        (
            {"_fx_graph_cache_debug_lines": ["n" * 81, *LINES, "no"]},
            {"detail_set": 0},
            f"2 of 3 lines are no hash details: {'n' * 80!r}",
        ),
        ({"_fx_graph_cache_key": FX}, {}, None),
        ({"_fx_graph_cache_key": CODE}, {}, f"holds the entry of another key: {CODE}"),
        ({"_fx_graph_cache_key": "x" * 61}, {}, f"holds the entry of another key: {'x' * 60}"),
        ({"_triton_bundle": [Object("m.Artifacts", {"kernel_hash": "A" * 52}), 3]}, {"triton_hashes": ("0" * 64,)}, None),
        (
            {"_triton_bundle": Object("m.TritonBundle", {"kernel_artifacts": [Object("m.A", {"kernel_hash": "1" * 64})]})},
            {"triton_hashes": ("1" * 64,)},
            None,
        ),
        ({"_triton_bundle": Object("m.TritonBundle", {}), "x": 1}, {"triton_hashes": ()}, None),
        ({"_triton_bundle": "text"}, {"triton_hashes": ()}, None),
        ({}, {}, "an object without a state"),
    ],
)  # fmt: skip
def test_an_fx_graph(state: dict[str, object], wanted: dict[str, object], damage: str | None) -> None:
    entry = row("fxgraph", FX)
    assert check_fxgraph(entry, graph(**state), Reading()) == (damage, None)
    assert {name: getattr(entry, name) for name in wanted} == wanted


def bundled(key: str | None, **state: object) -> Object:
    inner = Object(SHAPE, {"_fx_graph_cache_key": key, "_fx_graph_cache_debug_lines": LINES, **state})
    return Object(f"{RESULT}.BundledCompiledForward", {"result": inner})


def of_key(key: object, lines: object = None, *more: object) -> Object:
    return Object(f"{RESULT}.CompiledForward", {"fx_graph_cache_info": (key, lines, *more)})


def guarded(expr: object) -> Object:
    """Of torch 2.5 to 2.7, which stored only the key and the guards of a graph."""
    return Object(f"{RESULT}.CompiledForward", {"fx_graph_cache_key": FX, "fx_graph_guard_expr": expr})


@pytest.mark.parametrize(
    ("state", "wanted", "damage"),
    [
        ({"forward_time_taken_ns": 2, "backward_time_taken_ns": 3}, {"time_taken_ns": 5}, None),
        ({"forward_time_taken_ns": 2, "backward_time_taken_ns": None}, {"time_taken_ns": 2}, None),
        ({"forward_time_taken_ns": -2, "backward_time_taken_ns": 3}, {"time_taken_ns": 3}, None),
        ({"forward_time_taken_ns": None}, {"time_taken_ns": None}, None),
        ({"guards_expr": "s"}, {"guards_expr": "s"}, None),
        ({"compiled_fw": of_key(FX, LINES)}, {"fx_keys": (FX,)}, None),
        ({"compiled_fw": of_key(FX), "compiled_bw": of_key(CODE)}, {"fx_keys": (FX, CODE)}, None),
        ({"compiled_fw": of_key(3)}, {"fx_keys": ()}, None),
        ({"compiled_fw": of_key(FX, LINES, 3)}, {"fx_keys": ()}, None),
        ({"compiled_fw": of_key(FX, "text")}, {"fx_keys": (FX,)}, "its hash details are no list of text"),
        (
            {"compiled_fw": of_key(FX, "text"), "compiled_bw": of_key(CODE, [3])},
            {"fx_keys": (FX, CODE)},
            "its hash details are no list of text; its hash details are no list of text",
        ),
        ({"compiled_fw": guarded("s > 4")}, {"fx_keys": (FX,), "fx_guards": ("s > 4",)}, None),
        (
            {"compiled_fw": guarded(None), "compiled_bw": guarded("t")},
            {"fx_keys": (FX, FX), "fx_guards": ("", "t")},
            None,
        ),
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
    ],
)
def test_an_autograd_result(state: dict[str, object], wanted: dict[str, object], damage: str | None) -> None:
    entry = row("aotautograd", "a" * 52)
    data = entry_bytes(Object(f"{RESULT}.AOTAutogradResult", state))
    assert check_aotautograd(entry, data, Reading()) == (damage, None)
    assert {name: getattr(entry, name) for name in wanted} == wanted


@pytest.mark.parametrize(
    ("part", "key"),
    [
        (of_key(FX, LINES), FX),
        (bundled(FX), FX),
        (of_key(FX), None),
        (of_key(3, LINES), None),
        (bundled(None), None),
    ],
)
def test_the_details_of_the_graphs_of_a_result(part: Object, key: str | None) -> None:
    reading = Reading()
    data = entry_bytes(Object(f"{RESULT}.AOTAutogradResult", {"compiled_fw": part}))
    check_aotautograd(row("aotautograd", "a" * 52), data, reading)
    assert reading.details_of_key == ({} if key is None else {key: 0})


@pytest.mark.parametrize(
    ("mark", "status", "kind"),
    [(mark_damaged, "damaged", "damaged_entry"), (mark_unreadable, "unreadable", "unreadable")],
)
def test_what_is_wrong_is_in_the_row_and_a_problem(mark: Callable[..., None], status: str, kind: str) -> None:
    entry, reading = row(), Reading()
    mark(entry, "half \ud800", 0, reading)
    assert (entry.status, entry.damage) == (status, "half \\ud800")
    mark(entry, "why", None, reading)
    assert [(one.source, one.where, one.kind, one.message) for one in reading.problems] == [
        (entry.path, "byte 0", kind, "half \\ud800"),
        (entry.path, "", kind, "why"),
    ]


def test_a_detail_with_half_a_character_is_stored_beside_others() -> None:
    reading = Reading()
    code, wrong = add_hash_details([LINES[0], detail_line("x", "\ud800")], reading)
    assert wrong is None
    assert [one.value_text for one in reading.details.details(code or 0)] == ["g", "\\ud800"]


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "empty file"),
        (entry_bytes(3), "not an entry of fxgraph: holds int"),
        (entry_bytes(Object("mine.CompiledFxGraph", {"x": 1})), "not an entry of fxgraph: holds mine.CompiledFxGraph"),
        (b"N", "truncated"),
    ],
)  # fmt: skip
def test_what_is_no_entry(data: bytes, what: str) -> None:
    assert check_fxgraph(row("fxgraph", FX), data, Reading())[0] == what


def test_an_entry_of_a_later_torch_is_not_read() -> None:
    """It may be sound: nothing is known of it."""
    for name, said in (("torch.new.Graph", "torch.new.Graph"), ("torch." + "x" * 200, "torch." + "x" * 194)):
        with pytest.raises(NotRead, match=f"not known to be an entry of fxgraph: holds {said}$"):
            check_fxgraph(row("fxgraph", FX), entry_bytes(Object(name, {"x": 1})), Reading())


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


def read(
    folder: Path, data: bytes, read_it: Callable[..., bool], status: str = "ok", name: str = "name"
) -> EntryRow:
    path = folder / name
    path.write_bytes(data)
    entry = row("fxgraph", FX, str(path))
    entry.status = status
    assert read_it(entry, str(path), name, Reading())
    return entry


@pytest.mark.parametrize(
    ("data", "status", "wanted", "detail"),
    [
        (graph(x=1), "temporary", "temporary", "a whole entry, which torch before 2.13 loads"),
        (graph(x=1), "foreign", "foreign", "a whole entry, which torch before 2.13 loads"),
        (graph(x=1)[:-3], "temporary", "temporary", None),
        (b"cos\nsystem\n.", "temporary", "damaged", None),
        (b"N" * 1_000_001, "temporary", "unreadable", None),
    ],
)
def test_a_hidden_entry(data: bytes, status: str, wanted: str, detail: str | None, tmp_path: Path) -> None:
    entry = read(tmp_path, data, reader_of_hidden(read_fxgraph_entry), status)
    assert (entry.status, entry.detail) == (wanted, detail)


def test_problems_of_a_hidden_entry_are_told_only_where_it_is_hostile(tmp_path: Path) -> None:
    for data, count in ((graph(x=1)[:-3], 0), (b"cos\nsystem\n.", 1)):
        (tmp_path / "name").write_bytes(data)
        reading, entry = Reading(), row("fxgraph", FX, str(tmp_path / "name"))
        reader_of_hidden(read_fxgraph_entry)(entry, entry.path, "name", reading)
        assert len(reading.problems) == count
    assert not reader_of_hidden(read_fxgraph_entry)(row(), str(tmp_path / "absent"), "absent", Reading())


def test_a_name_of_fifty_one_letters_is_the_hash_of_the_content(tmp_path: Path) -> None:
    def status(name: str) -> str:
        return read(tmp_path, graph(x=1), read_fxgraph_entry, name=name).status

    assert [status("n" * length) for length in (50, 51, 52)] == ["ok", "damaged", "ok"]
    entry = read(tmp_path, graph(_fx_graph_cache_key="x"), read_fxgraph_entry, name="n" * 51)
    assert entry.damage == "holds the entry of another key: x; content hash differs from the name"
    gone = row("fxgraph", FX)
    assert not read_entry_file(
        gone, str(tmp_path / "absent"), "absent", Reading(), frozenset(), lambda *_: None
    )


def test_a_file_is_read_whole_or_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(entry: EntryRow, name: str, data: bytes, reading: Reading) -> None:
        entry.detail = data.decode()

    reading = content_reader(fill)
    assert read(tmp_path, b"text", reading).detail == "text"
    assert read(tmp_path, b"", reading).damage == "empty file"
    monkeypatch.setattr("cachescope.readers.cache_file.Limits", lambda: type("L", (), {"size_bytes": 3}))
    assert read(tmp_path, b"abc", reading).detail == "abc"
    entry = read(tmp_path, b"abcd", reading)
    assert (entry.status, entry.damage, entry.detail) == ("unreadable", "more than 3 bytes: not read", None)
    assert not reading(row(), str(tmp_path / "absent"), "absent", Reading())
    monkeypatch.undo()
    parts = cache_file.read_steady(str(tmp_path / "name"), 100)
    assert parts[0] == b"abcd"
    assert [cache_file.read_steady(str(tmp_path / "name"), most)[0] for most in (1, 4, 5)] == [
        b"a",
        b"abcd",
        b"abcd",
    ]


def code(file: object = "/m.py", line: object = 3, name: object = "f") -> bytes:
    state = {"filename": file, "firstlineno": line, "name": name}
    return entry_bytes(Object("torch._dynamo.pgo.CodeId", state))[2:-1]


def code_state(*codes: bytes) -> bytes:
    made = b"ccollections\ndefaultdict\n)R("
    return b"\x80\x04" + made + b"".join(one + b"N" for one in codes) + b"u."


@pytest.mark.parametrize(
    ("data", "name", "detail", "damage"),
    [
        (code_state(code()), "code_state_job.pkl", "f (/m.py:3)", None),
        (code_state(code(), code(name="g", line=None)), "code_state_job.pkl", "f (/m.py:3), g (/m.py:None)", None),
        (code_state(*[code(name=f"f{n}") for n in range(20)]), "code_state_x.pkl", None, None),
        (code_state(*[code(name=f"f{n}") for n in range(22)]), "code_state_x.pkl", " and 2 more", None),
        (code_state(code(name="n" * 101, file="/" * 301, line="9" * 21)), "code_state_x.pkl", f"{'n' * 100} ({'/' * 300}:{'9' * 20})", None),
        (code_state(b"N"), "code_state_x.pkl", None, "no code state: a key that is no CodeId"),
        (code_state(entry_bytes(Object("m.Other", {"name": "f"}))[2:-1]), "code_state_x.pkl", None, "no code state: a key that is no CodeId"),
        (entry_bytes({}), "code_state_x.pkl", None, "no code state: holds dict"),
        (entry_bytes(Object("m.defaultdict", {"x": 1})), "code_state_x.pkl", None, "no code state: holds m.defaultdict"),
        (b"ccollections\ndefaultdict\n.", "code_state_x.pkl", None, "no code state: holds collections.defaultdict"),
    ],
)  # fmt: skip
def test_what_is_known_of_shapes(data: bytes, name: str, detail: str | None, damage: str | None) -> None:
    entry, found = filled(fill_code_state, data, name)
    assert found == damage
    if detail is not None:
        assert entry.detail is not None
        assert entry.detail == detail if "more" not in detail else entry.detail.endswith(detail)
    assert ("more" in str(entry.detail)) == ("more" in str(detail))
    assert entry.cache_key == "key"


def test_the_first_part_of_a_job_may_be_a_folder() -> None:
    entry, _ = filled(fill_code_state, code_state(code()), "job.pkl", key="team")
    assert entry.cache_key == "team/job"


PACKAGE = "torch._dynamo.package._DynamoCacheEntry"


@pytest.mark.parametrize(
    ("data", "detail", "damage"),
    [
        (entry_bytes(Object(PACKAGE, {"backends": {"a": 1, "b": 2}})), "2 compiled graphs", None),
        (entry_bytes(Object(PACKAGE, {"backends": [1]})), None, None),
        (entry_bytes(Object(PACKAGE, {})), None, None),
        (entry_bytes(Object("torch.other.Package", {"backends": {}})), None, "no precompile package: holds torch.other.Package"),
        (entry_bytes([]), None, "no precompile package: holds list"),
        # The class alone is no package.
        (b"ctorch._dynamo.package\nX\n.", None, "no precompile package: holds torch._dynamo.package.X"),
    ],
)  # fmt: skip
def test_a_precompiled_package(data: bytes, detail: str | None, damage: str | None) -> None:
    entry, found = filled(fill_precompile, data)
    assert (entry.detail, found) == (detail, damage)


def test_the_function_of_a_precompiled_package() -> None:
    """Its own code comes first, then that of what it calls after graph breaks."""

    def compiled(**state: object) -> Object:
        return Object("torch._dynamo.package._DynamoCodeCacheEntry", state)

    def place(codes: object, name: object = "f", line: object = 3) -> str | None:
        state = {"fn_name": name, "fn_first_lineno": line, "codes": codes}
        dynamo = Object("torch._dynamo.package._DynamoCacheEntry", state)
        return filled(fill_precompile, entry_bytes(Object(PACKAGE, {"dynamo": dynamo})))[0].name

    own, other = (
        compiled(python_code=Object("torch._dynamo.package.SerializedCode", {"co_filename": file}))
        for file in ("/mine.py", "/other.py")
    )
    assert place([own, other]) == place([own]) == "f at /mine.py:3"
    assert place([own], line=None) == place([]) == place(own) == place([compiled(x=1)]) == place(["x"]) == "f"
    assert place([own], name=None) is None


MEMO = "torch._inductor.runtime.caching.interfaces.CacheEntry"


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        # What is no plain value has a key that is not known: nothing is wrong then.
        (Object(MEMO, {"encoded_params": Object("m.X"), "encoded_result": 1}), ("memoizer", "X() -> 1")),
        (Object("m.CacheEntry", {"encoded_params": 1}), ("caching_package", "CacheEntry(encoded_params=1)")),
        ([1], ("caching_package", "[1]")),
    ],
)
def test_a_memoized_result(value: object, wanted: tuple[str, str]) -> None:
    entry, damage = filled(fill_memoized, HEADER + entry_bytes(value))
    assert (entry.cache, entry.detail, entry.name, damage) == (*wanted, "folder", None)


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_the_name_of_a_memoized_result_is_that_of_its_parameters(protocol: int) -> None:
    """As torch names it: the hash of the parameters, pickled as the entry is."""
    data = (
        HEADER
        + (bytes([0x80, protocol]) if protocol else b"")
        + plain(Object(MEMO, {"encoded_params": [1, 2], "encoded_result": 3}))
        + b"."
    )
    name = hashlib.sha256(pickle.dumps([1, 2], protocol)).hexdigest()[:32]
    entry, _ = filled(fill_memoized, data, name)
    assert entry.detail == "[1, 2] -> 3"
    entry, _ = filled(fill_memoized, data, "0" * 32)
    assert entry.detail == "[1, 2] -> 3 (the name is not that of these parameters)"


@pytest.mark.parametrize(
    ("fill", "said", "detail", "damage"),
    [
        (fill_memoizer_dump, {"collections": {"a": {"x": 1}, "b": {}}}, "a 1, b 0", None),
        (fill_memoizer_dump, {"collections": {str(n): {} for n in range(21)}}, ", ".join(f"{n} 0" for n in range(20)), None),
        (fill_memoizer_dump, {"collections": {"a": 1}}, None, "no memoizer dump: holds no collections"),
        (fill_memoizer_dump, {"collections": []}, None, "no memoizer dump: holds no collections"),
        (fill_memoizer_dump, {}, None, "no memoizer dump: holds no collections"),
        (fill_imc, {"b'key'": "1", 'b"k"': "2"}, "2 results", None),
        (fill_imc, {"key": "1"}, None, "not the repr of a key and of a value: 'key'"),
        (fill_imc, {"b'key": "1"}, None, "not the repr of a key and of a value: \"b'key\""),
        (fill_imc, {"b'key'": 1}, None, "not the repr of a key and of a value: \"b'key'\""),
        (fill_cutlass_configs, ["{}", "[1]"], "2 operations", None),
        (fill_cutlass_configs, ["{"], None, "no JSON: Expecting property name enclosed in double quotes"),
        (fill_cutlass_configs, [{}], None, "holds no list of texts"),
        (fill_cutlass_configs, {"a": 1}, None, "holds no list of texts"),
        (fill_cutlass_configs, "text", None, "holds no list of texts"),
        (fill_best_config, {"XBLOCK": 64}, None, "no best_config: holds no configs_hash"),
        (fill_best_config, {"configs_hash": "x", "found_by_coordesc": True, "A": 1}, "A=1 (found by coordinate descent)", None),
        (fill_best_config, {"configs_hash": "x", "found_by_coordesc": False, "A": 1}, "A=1", None),
        (fill_best_config, {"configs_hash": "x", "found_by_coordesc": 1, "A": 1}, "A=1", None),
        (fill_best_config, {"configs_hash": "x", **{f"A{n}": 1 for n in range(41)}}, ", ".join(f"A{n}=1" for n in range(40)), None),
    ],
)  # fmt: skip
def test_json_of_a_kind(
    fill: Callable[..., None], said: object, detail: str | None, damage: str | None
) -> None:
    entry, found = filled(fill, said)
    assert (entry.detail, found) == (detail, damage)


@pytest.mark.parametrize(
    ("taken", "wanted"),
    [
        (0, 0),
        (3, 3_000_000),
        (-1, None),
        (1 << 40, None),
        ((1 << 40) - 1, ((1 << 40) - 1) * 1_000_000),
        (1.5, None),
    ],
)
def test_how_long_the_search_for_a_configuration_took(taken: float, wanted: int | None) -> None:
    said = {"configs_hash": "x", "time_taken_ms": taken, "triton_cache_hash": "A" * 52}
    entry, _ = filled(fill_best_config, said)
    assert (entry.time_taken_ns, entry.triton_hashes) == (wanted, ("0" * 64,))


def test_the_keys_of_a_dump(tmp_path: Path) -> None:
    (tmp_path / "imc.save").write_text(json.dumps({"b'key'": "1", "other": "2"}))
    assert imc_keys(str(tmp_path / "imc.save")) == [b"key"]


def timed(
    system: dict[str, Any], choices: dict[str, Any], name: str | None = None
) -> tuple[EntryRow, list[Any], str | None]:
    entry, reading, damage = row("autotune", None), Reading(), None
    data = json.dumps({"system": system, "cache": {"mm": {"in": {"high": choices}}}}).encode()
    try:
        fill_autotune(entry, name or system_hash(system), data, reading)
    except DamagedContent as error:
        damage = error.what
    return entry, reading.timings, damage


@pytest.mark.parametrize(
    ("choices", "wanted"),
    [
        ({"a": 2.0, "b": 1.0}, {"a": (2.0, False, None), "b": (1.0, True, 2.0)}),
        ({"a": 2.0}, {"a": (2.0, True, None)}),
        ({"a": 1.0, "b": 1.0}, {"a": (1.0, True, 1.0), "b": (1.0, False, None)}),
        (
            {"a": 3.0, "b": 4.5, "c": 6.0},
            {"a": (3.0, True, 1.5), "b": (4.5, False, None), "c": (6.0, False, None)},
        ),
        ({"a": 0, "b": 1}, {"a": (0.0, True, None), "b": (1.0, False, None)}),
        ({"a": math.inf}, {"a": (None, False, None)}),
        ({"a": math.inf, "b": 1}, {"a": (None, False, None), "b": (1.0, True, None)}),
        ({"a": 10**400, "b": 1}, {"a": (None, False, None), "b": (1.0, True, None)}),
        ({"a": "fast", "b": 1}, {"b": (1.0, True, None)}),
    ],
)
def test_the_fastest_choice_and_by_how_much(
    choices: dict[str, Any], wanted: dict[str, tuple[float | None, bool, float | None]]
) -> None:
    entry, timings, damage = timed({}, choices)
    assert {one.choice: (one.time_ms, one.is_chosen, one.margin) for one in timings} == wanted
    assert entry.detail == f"{len(wanted)} timings"
    assert damage == ("a timing that is no number: fast" if "fast" in choices.values() else None)


@pytest.mark.parametrize(
    ("system", "wanted"),
    [
        ({}, (None, None, None, None)),
        ({"device": {"name": "H100"}}, ("H100", None, None, None)),
        ({"device": "H100", "version": "3"}, (None, None, None, None)),
        ({"version": {"triton": "3.6.0" + "1" * 64}}, (None, "3.6.0", None, None)),
        ({"version": {"triton": "3.6.0" + "1" * 64 + "-" + "2" * 64}}, (None, "3.6.0", None, None)),
        (
            {"version": {"triton": "a very long version of triton"}},
            (None, "a very long version ", None, None),
        ),
        ({"version": {"cuda": "12.8", "hip": None}}, (None, None, "cuda", "12.8")),
        ({"version": {"cuda": None, "hip": "6.4"}}, (None, None, "hip", "6.4")),
    ],
)
def test_the_system_of_timings(system: dict[str, Any], wanted: tuple[str | None, ...]) -> None:
    _, (timing,), _ = timed(system, {"a": 1.0})
    found = timing.device_name, timing.triton_version, timing.runtime, timing.runtime_version
    assert found == wanted


@pytest.mark.parametrize("content", [{"system": {}, "cache": []}, {"system": [], "cache": {}}, {"cache": {}}])
def test_timings_without_a_system_are_none(content: object) -> None:
    assert filled(fill_autotune, content)[1] == "holds no objects `system` and `cache`"


def test_answers_of_pad_mm_are_sound() -> None:
    """torch keeps them in the same file: whether to pad, and times, by a text for each multiplication."""
    system = {"device": {"name": "NVIDIA GeForce RTX 3090"}, "version": {"triton": "3.4.0", "cuda": "12.6"}}
    entry, reading = row("autotune", None), Reading()
    cache = {"((33, 515), aten.mm)": True, "base mm time: ((33, 515), aten.mm)": 0.0123}
    fill_autotune(
        entry, system_hash(system), json.dumps({"system": system, "cache": cache}).encode(), reading
    )
    assert (entry.detail, entry.name, reading.timings) == (
        "2 answers of pad_mm",
        "NVIDIA GeForce RTX 3090",
        [],
    )


COMMENT = "# Topologically Sorted Source Nodes: [x, y], Original ATen: [aten.add, aten.mul]\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (f"{COMMENT}k0 = async_compile.cpp_pybinding([], '''", [("k0", "cpp", ("x", "y"), ("aten.add", "aten.mul"))]),
        (f"{COMMENT}# more\n\nk0 = async_compile.triton('k0', '''", [("k0", "triton", ("x", "y"), ("aten.add", "aten.mul"))]),
        (f"{COMMENT}other\nk0 = async_compile.triton('k0', '''", [("k0", "triton", (), ())]),
        # The comment of a C++ kernel is above its call.
        (f"k0 = async_compile.cpp('''\n{COMMENT}k0(a)", [("k0", "cpp", ("x", "y"), ("aten.add", "aten.mul"))]),
        (f"k0 = async_compile.cpp('''\n{COMMENT}k0.run(a)", [("k0", "cpp", ("x", "y"), ("aten.add", "aten.mul"))]),
        (f"{COMMENT}k0 = async_compile.cpp('''\n{COMMENT.replace('x', 'z')}k0(a)", [("k0", "cpp", ("x", "y"), ("aten.add", "aten.mul"))]),
        (f"{COMMENT}unknown(a)", []),
        (f"{COMMENT}extern_kernels.mm(a)", [("mm", "extern", ("x", "y"), ("aten.add", "aten.mul"))]),
        ("extern_kernels.mm(a)", [("mm", "extern", (), ())]),
        ("torch.ops.aten.add.Tensor(a)", [("aten.add.Tensor", "extern", (), ())]),
        # A C++ wrapper calls the runtime for other purposes, too.
        ("aoti_torch_empty(a)", []),
        (f"{COMMENT}aoti_torch_mm(a)", [("aoti_torch_mm", "extern", ("x", "y"), ("aten.add", "aten.mul"))]),
        ("// Source Nodes: [x], Original ATen: []\naoti_torch_mm(a)", [("aoti_torch_mm", "extern", ("x",), ())]),
        ("// Source Nodes: [], Original ATen: [a]\naoti_torch_mm(a)", [("aoti_torch_mm", "extern", (), ("a",))]),
        ("// Source Nodes: [x, , y], Original ATen: []\nextern_kernels.mm(a)", [("mm", "extern", ("x", "y"), ())]),
    ],
)  # fmt: skip
def test_kernels_and_the_comments_above_them(text: str, wanted: list[tuple[object, ...]]) -> None:
    found = [(one.name, one.kind, one.source_nodes, one.aten_ops) for one in kernels_of(text)]
    assert found == wanted


def test_the_sources_of_kernels_in_a_wrapper() -> None:
    one = "async_compile.cpp_pybinding([], '''\nint x;\n''')"
    (key,) = defined_kernels(f"k = {one}")
    assert defined_kernels(f"k = {one}\nk2 = {one}") == (key,)
    raw = "k = async_compile.triton('k', r'''a\\x41''')"
    escaped = "k = async_compile.triton('k', '''a\\x41''')"
    plain = "k = async_compile.triton('k', '''aA''')"
    assert defined_kernels(escaped) == defined_kernels(plain) != defined_kernels(raw)
    assert defined_kernels("\nk = async_compile.triton('k', '''aA''')") == defined_kernels(plain)
    assert defined_kernels("k = 3 + '''aA'''") == ()
    assert defined_kernels("kernel_src = (r'''aA'''") == defined_kernels(plain)
    assert defined_kernels(f"# kernel path: /cache/dd/{CODE}.py\n") == (CODE,)
    assert included_header(f'#include "/cache/dd/{CODE}.h"\n') == CODE


@pytest.mark.parametrize(
    ("name", "cache", "data", "wanted"),
    [
        ("k.py", "code", b"x = 1", ("x = 1", "python", None)),
        ("k.json", "triton", b"{}", ("{}", "json", None)),
        ("k.so", "code", b"", (None, "text", "a file of this kind holds no source")),
        ("k.py", "other", b"x", (None, "text", "a file of this kind holds no source")),
        ("k.py", "code", None, (None, "text", "the file is gone")),
        ("k\\xff.py", "code", None, (None, "text", "the file is gone, or its path is not UTF-8")),
        ("entry", "fxgraph", graph(source_code="x"), ("x", "python", None)),
        ("entry", "fxgraph", graph(x=1), (None, "text", "the entry holds none")),
        ("entry", "fxgraph", b"", (None, "text", "damaged: empty file")),
        ("entry", "fxgraph", entry_bytes(3), (None, "text", "damaged: not an entry of fxgraph: holds int")),
        ("entry", "fxgraph", b"N" * 1_000_001, (None, "text", "unreadable: more than 1000000 opcodes")),
        ("entry", "fxgraph", None, (None, "text", "the file is gone")),
        ("entry", "aotautograd", entry_bytes(Object(f"{RESULT}.AOTAutogradResult", {"x": 1})), (None, "text", "the source is in the FX entries it points to")),
    ],
)  # fmt: skip
def test_the_source_in_a_file(
    name: str, cache: str, data: bytes | None, wanted: tuple[str | None, str, str | None], tmp_path: Path
) -> None:
    if data is not None:
        (tmp_path / name).write_bytes(data)
    found = read_source_code(str(tmp_path / name), cache, FX)
    assert (found.text, found.language, found.why_not) == wanted


def test_a_source_that_is_too_long_or_not_to_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cachescope.readers.directory.file_contents._MOST_BYTES_OF_CODE", 1 << 20)
    path = tmp_path / "k.py"
    path.write_bytes(b" " * (1 << 20))
    assert read_source_code(str(path), "code", None).text == " " * (1 << 20)
    path.write_bytes(b" " * ((1 << 20) + 1))
    assert read_source_code(str(path), "code", None).why_not == "more than 1 MB: not read"
    too_long = str(tmp_path / f"{'k' * 300}.py")
    assert (
        read_source_code(too_long, "code", None).why_not == f"unreadable: {os.strerror(errno.ENAMETOOLONG)}"
    )
