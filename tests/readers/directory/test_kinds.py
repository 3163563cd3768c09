"""The readers of single kinds, on hand-made files: for what was not recorded, and for what is damaged."""

import json
from pathlib import Path

import pytest
from hostile_pickles import BEYOND_LIMITS, hostile
from hypothesis import given, settings
from hypothesis import strategies as st

import cachescope
from cachescope.frames.directory_rows import EntryRow
from cachescope.keys.hashing import stored_code_hash, system_hash
from cachescope.readers.directory import places
from cachescope.readers.directory.cache_dir import CONTENT_READERS, SHIPPED_READERS, read_cache_dir
from cachescope.readers.reading import Reading
from cachescope.terms import MEGA_CACHE
from tests.readers.directory.test_mega_cache import body, summed

HEADER = bytes.fromhex("5feceb66")
MEMOIZED = "torch._inductor.runtime.caching.interfaces.CacheEntry"
KEY32 = "0123456789abcdef" * 2
HEX64 = "ab" * 32


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


def test_a_choice_that_failed_has_no_time(tmp_path: Path) -> None:
    system = {
        "device": {"name": "NVIDIA H100 80GB HBM3"},
        "version": {"triton": f"3.6.0{'1' * 64}-{'2' * 64}", "cuda": "12.8"},
    }
    choices = {"cublas": 0.5, "triton_mm-a": 0.25, "triton_mm-b": float("inf"), "whole": 1}
    told = {"system": {**system, "hash": system_hash(system)}, "cache": {"mm": {"in": {"highest": choices}}}}
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / system_hash(told["system"])).write_text(json.dumps(told))
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
PLACES = (
    f"fxgraph/aa/f{'a' * 51}/entry",
    f"dynamo/{HEX64}/entry",
    *(
        pytest.param(place, marks=pytest.mark.slow)
        for place in (
            f"aotautograd/a{'b' * 51}/entry",
            f"cache/should_pad/{KEY32}",
            f"cache/inductor_on_disk_cache/{KEY32}",
            "dynamo/code_state_job.pkl",
        )
    ),
)


@pytest.mark.parametrize("place", PLACES)
def test_a_hostile_pickle_is_no_sound_entry_wherever_it_lies(place: str, tmp_path: Path) -> None:
    sentinel = tmp_path / "executed"
    for name, data in hostile(str(sentinel)).items():
        entry, _ = read_one(tmp_path / "root", place, (HEADER if place.startswith("cache/") else b"") + data)
        refused = "unreadable" if name in BEYOND_LIMITS else "damaged"
        assert entry.status == refused or entry.cache in ("caching_package", "on_disk_cache"), name
    assert not sentinel.exists()


def test_a_mega_cache_in_a_directory_is_read_by_its_content(tmp_path: Path) -> None:
    entry, _ = read_one(
        tmp_path, "anything", summed(body(("inductor", [("f" + "a" * 51, b"")]), ("pgo", [])))
    )
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
    for read in READERS:
        entry = EntryRow(cache="other", path=str(file), root=str(folder), cache_key="key")
        assert read(entry, str(file), "name", reading)
        is_wrong = entry.status in ("damaged", "unreadable")
        # What is wrong with a file that torch skips is no news.
        assert is_wrong == (entry.damage is not None) or (read.__name__ == "read_hidden" and not is_wrong)
        for said in (entry.name, entry.detail, entry.damage, *entry.device_types):
            (said or "").encode()
    assert {problem.kind for problem in reading.problems} <= {"damaged_entry", "unreadable"}
    for timing in reading.timings:
        "".join((timing.op, timing.inputs, timing.choice, timing.device_name or "")).encode()
