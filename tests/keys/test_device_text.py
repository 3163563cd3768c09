"""Properties of a device are told apart from the text torch prints, whatever its name holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.keys.device_text import device_parts, kernel_device_parts
from tests.keys.test_isolation import A100, H100, MI300A, MI300X


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (H100, {"name": "NVIDIA H100 80GB HBM3", "pci_bus_id": "25", "L2_cache_size": "50MB"}),
        (A100, {"name": "NVIDIA A100-SXM4-80GB", "major": "8", "multi_processor_count": "108"}),
        (MI300X, {"name": "AMD Instinct MI300X", "gcnArchName": "gfx942:sramecc+:xnack-"}),
        (MI300A, {"name": "AMD Instinct MI300A", "uuid": "35626633-3538-6162-3532-373461306261"}),
    ],
    ids=["H100", "A100", "MI300X", "MI300A"],
)
def test_every_property_has_its_name_and_value(text: str, expected: dict[str, str]) -> None:
    parts = device_parts(text)
    assert parts.items() >= expected.items()
    assert parts.keys() >= {"name", "major", "minor", "total_memory", "multi_processor_count", "uuid"}


@given(name=st.text())
def test_the_name_may_hold_anything(name: str) -> None:
    text = f"_CudaDeviceProperties(name='{name}', major=9, minor=0, total_memory=81090MB, new_one=x)"
    parts = device_parts(text)
    if "', major=" not in name:
        assert parts == {"name": name, "major": "9", "minor": "0", "total_memory": "81090MB", "new_one": "x"}


@given(text=st.text())
def test_another_text_has_no_properties(text: str) -> None:
    assert device_parts(text) == {}


CUDA = "_CudaDeviceProperties(name='{}', major=9{})"
XPU = "_XpuDeviceProperties(name='{}'{})"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (CUDA.format("A", ""), {"name": "A", "major": "9"}),
        (CUDA.format("A', major=8, x='B", ", minor=0"), {"name": "A', major=8, x='B", "major": "9", "minor": "0"}),
        (CUDA.format("A", ", arch='a,b', list=[1, 2], last="), {"name": "A", "major": "9", "arch": "a,b", "list": "[1, 2]", "last": ""}),
        (XPU.format("Max", ", platform_name='L, Z', total_memory=1MB"), {"name": "Max", "platform_name": "L, Z", "total_memory": "1MB"}),
        ("_CudaDeviceProperties(name='A', total_memory=1MB)", {"name": "A", "total_memory": "1MB"}),
        # The text is the whole, and has properties.
        (CUDA.format("A", "") + " ", {}),
        (" " + CUDA.format("A", ""), {}),
        (CUDA.format("A", "")[:-1], {}),
        ("_CudaDeviceProperties(name='A')", {}),
        # A text of nearly any length has its name, and of those that are too long nothing else.
        (CUDA.format("A", ", x=" + "1" * 20_000), {"name": "A"}),
        (CUDA.format("A", ", x=" + "1" * 9_989), {"name": "A", "major": "9", "x": "1" * 9_989}),
        (CUDA.format("A", ", x=" + "1" * 9_990), {"name": "A"}),
    ],
    ids=range(12),
)  # fmt: skip
def test_the_parts_of_a_device(text: str, parts: dict[str, str]) -> None:
    assert device_parts(text) == parts


@pytest.mark.parametrize(("length", "is_read"), [(10_000, True), (10_001, False)])
def test_a_text_of_other_devices_is_read_up_to_a_length(length: int, is_read: bool) -> None:
    text = XPU.format("A", ", x=" + "1" * (length - len(XPU.format("A", ", x="))))
    assert len(text) == length
    assert (device_parts(text) != {}) is is_read


GPU = "DeviceProperties(type='cuda', cc=90)"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("", []),
        (GPU, [{"type": "cuda", "cc": "90"}]),
        (GPU + GPU, [{"type": "cuda", "cc": "90"}]),
        (GPU + GPU.replace("90", "80"), [{"type": "cuda", "cc": "90"}, {"type": "cuda", "cc": "80"}]),
        # In another order it is the same device.
        (GPU + "\nDeviceProperties(cc=90, type='cuda')", [{"type": "cuda", "cc": "90"}]),
        ("DeviceProperties(cc=90)", []),
        ("DeviceProperties()", []),
        ("MyDeviceProperties(type='cuda')", []),
        ("DeviceProperties(type='cuda', cc=None, name='', major=\"9\")", [{"type": "cuda", "major": "9"}]),
        ("DeviceProperties(type=\\'cuda\\', cc=90)", [{"type": "cuda", "cc": "90"}]),
        ("DeviceProperties(type='xpu', cc={'a, b': (1, [2, 3])}, major=None)", [{"type": "xpu", "cc": "{'a, b': (1, [2, 3])}"}]),
        ("DeviceProperties(type='xpu', cc={'a)': '(', 'b': 1}, index=0)", [{"type": "xpu", "cc": "{'a)': '(', 'b': 1}", "index": "0"}]),
        ("DeviceProperties(type='xpu', 7, x=f(1), y=2)", [{"type": "xpu", "x": "f(1)", "y": "2"}]),
        # It ends with its bracket, and with its line.
        ("DeviceProperties(type='xpu', cc={'a': 1}) + f(x=1)", [{"type": "xpu", "cc": "{'a': 1}"}]),
        ("DeviceProperties(type='xpu', cc={'a': 1\n})", []),
        ("DeviceProperties(type='xpu', cc={'a': 1})\ntype='cuda', cc=90)", [{"type": "xpu", "cc": "{'a': 1}"}]),
        ("DeviceProperties(type='xpu', cc={'a': " + "1" * 10_000 + "})", []),
    ],
    ids=range(17),
)  # fmt: skip
def test_the_devices_of_generated_code(source: str, found: list[dict[str, str]]) -> None:
    assert kernel_device_parts(source) == found
