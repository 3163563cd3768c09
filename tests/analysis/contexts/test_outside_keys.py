"""What keys do not hold: how runs that looked one key up are said to differ; and the CPU that generated code was made for, by real code of one machine limited to three capabilities (see compile_for_cpus.py)."""

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from cachescope.analysis.contexts import outside_keys
from cachescope.analysis.contexts.cpu_safety import (
    NOT_CHECKED,
    SAFE,
    CpuSafety,
    Safety,
    VectorCode,
    fits_all,
    vector_code,
    worst,
)
from cachescope.frames.checks import FalseHit
from cachescope.frames.context_rows import ContextRow
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow, RunRow
from tests.analysis.plain_rows import context_row, entry_row
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


_PACKED = Path(__file__).parents[2] / "data" / "cpu_code.json.xz"
CODE: dict[str, dict[str, str]] = json.loads(lzma.decompress(_PACKED.read_bytes()))
WIDTHS = {"avx512": 512, "avx2": 256, "default": 0}
# What gave right numbers where entries made under AVX512 were loaded under AVX2, the two compared with eager
# execution; all other numbers were wrong (nan, errors from 1.0 to 7e+289).
RIGHT_ALL_THE_SAME = {"five_floats", "int8", "mm"}
# Vectors of 16 bits may be half full: 16 of them are one of AVX2 or a half of AVX512.
NOT_TOLD = {"bfloat16_transposed", "bfloat16_cat", "two_types"}


@pytest.mark.parametrize("name", CODE["avx512"])
@pytest.mark.parametrize("capability", CODE)
def test_code_fits_the_cpu_that_it_was_made_for(capability: str, name: str) -> None:
    fits = fits_all(vector_code(CODE[capability][name]), WIDTHS[capability])
    assert fits is (None if capability == "avx2" and name in NOT_TOLD else True)


@pytest.mark.parametrize("name", CODE["avx512"])
def test_code_of_wider_vectors_is_blamed_only_where_it_was_wrong(name: str) -> None:
    fits = fits_all(vector_code(CODE["avx512"][name]), 256)
    assert (fits is False) == (name not in RIGHT_ALL_THE_SAME)


@pytest.mark.parametrize("name", CODE["avx512"])
def test_code_without_vectors_fits_every_cpu(name: str) -> None:
    assert vector_code(CODE["default"][name]) == ()
    assert fits_all((), 512) is True


@pytest.mark.parametrize("capability", ["avx512", "avx2"])
def test_code_with_vectors_fits_no_cpu_without(capability: str) -> None:
    assert {name for name, code in CODE[capability].items() if fits_all(vector_code(code), 0)} == {"mm"}


def test_code_of_tiles_may_be_right_wherever_there_are_vectors() -> None:
    """Made by hand: which CPU has tiles is nothing that the width of its vectors tells."""
    for name in ("_tile_loadd", "amx_kernel"):
        (code,) = vector_code(f'extern "C" void kernel(float* p) {{ {name}_(0, p, 64); }}')
        assert [code.fits(width) for width in (0, 128, 256, 512)] == [False, None, None, None]


FLOAT, HALF, BYTE = ("at::vec::Vectorized<float>", "at::vec::Vectorized<at::BFloat16>", "at::vec::Vectorized<int8_t>")  # fmt: skip
FLOATS = "at::vec::VectorizedN<float,2>"
ANY = {128, 256, 512}


def loads(vector: str, count: int) -> str:
    return f"auto x = {vector}::loadu(in_ptr0 + static_cast<int64_t>(x0), static_cast<int64_t>({count}));\n"


def loop(step: str, inside: str) -> str:
    return f"for(int64_t x0=0; x0<64; x0{step}) {{ {inside} }}"


@pytest.mark.parametrize(("kernel", "widths", "has_whole"), [
    # A load of a whole vector says how many bits it has.
    (loads(FLOAT, 16), {512}, True),
    (loads(FLOAT, 8), {256}, True),
    (loads("at::vec::Vectorized<double>", 4), {256}, True),
    (loads(FLOATS, 16), {256}, True),
    (loads("at::vec::VectorizedN<int64_t, 2>", 16), {512}, True),
    (loads(FLOAT, 4) + loads(FLOAT, 8), {256}, True),
    (loads(FLOAT, 8) + loads(HALF, 32), {256}, True),
    (loop("+=static_cast<int64_t>(16L)", loads(FLOAT, 8)), {256}, True),
    # One of 16 bits may be a half.
    (loads(HALF, 32), {512}, True),
    (loads(HALF, 16), {256, 512}, True),
    (loads(HALF, 8), {128, 256}, True),
    (loads(HALF, 8) + loads(HALF, 16), {256, 512}, True),
    (loads("at::vec::VectorizedN<at::Half,2>", 32), {256, 512}, True),
    # One of bytes says nothing; nor the rest at the end of a loop.
    (loads(BYTE, 32), ANY, False),
    (loads(FLOAT, 8).replace("(8)", "(5L)"), ANY, False),
    # Without a whole load: the step of the loops, and the vectors that it fills.
    (loop("+=static_cast<int64_t>(8L)", f"{FLOAT}(0);"), {256}, False),
    (loop("+=static_cast<int64_t>(8)", f"{FLOAT}(0);"), {256}, False),
    (loop("+= 8L", f"{FLOAT}(0);"), {256}, False),
    (loop("+=16L", f"{FLOATS}(0);"), {256}, False),
    (loop("+=16L", "at::vec::convert<float,2,at::BFloat16,1>(y);"), {256}, False),
    (loop("+=8L", f"{FLOAT}(0); {HALF}(0);"), {256}, False),
    (loop("+=8L", loop("+=1L", f"{FLOAT}(0);")), {256}, False),
    (loop("+=8L", loop("+=16L", f"{FLOAT}(0);")), ANY, False),
    (loop("+=8L", f"{FLOAT}(0); at::vec::Vectorized<double>(0);"), ANY, False),
    (loop("+=8L", f"{FLOAT}(0); at::vec::VectorizedN<double,2>(0);"), {256}, False),
    (loop("+=5L", f"{FLOAT}(0);"), ANY, False),
    (loop("+=16L", loads(HALF, 16) + f"{FLOAT}(0);"), {512}, True),
    # Of bytes alone, a step is as many as there would be floats.
    (loop("+=8L", f"{BYTE}(0);"), {256}, False),
    (loop("+=16L", f"{BYTE}(0); out.store(p + 1);"), {512}, False),
    (loop("+=5L", f"{BYTE}(0);"), ANY, False),
    (loop("+=8L", f"{HALF}(0); {BYTE}(0);"), ANY, False),
    # A whole store is one too; one of the rest is not.
    (loop("+=8L", f"{FLOAT}(0); y.store(out_ptr0 + x0);"), {256}, True),
    (loop("+=8L", f"{FLOAT}(0); y.store(out_ptr0 + x0, static_cast<int64_t>(5L));"), {256}, False),
    (f"{FLOAT}(0); y.store(out_ptr0 + x0);", ANY, True),
    # Intrinsics name the width.
    ("_mm512_add_ps(a, b);", {512}, True),
    ("_mm256_add_ps(a, b); " + loads(FLOAT, 16), {256}, True),
])  # fmt: skip
def test_the_width_that_a_kernel_was_made_for(kernel: str, widths: set[int], has_whole: bool) -> None:
    """Made by hand, as torch writes it."""
    assert vector_code(kernel) == (VectorCode(frozenset(widths), has_whole),)


@pytest.mark.parametrize("kernel", ["", loads("Vectorized<float>", 8), "out[0] = in[0];"])
def test_a_kernel_without_vectors_has_no_width(kernel: str) -> None:
    assert vector_code(kernel) == ()


def test_every_kernel_of_a_source_counts_once() -> None:
    parts = ["#include <x>", loads(FLOAT, 8), loads(FLOAT, 16), "plain();", loads(FLOAT, 8)]
    assert [sorted(code.widths) for code in vector_code('extern "C"'.join(parts))] == [[256], [512]]


@pytest.mark.parametrize(("widths", "has_whole", "fits"), [
    ({256}, True, {0: False, 128: False, 256: True, 512: False}),
    ({256, 512}, True, {0: False, 128: False, 256: None, 512: None}),
    ({256}, False, {0: False, 128: None, 256: True, 512: None}),
])  # fmt: skip
def test_a_kernel_fits_a_cpu(widths: set[int], has_whole: bool, fits: dict[int, bool | None]) -> None:
    code = VectorCode(frozenset(widths), has_whole)
    assert {width: code.fits(width) for width in fits} == fits


def test_one_kernel_that_does_not_fit_is_enough() -> None:
    fits, does_not, may = (VectorCode(frozenset(widths)) for widths in ({256}, {512}, {256, 512}))
    assert fits_all([fits, fits], 256) is True
    assert fits_all([fits, may], 256) is None
    assert fits_all([may, does_not, fits], 256) is False


LOAD = "auto x = at::vec::Vectorized<float>::loadu(p, static_cast<int64_t>({}));\n"
AVX2, AVX512 = LOAD.format(8), LOAD.format(16)
BFLOAT16 = "at::vec::Vectorized<at::BFloat16>::loadu(p, static_cast<int64_t>(16));\n"


def row(number: int = 0, **told: Any) -> EntryRow:
    return entry_row(number, "fxgraph", "f1", **{"device_types": ("cpu",), "code_key": "c1", **told})


@pytest.mark.parametrize(("told", "source", "width", "is_unsafe", "reason"), [
    ({}, AVX2, 256, False, None),
    ({}, AVX2, 512, True, "it was built for another CPU: its code is written in vectors of 256 bits, and the process (NAME) has 512 bits;"),
    ({}, AVX2, 0, True, "and the process (NAME) has none;"),
    ({}, AVX2, None, None, "its code is written in vectors of 256 bits, and what the process's CPU has is not known"),
    ({}, BFLOAT16, 512, None, "vectors of 256 or 512 bits, and the process (NAME) has 512 bits: it may be right anyway"),
    ({}, AVX2 + 'extern "C"' + AVX512, 128, True, "vectors of 256 or 512 bits"),
    ({}, "no vectors", None, False, None),
    ({}, None, 256, None, "its generated code could not be read"),
    ({"device_types": ("cuda",)}, AVX512, 256, False, None),
    ({"device_types": ("cuda", "cpu")}, AVX512, 256, True, "another CPU"),
    ({"device_types": ()}, None, 256, False, None),
    ({"status": "unreadable"}, AVX2, 256, None, "its generated code could not be read"),
    ({"status": "unreadable", "device_types": ("cuda",)}, AVX2, 256, None, "its generated code could not be read"),
    ({"status": "damaged"}, AVX2, 256, False, None),
])  # fmt: skip
def test_an_entry(
    told: dict[str, Any], source: str | None, width: int | None, is_unsafe: bool | None, reason: str | None
) -> None:
    found = CpuSafety(lambda row: source, width, "NAME").of_graph(row(**told))
    assert found.is_unsafe is is_unsafe
    assert found.reason is None if reason is None else reason in (found.reason or "")


def test_one_code_is_read_once() -> None:
    read: list[int] = []

    def source_of(row: Any) -> str:
        read.append(row.entry)
        return AVX2 if row.code_key == "c1" else AVX512

    safety = CpuSafety(source_of, 256, "")
    rows = [row(0), row(1), row(2, code_key="c2"), row(3, code_key=None), row(4, code_key=None)]
    assert [safety.of_graph(one).is_unsafe for one in rows] == [False, False, True, True, True]
    # Without a key nothing says that two are the same.
    assert read == [0, 2, 3, 4]


UNSAFE, OTHER_UNSAFE, OPEN = Safety(True, "one"), Safety(True, "two"), Safety(None, "three")


@pytest.mark.parametrize(
    ("found", "wanted"),
    [([], SAFE), ([SAFE, SAFE], SAFE), ([SAFE, OPEN, NOT_CHECKED], OPEN), ([SAFE, OPEN, UNSAFE, OTHER_UNSAFE], UNSAFE)],
)  # fmt: skip
def test_the_worst_of_several(found: list[Safety], wanted: Safety) -> None:
    assert worst(found) is wanted
