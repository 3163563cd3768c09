"""How wide the vectors are that a process generates code for, by what a snapshot says of its CPU."""

from __future__ import annotations

import pytest

from cachescope.analysis.contexts.outside_keys import CPU_CAPABILITY, vector_width

LINUX, MAC, WINDOWS = "Linux-6.1-x86_64-with-glibc2.36", "macOS-14.5-arm64-arm-64bit", "Windows-10-AMD64"


@pytest.mark.parametrize(
    ("capability", "platform", "width"),
    [
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
    ],
)
def test_the_width_of_vectors(capability: str | None, platform: str, width: int | None) -> None:
    settings = {} if capability is None else {CPU_CAPABILITY: capability}
    assert vector_width(settings, platform) == width
