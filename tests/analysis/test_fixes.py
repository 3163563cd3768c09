"""What could give a field its stored value: a field and its values in, lines of code out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.analysis.fixes import ways_to_set
from cachescope.components import Detail
from cachescope.details import HashDetails
from cachescope.keys.detail_hash import detail_hash
from cachescope.keys.printed_values import printed_value


def detail(field: str, value: object, protocol: int = 4) -> Detail:
    return Detail(field, detail_hash(value, protocol), str(value))


def codes(field: str, stored: object, now: object, **environment: str) -> list[list[str]]:
    ways = ways_to_set(HashDetails(), detail(field, stored), detail(field, now), environment)
    return [[setting.code for setting in way] for way in ways]


def test_options_of_functorch_are_set_back_if_both_sides_are_known() -> None:
    stored, now = (detail("autograd_config", bytes([number])) for number in range(2))
    details = HashDetails()
    assert not ways_to_set(details, stored, now, {})
    details.options[stored.detail_hash] = {"cse": "True", "solver": "'dp'", "budget": "1.0", "gone": "1"}
    assert not ways_to_set(details, stored, now, {})
    details.options[now.detail_hash] = {"cse": "True", "solver": "'ilp'", "budget": "0.5", "gone": "1"}
    (way,) = ways_to_set(details, stored, now, {})
    config = "torch._functorch.config"
    assert [one.code for one in way] == [f"{config}.solver = 'dp'", f"{config}.budget = 1.0"]
    # What the other torch lacks nobody can set, and of an object the type alone is known. No line is made of what is no name.
    for more in ({"cse": "<function>"}, {"x = 1; import os; x": "2"}):
        details.options[stored.detail_hash] = {"budget": "1.0", **more}
        assert not ways_to_set(details, stored, now, {})
    details.options[stored.detail_hash] = {"budget": "1.0"}
    assert not ways_to_set(details, stored, now, {})


PRECISION = "torch.backends.cuda.matmul"
TAG = "TORCH_COMPILE_CACHE_KEY_TAG"


@pytest.mark.parametrize(("field", "stored", "now", "wanted"), [
    (
        "inductor_config[epilogue_fusion]",
        True,
        False,
        [["torch._inductor.config.epilogue_fusion = True"],
         ['torch.compile(…, options={"epilogue_fusion": True})']],
    ),
    ("inductor_config[cpp.threads]", -1, 4,
     [["torch._inductor.config.cpp.threads = -1"], ['torch.compile(…, options={"cpp.threads": -1})']]),
    ("inductor_config[custom_should_partition_ops]", ["a::b", "a::b"], [],
     [["torch._inductor.config.custom_should_partition_ops = ['a::b', 'a::b']"],
      ['torch.compile(…, options={"custom_should_partition_ops": [\'a::b\', \'a::b\']})']]),
    # A text is quoted again.
    (
        "inductor_config[max_autotune_gemm_backends]",
        "ATEN,TRITON",
        "ATEN",
        [["torch._inductor.config.max_autotune_gemm_backends = 'ATEN,TRITON'"],
         ['torch.compile(…, options={"max_autotune_gemm_backends": \'ATEN,TRITON\'})']],
    ),
    ("inductor_config_comms[reorder_sink_verbose_logging]", False, True,
     [["torch._inductor.config_comms.reorder_sink_verbose_logging = False"]]),
    ("cpp_runtime_thread_count", 2, 1, [["export OMP_NUM_THREADS=2"], ["torch.set_num_threads(2)"]]),
    ("cache_key_tag", "a b", "", [[f"export {TAG}='a b'"], ["torch.compiler.config.cache_key_tag = 'a b'"]]),
    ("cache_key_tag", "", "b", [[f"unset {TAG}"], ["torch.compiler.config.cache_key_tag = ''"]]),
    # Looks like a number, and is none.
    ("cache_key_tag", "1", "2", [[f"export {TAG}=1"], ["torch.compiler.config.cache_key_tag = '1'"]]),
    (
        "deterministic_algorithms_settings",
        (True, True, True),
        (False, False, False),
        [["torch.use_deterministic_algorithms(True, warn_only=True)",
          "torch.utils.deterministic.fill_uninitialized_memory = True"]],
    ),
    ("deterministic_algorithms_settings", (False, False, True), (True, False, True),
     [["torch.use_deterministic_algorithms(False)"]]),
    ("deterministic_algorithms_settings", (True, False, True), (True, True, True),
     [["torch.use_deterministic_algorithms(True)"]]),
    ("deterministic_algorithms_settings", (True, False, False), (True, False, True),
     [["torch.utils.deterministic.fill_uninitialized_memory = False"]]),
    (
        "cuda_matmul_settings",
        ("none", True, True),
        ("tf32", True, False),
        [[f"{PRECISION}.fp32_precision = 'none'",
          f"{PRECISION}.allow_bf16_reduced_precision_reduction = True"]],
    ),
    # Up to 2.8.
    ("cuda_matmul_settings", (False, True, True), (True, True, True), [[f"{PRECISION}.allow_tf32 = False"]]),
    # Of another form than any torch's: nothing is proposed.
    ("cuda_matmul_settings", ("none", True), ("tf32", True), []),
    ("deterministic_algorithms_settings", (0, 1, 2), (0, 1, 1), []),
    ("cpp_runtime_thread_count", True, 1, []),
    # Not for anybody to set.
    ("torch_version", b"a", b"b", []),
    ("gm", "a", "b", []),
    ("system_info[device]", "a", "b", []),
    ("grad_enabled", True, False, []),
])  # fmt: skip
def test_ways(field: str, stored: object, now: object, wanted: list[list[str]]) -> None:
    assert codes(field, stored, now) == wanted


def test_a_variable_that_is_set_is_unset_first() -> None:
    field = "inductor_config[coordinate_descent_tuning]"
    variable = "TORCHINDUCTOR_COORDINATE_DESCENT_TUNING"
    assert codes(field, False, True, **{variable: "1"})[0] == [f"unset {variable}"]
    assert not any("unset" in code for way in codes(field, False, True) for code in way)


def test_a_set_in_another_order_is_tried_with_the_order_that_a_seed_gives() -> None:
    field = "inductor_config[aot_inductor.metadata]"
    stored, now = Detail(field, "a" * 51, "{'x', 'y'}"), Detail(field, "b" * 51, "{'y', 'x'}")
    seeds: tuple[dict[str, str], ...] = ({}, {"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "0"})
    found = [ways_to_set(HashDetails(), stored, now, variables) for variables in seeds]
    unset = [["export PYTHONHASHSEED=0"]]
    assert [[[one.code for one in way] for way in ways] for ways in found] == [unset, unset, []]


def test_a_dtype_is_no_literal() -> None:
    field = "default_dtype"
    stored, now = (Detail(field, "h" * 51, f"torch.{name}") for name in ("float32", "float64"))
    wanted = [["torch.set_default_dtype(torch.float32)"]]
    assert [[one.code for one in way] for way in ways_to_set(HashDetails(), stored, now, {})] == wanted
    assert not ways_to_set(HashDetails(), Detail(field, "h" * 51, "torch.float32); import os"), now, {})


@pytest.mark.parametrize("text", ["<lambda at 0x7f>", "{1, 2}", "True", "'a'", "[", "", "\0", "9" * 5000])
def test_a_value_is_known_only_where_its_hash_confirms_it(text: str) -> None:
    assert printed_value(Detail("f", "b" * 51, text)) is NotImplemented


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner),
)


@pytest.mark.slow
@given(PLAIN, st.sampled_from((4, 5)))
def test_what_is_printed_and_hashed_is_recovered(value: object, protocol: int) -> None:
    found = printed_value(detail("f", value, protocol))
    assert found is NotImplemented or (found == value and type(found) is type(value))


@given(st.text(), st.text())
def test_any_texts_of_any_field_are_no_error(field: str, text: str) -> None:
    settings = ("cuda_matmul_settings", "deterministic_algorithms_settings")
    for named in (field, f"inductor_config[{field}]", *settings):
        ways_to_set(HashDetails(), detail(named, text), Detail(named, "a" * 51, text), {})
