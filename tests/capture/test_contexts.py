"""A captured context gives torch's keys, and a snapshot of it the same ones; hash details captured of a process are those its compiles have."""

import ast
import importlib
import json
import math
import os
import pickle
import pkgutil
import sys
import sysconfig
from base64 import b64encode
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cachescope
from cachescope.capture import contexts
from cachescope.capture.key_fields import OF_THE_GRAPH, aot_key_fields, functorch_config, key_fields
from cachescope.capture.torch_manifest import modules_below, torch_manifest
from cachescope.errors import CachescopeError
from cachescope.keys import CONTEXT_FORMS, UnsupportedValueError, all_schemas, isolation_key
from cachescope.readers.kinds import looks_like_snapshot
from cachescope.readers.snapshot import read_snapshot
from cachescope.terms import RUNTIME_FORMS
from tests.capture.preflights import environment
from tests.programs import ran


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


# A parameter has gradients, so that there is a backward graph as well.
PROGRAM = """
import json, sys
import cachescope
snapshot = cachescope.capture(torch_manifest=True)
json.dump(snapshot, open(sys.argv[1], "w"))
import torch
torch.compile(torch.nn.Linear(4, 4))(torch.randn(2, 4)).sum().backward()
"""
LOGGERS = "+torch._inductor.codecache,+torch._functorch._aot_autograd.autograd_cache"


def recorded(folder: Path, **variables: str) -> tuple[dict[str, dict[str, str]], cachescope.Scope]:
    """The snapshot of a process and what its compiles recorded."""
    traced = {"TORCH_TRACE": str(folder / "trace"), "TORCH_LOGS": LOGGERS}
    command = [sys.executable, "-c", PROGRAM, folder / "snapshot.json"]
    ran(command, environment(folder / "cache", **traced, **variables))
    return json.loads((folder / "snapshot.json").read_text()), cachescope.read(folder)


@pytest.mark.torch
@pytest.mark.parametrize(
    "variables",
    [{}, {"OMP_NUM_THREADS": "1", "TORCHINDUCTOR_COORDINATE_DESCENT_TUNING": "1"}],
    ids=["as is", "set"],
)
def test_captured_fields_are_those_of_every_lookup(variables: dict[str, str], tmp_path: Path) -> None:
    snapshot, scope = recorded(tmp_path, **variables)
    process_wide = snapshot["key_fields"]
    assert snapshot["key_fields_problem"] is None
    assert "cpp_runtime_thread_count" in process_wide
    assert scope.lookups["cache"].tolist() == ["aotautograd", "fxgraph", "fxgraph"]
    for row in scope.lookups.itertuples():
        details = scope.hash_details(lookup=row.lookup).set_index("field")["detail_hash"].to_dict()
        own = process_wide | (snapshot["aot_key_fields"] if row.cache == "aotautograd" else {})
        assert {field: details.get(field) for field in own} == own
        # What is not captured follows from the graph, its inputs and the call.
        assert {field.partition("[")[0] for field in details.keys() - own.keys()} <= OF_THE_GRAPH


@pytest.mark.torch
def test_the_options_of_functorch_are_those_that_torch_pickles(caching_context: ModuleType) -> None:
    config = pytest.importorskip("torch._functorch.config")
    with config.patch(donated_buffer=False, activation_memory_budget=0.5, unlift_effect_tokens=True):
        pickled, told = pickle.loads(config.save_config()), functorch_config()
    assert {name: ast.literal_eval(text) for name, text in told.items()} == pickled


@pytest.mark.torch
def test_a_run_and_the_snapshot_of_its_process_agree(tmp_path: Path) -> None:
    _, scope = recorded(tmp_path)
    sources = (tmp_path / "trace", tmp_path / "snapshot.json")
    of_run, taken = (cachescope.read(source).all_contexts.rows[0] for source in sources)
    shown = [form for form in RUNTIME_FORMS if form not in of_run.missing_forms]
    assert shown == [*RUNTIME_FORMS]
    assert [getattr(of_run, form) for form in shown] == [getattr(taken, form) for form in shown]
    (both,) = scope.all_contexts.rows
    assert (both.run, both.missing_forms, both.torch_version_hash) == (0, (), taken.torch_version_hash)


def test_key_fields_follow_the_process(caching_context: ModuleType) -> None:
    torch = caching_context.torch
    before, _ = key_fields()
    before_aot, _ = aot_key_fields()
    with torch._inductor.config.patch(epilogue_fusion=False), torch.no_grad():
        after, _ = key_fields()
        after_aot, _ = aot_key_fields()
    assert before is not None and after is not None and before_aot is not None and after_aot is not None
    assert [one for one in before if before[one] != after[one]] == ["inductor_config[epilogue_fusion]"]
    assert [field for field in before_aot if before_aot[field] != after_aot[field]] == ["grad_enabled"]
    assert before.keys().isdisjoint(before_aot)


def test_a_process_whose_keys_torch_would_not_make_says_so(caching_context: ModuleType) -> None:
    config = caching_context.torch._inductor.config
    with config.patch(post_grad_custom_post_pass=lambda graph: None):
        fields, problem = aot_key_fields()
    assert fields is None
    assert problem


def test_another_torch_gives_no_fields(codecache: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    # What imports it from there, torch's own, was loaded before.
    importlib.import_module("torch._functorch._aot_autograd.autograd_cache")
    monkeypatch.delattr(codecache, "FxGraphHashDetails")
    fields, problem = key_fields()
    assert fields is None
    assert "makes its keys differently" in str(problem)


def test_the_manifest_is_made_of_the_bytes_of_torchs_own_key(codecache: ModuleType) -> None:
    manifest = torch_manifest()
    assert manifest["is_complete"]
    assert manifest["torch_key"] == b64encode(codecache.torch_key()).decode()
    some = {"version.py", "_inductor/codecache.py", "_inductor/codegen/aoti_runtime/interface.cpp"}
    assert some <= set(manifest["files"])
    assert len(manifest["files"]) > 2000


def test_another_torch_has_no_whole_manifest(codecache: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codecache, "torch_key", lambda: b"another key")
    assert not torch_manifest()["is_complete"]


SUFFIXES = (".py", ".pyc", ".so", str(sysconfig.get_config_var("EXT_SUFFIX")), ".abi3.so", ".pyi", ".txt", "")
STEMS = ("a", "b", "B", "__init__", "a.b", "ä", "", "__main__", "_", "a-b")


def walked_by_torch(roots: Iterable[str], prefix: str) -> Iterator[tuple[str, str]]:
    """As ``build_code_hash`` (torch/_inductor/codecache.py, 2.4 to 2.15)."""
    for module in sorted(pkgutil.iter_modules(roots, prefix), key=lambda one: one.name):
        finder: Any = module.module_finder
        spec = finder.find_spec(module.name, None)
        yield spec.name, spec.origin
        if module.ispkg:
            yield from walked_by_torch(spec.submodule_search_locations, f"{spec.name}.")


# Of a folder that is called as a module's file torch finds no module, and stops.
folders = st.sampled_from(STEMS).filter(bool)
files = st.tuples(st.sampled_from(STEMS), st.sampled_from(SUFFIXES)).map("".join).filter(bool)
empty = st.dictionaries(files, st.none(), max_size=8)
trees = st.recursive(
    empty,
    lambda inner: st.tuples(st.dictionaries(folders, inner, max_size=4), empty).map(
        lambda two: two[1] | two[0]
    ),
    max_leaves=10,
)


@pytest.mark.slow
@given(tree=trees)
def test_modules_of_any_tree_are_found_as_by_torch(tmp_path_factory: Any, tree: dict[str, Any]) -> None:
    root = tmp_path_factory.mktemp("modules")
    made(root, tree)
    assert list(modules_below(str(root), "t.")) == list(walked_by_torch([str(root)], "t."))


def made(folder: Path, tree: dict[str, Any]) -> None:
    """A tree of empty files, and folders."""
    for name, inner in tree.items():
        if inner is None:
            (folder / name).touch()
        else:
            (folder / name).mkdir()
            made(folder / name, inner)


def test_links_are_followed_and_what_leads_nowhere_is_no_module(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "package").mkdir(parents=True)
    (root / "package" / "__init__.py").touch()
    os.symlink(root / "package", root / "other")
    os.symlink(root / "package" / "__init__.py", root / "one.py")
    os.symlink(root / "gone.py", root / "lost.so")
    (root / "lost.py").touch()
    found = [name for name, _ in modules_below(str(root), "")]
    walked = [one for one, _ in walked_by_torch([str(root)], "")]
    assert found == walked == ["lost", "one", "other", "package"]
