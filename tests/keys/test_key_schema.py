"""What counts in a what-if key: its forms, its fields, and what they take out of the fields there are."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.errors import NotFoundError, SchemaError
from cachescope.keys import COMPILE_FORMS, RUNTIME_FORMS, IsolationSchema, all_schemas
from cachescope.keys.key_fields import (
    TENSOR_PARTS,
    Removed,
    form_fields,
    is_tensor_text,
    pattern_fields,
    without_parts,
)
from cachescope.keys.key_schema import KeySchema, key_schema

FORMS = (*RUNTIME_FORMS, *COMPILE_FORMS)
# As the FX key of a CUDA build has them, by torch/_inductor/codecache.py of 2.13.
FIELDS = [
    "gm",
    "example_inputs[0]",
    "example_inputs[1]",
    "fx_kwargs[cudagraphs]",
    "deterministic_algorithms_settings",
    "cuda_matmul_settings",
    "torch_version",
    "system_info[device]",
    "system_info[version]",
    "system_info[hash]",
    "inductor_config[cpp.threads]",
    "inductor_config[aot_inductor.output_path]",
    "inductor_config[aot_inductor.package]",
    "inductor_config_comms[env_str]",
]
TENSOR = (
    "TensorMetadata(dtype=torch.float32, shape=torch.Size([8, 16]), stride=(16, 1), "
    "device=device(type='cuda', index=3), layout=torch.strided, requires_grad=False)"
)


def is_input(field: str) -> bool:
    return field.startswith("example_inputs")


def removed(*without: str, isolation: IsolationSchema | None = None) -> Removed:
    return KeySchema(isolation or IsolationSchema.all(), without).removed(FIELDS, is_input)


def test_schemas_that_give_equal_isolation_keys_are_equal() -> None:
    for schema in all_schemas():
        isolation = IsolationSchema.from_dict(schema)
        made = KeySchema.from_dict(schema)
        assert made == KeySchema(isolation) == KeySchema.from_json(made.to_json()), schema
    assert hash(made) == hash(KeySchema(isolation))
    assert made.forms_off == tuple(
        f
        for f in FORMS
        if f not in [*isolation.forms("runtime_context"), *isolation.forms("compile_context")]
    )


def test_false_empty_and_all_named_false_are_one() -> None:
    sections = [False, {}, dict.fromkeys(RUNTIME_FORMS, False)]
    schemas = {KeySchema(IsolationSchema(section, True)) for section in sections}
    assert len(schemas) == 1


@given(st.lists(st.sampled_from(["gm", "a[b]", "inductor_configs", "runtime", "x*"])))
def test_order_and_repetition_of_fields_do_not_matter(without: list[str]) -> None:
    schema = KeySchema(without=tuple(without))
    assert schema == KeySchema(without=tuple(sorted(set(without), reverse=True)))
    assert KeySchema.from_json(schema.to_json()) == schema
    assert set(schema.forms_off) == set(without) & set(FORMS)


def test_a_schema_is_taken_in_every_form() -> None:
    isolation = IsolationSchema({"inductor_configs": True}, True)
    wanted = KeySchema(isolation, ("gm",))
    assert key_schema(isolation, "gm") == wanted
    assert key_schema(isolation.to_dict(), ["gm"]) == wanted
    assert key_schema({"without": ["gm"]}) == key_schema(None, ("gm",)) == KeySchema(without=("gm",))
    assert key_schema(wanted) == wanted


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"runtime_context": True}, "compile_context"),
        ({"runtime_context": {"inductor_config": False}, "compile_context": True}, "it has inductor_configs"),
        ({"without": "gm"}, "list of fields"),
        ({"without": {"gm": True}}, "list of fields"),
        ({"without": 3}, "list of fields"),
        ({"without": [3]}, "int 3"),
        ({"runtime_context": True, "compile_context": True, "with": []}, "with"),
    ],
)
def test_a_malformed_schema_says_what_there_is(schema: dict[str, object], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        KeySchema.from_dict(schema)


def test_text_that_is_no_json_is_a_schema_error() -> None:
    with pytest.raises(SchemaError, match="JSON object"):
        KeySchema.from_json("{")


@pytest.mark.parametrize(
    ("form", "fields"),
    [
        ("inductor_configs", {f for f in FIELDS if f.startswith("inductor_config")}),
        ("torch_determinism_configs", {"deterministic_algorithms_settings"}),
        ("cuda_matmul_precision_configs", {"cuda_matmul_settings"}),
        ("torch_version_hash", {"torch_version"}),
        # The hash of system_info goes with each of its parts: else it would keep alive what is dropped.
        ("accelerator_properties", {"system_info[device]", "system_info[hash]"}),
        ("triton_version_hash", {"system_info[hash]"}),
    ],
)
def test_a_form_stands_for_the_fields_that_carry_it(form: str, fields: set[str]) -> None:
    assert form_fields([form], FIELDS).fields == fields
    assert removed(form) == form_fields([form], FIELDS)


def test_forms_that_share_a_field_take_their_parts_of_it() -> None:
    versions = ("triton_version_hash", "runtime", "runtime_version")
    for n in (1, 2):
        for chosen in itertools.combinations(versions, n):
            found = form_fields(chosen, FIELDS)
            assert found.parts == {"system_info[version]": frozenset(chosen)}
    assert form_fields(versions, FIELDS).fields == {"system_info[version]", "system_info[hash]"}


def test_without_any_form_only_the_graph_and_its_inputs_are_left() -> None:
    left = set(FIELDS) - removed(isolation=IsolationSchema.none()).fields
    assert left == {"gm", "example_inputs[0]", "example_inputs[1]", "fx_kwargs[cudagraphs]"}


@pytest.mark.parametrize(
    ("pattern", "fields"),
    [
        ("gm", ["gm"]),
        ("inductor_config[aot_inductor.*]", FIELDS[11:13]),
        ("inductor_config", FIELDS[10:13]),
        ("inductor_config*", FIELDS[10:]),
        ("*[hash]", ["system_info[hash]"]),
        ("*", FIELDS),
    ],
)
def test_brackets_are_brackets_and_a_star_is_anything(pattern: str, fields: list[str]) -> None:
    assert pattern_fields(pattern, FIELDS, is_input) == Removed(frozenset(fields))


def test_a_part_of_tensors() -> None:
    assert removed("example_inputs[*].device").parts == dict.fromkeys(FIELDS[1:3], frozenset({"device"}))
    both = removed("example_inputs[*].device", "example_inputs[0].stride", "example_inputs[1]")
    assert both == Removed(
        frozenset({"example_inputs[1]"}), {"example_inputs[0]": frozenset({"device", "stride"})}
    )


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("inductor_config[thread]", r"near it: inductor_config\[cpp.threads\]"),
        ("cpp.thread", r"near it: inductor_config\[cpp.threads\]"),
        ("nothing_like_it", r"there are gm, example_inputs\[…\]"),
        ("example_inputs[*].devise", "a tensor has no part 'devise'; it has dtype, shape"),
        ("gm.device", "no tensor 'gm'"),
        ("inductor_config[]", "no field"),
        ("exampl_inputs", "near it: example_inputs$"),
        ("inductor_confgs", "near it: inductor_configs, "),
        ("runtme", "near it: runtime$"),
        ("nothing_like_it", "context forms inductor_configs, torch_determinism_configs, "),
    ],
)
def test_a_pattern_that_matches_nothing_says_what_there_is(pattern: str, words: str) -> None:
    with pytest.raises(NotFoundError, match=words):
        removed(pattern)


@pytest.mark.parametrize("part", ["dtype", "shape", "stride", "device", "layout", "requires_grad"])
def test_a_part_is_cut_out_of_the_text_whatever_brackets_it_has(part: str) -> None:
    assert is_tensor_text(TENSOR)
    left = without_parts(TENSOR, [part])
    assert f"{part}=" not in left
    assert left.count("=") == TENSOR.count("=") - (3 if part == "device" else 1)
    assert without_parts(left, [part]) == left


def test_the_versions_of_a_machine_are_told_apart_by_part() -> None:
    cuda, newer = "{'triton': '3.4-ab', 'cuda': '12.8'}", "{'triton': '3.5-cd', 'cuda': '12.9'}"
    hip = "{'triton': '3.4-ab', 'hip': '6.4'}"
    assert without_parts(cuda, ["triton_version_hash"]) != without_parts(newer, ["triton_version_hash"])
    both = ["triton_version_hash", "runtime_version"]
    assert without_parts(cuda, both) == without_parts(newer, both) != without_parts(hip, both)
    assert without_parts(cuda, ["runtime", "runtime_version"]) == without_parts(
        hip, ["runtime", "runtime_version"]
    )
    # What is cut off cannot be taken apart.
    assert without_parts("{'triton': '3.4...", ["runtime"]) == "{'triton': '3.4..."


def test_the_parts_are_those_of_torchs_own_metadata(codecache: object) -> None:
    import dataclasses

    from torch._subclasses.fake_tensor import TensorMetadata

    assert {field.name for field in dataclasses.fields(TensorMetadata)} == set(TENSOR_PARTS)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: KeySchema(3), "isolation of a key schema is an IsolationSchema, not int"),  # type: ignore[arg-type]
        (lambda: KeySchema(without=3), "without is a list of fields, not int"),  # type: ignore[arg-type]
        (lambda: KeySchema(without="gm"), "without is a list of fields, not str"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_schema_says_what_is_wanted(made: Callable[[], KeySchema], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        made()
