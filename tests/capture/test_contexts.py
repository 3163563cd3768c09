"""A captured context gives torch's keys, and a snapshot of it the same ones."""

import importlib
import json
import math
import os
import sys
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from cachescope.capture import contexts
from cachescope.errors import CachescopeError
from cachescope.keys import CONTEXT_FORMS, UnsupportedValueError, all_schemas, isolation_key
from cachescope.readers.kinds import looks_like_snapshot
from cachescope.readers.snapshot import read_snapshot


def test_a_context_has_torchs_key_under_every_schema(caching_context: ModuleType, tmp_path: Path) -> None:
    captured = contexts.write_snapshot(tmp_path / "snapshot.json")
    read_back = read_snapshot(tmp_path / "snapshot.json")
    assert captured["context_source"] == "torch" and captured["not_json"] == []
    for schema in all_schemas():
        expected = caching_context._isolation_key(schema)
        assert isolation_key(captured["context"], schema) == expected  # type: ignore[arg-type]
        assert isolation_key(read_back["context"], schema) == expected


def test_a_snapshot_says_where_and_when_it_was_made(caching_context: ModuleType) -> None:
    captured = contexts.capture()
    assert captured["cachescope_snapshot"] == 1
    assert captured["torch_version"] == caching_context.torch.__version__
    assert captured["pid"] == os.getpid()
    assert captured["python_version"] == ".".join(map(str, sys.version_info[:3]))
    assert captured["host"]
    moment = datetime.fromisoformat(str(captured["time"]))
    assert moment.utcoffset() is not None
    assert abs((datetime.now(moment.tzinfo) - moment).total_seconds()) < 60


def test_a_snapshot_is_read_back_as_it_was_captured(cache_root: Path, tmp_path: Path) -> None:
    path = tmp_path / "snapshot.json"
    captured = contexts.write_snapshot(path)
    assert looks_like_snapshot(path.read_bytes()[:100])
    assert read_snapshot(path) == json.loads(json.dumps(captured))
    assert [entry.name for entry in tmp_path.iterdir()] == ["snapshot.json"]


def test_the_environment_holds_switches_only(cache_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_COMPILE_CACHE_KEY_TAG", "tag")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("TORCHINDUCTOR_REDIS_URL", "redis://user:password@host")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    environment: Any = contexts.capture()["environment"]
    assert environment["TORCH_COMPILE_CACHE_KEY_TAG"] == "tag" and environment["OMP_NUM_THREADS"] == "3"
    assert environment["TORCHINDUCTOR_CACHE_DIR"] == str(cache_root)
    assert environment["TORCHINDUCTOR_REDIS_URL"] == "(set)"
    assert "AWS_SECRET_ACCESS_KEY" not in environment


def test_values_json_cannot_hold_are_kept_as_text(caching_context: ModuleType, tmp_path: Path) -> None:
    torch = caching_context.torch
    path = tmp_path / "snapshot.json"
    with torch._inductor.config.patch({"cpp.cxx": ("g++", math.sin), "cpu_gpu_bw": math.nan}):
        captured = contexts.write_snapshot(path)
        with pytest.raises(TypeError):
            caching_context._isolation_key()
        with pytest.raises(UnsupportedValueError) as caught:
            isolation_key(caching_context._isolation_context())
    name = "runtime_context[inductor_configs][cpp.cxx][1]"
    assert captured["not_json"] == [name] and caught.value.path == name
    configs = read_snapshot(path)["context"]["runtime_context"]["inductor_configs"]
    assert configs["cpp.cxx"] == ["g++", "math.sin"] and math.isnan(configs["cpu_gpu_bw"])


def test_devices_are_kept_as_a_text(caching_context: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    cuda = caching_context.torch.cuda
    monkeypatch.setattr(cuda, "is_available", lambda: True)
    monkeypatch.setattr(cuda, "device_count", lambda: 2)
    monkeypatch.setattr(cuda, "get_device_properties", lambda i=0: f"properties of {i}")
    assert contexts.capture()["device_properties"] == ["'properties of 0'", "'properties of 1'"]


def test_a_torch_without_isolation_contexts_is_asked_the_same_questions(
    caching_context: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a torch that has both, what is rebuilt for 2.6 to 2.9 equals torch's own."""
    monkeypatch.setitem(sys.modules, "torch._inductor.runtime.caching.context", None)
    rebuilt = contexts.capture()
    assert rebuilt["context_source"] == "rebuilt"
    assert rebuilt["context"] == json.loads(json.dumps(caching_context._isolation_context()))
    for section, forms in CONTEXT_FORMS.items():
        assert tuple(rebuilt["context"][section]) == forms  # type: ignore[index]


def test_matmul_precision_of_a_torch_before_fp32_precision() -> None:
    class Matmul:
        allow_tf32 = False
        allow_fp16_reduced_precision_reduction = True
        allow_bf16_reduced_precision_reduction = True

    assert contexts._matmul_precision(Matmul()) == {
        "torch.backends.cuda.matmul.allow_tf32": False,
        "torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction": True,
        "torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction": True,
    }


def failing_import(error: ImportError) -> Any:
    real = importlib.import_module

    def import_module(name: str, package: str | None = None) -> ModuleType:
        if name.partition(".")[0] == "torch":
            raise error
        return real(name, package)

    return import_module


@pytest.mark.parametrize(("error", "message"), [
    (ModuleNotFoundError("No module named 'torch'", name="torch"), "pip install torch"),
    (ModuleNotFoundError("No module named 'sympy'", name="sympy"), "does not import.*sympy"),
    (ImportError("libcudart.so.12: cannot open"), "does not import.*libcudart"),
])  # fmt: skip
def test_without_torch_it_says_so(error: ImportError, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib, "import_module", failing_import(error))
    with pytest.raises(CachescopeError, match=message) as caught:
        contexts.capture()
    assert "\n" not in str(caught.value)


def test_a_snapshot_that_cannot_be_written_leaves_nothing(cache_root: Path, tmp_path: Path) -> None:
    with pytest.raises(CachescopeError, match="cannot write the snapshot"):
        contexts.write_snapshot(tmp_path / "no such folder" / "snapshot.json")
    (tmp_path / "a folder").mkdir()
    with pytest.raises(CachescopeError, match="cannot write the snapshot"):
        contexts.write_snapshot(tmp_path / "a folder")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a folder"]


@pytest.mark.parametrize(("files", "limits"), [
    # Version 2: the least of the groups around the process; version 1, in a container whose path is that outside of it; no limit.
    ({"/proc/self/cgroup": "0::/a/b", "/a/b/memory.max": "max", "/a/memory.max": "4096", "/memory.max": "8192",
      "/a/b/cpu.max": "max 100000", "/a/cpu.max": "150000 100000"},
     {"memory_limit_bytes": 4096, "cpu_quota_us": 150000, "cpu_period_us": 100000}),
    ({"/proc/self/cgroup": "4:memory:/docker/1\n1:cpu,cpuacct:/docker/1", "/memory/memory.limit_in_bytes": "4096",
      "/cpu/cpu.cfs_quota_us": "50000", "/cpu/cpu.cfs_period_us": "100000"},
     {"memory_limit_bytes": 4096, "cpu_quota_us": 50000, "cpu_period_us": 100000}),
    ({"/proc/self/cgroup": "4:memory:/\n1:cpu:/", "/memory/memory.limit_in_bytes": "9223372036854771712",
      "/cpu/cpu.cfs_quota_us": "-1", "/cpu/cpu.cfs_period_us": "100000"}, {}),
    ({}, {}),
])  # fmt: skip
def test_a_snapshot_has_the_cores_and_the_limits_of_its_process(
    files: dict[str, str], limits: dict[str, int], cache_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = {path.replace("//", "/"): text for path, text in files.items()}
    monkeypatch.setattr(
        contexts, "_text", lambda path: groups.get(path.removeprefix("/sys/fs/cgroup").replace("//", "/"), "")
    )
    machine: Any = contexts.capture()["machine"]
    cores = {"cores": os.cpu_count(), "usable_cores": len(os.sched_getaffinity(0))}
    assert machine == cores | limits
