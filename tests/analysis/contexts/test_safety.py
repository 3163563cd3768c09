"""Whether an entry suits the CPU of a process: its row and its code in, what is said out; made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from cachescope.analysis.contexts.cpu_safety import NOT_CHECKED, SAFE, CpuSafety, Safety, worst
from cachescope.frames.directory_rows import EntryRow

LOAD = "auto x = at::vec::Vectorized<float>::loadu(p, static_cast<int64_t>({}));\n"
AVX2, AVX512 = LOAD.format(8), LOAD.format(16)
BFLOAT16 = "at::vec::Vectorized<at::BFloat16>::loadu(p, static_cast<int64_t>(16));\n"


def row(number: int = 0, **told: Any) -> EntryRow:
    nothing = dict.fromkeys(EntryRow.__dataclass_fields__)
    made = {"entry": number, "status": "ok", "device_types": ("cpu",), "code_key": "c1"}
    return EntryRow(**{**nothing, **made, **told})


@pytest.mark.parametrize(
    ("told", "source", "width", "is_unsafe", "reason"),
    [
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
    ],
)  # fmt: skip
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
    [
        ([], SAFE),
        ([SAFE, SAFE], SAFE),
        ([SAFE, OPEN, NOT_CHECKED], OPEN),
        ([SAFE, OPEN, UNSAFE, OTHER_UNSAFE], UNSAFE),
    ],
)
def test_the_worst_of_several(found: list[Safety], wanted: Safety) -> None:
    assert worst(found) is wanted
