"""In what two devices differ is told by what differs, in the order type, index, model, architecture, board."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.analysis.differences import field_change
from cachescope.keys.device_text import device_difference
from tests.keys.test_isolation import A100, H100, MI300A, MI300X

TENSOR = "TensorMetadata(dtype=torch.float32, shape=torch.Size([8]), device=device(type='{}'{}), layout=torch.strided)"


def tensor(device_type: str, index: int | None = None) -> str:
    return TENSOR.format(device_type, "" if index is None else f", index={index}")


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (H100, A100, "another model: NVIDIA H100 80GB HBM3 -> NVIDIA A100-SXM4-80GB"),
        (MI300A, MI300X, "another model: AMD Instinct MI300A -> AMD Instinct MI300X"),
        (H100, H100.replace("uuid=5f", "uuid=6f"), "same model, another board"),
        (H100, H100.replace("pci_bus_id=25", "pci_bus_id=26"), "same model, another board"),
        (
            H100,
            H100.replace("uuid=5f", "uuid=6f").replace("count=132", "count=114"),
            "same model, another board: multi_processor_count 132 -> 114",
        ),
        (
            MI300X,
            MI300X.replace("xnack-", "xnack+"),
            "another arch: gfx942:sramecc+:xnack- -> gfx942:sramecc+:xnack+",
        ),
        (
            H100,
            H100.replace("81090", "40000"),
            "same model, other properties: total_memory 81090MB -> 40000MB",
        ),
        (H100, H100.replace(", L2_cache_size=50MB", ""), "same model; only one side has L2_cache_size"),
        (tensor("cuda", 0), tensor("cuda", 1), "another index: cuda:0 -> cuda:1"),
        (tensor("cpu"), tensor("cuda", 0), "another type: cpu -> cuda:0"),
        ("{'name': 'NVIDIA A10'}", "{'name': 'NVIDIA L4'}", "another model: NVIDIA A10 -> NVIDIA L4"),
        ("{'name': 'gfx90a:sramecc+'}", "{'name': 'gfx942'}", "another arch: gfx90a:sramecc+ -> gfx942"),
        # Only two names of architectures are architectures.
        ("{'name': 'NVIDIA A10'}", "{'name': 'gfx942'}", "another model: NVIDIA A10 -> gfx942"),
        ("{'name': 'gfx942'}", "{'name': 'NVIDIA A10'}", "another model: gfx942 -> NVIDIA A10"),
        ("{'name': 'A', 'x': 1}", "{'name': \"B's\", 'x': 1}", "another model: A -> B's"),
        ("{'name': 'A', 'x': 1}", "{'name': 'A', 'x': 2}", None),
        ("{'x': 1}", "{'name': 'A'}", None),
        # The model before the architecture, that before the board.
        (H100, H100.replace("major=9", "major=8").replace("uuid=5f", "uuid=6f"), "another arch: 9.0 -> 8.0"),
        (H100, H100.replace("major=9, ", ""), "another arch: 9.0 -> ?.0"),
        (H100, H100.replace("minor=0, ", ""), "another arch: 9.0 -> 9.?"),
        (
            H100,
            H100.replace("uuid=5f", "uuid=6f").replace("81090", "40000"),
            "same model, another board",
        ),
        (
            H100,
            H100.replace("81090", "40000").replace("count=132", "count=114"),
            "same model, other properties: total_memory 81090MB -> 40000MB, multi_processor_count 132 -> 114",
        ),
        (
            H100.replace(", L2_cache_size=50MB", ""),
            H100.replace("pci_domain_id=0, ", ""),
            "same model; only one side has L2_cache_size, pci_domain_id",
        ),
        (tensor("cuda"), tensor("cuda", 0), "another index: cuda -> cuda:0"),
        (tensor("cuda", 0), "True", None),
        (H100, tensor("cuda", 0), None),
        (H100, H100, None),
        (tensor("cuda", 0), tensor("cuda", 0), None),
        ("True", "False", None),
        (H100, "null", None),
    ],
)
def test_what_differs_is_named(before: str, after: str, told: str | None) -> None:
    assert device_difference(before, after) == told


@pytest.mark.slow
@given(before=st.text(), after=st.text())
def test_other_texts_name_no_device(before: str, after: str) -> None:
    assert device_difference(before, after) is None


def test_the_summary_of_a_changed_input_says_it_is_another_index() -> None:
    change = field_change("example_inputs[0]", tensor("cuda", 0), tensor("cuda", 1))
    assert change.summary == "another index: cuda:0 -> cuda:1"
    assert change.parts == (("device", "device(type='cuda', index=0)", "device(type='cuda', index=1)"),)


def test_the_summary_of_a_changed_system_says_it_is_another_model() -> None:
    change = field_change("system_info[device]", "{'name': 'NVIDIA A10'}", "{'name': 'NVIDIA L4'}")
    assert change.summary == "another model: NVIDIA A10 -> NVIDIA L4"
