"""What two directories built under one key: choices of max-autotune and graphs in, what differs out; made by hand."""

from typing import Any

import pytest

from cachescope.analysis.directory.built import built_alike
from cachescope.analysis.directory.equal_code import GeneratedCode, KernelBinaries
from cachescope.frames.directory_rows import TimingRow
from tests.made import entry, scope_of

Times = dict[str, float]


def choices(file: int, times: Times) -> list[TimingRow]:
    """The measured choices for one operator, of which the fastest is chosen."""
    fastest = min(times, key=times.__getitem__)
    return [
        TimingRow(file, "mm", "8x8", "highest", choice, time, False, choice == fastest, None, *["cpu"] * 4)
        for choice, time in times.items()
    ]


@pytest.mark.parametrize(("before", "after", "wanted"), [
    ({"aten": 1.0}, {"aten": 1.0}, ("same", "aten", "aten", "the measured times")),
    ({"aten": 1.0}, {"aten": 1.5}, ("times", "aten", "aten", "the measured times")),
    ({"aten": 1.0, "t": 2.0}, {"aten": 2.0, "t": 1.0}, ("choice", "aten", "t", "the measured times")),
    ({"aten": 1.0}, {"t": 1.0}, ("choice", "aten", "t", "the measured times of other choices")),
    ({"aten": 1.0}, {"aten": 1.0, "t": 2.0}, ("times", "aten", "aten", "the measured times of other choices")),
], ids=str)  # fmt: skip
def test_choices_for_one_operator(before: Times, after: Times, wanted: tuple[str, ...]) -> None:
    scope = scope_of(entries=[entry("autotune", "a" * 52, root=root) for root in ("/old", "/new")])
    old, new = entries = scope.tables.entries.rows
    timings = choices(old.entry, before) + choices(new.entry, after)
    code = GeneratedCode(lambda file: None)
    binaries = KernelBinaries(entries, scope.linked.rows, lambda path: None)
    (built,) = built_alike([old], [new], timings, code, binaries)
    assert (built.result, built.before, built.after, built.evidence) == wanted
    assert (built.cache, built.name) == ("autotune", "mm")
    assert (built.entry_before, built.entry_after) == (old.entry, new.entry)


RELU, TANH = "y = relu(x)", "y = tanh(x)"


@pytest.mark.parametrize(("sources", "kernels", "result", "evidence"), [
    ((RELU, RELU), (("t1",), ("t1",)), "same", "the same 1 Triton kernel bundled in both"),
    ((RELU, RELU), (("t1",), ("t2",)), "kernels", "other Triton kernels"),
    # What is compiled says nothing once the sources differ.
    ((RELU, TANH), (("t1",), ("t1",)), "code", "line 1 is 'y = relu(x)' and 'y = tanh(x)'"),
    ((f"# process 1\n{RELU}", f"# process 2\n{RELU}"), ((), ()), "same", "no compiled kernel"),
    ((RELU, None), (("t1",), ("t2",)), "not_known", "the code could not be read"),
])  # fmt: skip
def test_a_graph_under_one_key(
    sources: tuple[str | None, ...], kernels: tuple[Any, ...], result: str, evidence: str
) -> None:
    """The key of its code is another on each side."""
    scope = scope_of(
        entries=[
            entry("fxgraph", "f11", root=root, code_key=root[1:], triton_hashes=bundled)
            for root, bundled in zip(("/a", "/b"), kernels, strict=True)
        ]
    )
    of_path = dict(zip(scope.entries["path"], sources, strict=True))
    code = GeneratedCode(lambda file: of_path[file.path])
    binaries = KernelBinaries(scope.tables.entries.rows, scope.linked.rows, lambda path: None)
    before, after = ([row] for row in scope.tables.entries.rows)
    (built,) = built_alike(before, after, [], code, binaries)
    assert built.result == result
    assert evidence in built.evidence
