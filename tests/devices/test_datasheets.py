"""Datasheets: every row sane, a spot table typed by hand from the vendors' pages, and names told apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.devices.datasheets import Datasheet, datasheets, match_datasheet, match_shape
from cachescope.frames.device_rows import RATE_COLUMNS

SHEETS = pytest.mark.parametrize("sheet", datasheets(), ids=lambda sheet: sheet.model)
# Typed from the vendors' tables, not from the module: dense rates; those after the bar are printed with sparsity.
BY_HAND = {
    "NVIDIA A100 SXM 80GB": {"fp64": 19.5, "tf32": 156, "bf16": 312, "int8": 624},
    "NVIDIA H100 SXM": {"fp64": 67, "fp32": 67, "tf32": 989 / 2, "bf16": 1979 / 2, "fp8": 3958 / 2},
    "NVIDIA H100 PCIe": {"fp32": 51, "tf32": 756 / 2, "fp16": 1513 / 2, "int8": 3026 / 2},
    "NVIDIA H100 NVL": {"fp32": 60, "bf16": 1671 / 2, "fp8": 3341 / 2},
    "NVIDIA B200": {"fp32": 75, "bf16": 2250, "fp8": 4500, "fp4": 9000},
    "NVIDIA GB300": {"fp64": 1.3, "bf16": 2500, "int8": 165, "fp4": 15000},
    "NVIDIA L4": {"fp32": 30.3, "tf32": 60, "bf16": 121, "fp8": 242.5},
    "NVIDIA L40S": {"fp32": 91.6, "tf32": 183, "fp8": 733},
    "NVIDIA A10": {"fp32": 31.2, "tf32": 62.5, "fp16": 125, "int8": 250},
    "NVIDIA T4": {"fp32": 8.1, "fp16": 65, "int8": 130},
    "NVIDIA V100 SXM2": {"fp64": 7.8, "fp32": 15.7, "fp16": 125},
    "NVIDIA GeForce RTX 4090": {"fp32": 82.6, "bf16": 165.2},
    "NVIDIA GeForce RTX 5090": {"fp32": 104.8, "bf16": 209.5, "fp4": 3352 / 2},
    "AMD Instinct MI210": {"fp64": 45.3, "fp16": 181},
    "AMD Instinct MI250X, one of its two dies": {"fp64": 95.7 / 2, "fp16": 383 / 2},
    "AMD Instinct MI300X": {"fp64": 163.4, "tf32": 653.7, "fp16": 1307.4, "fp8": 2614.9},
    "AMD Instinct MI355X": {"fp64": 78.6, "fp16": 2516.6, "fp8": 5033.2},
    "Intel Arc B580": {"int8": 233},
    "NVIDIA GeForce RTX 2080 Ti": {"fp32": 13.4, "fp16": 53.8, "int8": 215.2},
    "NVIDIA GeForce RTX 3090": {"fp32": 35.6, "tf32": 35.6, "bf16": 142 / 2, "int8": 568 / 2},
    "NVIDIA GeForce RTX 5080": {"fp32": 56.3, "bf16": 112.6, "fp8": 225.1, "fp4": 1801 / 2},
    "NVIDIA RTX A6000": {"fp32": 38.7, "tf32": 77.4, "bf16": 154.8},
    "NVIDIA A40": {"fp32": 37.4, "tf32": 74.8, "bf16": 149.7},
    "NVIDIA L40": {"fp32": 90.5, "tf32": 90.5, "bf16": 181.05, "fp8": 362},
}
MEMORY = {
    "NVIDIA A100 SXM 80GB": (80, 2039), "NVIDIA A100 PCIe 80GB": (80, 1935),
    "NVIDIA A100 SXM 40GB": (40, 1555), "NVIDIA H100 SXM": (80, 3350), "NVIDIA H100 PCIe": (80, 2000),
    "NVIDIA H100 NVL": (94, 3900), "NVIDIA H200 SXM": (141, 4800), "NVIDIA B200": (180, 7700),
    "NVIDIA GB300": (279, 8000), "NVIDIA L4": (24, 300), "NVIDIA L40S": (48, 864),
    "NVIDIA GeForce RTX 5090": (32, 1792), "AMD Instinct MI300A": (128, 5300),
    "AMD Instinct MI325X": (256, 6000), "Intel Data Center GPU Max 1100": (48, 1228.8),
}  # fmt: skip
NAMES = {
    "NVIDIA A100-SXM4-80GB": "NVIDIA A100 SXM 80GB", "A100-SXM4-40GB": "NVIDIA A100 SXM 40GB",
    "NVIDIA A100 80GB PCIe": "NVIDIA A100 PCIe 80GB", "NVIDIA A100-PCIE-40GB": "NVIDIA A100 PCIe 40GB",
    "NVIDIA H100 80GB HBM3": "NVIDIA H100 SXM", "NVIDIA H100 PCIe": "NVIDIA H100 PCIe",
    "NVIDIA H100 NVL": "NVIDIA H100 NVL", "NVIDIA H200": "NVIDIA H200 SXM", "NVIDIA B200": "NVIDIA B200",
    "NVIDIA GB300": "NVIDIA GB300", "NVIDIA L4": "NVIDIA L4", "NVIDIA L40S": "NVIDIA L40S",
    "NVIDIA A10": "NVIDIA A10", "Tesla T4": "NVIDIA T4", "Tesla V100-SXM2-16GB": "NVIDIA V100 SXM2",
    "Tesla V100-SXM2-32GB": "NVIDIA V100 SXM2", "Tesla V100-PCIE-16GB": "NVIDIA V100 PCIe",
    "NVIDIA GeForce RTX 4090": "NVIDIA GeForce RTX 4090",
    "NVIDIA GeForce RTX 5090": "NVIDIA GeForce RTX 5090", "AMD Instinct MI210": "AMD Instinct MI210",
    "AMD Instinct MI250X / MI250": "AMD Instinct MI250X, one of its two dies",
    "AMD Instinct MI300A": "AMD Instinct MI300A", "AMD Instinct MI300X VF": "AMD Instinct MI300X",
    "AMD Instinct MI325X": "AMD Instinct MI325X", "AMD Instinct MI350X": "AMD Instinct MI350X",
    "AMD Instinct MI355X": "AMD Instinct MI355X",
    "Intel(R) Data Center GPU Max 1100": "Intel Data Center GPU Max 1100",
    "Intel(R) Arc(TM) B580 Graphics": "Intel Arc B580", "NVIDIA A40": "NVIDIA A40",
    "NVIDIA A16": "NVIDIA A16, one of its four GPUs", "NVIDIA A30": "NVIDIA A30", "NVIDIA L40": "NVIDIA L40",
    "Tesla V100S-PCIE-32GB": "NVIDIA V100S PCIe", "NVIDIA H200 NVL": "NVIDIA H200 NVL",
    "NVIDIA GH200 480GB": "NVIDIA GH200 480GB", "NVIDIA RTX A6000": "NVIDIA RTX A6000",
    **{f"NVIDIA GeForce RTX {one}": f"NVIDIA GeForce RTX {one}" for one in ("2080 Ti", "3080", "3090", "3090 Ti", "4080", "5080")},
    "AMD Instinct MI100": "AMD Instinct MI100",
    "Intel(R) Data Center GPU Max 1550": "Intel Data Center GPU Max 1550",
    "Intel(R) Arc(TM) A770 Graphics": "Intel Arc A770",
}  # fmt: skip
# Other silicon, another memory or a part of a board, however like the name is.
OTHERS = (
    "NVIDIA A100-SXM-64GB", "NVIDIA A100-SXM4-80GB MIG 1g.10gb", "NVIDIA H100", "NVIDIA H100 SXM5 64GB",
    "NVIDIA GH200 144G HBM3e", "NVIDIA A10G", "NVIDIA GeForce RTX 3080 Ti", "NVIDIA GeForce RTX 2080",
    "NVIDIA GeForce RTX 4080 SUPER", "NVIDIA RTX 6000 Ada Generation", "NVIDIA GeForce RTX 4090 D",
    "NVIDIA GeForce RTX 4090 Laptop GPU", "AMD Instinct MI250", "Intel(R) Arc(TM) A770M Graphics", "gfx942", "",
)  # fmt: skip


@SHEETS
def test_no_sparse_rate_is_taken_for_a_dense_one(sheet: Datasheet) -> None:
    assert sheet.dense.keys() <= RATE_COLUMNS.keys()
    assert sheet.dense.keys() >= sheet.with_sparsity.keys()
    for dtype, rate in sheet.with_sparsity.items():
        assert sheet.dense[dtype] < rate
        is_known = (sheet.model, dtype) == ("NVIDIA GB300", "fp4")
        assert rate / sheet.dense[dtype] == pytest.approx(2, rel=0.02) or is_known
    assert set(sheet.halved) <= sheet.with_sparsity.keys()


@SHEETS
def test_narrower_types_are_not_slower(sheet: Datasheet) -> None:
    order = [dtype for dtype in ("fp32", "tf32", "bf16", "fp8", "fp4") if dtype in sheet.dense]
    rates = [sheet.dense[dtype] for dtype in order]
    assert rates == sorted(rates)
    is_equal = sheet.dense.get("bf16", sheet.dense["fp16"]) == sheet.dense["fp16"]
    assert is_equal or sheet.model == "AMD Instinct MI100"
    assert sheet.dense.get("tf32", 0) < sheet.dense["fp16"]


@SHEETS
def test_every_row_names_its_source_and_what_it_was_held_against(sheet: Datasheet) -> None:
    assert sheet.url.startswith("https://")
    assert sheet.title.startswith(("NVIDIA", "AMD", "Intel"))
    assert sheet.checked
    assert sheet.bandwidth_gbs > 0 and all(size > 0 for size in sheet.memory_gb)


@pytest.mark.parametrize("model", BY_HAND)
def test_rates_are_those_of_the_vendors_table(model: str) -> None:
    (sheet,) = [sheet for sheet in datasheets() if sheet.model == model]
    assert {dtype: sheet.dense[dtype] for dtype in BY_HAND[model]} == pytest.approx(BY_HAND[model], rel=1e-3)


@pytest.mark.parametrize("model", MEMORY)
def test_memory_is_that_of_the_vendors_table(model: str) -> None:
    (sheet,) = [sheet for sheet in datasheets() if sheet.model == model]
    assert (*sheet.memory_gb, sheet.bandwidth_gbs) == MEMORY[model]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_a_driver_finds_its_board(name: str) -> None:
    match = match_datasheet(name)
    assert match.datasheet is not None and match.datasheet.model == NAMES[name]
    assert "of the name" in match.matched_by


def test_every_datasheet_has_a_name_that_finds_it() -> None:
    assert set(NAMES.values()) == {sheet.model for sheet in datasheets()}


@pytest.mark.parametrize("name", OTHERS)
def test_a_name_that_only_looks_like_one_finds_none(name: str) -> None:
    assert match_datasheet(name).datasheet is None


def test_a_name_that_several_boards_have_says_so() -> None:
    told = match_datasheet("NVIDIA H100").matched_by
    assert told == "the name fits several: NVIDIA H100 SXM, NVIDIA H100 PCIe, NVIDIA H100 NVL"


def test_a_part_of_a_board_gets_no_whole_boards_rates() -> None:
    match = match_datasheet("AMD Instinct MI300X VF", 24 << 30)
    assert match.datasheet is None
    assert "192 GB" in match.matched_by and "26 GB" in match.matched_by


def test_a_part_of_a_board_has_fewer_sms() -> None:
    assert "132 SMs; this reports 60" in match_datasheet("NVIDIA H100 80GB HBM3", 80 * 10**9, 60).matched_by
    part = match_shape("sm_90", 60)
    assert part and "with 60 it is a part of one, as MIG makes" in part
    assert match_shape("sm_75", 68) == "nothing names it; with as many SMs: NVIDIA GeForce RTX 2080 Ti"
    assert match_shape("sm_90", None) is match_shape("sm_61", 20) is match_shape(None, 20) is None


@given(name=st.text(max_size=60))
def test_any_name_is_answered(name: str) -> None:
    assert match_datasheet(name, 1, 1).matched_by


@pytest.mark.slow
def test_torch_has_the_same_dense_rates_where_it_has_a_row() -> None:
    """torch 2.13's own table, with sparsity taken out as it says, for the rows that are the same board."""
    info = pytest.importorskip("torch._inductor.analysis.device_info")
    torch = pytest.importorskip("torch")
    same = {
        "AMD MI300X": "AMD Instinct MI300X",
        "AMD MI300A": "AMD Instinct MI300A",
        "NVIDIA A100": "NVIDIA A100 SXM 80GB",
    }
    for name, model in same.items():
        theirs = info._device_mapping[name]
        (sheet,) = [sheet for sheet in datasheets() if sheet.model == model]
        factor = getattr(theirs, "tops_sparsity_factor", 1)
        for dtype, ours in {torch.float64: "fp64", torch.bfloat16: "bf16", torch.int8: "int8"}.items():
            assert sheet.dense[ours] == pytest.approx(theirs.tops[dtype] / factor, rel=2e-3)
        assert sheet.bandwidth_gbs == theirs.dram_bw_gbs
