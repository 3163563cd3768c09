"""The programs that record_directories.py runs beside those of record_programs.py: caches that only torch itself can fill.

Each program writes, as JSON, what torch says about what it stored (keys, file names, contents), so that the tests can
hold cachescope's reading of the files against torch's own objects. Run by record_directories.py; needs torch.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import dataclasses
import functools
import hashlib
import importlib
import inspect
import json
import os
import platform
import signal
import types
import unittest.mock
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

Tensor = torch.Tensor
Truth = dict[str, Any]


def private(*names: str) -> Any:
    """The first of these modules that this torch has: most moved, and none has an interface that a checker knows."""
    for name in names[:-1]:
        with contextlib.suppress(ImportError):
            return importlib.import_module(f"torch.{name}")
    return importlib.import_module(f"torch.{names[-1]}")


def scaled_relu(x: Tensor, w: Tensor) -> Tensor:
    return torch.relu(x @ w) * 2.0


def row_softmax(x: Tensor, w: Tensor) -> Tensor:
    return torch.softmax(x @ w, dim=1)


def grows(x: Tensor) -> Tensor:
    # Called with several sizes: automatic dynamic makes the first dimension a symbol, and PGO remembers it.
    return torch.sin(x) * x + 1.0


def tensors() -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(8, 16), torch.randn(16, 16)


def backward(loss: Any) -> None:
    loss.backward()


def saved(file: Path) -> Truth:
    """Write what this process stored as one blob."""
    artifacts = torch.compiler.save_cache_artifacts()
    assert artifacts is not None
    blob, info = artifacts
    file.write_bytes(blob)
    return {"bytes": len(blob), "artifacts": dict(info.artifacts)}


# --- compiling: mega-cache, PGO, max-autotune, a killed writer ---


def run_mega_save(arguments: argparse.Namespace) -> Truth:
    """Compile forward and backward and two functions, then save what this process stored as one blob."""
    x, w = tensors()
    for function in (scaled_relu, row_softmax):
        torch.compile(function, dynamic=False)(x, w)
    backward(torch.compile(scaled_relu, dynamic=False)(x, w.requires_grad_()).sum())
    return saved(arguments.file)


def run_mega_load(arguments: argparse.Namespace) -> Truth:
    """Load the blob into this process's own, empty cache directory, then compile the same functions."""
    info = torch.compiler.load_cache_artifacts(arguments.file.read_bytes())
    assert info is not None
    x, w = tensors()
    for function in (scaled_relu, row_softmax):
        torch.compile(function, dynamic=False)(x, w)
    return {"artifacts": dict(info.artifacts)}


def run_automatic_dynamic(arguments: argparse.Namespace) -> Truth:
    """Three sizes: torch finds the dynamic dimension, and stores that under the job's key."""
    pgo = private("_dynamo.pgo")
    compiled = torch.compile(grows)
    for size in (8, 12, 20):
        compiled(torch.randn(size, 4))
    key = pgo.get_cache_key()
    return {
        "cache_key": key,
        "path": key and pgo.code_state_path(key),
        "code_state": pgo.render_code_state(pgo._CODE_STATE) if pgo._CODE_STATE is not None else None,
    }


def run_max_autotune(arguments: argparse.Namespace) -> Truth:
    """A linear layer, frozen, with max_autotune: several choices are timed on the CPU."""
    codecache = private("_inductor.codecache")
    # As an option of torch.compile, freezing comes too late for the weights to be constants, and nothing is timed.
    private("_inductor.config").freezing = True
    x = torch.randn(32, 64)
    model = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Linear(96, 48)).eval()
    error = None
    try:
        with torch.no_grad():
            torch.compile(model, dynamic=False, options={"max_autotune": True})(x)
    except Exception as failure:  # 2.6 writes its timings and then fails to compile the chosen kernel
        error = f"{type(failure).__name__}: {str(failure)[:300]}"
    cache = codecache.LocalCache()
    return {
        "path": str(cache.get_local_cache_path()),
        "system": cache.get_system(),
        "cache": cache.get_local_cache(),
        "error": error,
    }


def run_killed_writer(arguments: argparse.Namespace) -> Truth:
    """Kill this process between the two steps of torch's write_atomic, at its first entry below --below.

    write_atomic writes `.<pid>.<thread>.tmp` and renames it; the signal takes the place of the rename.
    """
    rename = Path.rename

    def killed(self: Path, target: str | os.PathLike[str]) -> Path:
        if f"/{arguments.below}/" in str(target):
            os.kill(os.getpid(), signal.SIGKILL)
        return rename(self, target)

    x, w = tensors()
    with unittest.mock.patch.object(Path, "rename", killed):
        torch.compile(lambda x, w: torch.tanh(x @ w) - 3.0, dynamic=False)(x, w)
    raise RuntimeError(f"nothing was written below {arguments.below}")


def run_precompile(arguments: argparse.Namespace) -> Truth:
    """TORCH_CACHING_PRECOMPILE: the whole compiled function is stored, Dynamo's part included."""
    x, w = tensors()
    torch.compile(scaled_relu, dynamic=False)(x, w)
    return saved(arguments.file)


def run_bundled(arguments: argparse.Namespace) -> Truth:
    """torch._functorch.config.bundled_autograd_cache: forward and backward inside one AOTAutograd entry."""
    x, w = tensors()
    with private("_functorch.config").patch(bundled_autograd_cache=True):
        backward(torch.compile(row_softmax, dynamic=False)(x, w.requires_grad_()).sum())
    return {}


def run_graph_file(arguments: argparse.Namespace) -> Truth:
    """write() with a suffix of two parts, and write_text: files of generated code that are no kernels."""
    codecache = private("_inductor.codecache")
    text = codecache.write_text("a text that torch stores by its content\n")
    name, path = codecache.write("// two suffixes\n", "main.cpp")
    return {"write_text": text, "write": [name, path]}


# --- torch's caches of Python values ---


def run_on_disk_cache(arguments: argparse.Namespace) -> Truth:
    """torch._inductor.cache: the cache below Inductor's default root, and the general one below the temp folder."""
    module = private("_inductor.cache")
    pairs: list[tuple[Any, Any]] = [
        ("a text", "a value"),
        (7, {"nested": [1, 2.5, None]}),
        (("a", 1, ("b",)), b"bytes \x00\xff"),
        ("long", list(range(500))),
    ]
    truth: Truth = {}
    for kind in (module.InductorOnDiskCache, module.OnDiskCache):
        cache = kind()
        truth[kind.__name__] = {
            "base_dir": str(cache.base_dir),
            "version_prefix": cache.version_prefix.hex(),
            "entries": [
                {
                    "key": repr(key),
                    "value": repr(value),
                    "inserted": cache.insert(key, value),
                    "again": cache.insert(key, value),
                    "read_back": repr(cache.get(key)),
                    "path": str(cache._fpath_from_key(key)),
                }
                for key, value in pairs
            ],
        }
    return truth


def matched(mat1: Tensor, mat2: Tensor) -> Any:
    """What _should_pad asks of a pattern match: two nodes with fake tensors. The second is computed, not an input."""
    graph = torch.fx.Graph()
    first = graph.placeholder("mat1")
    second = graph.call_function(torch.ops.aten.relu.default, (graph.placeholder("mat2"),))
    first.meta["val"], second.meta["val"] = mat1, mat2
    return types.SimpleNamespace(kwargs={"mat1": first, "mat2": second})


def run_should_pad(arguments: argparse.Namespace) -> Truth:
    """pad_mm._should_pad itself with its memoizer and encoder; only force_shape_pad makes it answer without a GPU."""
    pad_mm = private("_inductor.fx_passes.pad_mm")
    memoizers = private("_inductor.runtime.caching.memoizers")
    fake_tensors = private("_subclasses.fake_tensor").FakeTensorMode
    answers = []
    aten = torch.ops.aten
    with fake_tensors(), private("_inductor.config").patch(force_shape_pad=True):
        for m, k, n, dtype in ((33, 65, 17, torch.float32), (128, 127, 63, torch.bfloat16)):
            mat1, mat2 = torch.empty(m, k, dtype=dtype), torch.empty(k, n, dtype=dtype)
            match = matched(mat1, mat2)
            for op, bias in ((aten.mm, None), (aten.addmm, torch.empty(n, dtype=dtype)), (aten.dot, None)):
                answer = pad_mm._should_pad(match, mat1, mat2, op, bias)
                answers.append({"op": str(op), "shape": [m, k, n], "dtype": str(dtype), "answer": answer})
    return {"answers": answers, "should_pad": memoizer_truth(memoizers.should_pad_memoizer)}


def memoizer_truth(persistent: Any) -> Truth:
    """The keys and entries that the memoizer holds in memory, and where it put each."""
    memory = persistent._memoizer._cache._memory
    return {
        "cache_dir": str(persistent._disk_cache._cache_dir),
        "entries": {
            str(key): {**dataclasses.asdict(entry), "path": str(persistent._disk_cache._fpath_from_key(key))}
            for key, entry in memory.items()
        },
    }


def run_memoizer(arguments: argparse.Namespace) -> Truth:
    """A Memoizer without a collection and a PersistentMemoizer of one's own; the dump at exit holds both."""
    interfaces = private("_inductor.runtime.caching.interfaces")
    in_memory, on_disk = interfaces.Memoizer(), interfaces.PersistentMemoizer(sub_dir=Path("own_memoizer"))

    def area(width: int, height: int) -> int:
        return width * height

    def describe(value: Any, *, unit: str = "mm") -> str:
        return f"{value!r} {unit}"

    def encode(*args: Any, **kwargs: Any) -> Any:
        return {"names": sorted(kwargs), "values": list(args)}

    def encoded(*args: Any, **kwargs: Any) -> list[Any]:
        return [*args, *sorted(kwargs.items())]

    stored_area, stored_text = in_memory.memoize()(area), on_disk.memoize()(describe)
    stored_area(2, 3)
    stored_area(width=2, height=3)
    for value in (1, 1.0, True, "text"):
        stored_text(value)
    stored_text(1, unit="cm")
    on_disk.memoize(custom_params_encoder=encode)(encoded)(1, 2, key="value")
    return {
        "in_memory": {str(key): dataclasses.asdict(entry) for key, entry in in_memory._cache._memory.items()},
        "own_memoizer": memoizer_truth(on_disk),
    }


# --- the caching package of 2.10 ---


def isolation_schemas() -> dict[str, Any]:
    return {
        "all": {"runtime_context": True, "compile_context": True},
        "none": {"runtime_context": False, "compile_context": False},
        "compile only": {"runtime_context": False, "compile_context": True},
        "runtime only": {"runtime_context": True, "compile_context": False},
        "version hash": {"runtime_context": False, "compile_context": {"torch_version_hash": True}},
        "determinism": {
            "runtime_context": {"torch_determinism_configs": True, "inductor_configs": False},
            "compile_context": {"runtime": True, "runtime_version": True},
        },
        "nothing selected": {
            "runtime_context": {"inductor_configs": False},
            "compile_context": {"runtime": False},
        },
    }


def spy_on_disk(stored: list[Truth]) -> None:
    """Note what torch's own on-disk cache is asked to insert, and under which file name."""
    on_disk = private("_inductor.runtime.caching.implementations")._OnDiskCacheImpl
    insert = on_disk.insert

    @functools.wraps(insert)
    def noted(self: Any, key: Any, value: Any) -> Any:
        path = self._fpath_from_key(key)
        done = insert(self, key, value)
        stored.append({"key": repr(key), "value": repr(value)[:300], "path": str(path), "inserted": done})
        return done

    on_disk.insert = noted


def run_caching(arguments: argparse.Namespace) -> Truth:
    """fcache or dcache (--interface) of 2.10: plain and encoded parameters, several schemas, what cannot be stored."""
    caching, context = private("_inductor.runtime.caching"), private("_inductor.runtime.caching.context")
    stored: list[Truth] = []
    spy_on_disk(stored)
    cache = getattr(caching, arguments.interface)
    schemas = isolation_schemas()
    errors: dict[str, str] = {}

    def plain(value: Any, times: int = 1) -> Any:
        return [value] * times

    def mixed(value: Any) -> str:
        return f"first called with {value!r}"

    def squared(value: complex) -> complex:
        return value * value

    def tagged(schema: str) -> str:
        return schema

    stored_plain = cache.record()(plain)
    stored_mixed = cache.record(custom_params_encoder=lambda value: ("encoded", value))(mixed)
    stored_squared = cache.record(
        custom_result_encoder=lambda value: {"re": value.real, "im": value.imag},
        custom_result_decoder=lambda parts: complex(parts["re"], parts["im"]),
    )(squared)
    for value in (1, 1.0, True, "text", ("a", "b")):
        stored_plain(value)
    stored_plain("text", times=2)
    stored_plain("text", 2)
    if arguments.extra:
        stored_plain(arguments.extra)
    results = {repr(value): stored_mixed(value) for value in (1, 1.0, True)}
    stored_squared(1 + 2j)
    cache.insert(plain, (("inserted",), {}), "by insert()")

    calls: dict[str, Callable[[], Any]] = {
        f"tagged, {name}": functools.partial(cache.record(ischema=schema)(tagged), "same parameter")
        for name, schema in schemas.items()
    }
    calls["a generator as parameter"] = functools.partial(stored_plain, iter(number for number in (1,)))
    calls["a lambda as result"] = cache.record()(unpicklable_result)
    for name, call in calls.items():
        try:
            call()
        except Exception as error:
            errors[name] = f"{type(error).__name__}: {error}"
    return {
        "isolation_keys": {name: context._isolation_key(schema) for name, schema in schemas.items()},
        "isolation_context": json.loads(
            json.dumps(context._isolation_context(schemas["all"]), sort_keys=True)
        ),
        "stored": stored,
        "mixed": results,
        "errors": errors,
        "memory": {repr(key): repr(value)[:300] for key, value in cache._imc._memory.items()},
    }


def unpicklable_result() -> Any:
    return lambda: None


def run_caching_lock(arguments: argparse.Namespace) -> Truth:
    """Take and release the lock of a folder of the on-disk cache that holds nothing else."""
    cache = private("_inductor.runtime.caching.implementations")._OnDiskCacheImpl(sub_dir=Path("only_locked"))
    with cache.lock():
        held = cache._flock.is_locked
    return {"lock": str(cache._flock.lock_file), "held": held}


# --- CUTLASS ---


def cutlass_modules() -> tuple[Any, Any]:
    """The module that names the files and Inductor's CUTLASS configuration: both moved in 2.11."""
    config = private("_inductor.config")
    cache = private("_inductor.codegen.cutlass.cache", "_inductor.codegen.cuda.cutlass_cache")
    return cache, config.cutlass if cache.__name__.endswith("cutlass.cache") else config.cuda


def cutlass_names(cache: Any, config: Any) -> list[Truth]:
    codecache = private("_inductor.codecache")
    rows = []
    for arch, toolkit in (("80", "12.4"), ("90", "12.4"), ("90", "12.8"), ("100", "12.9")):
        for level in ("0", "3332"):
            request_key = cache.get_config_request_key(arch, toolkit, level)
            rows.append(
                {
                    "arch": arch,
                    "toolkit": toolkit,
                    "level": level,
                    "request_key": request_key,
                    "file": cache._generate_config_filename(request_key),
                    "cutlass_key": codecache.cutlass_key().hex(),
                    "cutlass_dir": config.cutlass_dir,
                }
            )
    return rows


def file_hashes(cache: Any) -> dict[str, str]:
    """sha256 of the two sources of torch that 2.9 and later put into the key."""
    modules = {
        name: value
        for name, value in vars(cache).items()
        if isinstance(value, types.ModuleType) and name in ("serialization", "utils", "cutlass_utils")
    }
    return {
        name: hashlib.sha256(Path(inspect.getfile(module)).read_bytes()).hexdigest()
        for name, module in modules.items()
    }


def cutlass_operations(cache: Any, arch: str, toolkit: str) -> list[str]:
    """Some operations that torch generates with NVIDIA's cutlass_library, serialized by torch's own serializer."""
    utils = private("_inductor.codegen.cutlass.utils", "_inductor.codegen.cuda.cutlass_utils")
    parameters = inspect.signature(utils._gen_ops_cached).parameters
    if not utils.try_import_cutlass():
        return []
    generated = utils._gen_ops_cached(*(arch, toolkit, "cuda")[: len(parameters)])
    serializer = cache.get_cutlass_operation_serializer()
    gemms = next(operations for kind, operations in generated.items() if kind.name == "Gemm")
    found: list[str] = []
    for configurations in gemms.values():
        for operations in configurations.values():
            # One of each configuration, and not all kinds can be serialized.
            with contextlib.suppress(AssertionError):
                found.append(serializer.serialize(operations[0]))
            if len(found) == 12:
                return found
    return found


def run_cutlass(arguments: argparse.Namespace) -> Truth:
    """Names by torch's function; contents by torch's serializer; read back by torch's maybe_fetch_ops.

    The writer of these files is not in the open source, so json.dump to the name torch asks for stands in for it.
    """
    cache_dir = private("_inductor.runtime.cache_dir_utils").cache_dir
    cache, config = cutlass_modules()
    truth: Truth = {"names": cutlass_names(cache, config), "file_hashes": file_hashes(cache), "written": []}
    if arguments.names_only:
        return truth
    for row in truth["names"]:
        if row["level"] == "0" and row["arch"] in ("80", "90"):
            operations = cutlass_operations(cache, row["arch"], row["toolkit"])
            if not operations and arguments.operations:
                operations = json.loads(next(arguments.operations.glob("configs_*.json")).read_text())
            (Path(cache_dir()) / row["file"]).write_text(json.dumps(operations))
            truth["written"].append(
                {**row, "operations": len(operations), "read_back": read_back(cache, row)}
            )
    return truth


def read_back(cache: Any, row: Truth) -> list[str] | str:
    """Let torch load the file as if this machine had that GPU and toolkit."""
    try:
        if hasattr(cache, "get_cuda_arch"):
            cache.get_cuda_arch, cache.get_cuda_version = lambda: row["arch"], lambda: row["toolkit"]
            cache.maybe_fetch_ops.cache_clear()
            operations = cache.maybe_fetch_ops()
        else:
            cache.utils.cutlass_arch = lambda device_type: row["arch"]
            cache.utils.toolkit_version = lambda device_type: row["toolkit"]
            cache.maybe_fetch_ops.cache_clear()
            operations = cache.maybe_fetch_ops("cuda")
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return [operation.procedural_name() for operation in operations]


PROGRAMS: dict[str, Callable[[argparse.Namespace], Truth]] = {
    name.removeprefix("run_"): function for name, function in list(globals().items()) if name[:4] == "run_"
}


def plain_json(value: Any) -> Any:
    """What json cannot write: bytes as base64, all else as its repr."""
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else repr(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", choices=sorted(PROGRAMS))
    parser.add_argument("--report", type=Path, required=True)
    parser.add_argument("--file", type=Path, help="a mega-cache blob")
    parser.add_argument("--below", default="fxgraph", help="which cache killed_writer dies in")
    parser.add_argument("--interface", default="fcache", choices=["fcache", "dcache", "icache"])
    parser.add_argument("--extra", help="one more parameter for caching")
    parser.add_argument(
        "--operations", type=Path, help="a folder to take CUTLASS files from if none can be made"
    )
    parser.add_argument("--names-only", action="store_true", help="name CUTLASS files, write none")
    arguments = parser.parse_args()
    truth = PROGRAMS[arguments.program](arguments)
    report = {
        "torch_version": torch.__version__,
        "python_version": platform.python_version(),
        "pid": os.getpid(),
        "truth": truth,
    }
    arguments.report.write_text(json.dumps(report, indent=1, default=plain_json) + "\n")


if __name__ == "__main__":
    main()
