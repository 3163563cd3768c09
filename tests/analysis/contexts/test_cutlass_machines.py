"""Machines that were recorded, and the one that a request key stands for; made by hand."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from cachescope.analysis.contexts.cutlass_machines import cutlass_machine
from cachescope.keys.cutlass import NO_CUTLASS_KEY, TORCH_FILE_HASHES, cutlass_request_key

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
