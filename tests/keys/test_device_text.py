"""Properties of a device are told apart from the text torch prints, whatever its name holds, and so is what differs between two."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.analysis.differences import field_change
from cachescope.keys.device_text import device_difference, device_parts, kernel_device_parts
from tests.keys.test_isolation import A100, H100, MI300A, MI300X


@pytest.mark.parametrize(("text", "expected"), [
    (H100, {"name": "NVIDIA H100 80GB HBM3", "pci_bus_id": "25", "L2_cache_size": "50MB"}),
    (A100, {"name": "NVIDIA A100-SXM4-80GB", "major": "8", "multi_processor_count": "108"}),
    (MI300X, {"name": "AMD Instinct MI300X", "gcnArchName": "gfx942:sramecc+:xnack-"}),
    (MI300A, {"name": "AMD Instinct MI300A", "uuid": "35626633-3538-6162-3532-373461306261"}),
], ids=["H100", "A100", "MI300X", "MI300A"])  # fmt: skip
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


@pytest.mark.parametrize(("text", "parts"), [
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
], ids=range(12))  # fmt: skip
def test_the_parts_of_a_device(text: str, parts: dict[str, str]) -> None:
    assert device_parts(text) == parts


@pytest.mark.parametrize(("length", "is_read"), [(10_000, True), (10_001, False)])
def test_a_text_of_other_devices_is_read_up_to_a_length(length: int, is_read: bool) -> None:
    text = XPU.format("A", ", x=" + "1" * (length - len(XPU.format("A", ", x="))))
    assert len(text) == length
    assert (device_parts(text) != {}) is is_read


GPU = "DeviceProperties(type='cuda', cc=90)"


@pytest.mark.parametrize(("source", "found"), [
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
], ids=range(17))  # fmt: skip
def test_the_devices_of_generated_code(source: str, found: list[dict[str, str]]) -> None:
    assert kernel_device_parts(source) == found


TENSOR = "TensorMetadata(dtype=torch.float32, shape=torch.Size([8]), device=device(type='{}'{}), layout=torch.strided)"


def tensor(device_type: str, index: int | None = None) -> str:
    return TENSOR.format(device_type, "" if index is None else f", index={index}")


@pytest.mark.parametrize(("before", "after", "told"), [
    (H100, A100, "another model: NVIDIA H100 80GB HBM3 -> NVIDIA A100-SXM4-80GB"),
    (MI300A, MI300X, "another model: AMD Instinct MI300A -> AMD Instinct MI300X"),
    (H100, H100.replace("uuid=5f", "uuid=6f"), "same model, another board"),
    (H100, H100.replace("pci_bus_id=25", "pci_bus_id=26"), "same model, another board"),
    (H100, H100.replace("uuid=5f", "uuid=6f").replace("count=132", "count=114"),
     "same model, another board: multi_processor_count 132 -> 114"),
    (MI300X, MI300X.replace("xnack-", "xnack+"), "another arch: gfx942:sramecc+:xnack- -> gfx942:sramecc+:xnack+"),
    (H100, H100.replace("81090", "40000"), "same model, other properties: total_memory 81090MB -> 40000MB"),
    (H100, H100.replace(", L2_cache_size=50MB", ""), "same model; only one side has L2_cache_size"),
    (tensor("cuda", 0), tensor("cuda", 1), "another device index: cuda:0 -> cuda:1"),
    (tensor("cpu"), tensor("cuda", 0), "another kind of device: cpu -> cuda:0"),
    ("{'name': 'NVIDIA A10'}", "{'name': 'NVIDIA L4'}", "another model: NVIDIA A10 -> NVIDIA L4"),
    ("{'name': 'gfx90a:sramecc+'}", "{'name': 'gfx942'}", "another arch: gfx90a:sramecc+ -> gfx942"),
    # Only two names of architectures are architectures.
    ("{'name': 'NVIDIA A10'}", "{'name': 'gfx942'}", "another model: NVIDIA A10 -> gfx942"),
    ("{'name': 'gfx942'}", "{'name': 'NVIDIA A10'}", "another model: gfx942 -> NVIDIA A10"),
    ("{'name': 'A', 'x': 1}", "{'name': \"B's\", 'x': 1}", "another model: A -> B's"),
    ("{'name': 'A', 'x': 1}", "{'name': 'A', 'x': 2}", None),
    ("{'x': 1}", "{'name': 'A'}", None),
    # The model before the architecture, that before the board.
    (H100, H100.replace("major=9", "major=8").replace("uuid=5f", "uuid=6f"), "another arch: 9.0 -> 8.0"),
    (H100, H100.replace("major=9, ", ""), "another arch: 9.0 -> ?.0"),
    (H100, H100.replace("minor=0, ", ""), "another arch: 9.0 -> 9.?"),
    (H100, H100.replace("uuid=5f", "uuid=6f").replace("81090", "40000"), "same model, another board"),
    (H100, H100.replace("81090", "40000").replace("count=132", "count=114"),
     "same model, other properties: total_memory 81090MB -> 40000MB, multi_processor_count 132 -> 114"),
    (H100.replace(", L2_cache_size=50MB", ""), H100.replace("pci_domain_id=0, ", ""),
     "same model; only one side has L2_cache_size, pci_domain_id"),
    (tensor("cuda"), tensor("cuda", 0), "another device index: cuda -> cuda:0"),
    (tensor("cuda", 0), "True", None),
    (H100, tensor("cuda", 0), None),
    (H100, H100, None),
    (tensor("cuda", 0), tensor("cuda", 0), None),
    ("True", "False", None),
    (H100, "null", None),
])  # fmt: skip
def test_what_differs_is_named(before: str, after: str, told: str | None) -> None:
    assert device_difference(before, after) == told


@pytest.mark.slow
@given(before=st.text(), after=st.text())
def test_other_texts_name_no_device(before: str, after: str) -> None:
    assert device_difference(before, after) is None


def test_the_summary_of_a_change_says_what_is_another_one() -> None:
    change = field_change("example_inputs[0]", tensor("cuda", 0), tensor("cuda", 1))
    assert change.summary == "another device index: cuda:0 -> cuda:1"
    assert change.parts == (("device", "device(type='cuda', index=0)", "device(type='cuda', index=1)"),)
    change = field_change("system_info[device]", "{'name': 'NVIDIA A10'}", "{'name': 'NVIDIA L4'}")
    assert change.summary == "another model: NVIDIA A10 -> NVIDIA L4"
