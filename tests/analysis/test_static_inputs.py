"""Inputs that are of the model, as every version of torch records them."""

import pytest

import cachescope
from cachescope.analysis.differences import static_inputs
from cachescope.details import HashDetails
from tests.conftest import Recording
from tests.made import component


@pytest.mark.parametrize(("code", "static"), [
    ("def forward(self, x : torch.Tensor, w : torch.nn.parameter.Parameter):", {1}),
    ("def forward(self, w : torch.nn.parameter.Parameter, x):", {0}),
    ("def forward(self, w : torch.nn.parameter.Parameter) -> torch.nn.parameter.Parameter:", {0}),
    ("def forward(self, x) -> Tuple[int, y : torch.nn.parameter.Parameter]:", set()),
    ("class f:\n    pass\ndef forward(self, x, w : torch.nn.parameter.Parameter):\n    return (x,)", {1}),
    ("def forward(self, primals_1, primals_2):", set()),
    ("", set()),
])  # fmt: skip
def test_parameters_are_static_by_the_code_of_their_graph(code: str, static: set[int]) -> None:
    details = HashDetails()
    made, _ = details.add([component("gm", code)])
    assert made is not None
    assert static_inputs(details, made) == static


@pytest.mark.parametrize("version", ["2.6.0", "2.10.0", "2.13.0", "2.15.0"])
def test_parameters_are_static_and_saved_tensors_are_not(version: str, recording: Recording) -> None:
    # `small_mlp` of tests/data/record_programs.py: two linear layers; the third argument is the input.
    scope = cachescope.read(recording(version, "training") / "trace")
    found = scope.lookups.drop_duplicates("cache_key")
    found = found[found["detail_set"].notna()]
    sets = {
        (cache, bool(is_backward)): static_inputs(scope.tables.hash_details, int(code))
        for cache, is_backward, code in found[["cache", "is_backward", "detail_set"]].itertuples(index=False)
    }
    assert sets[("fxgraph", False)] == {0, 1, 3, 4}
    assert sets[("fxgraph", True)] == frozenset()
    assert sets.get(("aotautograd", False), {0, 1, 3, 4}) == {0, 1, 3, 4}
