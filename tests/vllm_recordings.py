"""What vLLM recorded (tests/data/record_vllm.py): its folders, what was changed, and what its own logs say."""

import json
import re
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from cachescope.scope import Scope

VERSIONS = ("0.13.0", "0.33.0")
ARCHIVES = Path(__file__).parent / "data" / "vllm"

_FACTORS = re.compile(
    r"torch\.compile cache factors: env=(?P<env>\w+) cfg=(?P<cfg>\w+) comp=(?P<comp>\w+) code=(?P<code>\w+) dir=(?P<dir>\S+)"
)

_IN_BOTH = {
    "variable": ("env[VLLM_USE_TRITON_AWQ]",), "port": ("env[VLLM_NIXL_SIDE_CHANNEL_PORT]",),
    "config": ("config_hash",), "edited": ("code_hash",),
}  # fmt: skip
# In what alone the folder of a step differs from that of the first. 0.13.0 counts paths below HOME and no settings of
# Inductor, 0.33.0 the other way round.
CHANGED = {
    "0.13.0": _IN_BOTH | {"home": ("env[VLLM_CONFIG_ROOT]", "env[VLLM_XLA_CACHE_PATH]")},
    "0.33.0": _IN_BOTH | {"compiler": ("compiler_hash",)},
}
# Steps that made no folder of their own.
SAME_FOLDER = {"0.13.0": ("rank", "compiler"), "0.33.0": ("rank",)}
# What was stored for these steps: by the release, as it counts other things.
LOADED = {"0.13.0": {"again", "compiler", "files", "files_again"}, "0.33.0": {"again", "home", "files_again"}}


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recording.

    Attributes
    ----------
    version : str
    cache : Path
        The VLLM_CACHE_ROOT of all steps.
    steps : dict
        What provenance.json says of each, by its name.
    factors : dict
        What the log of each step says of the factors and the folder: ``env``, ``cfg``, ``comp``, ``code``, ``dir``.
    """

    version: str
    cache: Path
    steps: dict[str, Any]
    factors: dict[str, dict[str, str]]

    @property
    def logs(self) -> Path:
        """What each step printed, as ``<step>.log``."""
        return self.cache.parent / "logs"

    def folder(self, step: str) -> str:
        """The name of the folder that a step used, as its log has it."""
        return Path(self.factors[step]["dir"]).parent.parent.name


def recorded(version: str, folder: Path) -> Recorded:
    """The recording of a release, unpacked into a folder."""
    steps = _unpacked(version, folder)
    factors = {}
    for name in steps:
        found = _FACTORS.search((folder / "logs" / f"{name}.log").read_text())
        if found is not None:
            factors[name] = found.groupdict()
    return Recorded(version, folder / "cache", steps, factors)


def recorded_ranks(version: str, folder: Path) -> Recorded:
    """The recording of several ranks of one engine (tests/data/record_vllm_ranks.py); factors are of ``<step>_<rank>``."""
    steps = _unpacked(f"{version}_ranks", folder)
    factors = {}
    for name in steps:
        for found in _FACTORS.finditer((folder / "logs" / f"{name}.log").read_text()):
            rank = Path(found["dir"]).parent.name.split("_")[1]
            factors[f"{name}_{rank}"] = found.groupdict()
    return Recorded(version, folder / "cache", steps, factors)


def _unpacked(name: str, folder: Path) -> dict[str, Any]:
    with tarfile.open(ARCHIVES / f"{name}.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    return {step["step"]: step for step in json.loads((folder / "provenance.json").read_text())["steps"]}


def with_factors(scope: Scope) -> pd.DataFrame:
    """The folders whose factors were stored with them."""
    folders = scope.vllm_folders
    return folders[folders["entry"].notna()]
