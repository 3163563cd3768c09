"""The compile caches of a serving start, in made homes: each by its layout and variable, and nothing claimed of anything else."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cachescope.readers.directory.default_root import default_root
from cachescope.readers.other_caches import FoundCache, found_caches, known_caches, mount_of
from cachescope.report.layout import wrapped
from cachescope.report.other_caches import other_cache_lines, other_caches_object
from tests.conftest import Recording
from tests.nobody import as_nobody

KEY = "QLJMI7RAQYPFKM7NQJRLSBTXAHGR33SCFHL7MVUKPVJHYE4AOZ3A"
HEX64 = "0123456789abcdef" * 4
# One file of each layout, after the sources that the table names, where it lies in a home without any variable.
LAYOUTS = {
    "Triton": (".triton/cache", f"{KEY}/add_kernel.json", "cuda 90"),
    "torch extensions": (".cache/torch_extensions", "py312_cu128/fused/build.ninja", "py312_cu128"),
    "CUDA ComputeCache": (".nv/ComputeCache", "9/f/e64cb42d1c1752", None),
    "FlashInfer": (".cache/flashinfer", "0.6.17/90a/cached_ops/sampling/sampling.so", "90a"),
    "DeepGEMM": (".deep_gemm", "cache/kernel.sm90_fp8_gemm_1d1d.0a1b2c3d/kernel.cubin", "sm90"),
    "DeepGEMM of SGLang": (".cache/deep_gemm", "cache/kernel.sm100_bf16_gemm.0a1b2c3d/kernel.cubin", "sm100"),
    "TileLang": (".tilelang/cache", f"0.1.13-linux/kernels/{HEX64}/device_kernel.cu", None),
    "vLLM": (".cache/vllm", "torch_compile_cache/0123456789/rank_0_0/backbone/vllm_compile_cache.py", None),
    "SGLang": (
        ".cache/sglang",
        "torch_compile_cache/0123456789/rank_0_0/backbone/sglang_compile_cache.py",
        None,
    ),
}
OLDER = {
    "Triton": f"{HEX64}/add_kernel.cubin",
    "torch extensions": "fused/build.ninja",
    "FlashInfer": "75_80_89/generated/batch.cu",
    "DeepGEMM": "cache/kernel.gemm_fp8_fp8_bf16_nt.0a1b2c3d/kernel.so",
    "TileLang": f"{HEX64}/warpped_kernel.cu",
    "vLLM": f"torch_aot_compile/{HEX64}/rank_0_0/model",
}
ROOT_MOUNT = "22 1 0:20 / / rw,relatime - overlay overlay rw\n"


def put(path: Path, content: bytes = b"x" * 100) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def kernel(arch: object = 90) -> bytes:
    return json.dumps({"name": "add", "target": {"backend": "cuda", "arch": arch, "warp_size": 32}}).encode()


def look(home: Path, mounts: str = ROOT_MOUNT, **environment: str) -> dict[str, FoundCache]:
    given = {"TMPDIR": str(home / "tmp"), "USER": "ann", **environment}
    return {one.known.name: one for one in found_caches(given, str(home), mounts)}


def make(home: Path, *names: str) -> None:
    for name in names:
        folder, file, _ = LAYOUTS[name]
        put(home / folder / file, kernel() if name == "Triton" else b"x" * 100)


def test_seven_caches_of_a_container_two_lost_and_one_on_a_volume(tmp_path: Path) -> None:
    names = ("Triton", "FlashInfer", "DeepGEMM", "TileLang", "CUDA ComputeCache", "torch extensions", "vLLM")
    make(tmp_path, *names)
    put(tmp_path / ".cache" / "sglang" / "notes.txt")
    mounts = (
        f"22 1 259:1 / / rw - ext4 /dev/root rw\n30 22 0:20 / {tmp_path}/.triton rw - overlay overlay rw\n"
        f"31 22 0:21 / {tmp_path}/.cache/flashinfer rw - overlay overlay rw\n"
        f"32 22 259:2 /data {tmp_path}/.cache/vllm rw,noatime shared:1 - ext4 /dev/sdb rw\n"
    )
    found = look(tmp_path, mounts)
    assert {name for name, one in found.items() if one.status == "cache"} == set(names)
    for name in names:
        one = found[name]
        assert one.size_bytes == (len(kernel()) if name == "Triton" else 100) and one.files == 1
        arch = LAYOUTS[name][2]
        assert one.architectures == ({arch} if arch else set())
    lasts = {name: one.mount.outlasts for name, one in found.items() if one.mount and name in names}
    assert lasts == dict.fromkeys(names) | {"Triton": False, "FlashInfer": False, "vLLM": True}
    text = wrapped(other_cache_lines(list(found.values())), 300)
    assert "Lost with the container: Triton, FlashInfer" in text
    assert f"docker run -v triton:{tmp_path}/.triton/cache …, or TRITON_CACHE_DIR=/a/mounted/folder" in text
    assert "mount the same at the next start" in text
    assert f"SGLang: {tmp_path}/.cache/sglang holds nothing of the layout that its releases write" in text
    json.dumps(other_caches_object(list(found.values())))


@pytest.mark.parametrize("name", OLDER)
def test_layouts_of_older_releases(tmp_path: Path, name: str) -> None:
    put(tmp_path / LAYOUTS[name][0] / OLDER[name])
    assert look(tmp_path)[name].status == "cache"


@pytest.mark.parametrize("known", known_caches(), ids=lambda known: known.name)
def test_every_variable_moves_its_cache(tmp_path: Path, known: object) -> None:
    name = known.name  # type: ignore[attr-defined]
    for place in known.places:  # type: ignore[attr-defined]
        if place.startswith("$"):
            variable, slash, below = place[1:].partition("/")
            found = look(tmp_path, **{variable: "/some/where"})[name]
            assert (found.path, found.set_by) == (f"/some/where{slash}{below}", variable)
            assert look(tmp_path, **{variable: "~/where"})[name].path.startswith(f"{tmp_path}/where")
            assert look(tmp_path, **{variable: ""})[name].set_by is None


def test_defaults_follow_xdg_and_the_user(tmp_path: Path) -> None:
    found = look(tmp_path, XDG_CACHE_HOME="/xdg")
    assert found["vLLM"].path == "/xdg/vllm" and found["torch extensions"].path == "/xdg/torch_extensions"
    assert found["SGLang"].path == f"{tmp_path}/.cache/sglang"
    assert found["CUTLASS DSL"].path == f"{tmp_path}/tmp/ann/cutlass_python_cache"
    assert found["Inductor"].path == f"{tmp_path}/tmp/torchinductor_ann"
    (inductor,) = (one for one in found_caches(os.environ, str(tmp_path), "") if one.known.name == "Inductor")
    assert inductor.path == default_root()


@pytest.mark.parametrize("name", ["config_flip", "cold_warm"])
def test_what_torch_wrote_is_all_of_the_layout(recording: Recording, tmp_path: Path, name: str) -> None:
    cache = recording("2.13.0", name) / "cache"
    found = look(tmp_path, TORCHINDUCTOR_CACHE_DIR=str(cache))["Inductor"]
    files = [path for path in cache.rglob("*") if path.is_file()]
    assert found.status == "cache" and found.other_files == 0
    assert (found.files, found.size_bytes) == (len(files), sum(path.stat().st_size for path in files))


def test_what_lies_beside_is_counted_apart(tmp_path: Path) -> None:
    make(tmp_path, "Triton", "CUDA ComputeCache")
    put(tmp_path / ".triton" / "cache" / "model.safetensors", b"x" * 5_000)
    put(tmp_path / ".nv" / "ComputeCache" / "index")
    found = look(tmp_path)
    assert (found["Triton"].size_bytes, found["Triton"].other_bytes) == (len(kernel()), 5_000)
    assert (found["CUDA ComputeCache"].files, found["CUDA ComputeCache"].other_files) == (2, 0)


def test_nothing_is_claimed_of_another_layout(tmp_path: Path) -> None:
    for known, one in look(tmp_path).items():
        put(Path(one.path) / "models" / "weights.bin")
        put(Path(one.path) / known / "kernel.json", kernel())
    for one in look(tmp_path).values():
        assert (one.status, one.files, one.size_bytes, one.architectures) == ("unknown", 0, 0, set())
        assert (one.oldest_ns, one.newest_ns) == (None, None)


def test_links_are_not_followed_and_a_broken_one_is_no_cache(tmp_path: Path) -> None:
    make(tmp_path, "Triton")
    cache = tmp_path / ".triton" / "cache"
    (cache / "loop").symlink_to(cache)
    (cache / KEY / "other.cubin").symlink_to("/etc/hostname")
    (tmp_path / ".deep_gemm").symlink_to(tmp_path / "gone")
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "flashinfer").symlink_to(
        cache
    )  # a cache may be a link itself, as in a home on a volume
    found = look(tmp_path)
    assert found["Triton"].files == 1
    assert (found["DeepGEMM"].status, found["FlashInfer"].status) == ("absent", "unknown")
    (tmp_path / ".tilelang").write_text("")
    assert look(tmp_path)["TileLang"].status == "absent"


def test_an_unreadable_folder_is_said(tmp_path: Path) -> None:
    make(tmp_path, "Triton")
    cache = tmp_path / ".triton" / "cache"
    (cache / "closed").mkdir(mode=0)
    (tmp_path / ".deep_gemm" / "cache").mkdir(parents=True)
    (tmp_path / ".deep_gemm").chmod(0)
    (tmp_path / ".tilelang" / "cache").mkdir(parents=True)
    (tmp_path / ".tilelang").chmod(0)
    seen = as_nobody(
        lambda: {name: (one.status, one.unread_folders) for name, one in look(tmp_path).items()},
        below=tmp_path,
    )
    assert seen["Triton"] == ["cache", 1]
    assert seen["DeepGEMM"] == ["unreadable", 1] and seen["TileLang"] == ["unreadable", 0]


@pytest.mark.parametrize(("content", "expected"), [
    (kernel("gfx942"), {"cuda gfx942"}),
    (b"{", set()),
    (b"[]", set()),
    (b'{"target": ["cuda", 80]}', set()),
    (kernel("\x1b[31m"), set()),
])  # fmt: skip
def test_the_target_of_a_kernel(tmp_path: Path, content: bytes, expected: set[str]) -> None:
    put(tmp_path / ".triton" / "cache" / KEY / "add.json", content)
    assert look(tmp_path)["Triton"].architectures == expected


def test_a_cache_that_is_switched_off_is_said(tmp_path: Path) -> None:
    make(tmp_path, "CUDA ComputeCache")
    assert look(tmp_path, CUDA_CACHE_DISABLE="1")["CUDA ComputeCache"].switched_off_by == "CUDA_CACHE_DISABLE"
    assert look(tmp_path, CUDA_CACHE_DISABLE="0")["CUDA ComputeCache"].switched_off_by is None


MOUNTS = (
    "22 1 259:1 / / rw - ext4 /dev/root rw\n"
    "23 22 0:5 / /run rw - tmpfs tmpfs rw\n"
    "24 22 259:1 /var/lib/kubelet/pods/1/volumes/kubernetes.io~empty-dir/c /cache rw - ext4 /dev/root rw\n"
    "25 22 259:2 / /with\\040blank rw - nfs4 host:/x rw\n"
    "26 25 0:9 / /with\\040blank rw - fuse.fuse-overlayfs x rw\n"
    "no mount\n"
)


@pytest.mark.parametrize(("path", "point", "kind", "outlasts"), [
    ("/home/x", "/", "ext4", None),
    ("/running", "/", "ext4", None),
    ("/run", "/run", "tmpfs", False),
    ("/cache/a", "/cache", "ext4", False),
    ("/with blank/a", "/with blank", "fuse.fuse-overlayfs", False),
])  # fmt: skip
def test_the_file_system_of_a_folder(path: str, point: str, kind: str, outlasts: bool | None) -> None:
    mount = mount_of(path, MOUNTS)
    assert mount is not None and (mount.point, mount.kind, mount.outlasts) == (point, kind, outlasts)
    assert mount_of(path, "") is None


NAMES = st.sampled_from([
    "cache", KEY, HEX64, "a", "0", "f", "e64cb42d1c1752", "90a", "cached_ops", "x.json", "\x1b[2J",
    "torch_compile_cache",
])  # fmt: skip


@given(
    st.lists(st.tuples(st.lists(NAMES, min_size=1, max_size=4), st.binary(max_size=80)), max_size=8),
    st.text(max_size=200),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_tree_and_no_table_of_mounts_raises(
    tmp_path_factory: pytest.TempPathFactory, tree: list[tuple[list[str], bytes]], mounts: str
) -> None:
    root = tmp_path_factory.mktemp("tree")
    for names, content in tree:
        path = root.joinpath(*names)
        if not any(above.is_file() for above in path.parents) and not path.exists():
            put(path, content)
    places = {one.places[0][1:].split("/")[0]: str(root) for one in known_caches()}
    found = look(root, mounts, **places)
    for one in found.values():
        assert one.files + one.other_files <= sum(path.is_file() for path in root.rglob("*"))
    assert "\x1b" not in wrapped(other_cache_lines(list(found.values())))
    json.dumps(other_caches_object(list(found.values())))
