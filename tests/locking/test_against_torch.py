"""The lock of a cache that torch makes now, and what torch then finds in it."""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import cachescope
from cachescope.locking.lock import CacheLock
from cachescope.locking.machine import installed_torch, installed_triton, this_machine
from cachescope.locking.verifying import Verification
from tests.cli.conftest import environment
from tests.programs import python, ran

PROGRAM = Path(__file__).parent / "locked_program.py"
ALL = {"aot": 1, "fx": 2}
NONE = {"aot": 0, "fx": 0}
# The number of threads is told, so that it is known without torch as well.
THREADS = {"OMP_NUM_THREADS": "2"}


def found_by_torch(cache: Path, **changed: str) -> dict[str, int]:
    env = {name: value for name, value in environment().items() if not name.startswith("TORCH")}
    env = {**env, **THREADS, "TORCHINDUCTOR_CACHE_DIR": str(cache), **changed}
    done = ran([sys.executable, PROGRAM], env)
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CacheLock]:
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", THREADS["OMP_NUM_THREADS"])
        assert found_by_torch(folder / "cache", TORCH_TRACE=str(folder / "trace")) == NONE
        return folder / "cache", cachescope.lock(folder / "cache", expect=folder / "trace")


@pytest.mark.torch
def test_the_key_of_the_installed_torch_is_torchs_own(codecache: ModuleType) -> None:
    import torch

    found = installed_torch()
    told = torch.__version__, torch.version.cuda, torch.version.hip
    assert (found.version, found.cuda, found.hip) == told
    assert found.key == base64.b64encode(codecache.torch_key()).decode()


@pytest.mark.torch
def test_what_is_left_stays_as_locked(made: tuple[Path, CacheLock], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", THREADS["OMP_NUM_THREADS"])
    cache, lock = made
    assert found_by_torch(cache) == ALL
    found = Verification.of(lock, cache)
    assert found.findings == ()
    assert found.passed, found
    assert {fact.name: fact.state for fact in found.facts}["torch"] == "equal"


@pytest.mark.torch
@pytest.mark.sweep
@pytest.mark.parametrize(("variable", "value"), [
    ("TORCHINDUCTOR_SHAPE_PADDING", "0"),
    ("TORCHINDUCTOR_SHAPE_PADDING", "1"),
    ("TORCHINDUCTOR_MULTI_KERNEL", "2"),
    ("TORCH_COMPILE_CACHE_KEY_TAG", "other"),
    ("TORCHINDUCTOR_CPP_GEMM_CACHE_BLOCKING", "2,2,2"),
    ("OMP_NUM_THREADS", "1"),
    ("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1"),
    ("TORCHINDUCTOR_FX_GRAPH_CACHE", "0"),
    ("TORCHINDUCTOR_AUTOGRAD_CACHE", "0"),
    ("TORCHINDUCTOR_AUTOGRAD_CACHE", "1"),
    ("TORCH_CACHING_PRECOMPILE", "1"),
    ("TORCH_COMPILE_DISABLE", "1"),
    ("TORCHINDUCTOR_COMPILE_THREADS", "1"),
])  # fmt: skip
def test_torch_finds_what_verify_says_it_finds(
    variable: str, value: str, made: tuple[Path, CacheLock], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a copy: what it misses it compiles and stores."""
    cache, lock = made
    copy = tmp_path / "cache"
    subprocess.run(["cp", "-a", str(cache), str(copy)], check=True)
    hits = found_by_torch(copy, **{variable: value})
    for name, given in {**THREADS, variable: value}.items():
        monkeypatch.setenv(name, given)
    found = Verification.of(lock, cache)
    kinds = [file.kind for file in found.lost]
    assert hits == {"aot": ALL["aot"] - kinds.count("aotautograd"), "fx": ALL["fx"] - kinds.count("fxgraph")}
    assert found.passed == (hits == ALL)


# `triton_key` of triton/runtime/cache.py as Triton 3.6 has it (MIT), in a Triton of a few files.
TRITON_KEY = """
import hashlib
import os
import sysconfig
from .. import __version__


def triton_key():
    import pkgutil
    TRITON_PATH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    contents = []
    # frontend
    with open(__file__, "rb") as f:
        contents += [hashlib.sha256(f.read()).hexdigest()]
    # compiler
    path_prefixes = [
        (os.path.join(TRITON_PATH, "compiler"), "triton.compiler."),
        (os.path.join(TRITON_PATH, "backends"), "triton.backends."),
    ]
    for path, prefix in path_prefixes:
        for lib in pkgutil.walk_packages([path], prefix=prefix):
            with open(lib.module_finder.find_spec(lib.name).origin, "rb") as f:
                contents += [hashlib.sha256(f.read()).hexdigest()]

    # backend
    libtriton_hash = hashlib.sha256()
    ext = sysconfig.get_config_var("EXT_SUFFIX").split(".")[-1]
    with open(os.path.join(TRITON_PATH, "_C", f"libtriton.{ext}"), "rb") as f:
        while True:
            chunk = f.read(1024**2)
            if not chunk:
                break
            libtriton_hash.update(chunk)
    contents.append(libtriton_hash.hexdigest())
    # language
    language_path = os.path.join(TRITON_PATH, 'language')
    for lib in pkgutil.walk_packages([language_path], prefix="triton.language."):
        with open(lib.module_finder.find_spec(lib.name).origin, "rb") as f:
            contents += [hashlib.sha256(f.read()).hexdigest()]
    return f'{__version__}' + '-'.join(contents)


def get_cache_key(src, backend, backend_options, env_vars):
    pass
"""
FILES = {
    "__init__.py": "__version__ = '3.6.0'\n",
    **{f"{name}/__init__.py": "" for name in ("runtime", "compiler", "backends", "backends/nvidia")},
    **{f"{name}/__init__.py": "" for name in ("language", "language/extra", "language/extra/cuda")},
    "runtime/cache.py": TRITON_KEY,
    "compiler/compiler.py": "def triton_key_of_nothing():\n    pass\n",
    "backends/nvidia/compiler.py": "x = 1\n",
    "backends/no_package/module.py": "y = 2\n",
    "language/extra/cuda/gdc.py": "z = 3\n",
    "_C/libtriton.so": "library " * 300_000,
}


def triton_in(folder: Path, **changed: str) -> Path:
    for name, text in {**FILES, **changed}.items():
        path = folder / "triton" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_key_of_the_installed_triton_is_tritons_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = triton_in(tmp_path)
    code = "from triton.runtime.cache import triton_key; print(triton_key())"
    env = environment(PYTHONPATH=str(folder))
    done = python(code, variables=env)
    monkeypatch.syspath_prepend(folder)
    found = installed_triton()
    assert (found.version, found.problem) == ("3.6.0", None)
    assert found.key == done.stdout.strip()
    (folder / "triton/language/extra/cuda/gdc.py").write_text("z = 4\n")
    assert installed_triton().key != found.key


@pytest.mark.parametrize(("changed", "said"), [
    ({"runtime/cache.py": TRITON_KEY.replace("'-'.join", "'+'.join")}, "in a way that is not known here"),
    ({"runtime/cache.py": "", "compiler/compiler.py": ""}, "in a way that is not known here"),
    ({"__init__.py": "__version__ = version()\n"}, "triton/__init__.py says no version"),
])  # fmt: skip
def test_a_triton_that_is_made_otherwise_has_no_key(
    changed: dict[str, str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(triton_in(tmp_path, **changed))
    found = installed_triton()
    assert found.key is None
    assert said in (found.problem or "")


TORCH: dict[str, Any] = {
    "version.py": "__version__ = '2.99.0+cu130'\ncuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n",
    "__init__.py": "raise RuntimeError('imported')\n",
    "_inductor/__init__.py": "",
    "_inductor/codecache.py": "def torch_key():\n    return b'another way'\n",
}


def test_a_torch_that_makes_keys_otherwise_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand: no such torch is there."""
    for name, text in TORCH.items():
        path = tmp_path / "torch" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    found = installed_torch()
    assert (found.version, found.cuda, found.hip, found.key) == ("2.99.0+cu130", "13.0", None, None)
    assert "makes its key in a way that is not known here" in (found.problem or "")
    machine, unknown = this_machine()
    assert machine.torch_key is None
    assert unknown["torch"] == found.problem
    os.unlink(tmp_path / "torch" / "version.py")
    assert installed_torch().version is None
