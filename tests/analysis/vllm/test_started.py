"""How far the clock of vLLM's logs is off that of its folders: a few starts in, a time out; made by hand."""

from __future__ import annotations

import pytest

from cachescope.analysis.vllm.started import Started, clock_off
from cachescope.frames.vllm import StartRow

SECOND, HOUR = 10**9, 3_600 * 10**9
NOON = 1_790_000_000 * SECOND


def made(folder: str, off: int) -> tuple[Started, int]:
    """A start of ten seconds that wrote the factors of its folder at its third, by a clock that is ahead of its own."""
    row = StartRow(**{**dict.fromkeys(StartRow.__dataclass_fields__), "folder": folder})  # type: ignore[arg-type]
    return Started.of(0, row, 0, NOON, NOON + 10 * SECOND), NOON + off + 3 * SECOND


@pytest.mark.parametrize(
    ("starts", "off"),
    [
        ([], 0),
        ([("a", 0), ("b", 0)], 0),
        ([("a", 2 * HOUR), ("b", 2 * HOUR)], 2 * HOUR),
        ([("a", -5 * HOUR), ("b", -5 * HOUR)], -5 * HOUR),
        ([("a", HOUR // 4), ("b", HOUR // 4)], HOUR // 4),
        # One folder may have been copied, or been made again by another start.
        ([("a", 2 * HOUR)], 0),
        ([("a", 2 * HOUR), ("a", 2 * HOUR)], 0),
        ([("a", 2 * HOUR), ("b", 3 * HOUR)], 0),
        ([("a", 2 * HOUR), ("b", 3 * HOUR), ("c", 3 * HOUR)], 3 * HOUR),
        # By its own clock one start made its folder.
        ([("a", 2 * HOUR), ("b", 2 * HOUR), ("c", 0)], 0),
        # No time zone is off by a minute, or by a day.
        ([("a", 60 * SECOND), ("b", 60 * SECOND)], 0),
        ([("a", 24 * HOUR), ("b", 24 * HOUR)], 0),
    ],
)
def test_a_clock_is_off_by_what_two_folders_show(starts: list[tuple[str, int]], off: int) -> None:
    assert clock_off(made(*one) for one in starts) == off
