"""What each form of a device's text says. All texts are made by hand, in the shapes of formats.md, section 7.1."""

from __future__ import annotations

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
EVERY_FORM = [A100, H100, MI300A, MI300X, T4_OF_2_4, NO_UUID, NEWER, APOSTROPHE, XPU]


def test_a_cuda_device_of_2_8() -> None:
    found = of_properties(H100, "here", index=3)
    assert found is not None
    assert (found.type, found.name, found.index) == ("cuda", "NVIDIA H100 80GB HBM3", 3)
    assert (found.compute_capability, found.arch, found.sm_count) == ("9.0", "sm_90", 132)
    assert (found.memory_bytes, found.l2_bytes) == (81090 << 20, 50 << 20)
    assert (found.uuid, found.pci) == ("5f1b8c9e-0c1d-4d3a-9b7e-2f8f4a6d0c11", "0000:19:00")
    assert found.properties == ()


def test_a_cuda_device_of_2_4_tells_less() -> None:
    found = of_properties(T4_OF_2_4, "here")
    assert found is not None
    assert (found.arch, found.sm_count) == ("sm_75", 40)
    assert (found.uuid, found.pci, found.l2_bytes, found.warp_size) == (None, None, None, None)


def test_a_uuid_without_pci_ids_is_of_2_5_to_2_7() -> None:
    found = of_properties(A100, "here")
    assert found is not None
    assert found.uuid is not None and found.pci is None and found.l2_bytes == 40 << 20


def test_a_build_without_uuid() -> None:
    found = of_properties(NO_UUID, "here")
    assert found is not None and found.uuid is None and found.l2_bytes == 48 << 20


@pytest.mark.parametrize(("text", "units"), [(MI300A, 228), (MI300X, 304)])
def test_a_rocm_device_is_hip_with_its_architecture_and_features(text: str, units: int) -> None:
    found = of_properties(text, "here")
    assert found is not None
    assert (found.type, found.arch, found.sm_count) == ("hip", "gfx942:sramecc+:xnack-", units)
    assert found.compute_capability is None
    # The uuid of ROCm is ASCII in hexadecimal; it stays as torch prints it.
    assert found.uuid is not None and len(found.uuid) == 36


def test_on_cuda_the_attribute_gcnarchname_is_the_name_of_the_device() -> None:
    text = H100.replace("minor=0", "minor=0, gcnArchName='NVIDIA H100 80GB HBM3'")
    found = of_properties(text, "here")
    assert found is not None and (found.type, found.arch) == ("cuda", "sm_90")


def test_an_xpu_device_keeps_what_no_column_holds() -> None:
    found = of_properties(XPU, "here")
    assert found is not None
    assert (found.type, found.name, found.sm_count) == ("xpu", "Intel(R) Data Center GPU Max 1100", 56)
    assert dict(found.properties)["driver_version"] == "1.6.33578"
    assert dict(found.properties)["sub_group_sizes"] == "[16, 32]"


def test_properties_of_a_newer_torch_are_kept() -> None:
    found = of_properties(NEWER, "here")
    assert found is not None and found.warp_size == 32
    assert found.properties == (("clock_rate", "1980000"),)


def test_a_name_may_hold_an_apostrophe_and_what_looks_like_a_property() -> None:
    found = of_properties(APOSTROPHE, "here")
    assert found is not None and found.name == "Ann's 'H100', rev=2"
    assert found.sm_count == 132


def test_order_does_not_count() -> None:
    properties = ["major=9", "minor=0", "total_memory=81090MB", "uuid=5f1b8c9e", "L2_cache_size=50MB"]
    texts = [
        f"_CudaDeviceProperties(name='X', {', '.join(order)})" for order in itertools.permutations(properties)
    ]
    assert len({of_properties(text, "here") for text in texts}) == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
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
    ],
    ids=["2.5", "2.8", "rocm", "2.15", "cpu"],
)  # fmt: skip
def test_device_properties_of_generated_code_are_read_by_keyword(
    text: str, expected: tuple[object, ...]
) -> None:
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
