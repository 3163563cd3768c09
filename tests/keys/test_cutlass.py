"""Request keys equal those that torch gave the recorded files; and the recorded machine that one stands for, made by hand."""

import hashlib
import importlib.metadata
import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import cachescope
from cachescope.analysis.contexts.cutlass_machines import cutlass_machine
from cachescope.keys import CutlassRequest, cutlass_request_key, cutlass_requests
from cachescope.keys.cutlass import NO_CUTLASS_KEY, TORCH_FILE_HASHES
from tests.conftest import Directory


@pytest.fixture
def installed() -> str:
    """The version of the installed torch. Read, not asked: importing torch takes seconds."""
    if importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    return importlib.metadata.version("torch")


def file_hashes() -> list[str]:
    """Of the two files of the installed torch that its request keys take in."""
    found = importlib.util.find_spec("torch")
    assert found is not None and found.origin is not None
    folder = Path(found.origin).parent / "_inductor" / "codegen" / "cutlass"
    files = (folder / name for name in ("serialization.py", "utils.py"))
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]


def steps(directory: Directory) -> list[dict[str, Any]]:
    provenance = (directory("cutlass_configs") / "provenance.json").read_text()
    found: list[dict[str, Any]] = json.loads(provenance)["steps"]
    return found


def recorded_hashes(step: dict[str, Any]) -> list[str]:
    """What the recorder read from the files of that torch, in the order of the key; 2.8 takes none."""
    truth = step["truth"]["file_hashes"]
    utils = truth.get("utils", truth.get("cutlass_utils"))
    return [] if utils is None else [truth["serialization"], utils]


def test_the_request_key_is_torchs(directory: Directory) -> None:
    versions = []
    for step in steps(directory):
        for named in step["truth"]["names"]:
            key = cutlass_request_key(
                bytes.fromhex(named["cutlass_key"]), named["arch"], named["toolkit"], named["level"],
                *recorded_hashes(step),
            )  # fmt: skip
            assert key == named["request_key"]
        versions.append(step["versions"]["torch_version"].partition("+")[0])
    assert versions == ["2.13.0", "2.10.0", "2.8.0", "2.13.0"]


def test_the_hashes_are_those_of_files_of_the_installed_torch(directory: Directory, installed: str) -> None:
    (step, *_) = [step for step in steps(directory) if step["versions"]["torch_version"] == installed]
    assert recorded_hashes(step) == file_hashes()


@pytest.mark.parametrize("at", [0, 1, 2], ids=["2.13", "2.10", "2.8"])
def test_a_file_is_matched_to_the_machine_it_is_for(at: int, directory: Directory) -> None:
    step = steps(directory)[at]
    name = Path(step["environment"]["TORCHINDUCTOR_CACHE_DIR"]).name
    entries = cachescope.read(directory("cutlass_configs") / name)
    written = {row["request_key"]: row for row in step["truth"]["written"]}
    configs = entries.entries.query("cache == 'cutlass_configs'")
    assert set(configs["cache_key"]) == set(written)
    for key in configs["cache_key"]:
        (found,) = cutlass_requests(
            key, archs=["75", "80", "90", "100"], toolkit_versions=["12.4", "12.8", "12.9"],
            instantiation_levels=["0", "3332"], file_hashes=recorded_hashes(step),
        )  # fmt: skip
        row = written[key]
        assert found == CutlassRequest(row["arch"], row["toolkit"], row["level"])


def test_hashes_of_releases_are_the_recorded_and_installed_ones(directory: Directory, installed: str) -> None:
    for step in steps(directory):
        release = step["versions"]["torch_version"].partition("+")[0]
        shown = TORCH_FILE_HASHES[tuple(recorded_hashes(step))]
        assert release in shown.split(" or ") or (release, shown) == ("2.8.0", "2.8 or older")
    assert installed.partition("+")[0] in TORCH_FILE_HASHES[tuple(file_hashes())].split(" or ")


def test_another_cutlass_matches_no_machine(directory: Directory) -> None:
    step = steps(directory)[3]
    named = step["truth"]["names"][0]
    asked = (named["request_key"], [named["arch"]], [named["toolkit"]], [named["level"]])
    assert cutlass_requests(*asked, file_hashes=recorded_hashes(step)) == []
    assert len(cutlass_requests(*asked, bytes.fromhex(named["cutlass_key"]), recorded_hashes(step))) == 1


HASHES = {releases: hashes for hashes, releases in TORCH_FILE_HASHES.items()}


def rows(names: tuple[str, ...], *values: tuple[Any, ...]) -> Any:
    return [SimpleNamespace(**dict(zip(names, row, strict=True))) for row in values]


def machine(
    key: str,
    devices: list[tuple[str, str | None]],
    *,
    versions: tuple[tuple[Any, Any, Any], ...] = (),
    timed: tuple[tuple[Any, Any], ...] = (),
) -> str:
    """`versions`: runtime, its version and the configuration of each context; `timed`: of each file of timings."""
    return cutlass_machine(
        key,
        rows(("name", "compute_capability"), *devices),
        rows(("runtime", "runtime_version", "inductor_configs"), *versions),
        rows(("runtime", "runtime_version"), *timed),
    )


def key_of(arch: str, version: str, level: str = "0", releases: str = "2.8 or older") -> str:
    return cutlass_request_key(NO_CUTLASS_KEY, arch, version, level, *HASHES[releases])


H100, A100 = ("NVIDIA H100", "9.0"), ("NVIDIA A100", "8.0")


@pytest.mark.parametrize("releases", ["2.8 or older", "2.10.0", "2.15.0"])
def test_the_machine_is_named(releases: str) -> None:
    found = machine(key_of("90", "12.4", releases=releases), [A100, H100], versions=(("CUDA", "12.4", None),))
    assert found == f"NVIDIA H100 (arch 90), CUDA 12.4, instantiation level 0, torch {releases}"


def test_versions_are_those_of_contexts_and_timings() -> None:
    key = key_of("90", "12.8")
    named = "NVIDIA H100 (arch 90), CUDA 12.8, instantiation level 0, torch 2.8 or older"
    assert machine(key, [H100], timed=(("cuda", "12.8.1"),)) == named
    assert machine(key, [H100], versions=(("CUDA", "12.8.93", None), ("HIP", None, None))) == named
    for runtime, version in (("HIP", "12.8"), ("CUDA", None), (None, "12.8")):
        assert machine(key, [H100], versions=((runtime, version, None),)).startswith("not known: ")


def test_the_level_is_that_of_a_context() -> None:
    key = key_of("90", "12.8", "1111")
    said = "NVIDIA H100 (arch 90), CUDA 12.8, instantiation level 1111, torch 2.8 or older"
    for name in ("cuda.cutlass_instantiation_level", "cutlass.cutlass_instantiation_level"):
        assert machine(key, [H100], versions=(("CUDA", "12.8", json.dumps({name: "1111", "a": 1})),)) == said
    other = json.dumps({"cuda.another_level": "1111"})
    assert machine(key, [H100], versions=(("CUDA", "12.8", other),)).startswith("no machine that was read ")


def test_boards_of_one_architecture_are_named_together() -> None:
    boards = [("NVIDIA H200", "9.0"), H100, H100, ("cpu", None)]
    found = machine(key_of("90", "12.8"), boards, versions=(("CUDA", "12.8", None),))
    assert found.startswith("NVIDIA H100, NVIDIA H200 (arch 90), ")


def test_without_a_device_or_a_version_nothing_is_known() -> None:
    not_known = "not known: no CUDA device with its compute capability and CUDA version was read with it"
    assert machine(key_of("90", "12.8"), [], versions=(("CUDA", "12.8", None),)) == not_known
    assert machine(key_of("90", "12.8"), [("cpu", None)], versions=(("CUDA", "12.8", None),)) == not_known
    assert machine(key_of("90", "12.8"), [H100]) == not_known


def test_what_was_tried_is_said() -> None:
    versions = (("CUDA", "12.8", '{"cuda.cutlass_instantiation_level": "9"}'), ("CUDA", "12.4", None))
    found = machine("00000000", [H100, A100], versions=versions)
    said = "no machine that was read (arch 80, 90; CUDA 12.4, 12.8; level 0, 9), or one with another CUTLASS"
    assert found.startswith(said)
