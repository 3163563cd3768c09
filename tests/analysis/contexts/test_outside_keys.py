"""Runs that looked one key up, what is known of each that keys do not hold, and how they are said to differ; made by hand."""

import json
from typing import Any

import pytest

from cachescope.analysis.contexts import outside_keys
from cachescope.frames.checks import FalseHit
from cachescope.frames.context_rows import ContextRow
from cachescope.frames.recorded_rows import LookupRow, RunRow
from tests.analysis.plain_rows import context_row
from tests.analysis.plain_rows import run_row as plain_run_row

KEY = ("fxgraph", "f11")
DTYPE, THREADS = "torch.get_default_dtype()", "torch.get_num_threads()"
H100 = "_CudaDeviceProperties(name='H100', major=9, minor=0, total_memory=80MB, multi_processor_count=132, uuid=1)"


def run_row(number: int, **told: Any) -> RunRow:
    return plain_run_row(number, **{"source": "/a", "pid": 10 + number, "start_time": 0, **told})


def snapshot(number: int, **told: Any) -> ContextRow:
    """What a run said of itself."""
    if "settings" in told:
        told["settings"] = json.dumps(told["settings"])
    return context_row(number, **{"run": number, **told})


def doubts(runs: list[RunRow], *snapshots: ContextRow, cpu_keys: tuple[Any, ...] = ()) -> list[FalseHit]:
    """Of one key that all of the runs looked up."""
    of_key = {KEY: [LookupRow(lookup=row.run, run=row.run) for row in runs]}
    return list(outside_keys.different_circumstances(of_key, runs, snapshots, cpu_keys))


def said(runs: list[RunRow], *snapshots: ContextRow, **told: Any) -> list[tuple[str, tuple[str, ...]]]:
    return [(doubt.kind, doubt.fields) for doubt in doubts(runs, *snapshots, **told)]


@pytest.mark.parametrize(("name", "one", "other", "differs"), [
    ("torch_version", "2.13.0", "2.14.0", True), ("torch_version", "2.13.0", "2.13.1", True),
    ("torch_version", "2.13.0", "2.13.0", False), ("torch_version", "2.13.0", None, False),
    ("python_version", "3.11.7", "3.12.1", True), ("python_version", "3.11.7", "3.11.8", False),
    ("python_version", None, "3.11.8", False),
])  # fmt: skip
def test_versions_of_runs(name: str, one: str | None, other: str | None, differs: bool) -> None:
    runs = [run_row(0, **{name: one}), run_row(1, **{name: other})]
    assert said(runs) == ([("different_versions", (name,))] if differs else [])


@pytest.mark.parametrize(("told", "kind"), [
    ({"runtime_version": ("12.4", "12.8")}, "different_versions"),
    ({"triton_version_hash": ("3.4", "3.5")}, "different_versions"),
    ({"runtime": ("CUDA", None)}, None),
    ({"accelerator_properties": (H100, H100.replace("H100", "A100"))}, "different_devices"),
    ({"accelerator_properties": (H100, H100.replace("=132", "=114"))}, "different_devices"),
    ({"accelerator_properties": (H100, H100.replace("uuid=1", "uuid=2"))}, None),
    ({"settings": ({DTYPE: "float32"}, {DTYPE: "float64"})}, "different_settings"),
    ({"settings": ({DTYPE: "float32"}, {})}, None),
    ({"settings": ({THREADS: "4"}, {THREADS: "8"})}, None),
])  # fmt: skip
def test_what_snapshots_say(told: dict[str, tuple[Any, Any]], kind: str | None) -> None:
    ((name, values),) = told.items()
    found = doubts([run_row(0), run_row(1)], *(snapshot(n, **{name: v}) for n, v in enumerate(values)))
    assert [doubt.kind for doubt in found] == ([] if kind is None else [kind])
    assert [(doubt.cache, doubt.cache_key) for doubt in found] == [KEY] * len(found)


def test_what_only_code_of_the_cpu_depends_on() -> None:
    runs = [run_row(0), run_row(1)]
    captured = [snapshot(n, settings={THREADS: str(4 + n), DTYPE: "float32"}) for n in range(2)]
    assert said(runs, *captured) == []
    assert said(runs, *captured, cpu_keys=(KEY,)) == [("different_settings", (THREADS,))]
    assert said(runs, *captured, cpu_keys=(("aotautograd", "f11"),)) == []


def test_a_snapshot_of_no_run_says_nothing_of_one() -> None:
    captured = [snapshot(0, runtime="CUDA"), snapshot(1, runtime="HIP", run=None)]
    assert said([run_row(0), run_row(1)], *captured) == []


def test_runs_that_looked_up_other_keys_are_not_compared() -> None:
    runs = [run_row(0, torch_version="2.13.0"), run_row(1, torch_version="2.14.0")]
    of_key = {(KEY[0], f"f{row.run}"): [LookupRow(run=row.run)] for row in runs}
    assert list(outside_keys.different_circumstances(of_key, runs, [])) == []


def evidence(name: str, *values: str) -> str:
    snapshots = [snapshot(n, **{name: value}) for n, value in enumerate(values)]
    (doubt,) = doubts([run_row(n) for n in range(len(values))], *snapshots)
    return doubt.evidence


def test_the_evidence_names_both_sides_and_their_runs() -> None:
    said = "one key was looked up by runs whose runtime differs: "
    assert evidence("runtime", "CUDA", "HIP") == said + "CUDA (run 0) and HIP (run 1)"
    assert evidence("runtime", "A", "B", "A") == said + "A (runs 0, 2) and B (run 1)"
    assert evidence("runtime", *"BAAAA") == said + "B (run 0) and A (runs 1, 2, 3, 4)"
    assert evidence("runtime", *"BAAAAA") == said + "B (run 0) and A (runs 1, 2, 3, 4…)"


def test_long_values_are_cut() -> None:
    assert "v" * 60 + " (run 0)" in evidence("runtime", "v" * 60, "x")
    assert "v" * 60 + "… (run 0)" in evidence("runtime", "v" * 61, "x")
    assert "v" * 12 + " (run 0)" in evidence("triton_version_hash", "v" * 12, "x")
    assert "v" * 12 + "… (run 0)" in evidence("triton_version_hash", "v" * 13, "x")


@pytest.mark.parametrize(("properties", "model"), [
    (H100, "H100 major=9 minor=0 multi_processor_count=132"),
    (H100.replace("H100", "Bob's"), "Bob's major=9 minor=0 multi_processor_count=132"),
    ("_CudaDeviceProperties(name='MI300', major=9, minor=4, gcnArchName='gfx942:a+', uuid=1)",
     "MI300 major=9 minor=4 gcnArchName='gfx942:a+'"),
    ("another text", "another text"),
])  # fmt: skip
def test_the_model_of_a_board(properties: str, model: str) -> None:
    assert outside_keys.device_model(properties) == model


LINUX, MAC, WINDOWS = "Linux-6.1-x86_64-with-glibc2.36", "macOS-14.5-arm64-arm-64bit", "Windows-10-AMD64"


@pytest.mark.parametrize(("capability", "platform", "width"), [
    ("AVX2", LINUX, 256),
    ("AVX512", LINUX, 512),
    ("DEFAULT", LINUX, 0),
    ("DEFAULT", WINDOWS, 0),
    ("DEFAULT", MAC, 128),
    ("DEFAULT", "Linux-6.1-aarch64-with-glibc2.36", 128),
    ("DEFAULT", "Linux-6.1-riscv64", None),
    ("SVE256", "Linux-6.1-aarch64-with-glibc2.36", 256),
    ("NEW", LINUX, None),
    (None, LINUX, None),
])  # fmt: skip
def test_the_width_of_vectors(capability: str | None, platform: str, width: int | None) -> None:
    settings = {} if capability is None else {outside_keys.CPU_CAPABILITY: capability}
    assert outside_keys.vector_width(settings, platform) == width
