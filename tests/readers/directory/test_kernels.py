"""Kernels read from the generated source that real entries hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cachescope
from cachescope.readers.directory.generated_files import Kernel, kernels_of
from tests.conftest import Recording


@pytest.mark.parametrize("version", ["2.6.0", "2.10.0", "2.13.0", "2.15.0"])
def test_an_mlp_has_its_matrix_products_and_fused_kernels(version: str, recording: Recording) -> None:
    kernels = cachescope.read(recording(version, "training") / "cache").kernels
    forward = kernels[kernels["kernel"] == "addmm"]
    assert set(forward["kind"]) == {"extern"}
    assert {op for ops in forward["aten_ops"] for op in ops} <= {"aten.addmm", "aten.t"}
    assert set(forward["source_nodes"]) == {("input_1",), ("input_3",)}
    fused = kernels[kernels["kernel"] == "cpp_fused_relu_0"]
    assert set(fused["kind"]) == {"cpp"}
    # The backward makes its products with mm.
    assert {op for ops in kernels.loc[kernels["kernel"] == "mm", "aten_ops"] for op in ops} >= {"aten.mm"}


def test_every_kernel_belongs_to_an_entry_that_is_there(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "four_graphs") / "cache")
    fx = scope.entries[(scope.entries["cache"] == "fxgraph") & (scope.entries["status"] == "ok")]
    assert set(scope.kernels["entry"]) == set(fx["entry"])


def test_a_triton_kernel_and_its_comment() -> None:
    # Made by hand after torch/_inductor/codegen/wrapper.py, 2.13: a GPU is needed to record one.
    source = (
        """
# kernel path: /tmp/x/ab/cabc.py
# Topologically Sorted Source Nodes: [relu, add], Original ATen: [aten.relu, aten.add]
# Source node to ATen node mapping:
#   relu => relu
triton_poi_fused_add_relu_0 = async_compile.triton('triton_poi_fused_add_relu_0', '''
    """
        + "x = 1\n''', device_str='cuda')\n        triton_poi_fused_add_relu_0.run(buf0, 64, stream=s)\n"
    )
    assert kernels_of(source) == [
        Kernel("triton_poi_fused_add_relu_0", "triton", ("relu", "add"), ("aten.relu", "aten.add"))
    ]


@given(st.text())
def test_any_text_gives_kernels_or_none(text: str) -> None:
    assert all(kernel.name and kernel.kind for kernel in kernels_of(text))
