"""The text torch prints for a device's properties, taken apart."""

from __future__ import annotations

import re
from typing import Final

# The name is not escaped and may hold an apostrophe; what follows it cannot.
_NAME: Final = re.compile(
    r"_(?:Cuda|Xpu)DeviceProperties\(name='(?P<name>.*)', (?P<rest>[^']\w*=.*)\)", re.DOTALL
)
_NAME_BEFORE_MAJOR: Final = re.compile(
    r"_CudaDeviceProperties\(name='(?P<name>.*)', (?P<rest>major=.*)\)", re.DOTALL
)
_PART: Final = re.compile(r"(?P<key>\w+)=(?P<value>'[^']*'|\[[^\]]*\]|[^,]*)(?:, |$)")


def device_parts(text: str) -> dict[str, str]:
    """Return the properties by name, as text; empty where it is no such text.

    Parameters
    ----------
    text : str
        ``repr(torch.cuda.get_device_properties())``, of CUDA or ROCm, or of XPU.

    Notes
    -----
    Mirrors the ``__repr__`` of ``_CudaDeviceProperties`` (torch/csrc/cuda/Module.cpp, 2.4 to 2.15) and of
    ``_XpuDeviceProperties`` (torch/csrc/xpu/Module.cpp). Unknown properties are kept.

    Examples
    --------
    >>> device_parts("_CudaDeviceProperties(name='NVIDIA L4', major=8, minor=9, L2_cache_size=48MB)")
    {'name': 'NVIDIA L4', 'major': '8', 'minor': '9', 'L2_cache_size': '48MB'}
    """
    match = _NAME_BEFORE_MAJOR.fullmatch(text) or _NAME.fullmatch(text)
    if match is None:
        return {}
    parts = {part["key"]: part["value"].strip("'") for part in _PART.finditer(match["rest"])}
    return {"name": match["name"], **parts}
