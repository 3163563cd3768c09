"""Which mentions are one device. Texts of GPUs are made by hand (formats.md, 7.1); directories and recordings are real."""

from __future__ import annotations

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
from tests.conftest import Directory, Recording
from tests.keys.test_isolation import A100, H100, MI300X

OTHER_BOARD = H100.replace("uuid=5f", "uuid=6f").replace("pci_bus_id=25", "pci_bus_id=26")
NAME = "NVIDIA H100 80GB HBM3"


def rows_of(*mentions: Mention | None) -> list[dict[str, Any]]:
    return [asdict(row) for row in device_rows(one for one in mentions if one is not None)]


def of_run(run: int, text: str, index: int = 0) -> Mention | None:
    return of_properties(text, "snapshot", index=index, runs=frozenset({run}))


def test_one_uuid_is_one_board_wherever_it_is_seen() -> None:
    rows = rows_of(of_properties(H100, "snapshot"), of_properties(H100.replace("81090", "81559"), "NVML"))
    assert len(rows) == 1
    assert rows[0]["seen_in"] == ("snapshot", "NVML")
    assert rows[0]["memory_bytes"] == 81090 << 20


def test_two_boards_of_one_model_are_two() -> None:
    assert len(rows_of(of_properties(H100, "a"), of_properties(OTHER_BOARD, "a"))) == 2


def test_without_a_uuid_on_either_one_name_is_one_device() -> None:
    rows = rows_of(of_name("NVIDIA L4", "keys", index=0), of_name("NVIDIA L4", "timings"))
    assert len(rows) == 1
    assert (rows[0]["seen_in"], rows[0]["indices"], rows[0]["uuid"]) == (("keys", "timings"), (0,), None)


def test_a_name_is_of_the_board_of_its_own_run_alone() -> None:
    same = rows_of(of_run(0, H100), of_name(NAME, "keys", runs=frozenset({0})))
    assert [row["seen_in"] for row in same] == [("snapshot", "keys")]
    other = rows_of(of_run(0, H100), of_name(NAME, "keys", runs=frozenset({1})))
    assert [row["seen_in"] for row in other] == [("snapshot",), ("keys",)]
    assert [row["uuid"] is None for row in other] == [False, True]


def test_an_index_chooses_the_board_of_its_run() -> None:
    boards = (of_run(0, H100, 0), of_run(0, OTHER_BOARD, 1))
    rows = rows_of(*boards, of_name(NAME, "keys", runs=frozenset({0}), index=1))
    assert [row["seen_in"] for row in rows] == [("snapshot",), ("snapshot", "keys")]
    rows = rows_of(*boards, Mention("inputs", "cuda", runs=frozenset({0}), index=0))
    assert [row["seen_in"] for row in rows] == [("snapshot", "inputs"), ("snapshot",)]


def test_an_index_that_no_device_has_is_a_device_of_its_own() -> None:
    run = frozenset({0})
    rows = rows_of(Mention("inputs", "cuda", runs=run, index=0), Mention("inputs", "cuda", runs=run, index=1))
    assert [(row["name"], row["type"], row["matched_by"]) for row in rows] == [
        ("cuda:0", "cuda", None),
        ("cuda:1", "cuda", None),
    ]


def test_an_architecture_is_of_the_one_device_that_has_it() -> None:
    # Its name alone tells what an H100 compiles for, through its datasheet.
    rows = rows_of(
        of_name(NAME, "keys"),
        of_target("cuda", "90", 32, "Triton targets"),
        of_target("cuda", "80", 32, "Triton targets"),
    )
    assert [(row["name"], row["seen_in"]) for row in rows] == [
        (NAME, ("keys", "Triton targets")),
        ("cuda sm_80", ("Triton targets",)),
    ]


def test_an_architecture_of_several_boards_adds_no_row() -> None:
    rows = rows_of(
        of_properties(H100, "a"), of_properties(OTHER_BOARD, "a"), of_target("cuda", "90", 32, "b")
    )
    assert len(rows) == 2


def test_a_rocm_device_and_what_calls_it_cuda_are_one() -> None:
    run = frozenset({0})
    rows = rows_of(
        of_run(0, MI300X),
        of_name("gfx942:sramecc+:xnack-", "keys", runs=run),
        Mention("inputs", "cuda", runs=run, index=0),
        of_kernel({"type": "hip", "cc": "gfx942", "multi_processor_count": "304"}, "code"),
    )
    assert [(row["type"], row["seen_in"]) for row in rows] == [
        ("hip", ("snapshot", "keys", "code", "inputs"))
    ]


def test_units_that_differ_are_not_one_device() -> None:
    rows = rows_of(
        of_properties(A100, "a"),
        of_kernel({"type": "cuda", "cc": "80", "multi_processor_count": "42"}, "code"),
    )
    assert len(rows) == 2


def test_the_datasheet_stands_beside_its_device() -> None:
    (row,) = rows_of(of_properties(H100, "a"))
    assert (row["datasheet"], row["peak_bf16_tflops"], row["sparsity_factor"]) == (
        "NVIDIA H100 SXM",
        989.5,
        2,
    )
    assert row["datasheet_bandwidth_gbs"] == 3350
    assert "https://" in str(row["source"]) and "halved" in str(row["datasheet_note"])


def test_an_unknown_device_shows_what_is_known_and_no_invented_number() -> None:
    text = H100.replace(NAME, "Acme X9000")
    (row,) = rows_of(of_properties(text, "a"))
    assert (row["name"], row["sm_count"], row["matched_by"]) == (
        "Acme X9000",
        132,
        "no datasheet of that name",
    )
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
    found = named_devices([], [], [LookupRow(run=4, detail_set=code)], [], [], details)
    assert [(row.name, row.runs, row.indices) for row in found] == [
        (NAME, (4,), (1,)),
        ("cpu", (4,), ()),
    ]


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
    assert set(zip(frame["name"], frame["compute_capability"], frame["warp_size"], strict=True)) == {
        ("cuda sm_80", "8.0", 32),
        ("cuda sm_90", "9.0", 32),
    }


def test_generated_code_of_a_cpu_tells_its_cores(directory: Directory) -> None:
    frame = cachescope.read(directory("triton_kernels")).devices
    (cpu,) = records(frame[frame["type"] == "cpu"])
    assert cpu["sm_count"] == 2
    assert "generated code" in cpu["seen_in"]
    assert frame["name"].tolist() == ["cuda sm_90", "cpu"]


def test_metadata_of_aotinductor_name_machine_and_capability(tmp_path: Path) -> None:
    # Made by hand after `get_device_information` (torch/_inductor/codecache.py, 2.15).
    said = {
        "AOTI_PLATFORM": "linux",
        "AOTI_MACHINE": "x86_64",
        "AOTI_CPU_ISA": "AVX512",
        "AOTI_COMPUTE_CAPABILITY": "90",
    }
    folder = tmp_path / "ab"
    folder.mkdir()
    (folder / f"c{'a' * 51}.wrapper_metadata.json").write_text(json.dumps(said))
    (folder / "fxgraph").mkdir()
    path = str(folder / f"c{'a' * 51}.wrapper_metadata.json")
    found = named_devices([], [], [], [EntryRow(path=path, cache="code")], [], HashDetails())
    assert {(row.type, row.arch) for row in found} == {("cpu", "x86_64"), ("cuda", "sm_90")}


def test_sources_without_devices_name_none() -> None:
    assert device_rows([]) == []
