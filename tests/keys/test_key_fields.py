"""What names and patterns take out of the fields of a key, and what is said where they take nothing."""

import pytest

from cachescope.errors import NotFoundError
from cachescope.keys.key_schema import Removed, form_fields, is_tensor_text, pattern_fields, without_parts
from cachescope.keys.printed_values import graph_inputs

FIELDS = [
    "gm", "example_inputs[0]", "example_inputs[1]", "inductor_config[cpp.threads]",
    "inductor_config[cpp.simdlen]", "inductor_config[epilogue_fusion]", "torch_version",
]  # fmt: skip
TENSOR = "TensorMetadata(dtype=torch.float32, shape=torch.Size([8, 16]), device=device(type='cuda', index=1))"


def refused(pattern: str, fields: list[str] = FIELDS) -> str:
    """What is said of a pattern that takes nothing."""
    with pytest.raises(NotFoundError) as error:
        pattern_fields(pattern, fields, lambda name: name == "example_inputs[0]")
    return str(error.value)


@pytest.mark.parametrize(("pattern", "wanted"), [
    ("gm", {"gm"}),
    ("example_inputs", {"example_inputs[0]", "example_inputs[1]"}),
    ("example_inputs[*]", {"example_inputs[0]", "example_inputs[1]"}),
    ("example_inputs[1]", {"example_inputs[1]"}),
    ("inductor_config[cpp.*]", {"inductor_config[cpp.threads]", "inductor_config[cpp.simdlen]"}),
    ("*", set(FIELDS)),
    ("*version", {"torch_version"}),
    ("epilogue_fusion", {"inductor_config[epilogue_fusion]"}),
    ("cpp.threads", {"inductor_config[cpp.threads]"}),
])  # fmt: skip
def test_a_pattern(pattern: str, wanted: set[str]) -> None:
    assert pattern_fields(pattern, FIELDS, lambda name: name == "example_inputs[0]").fields == wanted


def test_a_name_is_of_its_own_elements_alone() -> None:
    assert pattern_fields("inductor_config", SYSTEM, lambda name: False).fields == {"inductor_config[a]"}


def test_parts_are_those_of_tensors_alone() -> None:
    removed = pattern_fields("example_inputs[*].device", FIELDS, lambda name: name == "example_inputs[0]")
    assert not removed.fields
    assert dict(removed.parts) == {"example_inputs[0]": frozenset({"device"})}
    for pattern, said in (
        ("gm.device", "no field 'gm.device', and no tensor 'gm'"),
        ("example_inputs[*].colour", "a tensor has no part 'colour'; it has "),
        ("example_inputs[1].device", "no tensor 'example_inputs[1]'"),
    ):
        assert said in refused(pattern)


@pytest.mark.parametrize(("pattern", "said"), [
    ("epilogue", "near it: inductor_config[epilogue_fusion]"),
    ("EPILOGUE", "near it: inductor_config[epilogue_fusion]"),
    ("inductor_config[cpp]", "near it: inductor_config[cpp.threads], inductor_config[cpp.simdlen]"),
    ("epilog_fusion", "near it: inductor_config[epilogue_fusion]"),
    ("inductor_config[epilog_fusion]", "near it: inductor_config[epilogue_fusion]"),
    ("torch_versions", "near it: torch_version"),
    ("qqqq", "there are gm, example_inputs[…], inductor_config[…], torch_version; and the context forms "),
])  # fmt: skip
def test_what_may_have_been_meant(pattern: str, said: str) -> None:
    assert said in refused(pattern)


def test_at_most_five_are_named_and_each_once() -> None:
    many = [f"inductor_config[option_{n}]" for n in range(9)]
    assert refused("inductor_config[option]", many).count("option_") == 5
    assert refused("inductor_config[option_0x]", many[:2]).count("option_0]") == 1


def test_where_there_are_no_fields_nothing_is_near() -> None:
    assert "no source recorded any field" in refused("gm", [])


@pytest.mark.parametrize(("parts", "wanted"), [
    (["dtype"], "TensorMetadata(shape=torch.Size([8, 16]), device=device(type='cuda', index=1))"),
    (["shape"], "TensorMetadata(dtype=torch.float32, device=device(type='cuda', index=1))"),
    (["shape", "device"], "TensorMetadata(dtype=torch.float32)"),
    (["dtype", "shape", "device"], "TensorMetadata()"),
    (["layout"], TENSOR),
    ([], TENSOR),
])  # fmt: skip
def test_a_tensor_without_some_of_its_parts(parts: list[str], wanted: str) -> None:
    assert is_tensor_text(TENSOR)
    assert without_parts(TENSOR, parts) == wanted


@pytest.mark.parametrize(("parts", "wanted"), [
    (["triton_version_hash"], "{'cuda': '12.8'}"),
    (["runtime"], "{'triton': '3.4', 'runtime': '12.8'}"),
    (["runtime_version"], "{'triton': '3.4', 'cuda': None}"),
    (["runtime", "runtime_version"], "{'triton': '3.4', 'runtime': None}"),
    ([], "{'triton': '3.4', 'cuda': '12.8'}"),
])  # fmt: skip
def test_versions_without_some_of_their_parts(parts: list[str], wanted: str) -> None:
    assert without_parts("{'triton': '3.4', 'cuda': '12.8'}", parts) == wanted
    # Only the name of the runtime and its version tell CUDA from HIP.
    is_same = without_parts("{'triton': '3.4', 'hip': '12.8'}", parts) == wanted
    assert is_same == ("runtime" in parts)


@pytest.mark.parametrize("text", ["[1, 2]", "no literal {", "7"])
def test_what_holds_no_versions_stays(text: str) -> None:
    assert without_parts(text, ["runtime"]) == text


def parts(**of_field: set[str]) -> dict[str, frozenset[str]]:
    return {name: frozenset(some) for name, some in of_field.items()}


@pytest.mark.parametrize(("one", "other", "fields", "of_parts"), [
    (Removed(), Removed(), set(), {}),
    (Removed(frozenset("a")), Removed(frozenset("b")), {"a", "b"}, {}),
    (Removed(parts=parts(a={"x"})), Removed(parts=parts(a={"y"}, b={"z"})), set(), parts(a={"x", "y"}, b={"z"})),
    # A part of what is wholly removed is removed.
    (Removed(frozenset("a")), Removed(parts=parts(a={"x"}, b={"y"})), {"a"}, parts(b={"y"})),
    (Removed(parts=parts(a={"x"})), Removed(frozenset("a")), {"a"}, {}),
])  # fmt: skip
def test_what_is_removed_by_both(
    one: Removed, other: Removed, fields: set[str], of_parts: dict[str, frozenset[str]]
) -> None:
    both = one | other
    assert (both.fields, dict(both.parts)) == (fields, of_parts)
    assert bool(both) == bool(fields or of_parts)


SYSTEM = [
    "gm", "system_info[device]", "system_info[hash]", "system_info[version]", "inductor_config[a]",
    "inductor_config_comms[env_str]", "deterministic_algorithms_settings", "cuda_matmul_settings",
    "torch_version",
]  # fmt: skip


@pytest.mark.parametrize(("forms", "fields", "version"), [
    ([], set(), None),
    (["inductor_configs"], {"inductor_config[a]", "inductor_config_comms[env_str]"}, None),
    (["torch_determinism_configs"], {"deterministic_algorithms_settings"}, None),
    (["cuda_matmul_precision_configs"], {"cuda_matmul_settings"}, None),
    (["torch_version_hash"], {"torch_version"}, None),
    # The hash of all of it would still tell the difference.
    (["accelerator_properties"], {"system_info[device]", "system_info[hash]"}, None),
    (["runtime"], {"system_info[hash]"}, {"runtime"}),
    (["triton_version_hash", "runtime_version"], {"system_info[hash]"}, {"triton_version_hash", "runtime_version"}),
    (["triton_version_hash", "runtime", "runtime_version"], {"system_info[hash]", "system_info[version]"}, None),
])  # fmt: skip
def test_the_fields_of_forms(forms: list[str], fields: set[str], version: set[str] | None) -> None:
    found = form_fields(forms, SYSTEM)
    assert found.fields == fields
    assert dict(found.parts) == ({} if version is None else {"system_info[version]": frozenset(version)})
    # Of fields that are not there nothing is removed.
    assert not form_fields(forms, ["gm"])


@pytest.mark.parametrize(("text", "wanted"), [
    ("TensorMetadata()", "TensorMetadata()"),
    ("TensorMetadata(a=1)", "TensorMetadata()"),
    ("TensorMetadata(b=1, a=2)", "TensorMetadata(b=1)"),
    ("TensorMetadata(b=1,a=2,c=3)", "TensorMetadata(b=1, c=3)"),
    ("TensorMetadata(a=(1, 2), b=[3, {4: 5}])", "TensorMetadata(b=[3, {4: 5}])"),
    ("TensorMetadata(b=f(x=1, a=2), a=3)", "TensorMetadata(b=f(x=1, a=2))"),
    # What follows a tensor is no part of it.
    ("TensorMetadata(a=1, b=2) + (a=3, c=4)", "TensorMetadata(b=2)"),
    ("TensorMetadata(a=(1, 2), b={3: [4]}), c=5)", "TensorMetadata(b={3: [4]})"),
    ("TensorMetadata(a=1, b=2", "TensorMetadata(b=2)"),
    ("(TensorMetadata(a=1, b=2), 7)", "(TensorMetadata(b=2)"),
    (" TensorMetadata(a=1)", " TensorMetadata(a=1)"),
])  # fmt: skip
def test_the_arguments_of_a_tensor(text: str, wanted: str) -> None:
    assert without_parts(text, ["a"]) == wanted


def test_names_of_forms_may_have_been_meant_as_well() -> None:
    assert "near it: runtime_version" in refused("runtime_versions")
    assert (
        refused("cpp.thread")
        == "no field 'cpp.thread', and no tensor 'cpp'; near it: inductor_config[cpp.threads], inductor_config[cpp.simdlen]"
    )
    assert "near it: inductor_config[a], fx_kwargs[a]" in refused("a", ["inductor_config[a]", "fx_kwargs[a]"])
    # What holds the word comes before what is spelled like it, and nothing is said twice.
    said = refused("thread", ["treads", "cpp_threads", "Threads"])
    assert said == "no field 'thread'; near it: cpp_threads, Threads, treads"
    assert refused("[*]", ["gm", "x[1]"]).startswith(
        "no field '[*]'; there are gm, x[…]; and the context forms inductor_configs, "
    )


@pytest.mark.parametrize(("graph", "wanted"), [
    ("def forward(self, x, y):", 2),
    ("def forward(self, x):", 1),
    ("def forward(self):", 0),
    ("def forward(x, y):", 2),
    ("def forward(self, x: f(a, b), y: 't, u') -> tuple[a, b]:", 2),
    ("def forward(self, x: a[b[c, d], e], y):", 2),
    ('def forward(self, x: "f32[8, 8]", y):', 2),
    ("def forward(self, x, *rest, **more):", 1),
    ("def forward(self, x,):", 1),
    ("text\ndef forward(self, x):\n  y", 1),
    ("  def forward(self, x):", 0),
    ("def forward(self, x, y", 0),
    ("nothing", 0),
])  # fmt: skip
def test_how_many_inputs_a_printed_graph_takes(graph: str, wanted: int) -> None:
    assert len(graph_inputs(graph)) == wanted
