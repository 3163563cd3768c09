"""Two tables at the end of the benchmarks: what each took beside the first of its group, and which goals are held."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

Measured = Mapping[str, Any]
"""The benchmarks of a run by their names, without ``test_``."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What a measurement has to be: a ratio or a number, at least or at most so much."""

    what: str
    of: Callable[[Measured], float]
    """Raises KeyError where it was not measured."""
    at_least: float | None = None
    at_most: float | None = None
    where_it_goes: str = ""
    """What to look at in the table where it is not held."""

    def told(self, measured: Measured) -> tuple[str, str, str, str] | None:
        """What was measured, the goal, and whether it is held; None where nothing was."""
        try:
            found = self.of(measured)
        except KeyError:
            return None
        if self.at_least is not None:
            goal, beyond = f"at least {self.at_least:g}", self.at_least / found - 1
        else:
            assert self.at_most is not None
            goal, beyond = f"at most {self.at_most:g}", found / self.at_most - 1
        held = "held" if beyond <= 0 else f"missed by {beyond:.0%}; {self.where_it_goes}".rstrip("; ")
        return f"{self.what}:", f"{found:.3g}", goal, held


def _took(name: str, times: float = 1) -> Callable[[Measured], float]:
    return lambda measured: times * measured[name].stats.median


def _ratio(one: str, other: str) -> Callable[[Measured], float]:
    return lambda measured: measured[one].stats.median / measured[other].stats.median


def _said(name: str, key: str) -> Callable[[Measured], float]:
    return lambda measured: measured[name].extra_info[key]


def _throughput(name: str) -> Callable[[Measured], float]:
    return lambda measured: measured[name].extra_info["megabytes"] / measured[name].stats.median


_UNPICKLED = "the check alone; the rest is the unpickler's"
GOALS = [
    Goal("megabytes of a trace per second", _throughput("trace[cachescope-100]"), at_least=1000,
        where_it_goes="stages_of_a_trace"),
    Goal("a trace of 1 GB, in seconds", _took("one_trace[1-1000]"), at_most=1, where_it_goes="stages_of_a_trace"),
    Goal("a trace of 1 GB by two processes, times as fast as by one",
        _ratio("one_trace[1-1000]", "one_trace[2-1000]"), at_least=1.7,
        where_it_goes="cpu_s of both: half of what two take is what it would be with two cores to themselves"),
    Goal("tlparse, in times of reading", _ratio("trace[tlparse-100]", "trace[cachescope-100]"), at_least=20,
        where_it_goes="it writes thousands of files, on a fast disk in no time; ours: stages_of_a_trace"),
    Goal("a text log, in times of its trace",
        _ratio("text_log_beside_the_trace_of_the_same_run[text-100]",
            "text_log_beside_the_trace_of_the_same_run[trace-100]"), at_most=3),
    Goal("memory for a trace of 1 GB, in megabytes",
        _said("memory_is_what_the_distinct_texts_need[trace-1000]", "peak_megabytes"), at_most=500),
    Goal("a scan of a directory, in times of find", _said("scan[scan]", "times_find"), at_most=1.5,
        where_it_goes="walk_and_stat is what Python's own calls take; the rest tells names and makes rows"),
    Goal("opening FX entries, in times of pickle.loads",
        _said("open_entries[fxgraph-loads_inert]", "times_pickle_loads"), at_most=4, where_it_goes=_UNPICKLED),
    Goal("opening AOTAutograd entries, in times of pickle.loads",
        _said("open_entries[aotautograd-loads_inert]", "times_pickle_loads"), at_most=4, where_it_goes=_UNPICKLED),
    Goal("a toggle over 100,000 lookups, in milliseconds", _took("toggle[100000-inductor_configs]", 1000), at_most=100),
    *(
        Goal(f"a brush over {lookups:,} lookups, in milliseconds", _took(f"brush[{lookups}-Overview]", 1000),
            at_most=most, where_it_goes="runs by graphs, then the worklist")
        for lookups, most in ((10_000, 100), (100_000, 300))
    ),
    Goal("import cachescope, in times of pandas", _ratio("import[import cachescope]", "import[import pandas]"),
        at_most=1.15),
    Goal("cachescope --help, in seconds", _took("command[help]"), at_most=0.15),
    Goal("explain a directory of 5,000 entries, in seconds", _took("explain_directory"), at_most=5),
    Goal("explain a thousand folders of vLLM, in seconds", _took("explain_vllm_folders"), at_most=5),
    *(
        Goal(f"a pre-flight ({name}), {what}, in CPU times of a cold compile", _said(f"preflight[{name}]", said),
            at_most=1 / 3, where_it_goes=where)
        for name in ("gpt2_training", "llama_training", "bert_training", "vit_training", "bert_inference")
        for what, said, where in (
            ("the whole program", "times_cold", "uncompiled_cpu_s, the program itself, is in both"),
            ("beyond the program itself", "times_compiling", "importing Dynamo and Inductor, and tracing, are in both"),
        )
    ),
    *(
        Goal(f"verifying 10,000 entries ({kind}), in seconds", _took(f"verify[{kind}]"), at_most=1,
            where_it_goes="hashing what the files hold, and torch's sources")
        for kind in ("whole", "small")
    ),
    *(
        Goal(f"verifying 10,000 entries ({kind}), in times of sha256sum on two cores",
            _ratio(f"verify[{kind}]", f"sha256sum[{kind}]"), at_most=most,
            where_it_goes="starting Python, reading the lock, and torch's sources, where files are small")
        for kind, most in (("whole", 1), ("small", 4))
    ),
    *(
        Goal(f"judging 1,000,000 lookups ({kind}), in seconds", _took(f"judging[{kind}-1000000]"), at_most=20,
            where_it_goes="CACHESCOPE_LOOKUPS=1000000; edited graphs are aligned run by run")
        for kind in ("varied", "hitting", "cold", "leaking", "mixed")
    ),
]  # fmt: skip


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Medians and their ratios; the plugin's own table has no throughput and no word on memory."""
    session = getattr(config, "_benchmarksession", None)
    measured = [] if session is None else [one for one in session.benchmarks if one.stats.rounds]
    if not measured:
        return
    groups: dict[str, list[Any]] = defaultdict(list)
    for one in measured:
        groups[one.group].append(one)
    lines = [("", "median", "to the first", "throughput", "")]
    for group, members in groups.items():
        lines.append((f"{group}:", "", "", "", ""))
        lines += [_line(one, members[0].stats.median) for one in members]
    terminalreporter.section("side by side")
    _write(terminalreporter, lines)
    by_name = {one.name.removeprefix("test_"): one for one in measured}
    if told := [line for line in (goal.told(by_name) for goal in GOALS) if line is not None]:
        terminalreporter.section("goals")
        _write(terminalreporter, told)


def _write(terminalreporter: pytest.TerminalReporter, lines: Sequence[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
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
