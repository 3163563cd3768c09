"""What names and patterns take out of the fields of a key, and what is said where they take nothing."""

from __future__ import annotations

import pytest

from cachescope.errors import NotFoundError
from cachescope.keys.key_fields import is_tensor_text, pattern_fields, without_parts

FIELDS = [
    "gm",
    "example_inputs[0]",
    "example_inputs[1]",
    "inductor_config[cpp.threads]",
    "inductor_config[cpp.simdlen]",
    "inductor_config[epilogue_fusion]",
    "torch_version",
]
TENSOR = "TensorMetadata(dtype=torch.float32, shape=torch.Size([8, 16]), device=device(type='cuda', index=1))"


def taken(pattern: str) -> set[str]:
    return set(pattern_fields(pattern, FIELDS, lambda name: name == "example_inputs[0]").fields)


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("gm", {"gm"}),
        ("example_inputs", {"example_inputs[0]", "example_inputs[1]"}),
        ("example_inputs[*]", {"example_inputs[0]", "example_inputs[1]"}),
        ("example_inputs[1]", {"example_inputs[1]"}),
        ("inductor_config[cpp.*]", {"inductor_config[cpp.threads]", "inductor_config[cpp.simdlen]"}),
        ("*", set(FIELDS)),
        ("*version", {"torch_version"}),
    ],
)
def test_a_pattern(pattern: str, wanted: set[str]) -> None:
    assert taken(pattern) == wanted


def test_parts_are_those_of_tensors_alone() -> None:
    removed = pattern_fields("example_inputs[*].device", FIELDS, lambda name: name == "example_inputs[0]")
    assert (removed.fields, dict(removed.parts)) == (
        frozenset(),
        {"example_inputs[0]": frozenset({"device"})},
    )
    assert removed.parts["example_inputs[0]"] == {"device"}
    for pattern, said in (
        ("gm.device", "no field 'gm.device', and no tensor 'gm'"),
        ("example_inputs[*].colour", "a tensor has no part 'colour'; it has "),
        ("example_inputs[1].device", "no tensor 'example_inputs[1]'"),
    ):
        with pytest.raises(NotFoundError) as error:
            pattern_fields(pattern, FIELDS, lambda name: name == "example_inputs[0]")
        assert said in str(error.value)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("epilogue", "near it: inductor_config[epilogue_fusion]"),
        ("EPILOGUE", "near it: inductor_config[epilogue_fusion]"),
        ("inductor_config[cpp]", "near it: inductor_config[cpp.threads], inductor_config[cpp.simdlen]"),
        ("epilog_fusion", "near it: inductor_config[epilogue_fusion]"),
        ("inductor_config[epilog_fusion]", "near it: inductor_config[epilogue_fusion]"),
        ("torch_versions", "near it: torch_version"),
        (
            "qqqq",
            "there are gm, example_inputs[…], inductor_config[…], torch_version; and the context forms ",
        ),
    ],
)
def test_what_may_have_been_meant(pattern: str, said: str) -> None:
    with pytest.raises(NotFoundError) as error:
        taken(pattern)
    assert said in str(error.value)


def test_at_most_five_are_named_and_each_once() -> None:
    many = [f"inductor_config[option_{n}]" for n in range(9)]
    with pytest.raises(NotFoundError) as error:
        pattern_fields("inductor_config[option]", many, lambda name: False)
    assert str(error.value).count("option_") == 5
    with pytest.raises(NotFoundError) as error:
        pattern_fields("inductor_config[option_0x]", many[:2], lambda name: False)
    assert str(error.value).count("option_0]") == 1


def test_where_there_are_no_fields_nothing_is_near() -> None:
    with pytest.raises(NotFoundError, match="no source recorded any field"):
        pattern_fields("gm", [], lambda name: False)


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        (["dtype"], "TensorMetadata(shape=torch.Size([8, 16]), device=device(type='cuda', index=1))"),
        (["shape"], "TensorMetadata(dtype=torch.float32, device=device(type='cuda', index=1))"),
        (["shape", "device"], "TensorMetadata(dtype=torch.float32)"),
        (["dtype", "shape", "device"], "TensorMetadata()"),
        (["layout"], TENSOR),
        ([], TENSOR),
    ],
)
def test_a_tensor_without_some_of_its_parts(parts: list[str], wanted: str) -> None:
    assert is_tensor_text(TENSOR)
    assert without_parts(TENSOR, parts) == wanted


def test_what_follows_a_tensor_is_no_part_of_it() -> None:
    assert without_parts("TensorMetadata(a=(1, 2), b={3: [4]}), c=5)", ["a"]) == "TensorMetadata(b={3: [4]})"
    assert without_parts("TensorMetadata(a=1, b=2", ["a"]) == "TensorMetadata(b=2)"


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        (["triton_version_hash"], "{'cuda': '12.8'}"),
        (["runtime"], "{'triton': '3.4', 'runtime': '12.8'}"),
        (["runtime_version"], "{'triton': '3.4', 'cuda': None}"),
        (["runtime", "runtime_version"], "{'triton': '3.4', 'runtime': None}"),
        ([], "{'triton': '3.4', 'cuda': '12.8'}"),
    ],
)
def test_versions_without_some_of_their_parts(parts: list[str], wanted: str) -> None:
    assert without_parts("{'triton': '3.4', 'cuda': '12.8'}", parts) == wanted


@pytest.mark.parametrize("text", ["[1, 2]", "no literal {", "7"])
def test_what_holds_no_versions_stays(text: str) -> None:
    assert without_parts(text, ["runtime"]) == text
