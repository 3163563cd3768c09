"""Properties of a device are told apart from the text torch prints, whatever its name holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.keys.device_text import device_parts
from tests.keys.test_isolation import A100, H100, MI300A, MI300X


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (H100, {"name": "NVIDIA H100 80GB HBM3", "pci_bus_id": "25", "L2_cache_size": "50MB"}),
        (A100, {"name": "NVIDIA A100-SXM4-80GB", "major": "8", "multi_processor_count": "108"}),
        (MI300X, {"name": "AMD Instinct MI300X", "gcnArchName": "gfx942:sramecc+:xnack-"}),
        (MI300A, {"name": "AMD Instinct MI300A", "uuid": "35626633-3538-6162-3532-373461306261"}),
    ],
    ids=["H100", "A100", "MI300X", "MI300A"],
)
def test_every_property_has_its_name_and_value(text: str, expected: dict[str, str]) -> None:
    parts = device_parts(text)
    assert parts.items() >= expected.items()
    assert parts.keys() >= {"name", "major", "minor", "total_memory", "multi_processor_count", "uuid"}


@given(name=st.text())
def test_the_name_may_hold_anything(name: str) -> None:
    text = f"_CudaDeviceProperties(name='{name}', major=9, minor=0, total_memory=81090MB, new_one=x)"
    parts = device_parts(text)
    if "', major=" not in name:
        assert parts == {"name": name, "major": "9", "minor": "0", "total_memory": "81090MB", "new_one": "x"}


@given(text=st.text())
def test_another_text_has_no_properties(text: str) -> None:
    assert device_parts(text) == {}
