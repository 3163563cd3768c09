"""What each form of a device's text says, and which mentions are one device. Texts of GPUs are made by hand, in the shapes of formats.md, section 7.1; directories and recordings are real."""

import itertools
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cachescope
from cachescope.columns import records
from cachescope.details import HashDetails
from cachescope.devices.mention import Mention, of_kernel, of_name, of_properties, of_target
from cachescope.devices.merged import device_rows, named_devices
from cachescope.frames.device_rows import RATE_COLUMNS
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.keys.device_text import device_parts, kernel_device_parts
from cachescope.keys.hashing import system_hash
from tests.conftest import Directory, Recording
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


OTHER_BOARD = H100.replace("uuid=5f", "uuid=6f").replace("pci_bus_id=25", "pci_bus_id=26")
NAME = "NVIDIA H100 80GB HBM3"


def rows_of(*mentions: Mention | None) -> list[dict[str, Any]]:
    return [asdict(row) for row in device_rows(one for one in mentions if one is not None)]


def of_run(run: int, text: str, index: int = 0) -> Mention | None:
    return of_properties(text, "snapshot", index=index, runs=frozenset({run}))


OF_RUN = frozenset({0})
OF_ANOTHER_RUN = frozenset({1})
BOARDS = (of_run(0, H100, 0), of_run(0, OTHER_BOARD, 1))
AS_CUDA = Mention("inputs", "cuda", runs=OF_RUN, index=0)


@pytest.mark.parametrize(("mentions", "wanted"), [
    # One uuid is one board wherever it is seen.
    ([of_properties(H100, "snapshot"), of_properties(H100.replace("81090", "81559"), "NVML")], {NAME: ["snapshot NVML"]}),
    ([of_properties(H100, "a"), of_properties(OTHER_BOARD, "a")], {NAME: ["a", "a"]}),
    # Without a uuid on either, one name is one device.
    ([of_name("NVIDIA L4", "keys", index=0), of_name("NVIDIA L4", "timings")], {"NVIDIA L4": ["keys timings"]}),
    # A name is of the board of its own run alone.
    ([of_run(0, H100), of_name(NAME, "keys", runs=OF_RUN)], {NAME: ["snapshot keys"]}),
    ([of_run(0, H100), of_name(NAME, "keys", runs=OF_ANOTHER_RUN)], {NAME: ["snapshot", "keys"]}),
    # An index chooses the board of its run.
    ([*BOARDS, of_name(NAME, "keys", runs=OF_RUN, index=1)], {NAME: ["snapshot", "snapshot keys"]}),
    ([*BOARDS, AS_CUDA], {NAME: ["snapshot inputs", "snapshot"]}),
    # An index that no device has is a device of its own.
    ([AS_CUDA, Mention("inputs", "cuda", runs=OF_RUN, index=1)], {"cuda:0": ["inputs"], "cuda:1": ["inputs"]}),
    # An architecture is of the one device that has it: the datasheet tells what an H100 compiles for.
    ([of_name(NAME, "keys"), of_target("cuda", "90", 32, "b"), of_target("cuda", "80", 32, "b")], {NAME: ["keys b"], "cuda sm_80": ["b"]}),
    # One of several boards adds no row.
    ([*BOARDS, of_target("cuda", "90", 32, "b")], {NAME: ["snapshot", "snapshot"]}),
    # A ROCm device, and what calls it cuda.
    (
        [of_run(0, MI300X), of_name("gfx942:sramecc+:xnack-", "keys", runs=OF_RUN), AS_CUDA,
         of_kernel({"type": "hip", "cc": "gfx942", "multi_processor_count": "304"}, "code")],
        {"AMD Instinct MI300X": ["snapshot keys code inputs"]},
    ),
    # Units that differ are not one device.
    ([of_properties(A100, "a"), of_kernel({"type": "cuda", "cc": "80", "multi_processor_count": "42"}, "code")],
     {"NVIDIA A100-SXM4-80GB": ["a"], "cuda sm_80": ["code"]}),
])  # fmt: skip
def test_which_mentions_are_of_one_device(mentions: list[Mention], wanted: dict[str, list[str]]) -> None:
    found: dict[str, list[str]] = {}
    for row in rows_of(*mentions):
        found.setdefault(row["name"], []).append(" ".join(row["seen_in"]))
    assert found == wanted


def test_what_one_mention_tells_is_told_of_the_device() -> None:
    (row,) = rows_of(of_properties(H100, "a"), of_properties(H100.replace("81090", "81559"), "NVML"))
    assert row["memory_bytes"] == 81090 << 20
    (row,) = rows_of(of_name("NVIDIA L4", "keys", index=0), of_name("NVIDIA L4", "timings"))
    assert (row["indices"], row["uuid"]) == ((0,), None)
    _, other = rows_of(of_run(0, H100), of_name(NAME, "keys", runs=OF_ANOTHER_RUN))
    assert other["uuid"] is None
    (row,) = rows_of(AS_CUDA)
    assert (row["type"], row["matched_by"]) == ("cuda", None)
    assert rows_of(of_run(0, MI300X))[0]["type"] == "hip"


def test_the_datasheet_stands_beside_its_device() -> None:
    (row,) = rows_of(of_properties(H100, "a"))
    assert (row["datasheet"], row["sparsity_factor"]) == ("NVIDIA H100 SXM", 2)
    assert (row["peak_bf16_tflops"], row["datasheet_bandwidth_gbs"]) == (989.5, 3350)
    assert "https://" in str(row["source"]) and "halved" in str(row["datasheet_note"])


def test_an_unknown_device_shows_what_is_known_and_no_invented_number() -> None:
    text = H100.replace(NAME, "Acme X9000")
    (row,) = rows_of(of_properties(text, "a"))
    assert (row["name"], row["sm_count"]) == ("Acme X9000", 132)
    assert row["matched_by"] == "no datasheet of that name"
    figures = [*RATE_COLUMNS.values(), "sparsity_factor", "datasheet_bandwidth_gbs", "datasheet_memory_gb"]
    assert all(row[column] is None for column in figures)


def test_keys_of_one_run_name_its_devices() -> None:
    details = HashDetails()
    texts = [
        f"[{'a' * 51}] system_info[device]: {{'name': '{NAME}'}}",
        f"[{'b' * 51}] example_inputs[0]: TensorMetadata(dtype=torch.float32, device=device(type='cuda', index=1), x=1)",
        f"[{'c' * 51}] example_inputs[1]: TensorMetadata(dtype=torch.float32, device=device(type='cpu'), x=1)",
    ]
    code, rejected = details.add(texts)
    assert rejected == []
    found = named_devices([], [], [LookupRow(run=4, detail_set=code)], [], details)
    assert [(row.name, row.runs, row.indices) for row in found] == [(NAME, (4,), (1,)), ("cpu", (4,), ())]


def test_a_recording_on_a_cpu_names_the_cpu(recording: Recording) -> None:
    frame = cachescope.read(recording("2.13.0", "config_flip")).devices
    assert frame["name"].tolist() == frame["type"].tolist() == ["cpu"]
    assert frame["runs"].tolist() == [(0, 1, 2)]
    assert frame["datasheet"].isna().all()


@pytest.mark.slow
def test_a_snapshot_tells_the_architecture_of_the_cpu(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps(cachescope.capture()))
    frame = cachescope.read(path).devices
    row = records(frame[frame["type"] == "cpu"])[0]
    assert row["arch"] in ("x86_64", "aarch64", "arm64", "AMD64")
    assert json.loads(row["properties"])["cpu_capability"] == torch.backends.cpu.get_cpu_capability()


def test_kernels_compiled_for_other_machines_name_their_targets(directory: Directory) -> None:
    frame = cachescope.read(directory("triton_cross")).devices
    found = set(zip(frame["name"], frame["compute_capability"], frame["warp_size"], strict=True))
    assert found == {("cuda sm_80", "8.0", 32), ("cuda sm_90", "9.0", 32)}


def test_generated_code_of_a_cpu_tells_its_cores(directory: Directory) -> None:
    frame = cachescope.read(directory("triton_kernels")).devices
    (cpu,) = records(frame[frame["type"] == "cpu"])
    assert cpu["sm_count"] == 2
    assert "generated code" in cpu["seen_in"]
    assert frame["name"].tolist() == ["cuda sm_90", "cpu"]


def test_metadata_of_aotinductor_name_machine_and_capability(tmp_path: Path) -> None:
    # Made by hand after `get_device_information` (torch/_inductor/codecache.py, 2.15).
    said = {"PLATFORM": "linux", "MACHINE": "x86_64", "CPU_ISA": "AVX512", "COMPUTE_CAPABILITY": "90"}
    folder = tmp_path / "ab"
    folder.mkdir()
    path = folder / f"c{'a' * 51}.wrapper_metadata.json"
    path.write_text(json.dumps({f"AOTI_{name}": value for name, value in said.items()}))
    (folder / "fxgraph").mkdir()
    found = named_devices([], [], [], [EntryRow(path=str(path), cache="code")], HashDetails())
    assert {(row.type, row.arch) for row in found} == {("cpu", "x86_64"), ("cuda", "sm_90")}


def test_a_file_of_pad_mm_names_its_device_and_the_versions_of_its_answers(tmp_path: Path) -> None:
    """Its form is that of public caches of torch 2.7 and 2.8: answers and times without any nesting."""
    name = "NVIDIA GeForce RTX 3090"
    system = {"device": {"name": name}, "version": {"triton": "3.4.0", "cuda": "12.6"}}
    held: dict[str, Any] = {
        "answers of pad_mm": {"((33, 515), aten.mm)": True},
        "timings of max-autotune": {"mm": {"in": {"high": {"c": 1.0}}}},
    }
    for what, cache in held.items():
        made = tmp_path / "cache" / system_hash(system)
        made.parent.mkdir(exist_ok=True)
        made.write_text(json.dumps({"system": system, "cache": cache}))
        (row,) = records(cachescope.read(tmp_path).devices)
        assert (row["name"], row["seen_in"]) == (name, (f"{what} (Triton 3.4.0, cuda 12.6)",))


def test_sources_without_devices_name_none() -> None:
    assert device_rows([]) == []
