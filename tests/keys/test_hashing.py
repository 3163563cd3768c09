"""Content hashes, the system hash, names of best configurations, folders and paths equal torch's, on random input and on this machine."""

import hashlib
import importlib
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope import keys
from cachescope.errors import CachescopeError
from cachescope.keys.paths import is_in_remote_cache
from cachescope.keys.vllm import PlaceInTree, place_in_tree
from tests.keys.test_isolation import JSON

# Half surrogates cannot be encoded, by torch either.
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
CODE = TEXT | st.binary()


@given(data=st.binary())
def test_sha256_hash_is_torchs(codecache: ModuleType, data: bytes) -> None:
    assert keys.sha256_hash(data) == codecache.sha256_hash(data)


@given(code=CODE, extra=CODE)
def test_code_hash_is_torchs(codecache: ModuleType, code: str | bytes, extra: str | bytes) -> None:
    assert keys.code_hash(code, extra) == codecache.code_hash(code, extra)


@pytest.mark.parametrize(("code", "extra", "hash_type", "wanted"), [
    ("x = 1", "", "code", "cr72dnxxriujikwm2dmnnocaaje5y3sx54kis4grygrldgbkojqt"),
    ("x = 1", "g++ -O3", "code", "c6sbf7qzx6o5volobmwkpfb36ma22cilzvhk7ukg4z3o7fz475dj"),
    (b"\x00\xff", "isa", "code", "cixukw5dtg7x632smv6iw3ivdxllhpxtd24omfdl5sthv5zs7gw4"),
    ("x", "g", "ptx", "cwnwo7nzik5mpht5535r76wu5lh5wsu6yi5rg7cd5ox5ofiefu6l"),
    (b"\x7fELF", "g", "cubin", "czhgcjmtaorhi4t5lq2emycpymb2ohdmmwhjz5r3hq2vldwfhe6k"),
])  # fmt: skip
def test_what_get_hash_of_2_13_returned(code: str | bytes, extra: str, hash_type: str, wanted: str) -> None:
    assert keys.get_hash(code, extra, hash_type) == wanted


@given(
    content=CODE,
    extra=TEXT,
    hash_type=st.sampled_from(["amdgcn", "code", "ptx", "spv", "cubin", "hsaco", "zebin"]),
)
def test_get_hash_is_torchs(codecache: ModuleType, content: str | bytes, extra: str, hash_type: str) -> None:
    assert keys.get_hash(content, extra, hash_type) == codecache.get_hash(content, extra, hash_type)


def test_an_unknown_kind_is_refused_with_the_known_ones(codecache: ModuleType) -> None:
    with pytest.raises(CachescopeError, match=r"'wasm'.*amdgcn, code, cubin"):
        keys.get_hash("", hash_type="wasm")
    with pytest.raises(AssertionError):
        codecache.get_hash("", hash_type="wasm")


def test_half_a_surrogate_fails_as_in_torch(codecache: ModuleType) -> None:
    for function in (keys.code_hash, codecache.code_hash):
        with pytest.raises(UnicodeEncodeError):
            function("\ud800")


@given(content=TEXT)
def test_stored_code_hash_is_torchs_stem(codecache: ModuleType, cache_root: Path, content: str) -> None:
    key, path = codecache.write(content, "txt")
    assert keys.stored_code_hash(content) == key == Path(path).stem


def test_entry_name_is_the_file_torch_writes(codecache: ModuleType, cache_root: Path) -> None:
    content = b"any bytes: torch does not look inside when it writes"
    key = "f" + "a" * 51
    codecache.FxGraphCache._write_to_local_cache(key, content)
    folder = Path(codecache.FxGraphCache._get_tmp_dir_for_key(key))
    assert [path.name for path in folder.iterdir()] == [keys.entry_name(content)]


def test_the_cut_loses_only_the_last_bit() -> None:
    digest = hashlib.sha256(b"").digest()
    full = int.from_bytes(digest, "big")
    alphabet = "abcdefghijklmnopqrstuvwxyz234567"
    kept = 0
    for character in keys.sha256_hash(b""):
        kept = kept * 32 + alphabet.index(character)
    assert kept == full >> 1


def test_this_machines_hash_is_torchs(codecache: ModuleType) -> None:
    system = codecache.CacheBase.get_system()
    assert keys.system_hash(system) == system["hash"]


@given(info=st.dictionaries(st.text().filter("hash".__ne__), JSON))
def test_system_hash_is_torchs(codecache: ModuleType, info: dict[str, object]) -> None:
    expected = codecache.SYSTEM_CACHE_KEY_STRATEGY.key_from_json(info)
    assert keys.system_hash(info) == expected
    assert keys.system_hash({**info, "hash": "of the file"}) == expected


@pytest.mark.parametrize(("info", "expected"), [
    # Through 2.14 without CUDA or ROCm: seen as a file name in real runs.
    ({}, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"),
    # 2.15 without GPU and without Triton.
    ({"version": {"triton": None}}, "4d71a6a7e300fb651da44571af59c1992acc2ea91253eb66404e06e319ced7e8"),
])  # fmt: skip
def test_known_system_hashes(info: dict[str, object], expected: str) -> None:
    assert keys.system_hash(info) == expected


def test_a_value_json_cannot_hold_is_named() -> None:
    with pytest.raises(keys.UnsupportedValueError, match=r"device\[name\]") as caught:
        keys.system_hash({"device": {"name": b"bytes"}})
    assert caught.value.path == "device[name]"


@pytest.mark.parametrize("tag", ["", "nightly"])
def test_the_name_is_torchs(tag: str, codecache: ModuleType) -> None:
    autotune = importlib.import_module("torch._inductor.runtime.autotune_cache").AutotuneCache
    kernel = "c" + "a" * 51 + ".py"
    with importlib.import_module("torch.compiler.config").patch(cache_key_tag=tag):
        prepared = autotune._prepare_key(f"/folder/{kernel}")
        path = autotune._make_local_cache_key("/folder", prepared)
    assert path == f"/folder/{keys.best_config_name(kernel, tag, codecache.torch_key())}"
    assert keys.best_config_name(kernel, tag) == f"{prepared}.best_config"


NAME = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(
    basename=NAME,
    extension=NAME,
    folder=st.sampled_from(["", "relative", "two/levels", "/absolute", "/", "."]) | NAME,
)
def test_get_path_is_torchs(
    codecache: ModuleType, cache_root: Path, basename: str, extension: str, folder: str
) -> None:
    expected = codecache.get_path(basename, extension, folder)
    assert keys.get_path(basename, extension, folder, cache_root=str(cache_root)) == expected


def test_asking_for_a_path_makes_no_directory(tmp_path: Path) -> None:
    root = tmp_path / "not there"
    key = "c" + "a" * 51
    keys.get_path(key, "py", cache_root=str(root))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("extension", ["py", "main.cpp", "so.load_ok"])
def test_an_extension_may_hold_dots(extension: str) -> None:
    assert keys.get_path("cabc", extension, cache_root="/r")[2] == f"/r/ab/cabc.{extension}"


@pytest.mark.parametrize(("path", "wanted"), [
    ("/c/abc/rank_0_1/backbone/file", ("abc", 0, 1, "backbone")),
    ("/c/abc/rank_12_3/eagle/head/file", ("abc", 12, 3, "eagle/head")),
    ("/c/abc/rank_2_0/file", ("abc", 2, 0, None)),
    ("abc/rank_2_0/file", ("abc", 2, 0, None)),
    # Of two folders with ranks, the inner one.
    ("/c/old/rank_8_8/abc/rank_2_0/backbone/file", ("abc", 2, 0, "backbone")),
    # Without a folder of a rank, only the part of the model is known.
    ("/c/abc/backbone/file", (None, None, None, "backbone")),
    ("rank_2_0/backbone/file", (None, None, None, "backbone")),
    ("backbone/rank_2_0", (None, None, None, "backbone")),
    ("file", (None, None, None, None)),
])  # fmt: skip
def test_the_place_of_a_file(path: str, wanted: tuple[object, ...]) -> None:
    assert place_in_tree(path) == PlaceInTree(*wanted)  # type: ignore[arg-type]


@pytest.mark.parametrize(("path", "is_one"), [
    ("dump.rdb/pt2:fxgraph::f1::c0:c1", True),
    ("dump.rdb/pt2:fxgraph::f1::c0:cache", False),
    ("dump.rdb/pt2:fxgraph:c1", False),
    ("/tmp/pt2/fxgraph/f1::c0:c1", False),
])  # fmt: skip
def test_what_is_a_key_of_a_remote_cache(path: str, is_one: bool) -> None:
    assert is_in_remote_cache(path) == is_one
