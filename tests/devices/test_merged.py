"""Which mentions are one device. Texts of GPUs are made by hand (formats.md, 7.1); directories and recordings are real."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.columns import records
from cachescope.details import HashDetails
from cachescope.devices.mention import Mention, of_kernel, of_name, of_properties, of_target
from cachescope.devices.merged import device_rows, named_devices
from cachescope.frames.device_rows import RATE_COLUMNS
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.keys.hashing import system_hash
from tests.conftest import Directory, Recording
from tests.keys.test_isolation import A100, H100, MI300X

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
