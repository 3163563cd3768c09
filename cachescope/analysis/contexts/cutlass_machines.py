"""Which of the recorded machines a CUTLASS operation list was made for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final

from cachescope.frames.context_rows import ContextRow
from cachescope.frames.device_rows import DeviceRow
from cachescope.frames.directory_rows import TimingRow
from cachescope.grouping import by_key
from cachescope.keys.cutlass import TORCH_FILE_HASHES, cutlass_requests
from cachescope.wording import minor_version

# torch/_inductor/config.py: in the section `cuda`, or later `cutlass`.
_LEVEL: Final = "cutlass_instantiation_level"


def cutlass_machine(
    request_key: str,
    devices: Iterable[DeviceRow],
    contexts: Sequence[ContextRow],
    timings: Iterable[TimingRow],
) -> str:
    """Describe the device, CUDA version, level and torch that a request key was made from, as far as they were recorded."""
    names = by_key(
        (row.compute_capability.replace(".", ""), row.name)
        for row in devices
        if row.compute_capability is not None
    )
    recorded: list[ContextRow | TimingRow] = [*contexts, *timings]
    # `maybe_fetch_ops` takes major and minor.
    on_cuda = (row.runtime_version for row in recorded if (row.runtime or "").lower() == "cuda")
    versions = sorted({minor_version(version) for version in on_cuda if version is not None})
    if not names or not versions:
        return "not known: no CUDA device with its compute capability and CUDA version was read with it"
    levels = _levels(contexts)
    for hashes, releases in TORCH_FILE_HASHES.items():
        found = cutlass_requests(request_key, names, versions, levels, file_hashes=hashes)
        for arch, version, level in found:
            called = ", ".join(sorted(set(names[arch])))
            return f"{called} (arch {arch}), CUDA {version}, instantiation level {level}, torch {releases}"
    tried = f"arch {', '.join(sorted(names))}; CUDA {', '.join(versions)}; level {', '.join(levels)}"
    return f"no machine that was read ({tried}), or one with another CUTLASS or a torch that is not known (newer than 2.14.1)"


def _levels(contexts: Iterable[ContextRow]) -> list[str]:
    options = (one for row in contexts for one in json.loads(row.inductor_configs or "{}").items())
    return sorted({"0", *(str(value) for name, value in options if name.endswith(_LEVEL))})
