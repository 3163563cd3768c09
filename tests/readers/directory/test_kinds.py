"""The readers of single kinds, on hand-made files: for what was not recorded, and for what is damaged."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path

import pytest
from hostile_pickles import BEYOND_LIMITS, Object, entry_bytes, hostile
from hypothesis import given, settings
from hypothesis import strategies as st

import cachescope
from cachescope.frames.directory_rows import EntryRow
from cachescope.keys.hashing import stored_code_hash, system_hash
from cachescope.readers.directory.cache_dir import read_cache_dir
from cachescope.readers.directory.content_readers import CONTENT_READERS
from cachescope.readers.directory.mega_cache import read_mega_cache
from cachescope.readers.directory.places import (
    CODE_FOLDER,
    DYNAMO,
    ROOT,
    SYSTEM_CACHE,
    TRITON_FOLDER,
    FileRule,
    Place,
    triton_hash,
)
from cachescope.readers.reading import Reading

HEADER = bytes.fromhex("5feceb66")
MEMOIZED = "torch._inductor.runtime.caching.interfaces.CacheEntry"
KEY32 = "0123456789abcdef" * 2
HEX64 = "ab" * 32
SYSTEM = {
    "device": {"name": "NVIDIA H100 80GB HBM3"},
    "version": {"triton": f"3.6.0{'1' * 64}-{'2' * 64}", "cuda": "12.8"},
}


def read_one(root: Path, place: str, data: bytes) -> tuple[EntryRow, Reading]:
    """A file at a place below a root."""
    file = root / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    reading = Reading()
    read_cache_dir(str(root), reading)
    (entry,) = reading.entries
    kinds = {"damaged": ["damaged_entry"], "unreadable": ["unreadable"]}
    assert [problem.kind for problem in reading.problems] == kinds.get(entry.status, [])
    return entry, reading


def timings(system: object, cache: object, name: str | None = None) -> tuple[str, bytes]:
    assert isinstance(system, dict)
    return f"cache/{name or system_hash(system)}", json.dumps({"system": system, "cache": cache}).encode()


def test_a_choice_that_failed_has_no_time(tmp_path: Path) -> None:
    choices = {"cublas": 0.5, "triton_mm-a": 0.25, "triton_mm-b": float("inf"), "whole": 1}
    system = {**SYSTEM, "hash": system_hash(SYSTEM)}
    place, data = timings(system, {"mm": {"[(1, 2)]": {"highest": choices}}})
    (tmp_path / "cache").mkdir()
    (tmp_path / place).write_bytes(data)
    scope = cachescope.read(tmp_path)
    (entry,) = scope.entries.itertuples()
    assert (entry.cache, entry.status, entry.name) == ("autotune", "ok", "NVIDIA H100 80GB HBM3")
    frame = scope.autotune.set_index("choice")
    assert frame["is_failed"].to_dict() == {name: name == "triton_mm-b" for name in choices}
    assert frame.loc["triton_mm-a", "is_chosen"]
    assert frame.loc["triton_mm-a", "margin"] == 2.0
    assert frame["margin"].notna().sum() == 1
    assert frame["time_ms"].isna().to_dict()["triton_mm-b"]
    first = scope.autotune.iloc[0]
    assert (first["triton_version"], first["runtime"], first["runtime_version"]) == ("3.6.0", "cuda", "12.8")
    scope.save(tmp_path.parent / f"{tmp_path.name}-saved")
    again = cachescope.read(tmp_path.parent / f"{tmp_path.name}-saved")
    assert again.autotune.equals(scope.autotune)


@pytest.mark.parametrize(
    ("cache", "damage"),
    [
        ({"mm": []}, "a list where op, inputs, precision or choice should be"),
        ({"mm": {"i": 3}}, "a int where op, inputs, precision or choice should be"),
        ({"mm": {"i": {"highest": "x"}}}, "a str where op, inputs, precision or choice should be"),
        ({"mm": {"i": {"highest": {"c": "f" * 41}}}}, f"a timing that is no number: {'f' * 40}"),
        # Of several the first.
        (
            {"mm": {"i": {"highest": {"c": "fast", "d": "slow"}, "high": []}}},
            "a timing that is no number: fast",
        ),
        ({"mm": {"i": {"highest": {"c": "fast"}}}}, "a timing that is no number: fast"),
        ({"mm": {"i": {"highest": {"c": True}}}}, "a timing that is no number: True"),
        ([], "holds no objects `system` and `cache`"),
    ],
)
def test_timings_of_another_shape_are_damaged(cache: object, damage: str, tmp_path: Path) -> None:
    entry, _ = read_one(tmp_path, *timings({}, cache))
    assert (entry.cache, entry.status, entry.damage) == ("autotune", "damaged", damage)


def test_timings_of_another_system_than_the_name_says_are_damaged(tmp_path: Path) -> None:
    entry, reading = read_one(tmp_path, *timings(SYSTEM, {"mm": {"i": {"highest": {"c": 1.0}}}}, HEX64))
    assert entry.damage == "system hash differs from the name"
    assert len(reading.timings) == 1


BEST = {"XBLOCK": 64, "num_warps": 4, "num_stages": 1, "configs_hash": "x", "time_taken_ms": 12}


@pytest.mark.parametrize("name", [HEX64, "c" + "a" * 51])
def test_a_best_config_says_which_and_how_long(name: str, tmp_path: Path) -> None:
    entry, _ = read_one(tmp_path, f"aa/{name}.best_config", json.dumps(BEST).encode())
    assert (entry.cache, entry.cache_key, entry.status) == ("best_config", name, "ok")
    assert (entry.detail, entry.time_taken_ns) == ("XBLOCK=64, num_warps=4, num_stages=1", 12_000_000)


def test_generated_python_is_held_against_its_name(tmp_path: Path) -> None:
    text = "# Ähnlich\nx = 1"
    key = stored_code_hash(text)
    entry, _ = read_one(tmp_path, f"{key[1:3]}/{key}.py", f"\n{text}\n".encode())
    assert (entry.cache, entry.cache_key, entry.status) == ("code", key, "ok")
    entry, _ = read_one(tmp_path, f"{key[1:3]}/{key}.py", b"x = 2")
    assert (entry.status, entry.damage) == ("damaged", "code hash differs from the name")
    entry, _ = read_one(tmp_path, f"{key[1:3]}/{key}.py", b"\xff")
    assert entry.damage == "not UTF-8"


def test_a_zero_length_lock_is_sound_and_names_what_it_is_for(tmp_path: Path) -> None:
    key = "c" + "a" * 51
    entry, _ = read_one(tmp_path, f"locks/{key}.lock", b"")
    assert (entry.cache, entry.cache_key, entry.status, entry.size_bytes) == ("lock", key, "ok", 0)


@pytest.mark.parametrize("place", ["cache/should_pad", "cache/inductor_on_disk_cache"])
def test_another_header_is_damage(place: str, tmp_path: Path) -> None:
    entry, _ = read_one(tmp_path, f"{place}/{KEY32}", b"\x00\x01\x02\x03" + entry_bytes(1))
    assert entry.damage == "begins with 00010203, not with the header 5feceb66"
    entry, _ = read_one(tmp_path, f"{place}/{KEY32}", HEADER + entry_bytes({"a": [1, None]}))
    assert (entry.status, entry.detail) == ("ok", "{'a': [1, None]}")


def test_a_memoized_result_is_told_from_a_bare_one_by_its_class(tmp_path: Path) -> None:
    state = {"encoded_params": {"op": "mm"}, "encoded_result": False}
    entry, _ = read_one(tmp_path, f"cache/mine/{KEY32}", HEADER + entry_bytes(Object(MEMOIZED, state)))
    told = "{'op': 'mm'} -> False (the name is not that of these parameters)"
    assert (entry.cache, entry.name, entry.detail) == ("memoizer", "mine", told)
    entry, _ = read_one(tmp_path, f"cache/mine/{KEY32}", HEADER + entry_bytes(Object("mine.Result", state)))
    assert (entry.cache, entry.name) == ("caching_package", "mine")
    assert entry.detail is not None
    assert entry.detail.startswith("Result(encoded_params=")


# All of them quick where one kind lies, and of the other kinds those that run a command.
PLACES = (
    f"dynamo/{HEX64}/entry",
    f"cache/should_pad/{KEY32}",
    f"cache/inductor_on_disk_cache/{KEY32}",
    "dynamo/code_state_job.pkl",
)


@pytest.mark.parametrize(
    "place", [PLACES[0], *(pytest.param(place, marks=pytest.mark.slow) for place in PLACES[1:])]
)
def test_a_hostile_pickle_is_no_sound_entry_wherever_it_lies(place: str, tmp_path: Path) -> None:
    sentinel = tmp_path / "executed"
    for name, data in hostile(str(sentinel)).items():
        entry, _ = read_one(tmp_path / "root", place, (HEADER if place.startswith("cache/") else b"") + data)
        refused = "unreadable" if name in BEYOND_LIMITS else "damaged"
        assert entry.status == refused or entry.cache in ("caching_package", "on_disk_cache"), name
    assert not sentinel.exists()


def test_triton_keys_are_one_hash_in_three_spellings() -> None:
    raw = bytes(range(32))
    base32 = base64.b32encode(raw).decode().rstrip("=")
    base64_ = base64.urlsafe_b64encode(raw).decode().rstrip("=")
    assert triton_hash(raw.hex()) == triton_hash(base32) == triton_hash(base64_) == raw.hex()


def test_triton_metadata_of_another_key_is_damaged(tmp_path: Path) -> None:
    metadata = {"hash": HEX64, "name": "kernel", "target": {"backend": "cuda", "arch": 80, "warp_size": 32}}
    entry, _ = read_one(tmp_path, f"triton/0/{HEX64}/kernel.json", json.dumps(metadata).encode())
    assert (entry.status, entry.cache_key, entry.name, entry.detail) == ("ok", HEX64, "kernel", "arch 80")
    metadata["hash"] = "cd" * 32
    entry, _ = read_one(tmp_path, f"triton/0/{HEX64}/kernel.json", json.dumps(metadata).encode())
    assert entry.damage == "its hash differs from the folder's name"


def test_what_triton_had_not_finished_is_temporary(tmp_path: Path) -> None:
    entry, _ = read_one(tmp_path, f"triton/0/{HEX64}/tmp.pid_17_ab/kernel.cubin", b"half")
    assert (entry.cache, entry.status) == ("triton", "temporary")


def test_known_folders_that_no_key_leads_to_are_others(tmp_path: Path) -> None:
    reading = Reading()
    for place in ("aoti_eager/aten/cpu/x.json", "halide-runtime-x86/a.so", "torch_cutlass/deep/er", "mine/x"):
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).write_bytes(b"x")
    read_cache_dir(str(tmp_path), reading)
    assert {entry.cache for entry in reading.entries} == {"other"}
    foreign = [entry.path for entry in reading.entries if entry.status == "foreign"]
    assert foreign == [str(tmp_path / "mine" / "x")]


def number(value: int) -> bytes:
    return value.to_bytes(8, "big")


def text(value: str) -> bytes:
    raw = base64.b64encode(value.encode())
    return number(len(raw)) + raw


def mega_cache(artifacts: dict[str, list[tuple[str, bytes]]]) -> bytes:
    body = number(1)
    for kind, listed in artifacts.items():
        body += text(kind) + number(len(listed))
        for key, content in listed:
            body += text(key) + number(len(content)) + content
    return zlib.crc32(body).to_bytes(4, "big") + body


def test_a_damaged_entry_in_a_mega_cache_is_named(tmp_path: Path) -> None:
    graph = entry_bytes(Object("torch._inductor.output_code.CompiledFxGraph", {"device_types": {"cuda"}}))
    data = mega_cache(
        {"inductor": [("f" + "a" * 51, graph), ("f" + "b" * 51, graph[:-5])], "pgo": [("k", b"x")]}
    )
    entry, _ = read_one(tmp_path, "anything", data)
    assert (entry.cache, entry.status, entry.detail) == ("mega_cache", "damaged", "inductor 2, pgo 1")
    assert entry.damage == f"inductor {'f' + 'b' * 51}: truncated"
    assert entry.device_types == ("cuda",)
    assert len(entry.fx_keys) == 2


@pytest.mark.parametrize(
    "rest", [text("other"), text("pgo") + number(1 << 60), text("pgo")[:-2], number(3) + b"\xff!?"]
)
def test_a_mega_cache_of_another_shape_is_damaged(rest: bytes, tmp_path: Path) -> None:
    data = mega_cache({"inductor": []})[4:] + rest
    entry, _ = read_one(tmp_path, "anything", zlib.crc32(data).to_bytes(4, "big") + data)
    assert (entry.cache, entry.status) == ("mega_cache", "damaged")


def rules_of(place: Place) -> list[FileRule]:
    return [*place.files, *(rule for inner in place.folders for rule in rules_of(inner.place))]


READERS = {
    CONTENT_READERS[rule.content]
    for place in (ROOT, SYSTEM_CACHE, CODE_FOLDER, DYNAMO, TRITON_FOLDER)
    for rule in rules_of(place)
    if rule.content
} | {read_mega_cache}
# Half surrogate pairs too, which JSON can spell and no file can hold.
TEXT = st.text(st.characters())
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | TEXT,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text()
            | st.sampled_from(
                ["system", "cache", "hash", "collections", "child_paths", "target", "name", "configs_hash"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)
BYTES = (
    st.binary(max_size=200)
    | st.binary(max_size=200).map(lambda data: HEADER + b"\x80\x04" + data)
    | st.binary(max_size=200).map(
        lambda data: b"\x00" * 4 + mega_cache({"inductor": [("f", data)]})[4:] + data
    )
    | JSON.map(lambda value: json.dumps(value).encode())
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(data=BYTES)
def test_any_bytes_are_a_row_that_can_be_saved(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("any")
    file = folder / "name"
    file.write_bytes(data)
    reading = Reading()
    for read in READERS:
        entry = EntryRow(
            cache="other", path=str(file), root=str(folder), size_bytes=0, modified_time=0, cache_key="key"
        )
        assert read(entry, str(file), "name", reading)
        is_wrong = entry.status in ("damaged", "unreadable")
        # What is wrong with a file that torch skips is no news.
        assert is_wrong == (entry.damage is not None) or (read.__name__ == "read_hidden" and not is_wrong)
        for said in (entry.name, entry.detail, entry.damage, *entry.device_types):
            (said or "").encode()
    assert {problem.kind for problem in reading.problems} <= {"damaged_entry", "unreadable"}
    for timing in reading.timings:
        "".join((timing.op, timing.inputs, timing.choice, timing.device_name or "")).encode()
