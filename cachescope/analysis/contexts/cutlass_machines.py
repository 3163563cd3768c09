"""Which of the recorded machines a CUTLASS operation list was made for."""

from __future__ import annotations

import json
from typing import Final

import pandas as pd

from cachescope.columns import plain_columns
from cachescope.keys.cutlass import TORCH_FILE_HASHES, cutlass_requests

# torch/_inductor/config.py: in the section `cuda`, or later `cutlass`.
_LEVEL: Final = "cutlass_instantiation_level"


def cutlass_machine(
    request_key: str, devices: pd.DataFrame, contexts: pd.DataFrame, autotune: pd.DataFrame
) -> str:
    """Describe the device, CUDA version, level and torch that a request key was made from, as far as they were recorded."""
    names: dict[str, list[str]] = {}
    known = plain_columns(devices, ["name", "compute_capability"])
    for name, capability in zip(*known.values(), strict=True):
        if capability is not None:
            names.setdefault(capability.replace(".", ""), []).append(name)
    versions = _cuda_versions(contexts, autotune)
    if not names or not versions:
        return "not known: no CUDA device with its compute capability and CUDA version was read with it"
    levels = _levels(contexts)
    for hashes, releases in TORCH_FILE_HASHES.items():
        for arch, version, level in cutlass_requests(
            request_key, names, versions, levels, file_hashes=hashes
        ):
            called = ", ".join(sorted(set(names[arch])))
            return f"{called} (arch {arch}), CUDA {version}, instantiation level {level}, torch {releases}"
    tried = f"arch {', '.join(sorted(names))}; CUDA {', '.join(versions)}; level {', '.join(levels)}"
    return f"no machine that was read ({tried}), or one with another CUTLASS or a torch that is not known (newer than 2.14.1)"


def _cuda_versions(contexts: pd.DataFrame, autotune: pd.DataFrame) -> list[str]:
    found = set()
    for frame in (contexts, autotune):
        known = plain_columns(frame, ["runtime", "runtime_version"])
        for runtime, version in zip(*known.values(), strict=True):
            if str(runtime).lower() == "cuda" and version is not None:
                # `maybe_fetch_ops` takes major and minor.
                found.add(".".join(version.split(".")[:2]))
    return sorted(found)


def _levels(contexts: pd.DataFrame) -> list[str]:
    found = {"0"}
    for text in contexts["inductor_configs"].dropna():
        for name, value in json.loads(text).items():
            if name.endswith(_LEVEL):
                found.add(str(value))
    return sorted(found)
