"""What each form of a device's text says. All texts are made by hand, in the shapes of formats.md, section 7.1."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.devices.mention import of_kernel, of_name, of_properties, of_target
from cachescope.keys.device_text import device_parts, kernel_device_parts
from tests.keys.test_isolation import A100, H100, MI300A, MI300X

# torch 2.4: nothing after the number of multiprocessors.
T4_OF_2_4 = (
    "_CudaDeviceProperties(name='Tesla T4', major=7, minor=5, total_memory=15102MB, multi_processor_count=40)"
)
# A build of Meta has no uuid.
NO_UUID = (
    "_CudaDeviceProperties(name='NVIDIA L4', major=8, minor=9, total_memory=22491MB, multi_processor_count=58, "
    "L2_cache_size=48MB)"
)
NEWER = H100.replace("L2_cache_size=50MB", "L2_cache_size=50MB, warp_size=32, clock_rate=1980000")
APOSTROPHE = H100.replace("NVIDIA H100 80GB HBM3", "Ann's 'H100', rev=2")
XPU = (
    "_XpuDeviceProperties(name='Intel(R) Data Center GPU Max 1100', platform_name='Intel(R) oneAPI Unified Runtime', "
    "type='gpu', device_id=0xBDA, uuid=8680da0b-2f00-0000-2900-000000000000, driver_version='1.6.33578', "
    "total_memory=49152MB, max_compute_units=448, gpu_eu_count=448, gpu_subslice_count=56, "
    "sub_group_sizes=[16, 32], has_fp64=1)"
)
ROCM = {"type": "hip", "arch": "gfx942:sramecc+:xnack-", "compute_capability": None}
EVERY_FORM = [A100, H100, MI300A, MI300X, T4_OF_2_4, NO_UUID, NEWER, APOSTROPHE, XPU]


@pytest.mark.parametrize(("text", "wanted"), [
    # torch 2.8 tells of everything, 2.4 of less, 2.5 to 2.7 of a uuid without PCI ids.
    (H100, {"type": "cuda", "name": "NVIDIA H100 80GB HBM3", "index": 3, "compute_capability": "9.0", "arch": "sm_90",
            "sm_count": 132, "memory_bytes": 81090 << 20, "l2_bytes": 50 << 20, "pci": "0000:19:00",
            "uuid": "5f1b8c9e-0c1d-4d3a-9b7e-2f8f4a6d0c11", "properties": ()}),
    (T4_OF_2_4, {"arch": "sm_75", "sm_count": 40, "uuid": None, "pci": None, "l2_bytes": None, "warp_size": None}),
    (A100, {"uuid": "8d7c1f02-55a1-6a0e-3c9b-0f4e2d1c7b6a", "pci": None, "l2_bytes": 40 << 20}),
    (NO_UUID, {"uuid": None, "l2_bytes": 48 << 20}),
    (NEWER, {"warp_size": 32, "properties": (("clock_rate", "1980000"),)}),
    # A name may hold an apostrophe and what looks like a property.
    (APOSTROPHE, {"name": "Ann's 'H100', rev=2", "sm_count": 132}),
    # On CUDA this attribute is the name of the device.
    (H100.replace("minor=0", "minor=0, gcnArchName='NVIDIA H100 80GB HBM3'"), {"type": "cuda", "arch": "sm_90"}),
    # The uuid of ROCm is ASCII in hexadecimal; it stays as torch prints it.
    (MI300A, {**ROCM, "sm_count": 228, "uuid": "35626633-3538-6162-3532-373461306261"}),
    (MI300X, {**ROCM, "sm_count": 304, "uuid": "30303030-3030-3030-3030-303030303030"}),
    (XPU, {"type": "xpu", "name": "Intel(R) Data Center GPU Max 1100", "sm_count": 56}),
], ids=["2.8", "2.4", "2.5", "no uuid", "newer", "apostrophe", "arch is name", "MI300A", "MI300X", "xpu"])  # fmt: skip
def test_what_the_properties_of_a_device_say(text: str, wanted: dict[str, object]) -> None:
    found = of_properties(text, "here", index=3)
    assert found is not None
    assert {name: getattr(found, name) for name in wanted} == wanted


def test_an_xpu_device_keeps_what_no_column_holds() -> None:
    found = of_properties(XPU, "here")
    assert dict(found.properties)["driver_version"] == "1.6.33578"
    assert dict(found.properties)["sub_group_sizes"] == "[16, 32]"


def test_order_does_not_count() -> None:
    properties = ["major=9", "minor=0", "total_memory=81090MB", "uuid=5f1b8c9e", "L2_cache_size=50MB"]
    texts = [
        f"_CudaDeviceProperties(name='X', {', '.join(order)})" for order in itertools.permutations(properties)
    ]
    assert len({of_properties(text, "here") for text in texts}) == 1


@pytest.mark.parametrize(("text", "expected"), [
    # torch 2.5: the number of multiprocessors after the threads.
    ("type='cuda', index=0, cc=80, major=8, regs_per_multiprocessor=65536, max_threads_per_multi_processor=2048, "
     "multi_processor_count=108", ("cuda", "sm_80", 108, None, 0)),
    ("type='cuda', index=0, multi_processor_count=132, cc=90, major=9, regs_per_multiprocessor=65536, "
     "max_threads_per_multi_processor=2048, warp_size=32", ("cuda", "sm_90", 132, 32, 0)),
    ("type='hip', index=1, multi_processor_count=304, cc='gfx942', major=9, regs_per_multiprocessor=65536, "
     "max_threads_per_multi_processor=2048, max_threads_per_block=1024, warp_size=64", ("hip", "gfx942", 304, 64, 1)),
    # 2.15: the device is found when the kernel is loaded.
    ("type='cuda', index=None, multi_processor_count=132, cc=90, major=9, warp_size=32", ("cuda", "sm_90", 132, 32, None)),
    ("type='cpu', index=None, multi_processor_count=2, cc='', major=None, warp_size=None", ("cpu", None, 2, None, None)),
], ids=["2.5", "2.8", "rocm", "2.15", "cpu"])  # fmt: skip
def test_devices_of_generated_code_are_read_by_keyword(text: str, expected: tuple[object, ...]) -> None:
    source = f"triton_meta={{'device': DeviceProperties({text}), 'constants': {{}}}}"
    (parts,) = kernel_device_parts(source * 2)
    found = of_kernel(parts, "here")
    assert (found.type, found.arch, found.sm_count, found.warp_size, found.index) == expected


def test_the_capability_of_an_xpu_is_a_dict_that_names_it() -> None:
    source = (
        "DeviceProperties(type='xpu', index=0, multi_processor_count=56, cc={'name': 'Intel(R) Data Center GPU Max 1100', "
        "'sub_group_sizes': [16, 32], 'version': (12, 60)}, major=None)"
    )
    (parts,) = kernel_device_parts(source)
    found = of_kernel(parts, "here")
    assert (found.type, found.name, found.sm_count) == ("xpu", "Intel(R) Data Center GPU Max 1100", 56)
    assert "'version': (12, 60)" in dict(found.properties)["cc"]


def test_text_that_is_cut_tells_nothing() -> None:
    assert kernel_device_parts("DeviceProperties(type='cuda', index=0, cc=90") == []


def test_on_rocm_the_name_of_the_system_is_an_architecture() -> None:
    assert of_name("gfx90a:sramecc+:xnack-", "here").arch == "gfx90a:sramecc+:xnack-"
    assert of_name("gfx90a:sramecc+:xnack-", "here").name is None
    assert of_name("NVIDIA L4", "here").name == "NVIDIA L4"


def test_a_target_of_triton() -> None:
    assert of_target("cuda", "90", 32, "here").arch == "sm_90"
    assert of_target("cuda", "120", 32, "here").compute_capability == "12.0"
    assert of_target("hip", "gfx942", 64, "here").arch == "gfx942"


@pytest.mark.slow
@given(
    name=st.text(max_size=20),
    rest=st.lists(
        st.tuples(st.from_regex(r"[a-zA-Z_]\w{0,12}", fullmatch=True), st.text(max_size=12)), max_size=8
    ),
)
def test_no_text_that_looks_like_one_fails(name: str, rest: list[tuple[str, str]]) -> None:
    properties = ", ".join(f"{key}={value}" for key, value in [("major", "9"), *rest])
    for kind in ("_CudaDeviceProperties", "_XpuDeviceProperties"):
        of_properties(f"{kind}(name='{name}', {properties})", "here")
    for parts in kernel_device_parts(f"DeviceProperties(type='cuda', {properties})"):
        of_kernel(parts, "here")


@given(text=st.sampled_from(EVERY_FORM), at=st.integers(0, 400), junk=st.text(max_size=5))
def test_no_damaged_text_fails(text: str, at: int, junk: str) -> None:
    of_properties(text[:at] + junk + text[at:], "here")
    assert isinstance(device_parts(text[:at]), dict)
