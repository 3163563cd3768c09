"""What each kind of file says of itself: made bytes in, the row out; one line for each branch; hostile and any bytes; values as text."""

import base64
import errno
import hashlib
import json
import math
import os
import pickle
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hostile_pickles import BEYOND_LIMITS, Object, entry_bytes, hostile, plain
from hypothesis import given, settings
from hypothesis import strategies as st

import cachescope
from cachescope.frames.directory_rows import EntryRow
from cachescope.keys.hashing import stored_code_hash, system_hash
from cachescope.readers.cache_file import DamagedContent, content_reader, read_marked
from cachescope.readers.directory import places
from cachescope.readers.directory.autotune import fill_autotune, fill_cutlass_configs
from cachescope.readers.directory.cache_dir import CONTENT_READERS, SHIPPED_READERS, read_cache_dir
from cachescope.readers.directory.caching_package import (
    fill_imc,
    fill_memoized,
    fill_memoizer_dump,
    fill_on_disk,
    imc_keys,
)
from cachescope.readers.directory.dynamo_packages import fill_code_state, fill_precompile
from cachescope.readers.directory.entry_file import value_text
from cachescope.readers.directory.file_contents import content_hash, read_source_code
from cachescope.readers.directory.triton_files import (
    fill_best_config,
    fill_group,
    fill_intermediate,
    fill_kernel_metadata,
    triton_hashes,
)
from cachescope.readers.pickles.inert_pickle import UnreadablePickle, loads_harmless, loads_inert
from cachescope.readers.reading import Reading
from cachescope.terms import MEGA_CACHE
from tests.readers.directory.test_graph_entries import CODE, FX, RESULT, graph, read, row
from tests.readers.directory.test_shipped import body, summed
from tests.readings import read_by

HEADER = bytes.fromhex("5feceb66")


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


@pytest.mark.parametrize(("said", "name", "detail", "devices", "damage"), [
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
])  # fmt: skip
def test_the_metadata_of_a_triton_kernel(
    said: object, name: str | None, detail: str | None, devices: tuple[str, ...], damage: str | None
) -> None:
    entry, found = filled(fill_kernel_metadata, said, "k.json")
    assert (entry.name, entry.detail, entry.device_types, found) == (name, detail, devices, damage)


@pytest.mark.parametrize(("paths", "detail", "damage"), [
    ({"a": "/cache/folder/a", "b": "/cache/folder/b"}, "2 files", None),
    ({"a": "/z/a", "b": "/old/b", "c": "/cache/folder/c"}, "3 files, at /old: the directory was moved", None),
    ({"a": "/" + "z" * 300 + "/a"}, f"1 files, at /{'z' * 299}: the directory was moved", None),
    ({}, "0 files", None),
    ({"a": 3}, None, "no group: holds no child_paths"),
    (["a"], None, "no group: holds no child_paths"),
    (None, None, "no group: holds no child_paths"),
])  # fmt: skip
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


def test_keys_of_triton_are_one_hash_in_three_spellings() -> None:
    raw = bytes(range(32))
    spellings = [base64.b32encode(raw), base64.urlsafe_b64encode(raw)]
    for one in (raw.hex(), *(spelling.decode().rstrip("=") for spelling in spellings)):
        assert triton_hashes([one]) == (raw.hex(),)


def test_keys_of_triton_in_a_list_of_anything() -> None:
    assert triton_hashes(["A" * 52, None, "A" * 43, "short", "0" * 64, "1" * 64]) == ("0" * 64, "1" * 64)


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
    assert not read_marked(reading, row(), str(tmp_path / "absent"), "absent", Reading())


def code(file: object = "/m.py", line: object = 3, name: object = "f") -> bytes:
    state = {"filename": file, "firstlineno": line, "name": name}
    return entry_bytes(Object("torch._dynamo.pgo.CodeId", state))[2:-1]


def code_state(*codes: bytes) -> bytes:
    made = b"ccollections\ndefaultdict\n)R("
    return b"\x80\x04" + made + b"".join(one + b"N" for one in codes) + b"u."


@pytest.mark.parametrize(("data", "name", "detail", "damage"), [
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
])  # fmt: skip
def test_what_is_known_of_shapes(data: bytes, name: str, detail: str | None, damage: str | None) -> None:
    entry, found = filled(fill_code_state, data, name)
    assert found == damage
    if detail is not None:
        assert entry.detail is not None
        assert entry.detail == detail if "more" not in detail else entry.detail.endswith(detail)
    assert ("more" in str(entry.detail)) == ("more" in str(detail))
    assert entry.cache_key == "key"


PACKAGE = "torch._dynamo.package._DynamoCacheEntry"


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


@pytest.mark.parametrize(("value", "wanted"), [
    # What is no plain value has a key that is not known: nothing is wrong then.
    (Object(MEMO, {"encoded_params": Object("m.X"), "encoded_result": 1}), ("memoizer", "X() -> 1")),
    (Object("m.CacheEntry", {"encoded_params": 1}), ("caching_package", "CacheEntry(encoded_params=1)")),
    ([1], ("caching_package", "[1]")),
])  # fmt: skip
def test_a_memoized_result(value: object, wanted: tuple[str, str]) -> None:
    entry, damage = filled(fill_memoized, HEADER + entry_bytes(value))
    assert (entry.cache, entry.detail, entry.name, damage) == (*wanted, "folder", None)


@pytest.mark.parametrize("fill", [fill_memoized, fill_on_disk])
def test_what_the_caching_package_stores_has_a_header(fill: Callable[..., None]) -> None:
    _, damage = filled(fill, b"\x00\x01\x02\x03" + entry_bytes(1))
    assert damage == "begins with 00010203, not with the header 5feceb66"
    entry, damage = filled(fill, HEADER + entry_bytes({"a": [1, None]}))
    assert (entry.detail, damage) == ("{'a': [1, None]}", None)


@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_the_name_of_a_memoized_result_is_that_of_its_parameters(protocol: int) -> None:
    """As torch names it: the hash of the parameters, pickled as the entry is."""
    result = plain(Object(MEMO, {"encoded_params": [1, 2], "encoded_result": 3}))
    data = HEADER + (bytes([0x80, protocol]) if protocol else b"") + result + b"."
    name = hashlib.sha256(pickle.dumps([1, 2], protocol)).hexdigest()[:32]
    entry, _ = filled(fill_memoized, data, name)
    assert entry.detail == "[1, 2] -> 3"
    entry, _ = filled(fill_memoized, data, "0" * 32)
    assert entry.detail == "[1, 2] -> 3 (the name is not that of these parameters)"


@pytest.mark.parametrize(("fill", "said", "detail", "damage"), [
    (fill_precompile, entry_bytes(Object(PACKAGE, {"backends": {"a": 1, "b": 2}})), "2 compiled graphs", None),
    (fill_precompile, entry_bytes(Object(PACKAGE, {"backends": [1]})), None, None),
    (fill_precompile, entry_bytes(Object(PACKAGE, {})), None, None),
    (fill_precompile, entry_bytes(Object("torch.other.Package", {"backends": {}})), None, "no precompile package: holds torch.other.Package"),
    (fill_precompile, entry_bytes([]), None, "no precompile package: holds list"),
    # The class alone is no package.
    (fill_precompile, b"ctorch._dynamo.package\nX\n.", None, "no precompile package: holds torch._dynamo.package.X"),
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
])  # fmt: skip
def test_a_file_of_a_kind(
    fill: Callable[..., None], said: object, detail: str | None, damage: str | None
) -> None:
    entry, found = filled(fill, said)
    assert (entry.detail, found) == (detail, damage)


@pytest.mark.parametrize(("taken", "wanted"), [
    (0, 0), (3, 3_000_000), (-1, None), (1 << 40, None), ((1 << 40) - 1, ((1 << 40) - 1) * 10**6),
    (1.5, None),
])  # fmt: skip
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


@pytest.mark.parametrize(("choices", "wanted"), [
    ({"a": 2.0, "b": 1.0}, {"a": (2.0, False, None), "b": (1.0, True, 2.0)}),
    ({"a": 2.0}, {"a": (2.0, True, None)}),
    ({"a": 1.0, "b": 1.0}, {"a": (1.0, True, 1.0), "b": (1.0, False, None)}),
    ({"a": 3.0, "b": 4.5, "c": 6.0}, {"a": (3.0, True, 1.5), "b": (4.5, False, None), "c": (6.0, False, None)}),
    ({"a": 0, "b": 1}, {"a": (0.0, True, None), "b": (1.0, False, None)}),
    ({"a": math.inf}, {"a": (None, False, None)}),
    ({"a": math.inf, "b": 1}, {"a": (None, False, None), "b": (1.0, True, None)}),
    ({"a": 10**400, "b": 1}, {"a": (None, False, None), "b": (1.0, True, None)}),
    ({"a": "fast", "b": 1}, {"b": (1.0, True, None)}),
])  # fmt: skip
def test_the_fastest_choice_and_by_how_much(
    choices: dict[str, Any], wanted: dict[str, tuple[float | None, bool, float | None]]
) -> None:
    entry, timings, damage = timed({}, choices)
    assert {one.choice: (one.time_ms, one.is_chosen, one.margin) for one in timings} == wanted
    assert entry.detail == f"{len(wanted)} timings of max-autotune"
    assert damage == ("a timing that is no number: fast" if "fast" in choices.values() else None)


@pytest.mark.parametrize(("system", "wanted"), [
    ({}, (None, None, None, None)),
    ({"device": {"name": "H100"}}, ("H100", None, None, None)),
    ({"device": "H100", "version": "3"}, (None, None, None, None)),
    ({"version": {"triton": "3.6.0" + "1" * 64}}, (None, "3.6.0", None, None)),
    ({"version": {"triton": "3.6.0" + "1" * 64 + "-" + "2" * 64}}, (None, "3.6.0", None, None)),
    ({"version": {"triton": "a very long version of it"}}, (None, "a very long version ", None, None)),
    ({"version": {"cuda": "12.8", "hip": None}}, (None, None, "cuda", "12.8")),
    ({"version": {"cuda": None, "hip": "6.4"}}, (None, None, "hip", "6.4")),
])  # fmt: skip
def test_the_system_of_timings(system: dict[str, Any], wanted: tuple[str | None, ...]) -> None:
    _, (timing,), _ = timed(system, {"a": 1.0})
    found = timing.device_name, timing.triton_version, timing.runtime, timing.runtime_version
    assert found == wanted


@pytest.mark.parametrize(("said", "damage"), [
    ({"system": {}, "cache": []}, "holds no objects `system` and `cache`"),
    ({"system": [], "cache": {}}, "holds no objects `system` and `cache`"),
    ({"cache": {}}, "holds no objects `system` and `cache`"),
    ({"system": {}, "cache": {"mm": []}}, "a list where op, inputs, precision or choice should be"),
    ({"system": {}, "cache": {"mm": {"i": 3}}}, "a int where op, inputs, precision or choice should be"),
    ({"system": {}, "cache": {"mm": {"i": {"highest": "x"}}}}, "a str where op, inputs, precision or choice should be"),
    ({"system": {}, "cache": {"mm": {"i": {"highest": {"c": "f" * 41}}}}}, f"a timing that is no number: {'f' * 40}"),
    ({"system": {}, "cache": {"mm": {"i": {"highest": {"c": True}}}}}, "a timing that is no number: True"),
    # Of several the first.
    ({"system": {}, "cache": {"mm": {"i": {"highest": {"c": "fast", "d": "slow"}, "high": []}}}}, "a timing that is no number: fast"),
])  # fmt: skip
def test_timings_of_another_shape_are_damaged(said: object, damage: str) -> None:
    assert filled(fill_autotune, said, system_hash({}))[1] == damage


def test_timings_of_another_system_than_the_name_says_are_damaged() -> None:
    _, timings, damage = timed({"device": {"name": "H100"}}, {"c": 1.0}, "ab" * 32)
    assert (len(timings), damage) == (1, "system hash differs from the name")


def test_answers_of_pad_mm_are_sound() -> None:
    """torch keeps them in the same file: whether to pad, and times, by a text for each multiplication."""
    system = {"device": {"name": "NVIDIA GeForce RTX 3090"}, "version": {"triton": "3.4.0", "cuda": "12.6"}}
    entry, reading = row("autotune", None), Reading()
    cache = {"((33, 515), aten.mm)": True, "base mm time: ((33, 515), aten.mm)": 0.0123}
    data = json.dumps({"system": system, "cache": cache}).encode()
    fill_autotune(entry, system_hash(system), data, reading)
    said = "2 answers of pad_mm (Triton 3.4.0, cuda 12.6)"
    assert (entry.detail, entry.name) == (said, "NVIDIA GeForce RTX 3090")
    assert reading.timings == []


@pytest.mark.parametrize(("name", "cache", "data", "wanted"), [
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
])  # fmt: skip
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
    why_not = read_source_code(too_long, "code", None).why_not
    assert why_not == f"unreadable: {os.strerror(errno.ENAMETOOLONG)}"


def test_the_hash_of_a_file_that_was_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounded, and never waiting: what is no plain file, or too big, has none."""
    file = tmp_path / "kernel.so"
    file.write_bytes(os.urandom((1 << 20) + 7))
    assert content_hash(str(file)) == hashlib.sha256(file.read_bytes()).hexdigest()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for name in ("gone", "pipe", "link", "."):
        assert content_hash(str(tmp_path / name)) is None
    monkeypatch.setattr("cachescope.readers.directory.file_contents._MOST_BYTES_HASHED", 1 << 20)
    assert content_hash(str(file)) is None


KEY32 = "0123456789abcdef" * 2
HEX64 = "ab" * 32


def read_one(root: Path, place: str, data: bytes) -> tuple[EntryRow, Reading]:
    """A file at a place below a root."""
    file = root / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    reading = read_by(read_cache_dir, str(root))
    (entry,) = reading.entries
    kinds = {"damaged": ["damaged_entry"], "unreadable": ["unreadable"]}
    assert [problem.kind for problem in reading.problems] == kinds.get(entry.status, [])
    return entry, reading


def test_a_choice_that_failed_has_no_time(tmp_path: Path) -> None:
    choices = {"cublas": 0.5, "triton_mm-b": float("inf")}
    told = {"system": {"hash": system_hash({})}, "cache": {"mm": {"in": {"highest": choices}}}}
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / system_hash(told["system"])).write_text(json.dumps(told))
    frame = cachescope.read(tmp_path).autotune.set_index("choice")
    assert frame["is_failed"].to_dict() == {name: name == "triton_mm-b" for name in choices}
    assert frame["time_ms"].isna().to_dict()["triton_mm-b"]


def test_generated_python_is_held_against_its_name(tmp_path: Path) -> None:
    text = "# Ähnlich\nx = 1"
    key = stored_code_hash(text)
    entry, _ = read_one(tmp_path, f"{key[1:3]}/{key}.py", f"\n{text}\n".encode())
    assert (entry.cache, entry.cache_key, entry.status) == ("code", key, "ok")
    entry, _ = read_one(tmp_path, f"{key[1:3]}/{key}.py", b"x = 2")
    assert (entry.status, entry.damage) == ("damaged", "code hash differs from the name")
    entry, _ = read_one(tmp_path, f"{key[1:3]}/{key}.py", b"\xff")
    assert entry.damage == "not UTF-8"


# Where entries lie, and a precompile package: all of them quick; of the other kinds slow.
PLACES = f"fxgraph/aa/f{'a' * 51}/entry", f"dynamo/{HEX64}/entry"
OTHER_PLACES = (
    f"aotautograd/a{'b' * 51}/entry", f"cache/should_pad/{KEY32}", f"cache/inductor_on_disk_cache/{KEY32}",
    "dynamo/code_state_job.pkl",
)  # fmt: skip


@pytest.mark.parametrize(
    "place", [*PLACES, *(pytest.param(place, marks=pytest.mark.slow) for place in OTHER_PLACES)]
)
def test_a_hostile_pickle_is_no_sound_entry_wherever_it_lies(place: str, tmp_path: Path) -> None:
    sentinel = tmp_path / "executed"
    for name, data in hostile(str(sentinel)).items():
        entry, _ = read_one(tmp_path / "root", place, (HEADER if place.startswith("cache/") else b"") + data)
        refused = "unreadable" if name in BEYOND_LIMITS else "damaged"
        assert entry.status == refused or entry.cache in ("caching_package", "on_disk_cache"), name
    assert not sentinel.exists()


def test_a_mega_cache_in_a_directory_is_read_by_its_content(tmp_path: Path) -> None:
    cache = summed(body(("inductor", [("f" + "a" * 51, b"")]), ("pgo", [])))
    entry, _ = read_one(tmp_path, "anything", cache)
    assert (entry.cache, entry.status, entry.detail) == ("mega_cache", "damaged", "inductor 1")


def rules_of(place: places.Place) -> list[places.FileRule]:
    return [*place.files, *(rule for inner in place.folders for rule in rules_of(inner.place))]


READERS = {
    CONTENT_READERS[rule.content]
    for place in (places.ROOT, places.SYSTEM_CACHE, places.CODE_FOLDER, places.DYNAMO, places.TRITON_FOLDER)
    for rule in rules_of(place)
    if rule.content
} | {SHIPPED_READERS[MEGA_CACHE]}
# Half surrogate pairs too, which JSON can spell and no file can hold.
TEXT = st.text() | st.sampled_from(["\ud800", "a\udfff"])
NAMES = ["system", "cache", "hash", "collections", "child_paths", "target", "name", "configs_hash"]
FIELDS = st.text() | st.sampled_from(NAMES)
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=3),
    max_leaves=12,
)
TIMED = st.floats() | st.integers() | JSON
for _ in ("choice", "precision", "inputs", "op"):
    TIMED = st.dictionaries(TEXT, TIMED, min_size=1, max_size=2)
TIMINGS = st.fixed_dictionaries({"system": st.dictionaries(TEXT, JSON, max_size=2), "cache": TIMED})
BYTES = (
    st.binary(max_size=200)
    | st.binary(max_size=200).map(lambda data: HEADER + b"\x80\x04" + data)
    | st.binary(max_size=200).map(lambda data: b"\x00" * 4 + body(("inductor", [("f", data)])) + data)
    | (JSON | TIMINGS).map(lambda value: json.dumps(value).encode())
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(data=BYTES)
def test_any_bytes_are_a_row_that_can_be_saved(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("any")
    file = folder / "name"
    file.write_bytes(data)
    reading = Reading()
    for reader in READERS:
        entry = EntryRow(cache="other", path=str(file), root=str(folder), cache_key="key")
        assert read_marked(reader, entry, str(file), "name", reading)
        is_wrong = entry.status in ("damaged", "unreadable")
        # What is wrong with a file that torch skips is no news.
        assert is_wrong == (entry.damage is not None) or (reader.__name__ == "read_hidden" and not is_wrong)
        for said in (entry.name, entry.detail, entry.damage, *entry.device_types):
            (said or "").encode()
    assert {problem.kind for problem in reading.problems} <= {"damaged_entry", "unreadable"}
    for timing in reading.timings:
        "".join((timing.op, timing.inputs, timing.choice, timing.device_name or "")).encode()


@pytest.mark.parametrize("value", [1, "a", None, 2.5, True, [1, 2], (1,), {"a": [1]}, {1, 2}, b"x", ""])
def test_short_values_are_as_python_prints_them(value: object) -> None:
    assert value_text(value) == repr(value)


def test_long_values_are_cut() -> None:
    assert value_text(list(range(60))) == f"[{', '.join(map(str, range(50)))}, ...]"
    for whole, longer in (("x" * 198, "x" * 199), ("x" * 198, "x" * 5_000), (10**199, 10**200)):
        assert value_text(whole) == repr(whole)
        assert len(value_text(longer)) == 200 and "..." in value_text(longer)
    long = value_text(["y" * 150] * 50)
    assert len(long) == 2_000 and long.endswith("…")
    edge = value_text(["y" * 150] * 12)
    assert len(edge) < 2_000 and edge.endswith("]")
    assert value_text(10**5_000) == "(int)" and value_text([10**5_000, 3]) == "[(int), 3]"


def held(value: Any) -> object:
    """A pickled object as the reader holds it: its class, and what it is made from."""
    return loads_harmless(pickle.dumps(value))


def nested(depth: int) -> object:
    value: object = held(Fraction(1, 3))
    for _ in range(depth):
        outer: Any = held(Fraction(1, 3))
        outer.args = (value,)
        value = outer
    return value


@pytest.mark.parametrize(("depth", "cut"), [(0, 0), (7, 0), (8, 1), (9, 1)])
def test_objects_are_told_to_the_eighth_in_another(depth: int, cut: int) -> None:
    text = value_text(nested(depth))
    assert text.count("(...)") == cut
    assert text.startswith("Fraction(" * min(depth + 1, 8))
    assert cut == 0 or "fractions.Fraction(...)" in text


@pytest.mark.parametrize(("depth", "cut"), [(7, 0), (8, 1), (12, 1)])
def test_attributes_are_shown_to_the_same_depth(depth: int, cut: int) -> None:
    inner = Object("m.One", {})
    for _ in range(depth):
        inner = Object("m.One", {"part": inner})
    text = value_text(loads_inert(entry_bytes(inner)))
    assert text.count("(...)") == cut
    assert text.startswith("One(part=" * min(depth, 7) + "One(")


@pytest.mark.parametrize("count", [49, 50, 51])
def test_of_an_object_so_many_parts_are_told(count: int) -> None:
    many: Any = held(Fraction(1, 3))
    many.args = tuple(range(count))
    assert value_text(many) == f"Fraction({', '.join(map(str, range(min(count, 50))))})"
    named = loads_inert(entry_bytes(Object("m.Many", {f"a{n}": n for n in range(count)})))
    assert value_text(named) == f"Many({', '.join(f'a{n}={n}' for n in range(min(count, 50)))})"


@pytest.mark.parametrize("length", [1_999, 2_000, 2_001])
def test_a_text_of_the_most_letters_is_whole(length: int) -> None:
    name = "x" * (length - len("One(=1)"))
    whole = f"One({name}=1)"
    assert len(whole) == length
    found = value_text(loads_inert(entry_bytes(Object("m.One", {name: 1}))))
    assert found == (whole if length <= 2_000 else whole[:1_999] + "…")
