"""Isolation keys equal the ones torch's own function makes, for every schema; and what counts in a what-if key."""

import copy
import itertools
import json
import math
import pickle
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cachescope.errors import CachescopeError, SchemaError
from cachescope.keys import (
    COMPILE_FORMS,
    CONTEXT_FORMS,
    RUNTIME_FORMS,
    IsolationSchema,
    UnsupportedValueError,
    all_schemas,
    isolation_key,
    select_context,
)
from cachescope.keys.key_schema import TENSOR_PARTS, KeySchema, Removed, key_schema

Context = dict[str, dict[str, object] | None]
SCHEMAS = list(all_schemas())

H100 = (
    "_CudaDeviceProperties(name='NVIDIA H100 80GB HBM3', major=9, minor=0, total_memory=81090MB, "
    "multi_processor_count=132, uuid=5f1b8c9e-0c1d-4d3a-9b7e-2f8f4a6d0c11, pci_bus_id=25, "
    "pci_device_id=0, pci_domain_id=0, L2_cache_size=50MB)"
)
A100 = (
    "_CudaDeviceProperties(name='NVIDIA A100-SXM4-80GB', major=8, minor=0, total_memory=81153MB, "
    "multi_processor_count=108, uuid=8d7c1f02-55a1-6a0e-3c9b-0f4e2d1c7b6a, L2_cache_size=40MB)"
)
MI300A = (
    "_CudaDeviceProperties(name='AMD Instinct MI300A', major=9, minor=4, "
    "gcnArchName='gfx942:sramecc+:xnack-', total_memory=128446MB, multi_processor_count=228, "
    "uuid=35626633-3538-6162-3532-373461306261, pci_bus_id=1, pci_device_id=0, pci_domain_id=0, "
    "L2_cache_size=4MB)"
)
MI300X = (
    "_CudaDeviceProperties(name='AMD Instinct MI300X', major=9, minor=4, "
    "gcnArchName='gfx942:sramecc+:xnack-', total_memory=196592MB, multi_processor_count=304, "
    "uuid=30303030-3030-3030-3030-303030303030, L2_cache_size=4MB)"
)


def made(**values: object) -> Context:
    """Return a whole context from the values of some forms; the others are null."""
    return {section: {form: values.get(form) for form in forms} for section, forms in CONTEXT_FORMS.items()}


# Made by hand, in the shape and with the values that real contexts have.
FABRICATED: dict[str, Context] = {
    "cuda": made(
        inductor_configs={"epilogue_fusion": False, "triton.cudagraphs": True},
        cuda_matmul_precision_configs={"torch.backends.cuda.matmul.fp32_precision": "ieee"},
        torch_version_hash="000QB+3WK7UssQ/9619uNpde6HfxIL4t9t9+jT3S5iw=",
        triton_version_hash="3.6.0" + "-".join(["0123456789abcdef" * 4] * 30),
        runtime="CUDA",
        runtime_version="12.8",
        accelerator_properties=H100,
    ),
    "nulls": made(),
    "empty": made(**{form: {} for form in RUNTIME_FORMS}, **dict.fromkeys(COMPILE_FORMS, "")),
    "text": made(
        inductor_configs={
            "größe": "μ-kernel 中文 🔥", "quotes": "\"'\\/\n\t\0\x1b[31m\u2028\x7f", "surrogate": "\ud800",
            "": "an empty name",
        },
        accelerator_properties="_CudaDeviceProperties(name='Größe's 卡', major=9)",
    ),
    "numbers": made(
        inductor_configs={
            "floats": [0.1, 1e300, 5e-324, -0.0, 1.0, 1e16, 1 / 3],
            "not_finite": [math.inf, -math.inf, math.nan],
            "integers": [0, -1, 2**53 + 1, 2**64, -(2**200)], "booleans": [True, False, None],
        }
    ),
    "nested": made(
        inductor_configs={
            "cpp.cxx": (None, "g++"),
            "fx_passes_numeric_check": {"pre_grad": False, "precision": 1e-4},
            "deep": [[[[[{"a": [{"b": ()}]}]]]]],
            "numbered": {1: "one", 2: "two"},
        },
        torch_determinism_configs={"z": 1, "a": 2, "Z": 3, "ä": 4},
    ),
}  # fmt: skip


def see(context: Context, module: ModuleType, patch: pytest.MonkeyPatch) -> Callable[[Any], str]:
    """Torch's own ``_isolation_key``, which sees given values in place of the process's."""
    providers = module._RuntimeContext, module._CompileContext
    for section, provider in zip(CONTEXT_FORMS, providers, strict=True):
        for form, value in (context[section] or {}).items():
            patch.setattr(provider, form, staticmethod(lambda value=value: value))
    key: Callable[[Any], str] = module._isolation_key
    return key


@pytest.fixture
def torch_key(
    caching_context: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Context], Callable[[Any], str]]:
    return lambda context: see(context, caching_context, monkeypatch)


@pytest.fixture
def real(caching_context: ModuleType) -> Context:
    """Return the context of this process."""
    context: Context = caching_context._isolation_context()
    return context


def assert_keys_are_torchs(context: Context, key: Callable[[Any], str]) -> None:
    read_back = json.loads(json.dumps(context))
    for schema in SCHEMAS:
        expected = key(schema)
        assert isolation_key(context, schema) == expected, schema
        assert isolation_key(read_back, IsolationSchema.from_dict(schema)) == expected, schema


def test_there_are_340_schemas() -> None:
    schemas = list(all_schemas())
    assert len(schemas) == len({json.dumps(schema) for schema in schemas}) == 340
    assert len({IsolationSchema.from_dict(schema) for schema in schemas}) == 256


def test_keys_of_this_process_are_torchs(real: Context, caching_context: ModuleType) -> None:
    assert_keys_are_torchs(real, caching_context._isolation_key)
    assert isolation_key(real) == caching_context._isolation_key()


def test_keys_with_other_settings_are_torchs(real: Context, caching_context: ModuleType) -> None:
    torch = caching_context.torch
    config = torch._inductor.config
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.set_float32_matmul_precision("high")
    try:
        with config.patch(epilogue_fusion=False, max_autotune=True):
            changed = caching_context._isolation_context()
            assert_keys_are_torchs(changed, caching_context._isolation_key)
    finally:
        torch.use_deterministic_algorithms(False)
        torch.set_float32_matmul_precision("highest")
    for form in RUNTIME_FORMS:
        schema = IsolationSchema({form: True}, False)
        assert isolation_key(changed, schema) != isolation_key(real, schema)
    assert isolation_key(changed, IsolationSchema(False)) == isolation_key(real, IsolationSchema(False))


@pytest.mark.parametrize("name", FABRICATED)
def test_keys_of_other_machines_are_torchs(name: str, torch_key: Any) -> None:
    context = FABRICATED[name]
    assert_keys_are_torchs(context, torch_key(context))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(max_examples=50)
@given(values=st.fixed_dictionaries(dict.fromkeys(RUNTIME_FORMS + COMPILE_FORMS, JSON)))
def test_keys_of_any_context_are_torchs(caching_context: ModuleType, values: dict[str, object]) -> None:
    context = made(**values)
    with pytest.MonkeyPatch.context() as patch:
        key = see(context, caching_context, patch)
        for schema in SCHEMAS[::7]:
            assert isolation_key(context, schema) == key(schema)


def test_select_context_is_what_torch_collects(real: Context, caching_context: ModuleType) -> None:
    for schema in SCHEMAS:
        assert select_context(real, schema) == caching_context._isolation_context(schema)


def test_a_context_made_under_a_schema_has_the_key_of_that_schema(caching_context: ModuleType) -> None:
    schema = {"runtime_context": False, "compile_context": {"runtime": True}}
    part = caching_context._isolation_context(schema)
    assert isolation_key(part, schema) == caching_context._isolation_key(schema)


NONE_OF = {
    "runtime_context": [False, {}, dict.fromkeys(RUNTIME_FORMS, False), {"inductor_configs": False}],
    "compile_context": [False, {}, dict.fromkeys(COMPILE_FORMS, False), {"runtime": False}],
}


def test_false_empty_and_all_false_are_one_schema(caching_context: ModuleType) -> None:
    context = FABRICATED["cuda"]
    for runtime, compile_ in itertools.product(*NONE_OF.values()):
        schema = {"runtime_context": runtime, "compile_context": compile_}
        assert isolation_key(context, schema) == "1e841360f41ae9b518d5fa4e216302a8"
        assert caching_context._isolation_key(schema) == "1e841360f41ae9b518d5fa4e216302a8"
        assert IsolationSchema.from_dict(schema) == IsolationSchema.none()


def test_equal_schemas_are_exactly_those_with_equal_keys() -> None:
    context = FABRICATED["cuda"]
    keys: dict[IsolationSchema, set[str]] = {}
    for schema in SCHEMAS:
        keys.setdefault(IsolationSchema.from_dict(schema), set()).add(isolation_key(context, schema))
    assert all(len(group) == 1 for group in keys.values())
    assert len(set.union(*keys.values())) == len(keys) == 256


@pytest.mark.parametrize("schema", SCHEMAS[::13], ids=str)
def test_a_schema_survives_dict_json_copy_and_pickle(schema: dict[str, object]) -> None:
    made_of = IsolationSchema.from_dict(schema)
    assert IsolationSchema.from_dict(made_of.to_dict()) == made_of
    assert IsolationSchema.from_json(made_of.to_json()) == made_of
    assert copy.deepcopy(made_of) == made_of
    assert pickle.loads(pickle.dumps(made_of)) == made_of


def test_torch_takes_the_schema_as_a_dict(caching_context: ModuleType, real: Context) -> None:
    schema = IsolationSchema({"inductor_configs": True}, {"runtime": True})
    assert caching_context._isolation_key(schema.to_dict()) == isolation_key(real, schema)


def test_the_forms_are_torchs(caching_context: ModuleType) -> None:
    assert caching_context._RuntimeContext.forms_of_context() == RUNTIME_FORMS
    assert caching_context._CompileContext.forms_of_context() == COMPILE_FORMS


def test_a_schema_cannot_be_changed() -> None:
    selection = {"runtime": True}
    schema = IsolationSchema(compile=selection)
    selection["runtime_version"] = True
    assert schema.forms("compile_context") == ("runtime",)
    with pytest.raises(AttributeError):
        schema.runtime = False  # type: ignore[misc]
    with pytest.raises(TypeError):
        schema.compile["runtime"] = False  # type: ignore[index]


@pytest.mark.parametrize(("schema", "message"), [
    ({}, "has none"),
    ({"runtime_context": True}, "exactly the keys runtime_context, compile_context"),
    ({"runtime_context": True, "compile_context": True, "extra": 1}, "extra"),
    ({"runtime_context": None, "compile_context": True}, "not null"),
    ({"runtime_context": True, "compile_context": ["runtime"]}, "not list"),
    ({"runtime_context": 1, "compile_context": True}, "not int"),
    ({"runtime_context": {"inductor_config": True}, "compile_context": True},
     "no form 'inductor_config'; it has inductor_configs, torch_determinism_configs"),
    ({"runtime_context": {"runtime": False}, "compile_context": True}, "no form 'runtime'"),
    ({"runtime_context": True, "compile_context": {"runtime": 1}}, r"\[runtime\].*not int"),
    (None, "mapping"),
])  # fmt: skip
def test_a_malformed_schema_is_refused(schema: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        IsolationSchema.from_dict(schema)
    with pytest.raises(SchemaError):
        isolation_key(FABRICATED["nulls"], schema)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000, b"\xff"])
def test_text_that_is_no_schema_is_refused(text: str | bytes) -> None:
    with pytest.raises(SchemaError):
        IsolationSchema.from_json(text)


@pytest.mark.parametrize(("context", "message"), [
    ({}, "has none"),
    ([], "has list"),
    ({"runtime_context": {}}, "exactly the keys"),
    ({"runtime_context": 3, "compile_context": None}, "not int"),
    ({"runtime_context": None, "compile_context": {"weather": "fine"}}, "weather"),
    ({"runtime_context": None, "compile_context": None}, "lacks inductor_configs"),
])  # fmt: skip
def test_a_malformed_context_is_refused(context: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        isolation_key(context)


@pytest.mark.parametrize(("value", "path"), [
    ({1, 2}, "runtime_context[inductor_configs][odd]"),
    ({"x": [0, b"bytes"]}, "runtime_context[inductor_configs][odd][x][1]"),
    ({"x": len}, "runtime_context[inductor_configs][odd][x]"),
    ({1: 0, "1": 0}, "runtime_context[inductor_configs][odd]"),
    ({(1, 2): 0}, "runtime_context[inductor_configs][odd]"),
])  # fmt: skip
def test_a_value_json_cannot_hold_is_named(value: object, path: str, torch_key: Any) -> None:
    context = made(inductor_configs={"fine": 1, "odd": value})
    with pytest.raises(UnsupportedValueError, match="cannot be written as JSON") as caught:
        isolation_key(context)
    assert caught.value.path == path
    assert isinstance(caught.value, CachescopeError)
    with pytest.raises(TypeError):
        torch_key(context)(SCHEMAS[0])
    # Not chosen, not in the way.
    assert isolation_key(context, IsolationSchema(runtime=False))


def test_a_context_that_holds_itself_is_refused() -> None:
    cycle: list[object] = []
    cycle.append(cycle)
    with pytest.raises(UnsupportedValueError, match="cannot be written as JSON"):
        isolation_key(made(inductor_configs=cycle))


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
    on = [*isolation.forms("runtime_context"), *isolation.forms("compile_context")]
    assert made.forms_off == tuple(form for form in FORMS if form not in on)


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
    parts = {"example_inputs[0]": frozenset({"device", "stride"})}
    assert both == Removed(frozenset({"example_inputs[1]"}), parts)


def test_the_parts_are_those_of_torchs_own_metadata(codecache: object) -> None:
    import dataclasses

    from torch._subclasses.fake_tensor import TensorMetadata

    assert {field.name for field in dataclasses.fields(TensorMetadata)} == set(TENSOR_PARTS)


@pytest.mark.parametrize(("made", "words"), [
    ({"isolation": 3}, "isolation of a key schema is an IsolationSchema, not int"),
    ({"without": 3}, "without is a list of fields, not int"),
    ({"without": "gm"}, "without is a list of fields, not str"),
])  # fmt: skip
def test_what_is_no_schema_says_what_is_wanted(made: dict[str, Any], words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        KeySchema(**made)
