"""Whether both sides built an FX graph the same way: a few entries and their code in, results out; made by hand.

test_built.py has real directories.
"""

from __future__ import annotations

from typing import Any

import pytest

from cachescope.analysis.directory.binaries import KernelBinaries
from cachescope.analysis.directory.built import built_alike
from cachescope.analysis.directory.generated_code import GeneratedCode
from cachescope.columns import rows_of
from cachescope.frames.directory_rows import EntryRow
from tests.made import entry, scope_of

RELU, TANH = "y = relu(x)", "y = tanh(x)"


@pytest.mark.parametrize(
    ("sources", "kernels", "result", "evidence"),
    [
        ((RELU, RELU), (("t1",), ("t1",)), "same", "Triton kernels bundled in both"),
        ((RELU, RELU), (("t1",), ("t2",)), "kernels", "other Triton kernels"),
        # What is compiled says nothing once the sources differ.
        ((RELU, TANH), (("t1",), ("t1",)), "code", "line 1 is 'y = relu(x)' and 'y = tanh(x)'"),
        ((f"# process 1\n{RELU}", f"# process 2\n{RELU}"), ((), ()), "same", "no compiled kernel"),
        ((RELU, None), (("t1",), ("t2",)), "not_known", "the code could not be read"),
    ],
)
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
    code = GeneratedCode(scope.entries, lambda file: of_path[file.path])
    binaries = KernelBinaries(scope.entries, scope.links, lambda path: None)
    before, after = ([row] for row in rows_of(scope.entries, EntryRow))
    (built,) = built_alike(before, after, [], code, binaries)
    assert built.result == result
    assert evidence in built.evidence
