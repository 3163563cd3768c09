"""One table at the end of the benchmarks: what each took, beside the first of its group in the same run."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Medians and their ratios; the plugin's own table has no throughput and no word on memory."""
    session = getattr(config, "_benchmarksession", None)
    measured = [] if session is None else [one for one in session.benchmarks if one.stats.rounds]
    if not measured:
        return
    lines = [("", "median", "to the first", "throughput", "")]
    for group, some in groupby(measured, key=lambda one: one.group):
        members = list(some)
        lines.append((f"{group}:", "", "", "", ""))
        lines += [_line(one, members[0].stats.median) for one in members]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    terminalreporter.section("side by side")
    for first, *others, more in lines:
        cells = [text.rjust(width) for text, width in zip(others, widths[1:], strict=False)]
        terminalreporter.write_line("  ".join([first.ljust(widths[0]), *cells, more]).rstrip())


def _line(one: Any, first_s: float) -> tuple[str, str, str, str, str]:
    told = dict(one.extra_info)
    megabytes = told.pop("megabytes", None)
    median = one.stats.median
    return (
        f"  {one.name.removeprefix('test_')}",
        f"{1000 * median:,.1f} ms",
        f"{median / first_s:.2f}",
        "" if megabytes is None else f"{megabytes / median:,.0f} MB/s",
        ", ".join(f"{name} {_number(value)}" for name, value in told.items()),
    )


def _number(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
