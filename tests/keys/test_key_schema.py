"""What counts in a what-if key: its forms, its fields, and what they take out of the fields there are."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.errors import SchemaError
from cachescope.keys import COMPILE_FORMS, RUNTIME_FORMS, IsolationSchema, all_schemas
from cachescope.keys.key_schema import TENSOR_PARTS, KeySchema, Removed, key_schema

FORMS = (*RUNTIME_FORMS, *COMPILE_FORMS)
# As the FX key of a CUDA build has them, by torch/_inductor/codecache.py of 2.13.
FIELDS = [
    "gm", "example_inputs[0]", "example_inputs[1]", "fx_kwargs[cudagraphs]",
    "deterministic_algorithms_settings", "cuda_matmul_settings", "torch_version", "system_info[device]",
    "system_info[version]", "system_info[hash]", "inductor_config[cpp.threads]",
    "inductor_config[aot_inductor.output_path]", "inductor_config[aot_inductor.package]",
    "inductor_config_comms[env_str]",
]  # fmt: skip


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


@pytest.mark.parametrize(("schema", "words"), [
    ({"runtime_context": True}, "compile_context"),
    ({"runtime_context": {"inductor_config": False}, "compile_context": True}, "it has inductor_configs"),
    ({"without": "gm"}, "list of fields"),
    ({"without": {"gm": True}}, "list of fields"),
    ({"without": 3}, "list of fields"),
    ({"without": [3]}, "int 3"),
    ({"runtime_context": True, "compile_context": True, "with": []}, "with"),
])  # fmt: skip
def test_a_malformed_schema_says_what_there_is(schema: dict[str, object], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        KeySchema.from_dict(schema)


def test_text_that_is_no_json_is_a_schema_error() -> None:
    with pytest.raises(SchemaError, match="JSON object"):
        KeySchema.from_json("{")


def test_without_any_form_only_the_graph_and_its_inputs_are_left() -> None:
    left = set(FIELDS) - removed(isolation=IsolationSchema.none()).fields
    assert left == {"gm", "example_inputs[0]", "example_inputs[1]", "fx_kwargs[cudagraphs]"}
    assert removed("inductor_configs").fields == {f for f in FIELDS if f.startswith("inductor_config")}


def test_a_part_of_tensors() -> None:
    assert removed("example_inputs[*].device").parts == dict.fromkeys(FIELDS[1:3], frozenset({"device"}))
    both = removed("example_inputs[*].device", "example_inputs[0].stride", "example_inputs[1]")
    assert both == Removed(
        frozenset({"example_inputs[1]"}), {"example_inputs[0]": frozenset({"device", "stride"})}
    )


def test_the_parts_are_those_of_torchs_own_metadata(codecache: object) -> None:
    import dataclasses

    from torch._subclasses.fake_tensor import TensorMetadata

    assert {field.name for field in dataclasses.fields(TensorMetadata)} == set(TENSOR_PARTS)


@pytest.mark.parametrize(("made", "words"), [
    (lambda: KeySchema(3), "isolation of a key schema is an IsolationSchema, not int"),  # type: ignore[arg-type]
    (lambda: KeySchema(without=3), "without is a list of fields, not int"),  # type: ignore[arg-type]
    (lambda: KeySchema(without="gm"), "without is a list of fields, not str"),  # type: ignore[arg-type]
])  # fmt: skip
def test_what_is_no_schema_says_what_is_wanted(made: Callable[[], KeySchema], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        made()
