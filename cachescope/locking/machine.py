"""The machine of this process and what is installed on it, asked without torch: what does not answer is not known.

Torch and Triton are known by the keys that they themselves make of their sources. Neither is imported: the files are the same
ones, read in the same order. Where a source does not make its key in a way that is known here, there is no key, and a sentence
that says so.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import platform
import re
import sysconfig
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cachescope.capture.torch_manifest import extra_files, modules_below
from cachescope.locking.lock import Machine

_VERSION: Final = re.compile(r"^__version__\s*(?::[^=]*)?=\s*['\"]([^'\"]+)['\"]", re.MULTILINE)
_BUILD: Final = r"^{}\s*(?::[^=]*)?=\s*(?:None|['\"]([^'\"]+)['\"])"
# `triton_key` (triton/runtime/cache.py, triton/compiler/compiler.py before 3.4; 3.2 to 3.9).
_TRITON_STEPS: Final = (
    'with open(__file__, "rb") as f:',
    '(os.path.join(TRITON_PATH, "compiler"), "triton.compiler."),',
    '(os.path.join(TRITON_PATH, "backends"), "triton.backends."),',
    "contents.append(libtriton_hash.hexdigest())",
    "language_path = os.path.join(TRITON_PATH, 'language')",
    "return f'{__version__}' + '-'.join(contents)",
)
_TRITON_KEYS: Final = ("runtime/cache.py", "compiler/compiler.py")


@dataclass(frozen=True, slots=True)
class Installed:
    """One package; `problem` says why it has no key."""

    version: str | None = None
    # What it makes of its sources: torch's in base64 (as ``torch_version_hash``), Triton's as it is.
    key: str | None = None
    problem: str | None = None
    # The toolkits that torch was built for.
    cuda: str | None = None
    hip: str | None = None


def installed_torch() -> Installed:
    """The torch beside this Python, and its key."""
    # Mirrors `torch_key` and `build_code_hash` of torch/_inductor/codecache.py (2.4 to 2.15).
    root = _folder_of("torch")
    if root is None:
        return Installed(problem="torch is not installed for this Python")
    try:
        version = _text(root / "version.py")
        named = _VERSION.search(version)
        if named is None:
            return Installed(problem="torch/version.py says no version")
        builds = (re.search(_BUILD.format(name), version, re.MULTILINE) for name in ("cuda", "hip"))
        cuda, hip = (None if build is None else build[1] for build in builds)
        if (extra := extra_files(root)) is None:
            problem = f"torch {named[1]} makes its key in a way that is not known here"
            return Installed(named[1], None, problem, cuda, hip)
        hasher = hashlib.sha256(named[1].encode("utf-8"))
        for name, path in (*modules_below(os.fspath(root), ""), *extra):
            hasher.update(name.encode("utf-8"))
            hasher.update(Path(path).read_bytes())
    except (OSError, AttributeError) as error:
        return Installed(problem=f"the files of torch cannot be read: {error}")
    return Installed(named[1], b64encode(hasher.digest()).decode(), None, cuda, hip)


def installed_triton(*, with_key: bool = True) -> Installed:
    """The Triton beside this Python, and its key, for which its library of hundreds of megabytes is read."""
    # Mirrors `triton_key` (3.2 to 3.9).
    root, version = _folder_of("triton"), None
    if root is None:
        return Installed(problem="Triton is not installed for this Python")
    try:
        if (named := _VERSION.search(_text(root / "__init__.py"))) is None:
            return Installed(problem="triton/__init__.py says no version")
        version = named[1]
        if not with_key:
            return Installed(version)
        if (of_key := _file_of_triton_key(root)) is None:
            problem = f"Triton {version} makes its key in a way that is not known here"
            return Installed(version, problem=problem)
        return Installed(version, version + "-".join(_triton_hashes(root, of_key)))
    except (OSError, AttributeError) as error:
        return Installed(version, problem=f"the files of Triton cannot be read: {error}")


def _file_of_triton_key(root: Path) -> Path | None:
    for name in _TRITON_KEYS:
        path = root / name
        body = _text(path).partition("\ndef triton_key(")[2].partition("\n\n\n")[0]
        if body:
            return path if all(step in body for step in _TRITON_STEPS) else None
    return None


def _triton_hashes(root: Path, of_key: Path) -> Iterator[str]:
    yield _hash(of_key)
    for folder in ("compiler", "backends"):
        yield from _module_hashes(root / folder, f"triton.{folder}.")
    suffix = str(sysconfig.get_config_var("EXT_SUFFIX") or ".so").rpartition(".")[2]
    yield _hash(root / "_C" / f"libtriton.{suffix}")
    yield from _module_hashes(root / "language", "triton.language.")


def _module_hashes(folder: Path, prefix: str) -> Iterator[str]:
    yield from (_hash(path) for _, path in modules_below(os.fspath(folder), prefix))


def _folder_of(package: str) -> Path | None:
    """The folder of a package, which is found and not imported."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin).parent if spec is not None and spec.origin else None


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _hash(path: Any) -> str:
    with open(path, "rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# The driver's own text: one folder for each board, with its model. Of a board that is cut into MIG instances torch says
# the instance.
_DRIVER: Final = Path("/proc/driver/nvidia")
_VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
_CPUS: Final = Path("/proc/cpuinfo")
_VECTORS: Final = ("avx", "fma", "amx", "f16c", "sse4", "asimd", "sve")
_MOST_OF_A_FILE: Final = 1 << 20


def this_machine() -> tuple[Machine, dict[str, str]]:
    """What is known of this machine, and why the rest is not, by the name of what is not known."""
    with ThreadPoolExecutor(1) as pool:
        triton_future = pool.submit(installed_triton)
        return machine_with(installed_torch(), triton_future.result())


def machine_with(torch: Installed, triton: Installed) -> tuple[Machine, dict[str, str]]:
    """What is known of this machine beside the torch and the Triton that are installed, as `this_machine` says it."""
    devices, no_devices = devices_here()
    machine = Machine(
        python_version=platform.python_version(),
        architecture=platform.machine(),
        torch_version=torch.version,
        torch_key=torch.key,
        cuda=torch.cuda,
        hip=torch.hip,
        triton_version=triton.version,
        triton_key=triton.key,
        devices=devices,
        cpu_features=cpu_features(),
    )
    problems = {"torch": torch.problem, "triton": triton.problem, "device": no_devices}
    return machine, {name: problem for name, problem in problems.items() if problem is not None}


def devices_here(driver: Path = _DRIVER) -> tuple[tuple[str, ...] | None, str | None]:
    """The models of the GPUs of this machine, in the order of their places on the bus; or why they are not known."""
    boards = sorted(driver.glob("gpus/*/information"))
    if not boards:
        return None, "no NVIDIA driver is seen here"
    if os.environ.get(_VISIBLE, "0").strip() in ("", "-1"):
        return None, f"{_VISIBLE} hides the boards"
    if any(driver.glob("capabilities/gpu*/mig/gi*")):
        return None, "a board here is divided into MIG instances, which only torch can identify"
    names = [dict(_facts_in(board)).get("Model", "") for board in boards]
    return (tuple(names), None) if all(names) else (None, "the driver does not say its models")


def cpu_features(cpus: Path = _CPUS) -> tuple[str, ...] | None:
    """The vector instructions of this CPU; None if the system does not list them."""
    for name, value in _facts_in(cpus):
        if name in ("flags", "Features"):
            return tuple(sorted(one for one in set(value.split()) if one.startswith(_VECTORS)))
    return None


def _facts_in(path: Path) -> Iterator[tuple[str, str]]:
    """The lines ``name: value`` at the beginning of a file of the system."""
    data = b""
    with contextlib.suppress(OSError), open(path, "rb", buffering=0) as file:
        data = file.read(_MOST_OF_A_FILE) or b""
    for line in os.fsdecode(data).encode("utf-8", "replace").decode("utf-8").splitlines():
        name, _, value = line.partition(":")
        yield name.strip(), value.strip()
