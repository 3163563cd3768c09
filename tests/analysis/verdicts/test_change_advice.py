"""What to do about an input, a graph or a field that changed: its parts or its code in, sentences out; where fields come from, and their defaults."""

import json
import os
import subprocess
import sys

import pytest

from cachescope.analysis.differences import FieldChange, field_change
from cachescope.analysis.verdicts import change_advice
from cachescope.analysis.verdicts.misses import is_from_the_graph
from cachescope.keys.detail_hash import default_hashes, detail_hash
from cachescope.keys.key_fields import is_input

DTYPE, LAYOUT, GRAD, ORDER = "dtype changed", "layout changed", "requires_grad changed", "one memory format"
INDEX, DEVICE = "another device of the same kind", "another kind of device"
SIZES, ONE, RANK, SYMBOL = (
    "Pad it to one size", "to or from 0 or 1", "number of dimensions", "computed in another way",
)  # fmt: skip

# As torch 2.13 printed it for two processes.
GATHERED = """def forward(self, arg0_1, arg1_1):
    all_gather_into_tensor = torch.ops._c10d_functional.all_gather_into_tensor.default(arg0_1, 2, '0');  arg0_1 = None
    wait_tensor = torch.ops._c10d_functional.wait_tensor.default(all_gather_into_tensor);  all_gather_into_tensor = None
    relu = torch.ops.aten.relu.default(wait_tensor);  wait_tensor = None
    return (torch.ops.aten.mm.default(relu, arg1_1),)"""
BROADCAST = GATHERED.replace("all_gather_into_tensor.default(arg0_1, 2,", "broadcast.default(arg0_1, 0,")
FLOAT = "TensorMetadata(dtype=torch.float64, shape=torch.Size([]), stride=(), device=device(type='cpu'))"


def changed(**parts: tuple[str, str]) -> FieldChange:
    """An input whose metadata has these parts, before and after."""
    before, after = (
        f"TensorMetadata({', '.join(f'{name}={texts[side]}' for name, texts in parts.items())})"
        for side in (0, 1)
    )
    return field_change("example_inputs[0]", before, after)


def size(before: str, after: str) -> FieldChange:
    return changed(shape=(f"torch.Size([{before}])", f"torch.Size([{after}])"))


def of_sizes(sizes: str) -> str:
    return f"TensorMetadata(shape=torch.Size([{sizes}]))"


@pytest.mark.parametrize(("change", "said"), [
    (changed(dtype=("a", "b")), [DTYPE]),
    (changed(dtype=("a", "b"), storage_bytes=("4", "8")), [DTYPE]),
    (changed(storage_bytes=("4", "8")), []),
    (changed(layout=("a", "b"), is_sparse=("False", "True"), stride=("(1,)", "(2,)")), [LAYOUT]),
    (changed(layout=("a", "b"), memory_format=("c", "d")), [LAYOUT]),
    (changed(stride=("(8, 1)", "(1, 8)")), [ORDER]),
    (changed(memory_format=("a", "b")), [ORDER]),
    (changed(requires_grad=("False", "True")), [GRAD]),
    (changed(dtype=("a", "b"), layout=("a", "b"), requires_grad=("a", "b")), [DTYPE, LAYOUT, GRAD]),
    (changed(device=("device(type='cuda', index=0)", "device(type='cuda', index=3)")), [INDEX]),
    (changed(device=("cuda:0", "cuda:1")), [INDEX]),
    (changed(device=("device(type='cuda', index=0)", "device(type='xpu', index=0)")), [DEVICE]),
    (changed(is_quantized=("False", "True")), []),
    (size("4, 2", "5, 2"), [SIZES]),
    (size("4, 2", "5, 3"), [SIZES]),
    (size("4, 2", "4, 1"), [ONE]),
    (size("0, 2", "4, 2"), [ONE]),
    # A 1 that has not changed says nothing.
    (size("1, 2", "1, 3"), [SIZES]),
    (size("4, 2", "4"), [RANK]),
    (size("4", ""), [RANK]),
    (changed(shape=("[4, 2]", "[4]")), [RANK]),
    (size("s0, 2", "s1, 2"), [SYMBOL]),
    (size("s0, 2", "4, 2"), ["is a fixed number now"]),
    (size("4, 2", "s0, 2"), ["is symbolic now"]),
    (size("4, s0", "s1, 2"), [SYMBOL]),
    (size("s0, 2", "s0, 3"), [SIZES]),
    (size("s0, 2", "s0, 1"), [ONE]),
    (field_change("example_inputs[0]", FLOAT, "('s72',)"), ["an integer where it was a float"]),
    (field_change("example_inputs[0]", FLOAT.replace("64", "32"), "('s72',)"), []),
    # The strides follow from the sizes.
    (changed(shape=("torch.Size([4, 2])", "torch.Size([4, 3])"), stride=("(2, 1)", "(3, 1)")), [SIZES]),
])  # fmt: skip
def test_what_is_said_of_an_input(change: FieldChange, said: list[str]) -> None:
    found = change_advice.tensor_advice(change)
    assert len(found) == len(said)
    assert all(words in sentence for words, sentence in zip(said, found, strict=True))


@pytest.mark.parametrize(("change", "said"), [
    (size("4, 2", "5, 2"), "the model is another one"),
    (changed(dtype=("torch.float32", "torch.float64")), "with model.to(dtype)"),
    (changed(requires_grad=("True", "False")), "freeze the same parameters"),
])  # fmt: skip
def test_what_is_said_of_a_parameter(change: FieldChange, said: str) -> None:
    (sentence,) = change_advice.tensor_advice(change._replace(is_static=True))
    assert said in sentence and "input" not in sentence


@pytest.mark.parametrize(("changes", "said"), [
    ([], None),
    ([("example_inputs[0]", "('s0',)", "4")], "is a fixed number now"),
    ([("example_inputs[0]", "4", "('s0',)")], "is symbolic now"),
    ([("example_inputs[0]", "('s0',)", "('s1',)")], None),
    ([("example_inputs[0]", "('s0',)", "('u0',)")], "mark_unbacked"), ([("example_inputs[0]", of_sizes("u0, 2"), of_sizes("s0, 2"))], "mark_unbacked"),
    # A symbol of several inputs is one.
    ([("example_inputs[0]", "('s0',)", "('s1',)"), ("example_inputs[1]", "('s0',)", "('s2',)")], "is symbolic now"),
    ([("example_inputs[0]", "('s0',)", "('u1',)"), ("example_inputs[1]", "[s1, 2]", "[u1, 2]")], "is a fixed number"),
    ([("example_inputs[0]", "('s0',)", None), ("example_inputs[1]", None, "[s0]")], None),
    ([("example_inputs[0]", "('s0',)", None)], "is a fixed number now"),
    # A float that becomes an integer is no size.
    ([("example_inputs[0]", FLOAT, "('s0',)")], None), ([("example_inputs[0]", "('s0',)", FLOAT)], None),
    # An integer that no tensor's size is.
    ([("example_inputs[0]", "('s0',)", "TensorMetadata(shape=torch.Size([4]))")], "An integer input that was symbolic"),
    ([("example_inputs[0]", "('s0',)", "('s0',)"), ("example_inputs[1]", "TensorMetadata(shape=torch.Size([s0]))",
      "('s1',)"), ("example_inputs[2]", None, "TensorMetadata(shape=torch.Size([s0]))")], "An integer input that was a"),
    ([("example_inputs[0]", "TensorMetadata(shape=torch.Size([4]))", "('s0',)"),
      ("example_inputs[1]", None, "TensorMetadata(shape=torch.Size([s0]))")], "A size of an input that was a"),
    # Torch compiles 0 and 1 on their own whatever is dynamic; where another size changed as well, that may have been the reason.
    ([("example_inputs[0]", "('s0',)", None), ("example_inputs[1]", of_sizes("s0, 2"), of_sizes("1, 2"))], "also with dynamic=True"),
    ([("example_inputs[0]", of_sizes("0, 2"), of_sizes("s0, 2"))], "also with dynamic=True"),
    ([("example_inputs[0]", of_sizes("s0, s1"), of_sizes("1, 4"))], "is a fixed number now"),
    # Of the inputs alone.
    ([("gm", "s0", "4"), ("aot_config", "s0", "4")], None),
    ([("example_inputs[0]", "class0", "class1")], None),
])  # fmt: skip
def test_if_sizes_are_symbolic(changes: list[tuple[str, str | None, str | None]], said: str | None) -> None:
    found = change_advice.dynamism_advice([field_change(*change) for change in changes])
    assert found is None if said is None else said in (found or "")


@pytest.mark.parametrize(("changes", "are_moved"), [
    ([("gm", "a", "b"), ("example_inputs[0]", "[4]", "[8]"), ("example_inputs[1]", "[8]", "[4]")], True),
    ([("aot_config", "a", "b"), ("example_inputs[0]", "[4]", "[8]"), ("example_inputs[1]", "[8]", "[2]")], True),
    # With the same code and sources each place has the same input.
    ([("default_dtype", "a", "b"), ("example_inputs[0]", "[4]", "[8]"), ("example_inputs[1]", "[8]", "[4]")], False),
    ([("gm", "a", "b"), ("example_inputs[0]", "[4]", "[8]"), ("example_inputs[1]", "[4]", "[8]")], False),
    # A subclass prints alike before and after.
    ([("gm", "a", "b"), ("example_inputs[0]", "[4]", "[4]")], False),
    ([("gm", "a", "b")], False),
    ([("example_inputs[0]", "[4]", None)], True),
])  # fmt: skip
def test_whether_inputs_moved(changes: list[tuple[str, str | None, str | None]], are_moved: bool) -> None:
    assert change_advice.are_inputs_moved(field_change(*change) for change in changes) is are_moved


NAMES, TYPES, NUMBERS, OTHER, EQUAL, INNER = (
    "Only names in the code",
    "In the graph's code only the types of arguments",
    "A number in the code",
    "The code of the graph changed",
    "The printed code is equal: a captured tensor",
    "The printed code is equal, and torch does not print the code of the graphs within it",
)


@pytest.mark.parametrize(("before", "after", "said"), [
    ("a = b + 1", "a = b + 2", NUMBERS), ("a = b * 1.5e-3", "a = b * 2", NUMBERS),
    ("a = f(1, 2)", "a = f(3, 4)", NUMBERS),
    # A name in place of a number, and a number in place of a name.
    ("a = b + 1", "a = b + c", OTHER), ("a = b + c", "a = b + 1", OTHER),
    ("a = b + 1", "c = b + 2", OTHER), ("a = b", "c = b", NAMES), ("a = b; c = a", "d = b; c = d", NAMES),
    ("a = b", "b = a", NAMES),
    # With real torch 2.10: a parameter is passed where a plain tensor was.
    ("def forward(self, p_0 : torch.Tensor):", "def forward(self, p_0 : torch.nn.parameter.Parameter):", TYPES),
    ("def forward(self, p_0 : torch.Tensor):", "def forward(self, p_1 : torch.nn.parameter.Parameter):", OTHER),
    # Not throughout, or two that become one.
    ("a = b; c = a", "d = b; c = a", OTHER), ("a = b; c = a", "a = a; c = a", OTHER),
    ("a = b + c", "a = b + b", OTHER),
    # What is called or looked up is no name of the graph's own.
    ("a = sin(b)", "a = cos(b)", OTHER), ("a = b.sin", "a = b.cos", OTHER),
    ("a = torch.sin(b)", "a = np.sin(b)", OTHER), ("a = b + c", "a = b - c", OTHER),
    # Nor is a value, a text, or what an argument is passed by.
    ("a = f(b, is_causal = False)", "a = f(b, is_causal = True)", OTHER), ("a = f(b, inf)", "a = f(b, nan)", OTHER),
    ("a = gelu(b, approximate = 'none')", "a = gelu(b, approximate = 'tanh')", OTHER),
    ("a = f(b, dim = 1)", "a = f(b, axis = 1)", OTHER), ("a = f(b, c)", "a = f(b, None)", OTHER),
    ("f(a, 'a < 100')", "f(a, 'a < 200')", NUMBERS), ("f(p_0, 's1')", "f(p_0, 's2')", OTHER),
    ("a = f(p_1)", "a = f(p_2)", NAMES), ("a = f(b, x = c)", "a = f(d, x = c)", NAMES),
    ("a = b", "a = b + c", OTHER), ("a = b", "a = b\n", EQUAL), ("a = b", "a = b", EQUAL),
    *[("GraphModule()\n  (true_graph_0): GraphModule()\ndef forward(self):\n    pass",) * 2 + (INNER,)],
])  # fmt: skip
def test_how_code_changed(before: str, after: str, said: str) -> None:
    assert change_advice.graph_advice(field_change("gm", before, after)).startswith(said)


@pytest.mark.parametrize(("after", "is_random"), [
    ("id='__compiled_fn_1_0c1e8a7b_1111_4222_8333_0123456789ab'", True),
    ("id='__compiled_fn_1_0c1e8a7b_1111_4222_8333_0123456789ab', dynamic=True", False),
    ("id='another'", False), ("id=None", True), ("id=None, dynamic=True", False),
])  # fmt: skip
def test_a_random_name_in_the_key_is_told_if_nothing_else_differs(after: str, is_random: bool) -> None:
    before = "id='__compiled_fn_1_9a9a9a9a_1111_4222_8333_0123456789ab'"
    change = field_change("aot_config", before, after)
    said = " ".join(sentence for _, sentence in change_advice.change_sentences([change], False))
    assert ("puts a random name into the key" in said) == is_random


@pytest.mark.parametrize("graphs_below", ["", "found", "equal"])
def test_other_code_has_other_arguments_unless_the_graphs_below_were_found(graphs_below: str) -> None:
    code = field_change("gm", "return (x.sin(),)", "return (x.cos(),)")
    changes = [code, field_change("aot_config", "a", "b")]
    assert ("aot_config" in dict(change_advice.change_sentences(changes, graphs_below))) == bool(graphs_below)
    assert "aot_config" in dict(change_advice.change_sentences(changes[1:], graphs_below))


def test_a_graph_on_one_side_alone() -> None:
    assert change_advice.graph_advice(field_change("gm", None, "a = b")).startswith(OTHER)
    assert change_advice.graph_advice(field_change("gm", "a = b", None)).startswith(OTHER)


@pytest.mark.parametrize(("field", "is_so"), [
    ("example_inputs[0]", True), ("inputs_to_check[1]", True), ("fx_kwargs[static_input_idxs]", True),
    ("fx_kwargs[cudagraphs]", False), ("example_inputs", False), ("my_example_inputs[0]", False),
    ("gm", False),
])  # fmt: skip
def test_a_field_that_describes_the_inputs(field: str, is_so: bool) -> None:
    assert is_input(field) is is_so


@pytest.mark.parametrize(("field", "is_so"), [
    ("gm", True), ("example_inputs[0]", True), ("triton_kernel_source_codes[0]", True),
    ("cpp_runtime_thread_count", True), ("default_cuda_device_index", True),
    ("inductor_config[epilogue_fusion]", False), ("torch_version", False),
])  # fmt: skip
def test_a_field_that_follows_from_the_program(field: str, is_so: bool) -> None:
    assert is_from_the_graph(field) is is_so


@pytest.mark.parametrize(("field", "advice"), [
    ("default_dtype", "Set by torch.set_default_dtype(…)."),
    ("disable_amp", "Set by torch.autocast(…) around the call."),
    # Torch 2.12 with TORCH_CACHING_PRECOMPILE=1 prints False.
    ("precompile_enabled", "Set by torch._functorch.config.bundled_autograd_cache."),
    # What torch has of an option, and what the name of one shows that it does not have.
    ("inductor_config[epilogue_fusion]", "Set by options={\"epilogue_fusion\": …} of torch.compile or by torch._inductor.config.epilogue_fusion; keep it equal in every process."),
    ("inductor_config[of_a_later_torch]", "Set by options={\"of_a_later_torch\": …} of torch.compile, by torch._inductor.config.of_a_later_torch, or by a TORCHINDUCTOR_… variable; keep it equal in every process."),
    ("inductor_config[coordinate_descent_tuning]", None),
    ("inductor_config_comms[reorder_sink_verbose_logging]", "Set by torch._inductor.config_comms.reorder_sink_verbose_logging; keep it equal in every process."),
    ("fx_kwargs[of_a_later_torch]", "An argument that torch.compile hands to Inductor (of_a_later_torch)."),
    ("fx_kwargs[cudagraphs]", 'Set by options={"triton.cudagraphs": …} or mode="reduce-overhead" or mode="max-autotune" of torch.compile, by torch._inductor.config.triton.cudagraphs, or by TORCHINDUCTOR_CUDAGRAPHS; keep it equal in every process.'),
    ("fx_kwargs[is_backward]", None),
])  # fmt: skip
def test_what_sets_a_field(field: str, advice: str | None) -> None:
    found = change_advice.field_advice(field) or ""
    assert found == (found if advice is None else advice)
    assert found.endswith(".")


def test_each_way_to_set_an_option_is_named() -> None:
    tuning = change_advice.field_advice("inductor_config[coordinate_descent_tuning]") or ""
    ways = (
        "by options=",
        "by torch._inductor.config.coordinate_descent_tuning, or by TORCHINDUCTOR_COORDINATE_DESCENT_TUNING",
    )
    assert all(way in tuning for way in ways), tuning
    advice = change_advice.field_advice("fx_kwargs[is_backward]") or ""
    assert "An argument that torch.compile hands to Inductor (is_backward)" not in advice


@pytest.mark.parametrize("field", ["gm", "a_field_of_no_torch", "example_inputs[0]"])
def test_where_nothing_is_certain_nothing_is_said(field: str) -> None:
    assert change_advice.field_advice(field) is None


PROGRAM = "import cachescope, json; print(json.dumps(cachescope.capture()))"


@pytest.mark.torch
def test_known_defaults_are_those_of_a_process_that_set_nothing() -> None:
    unset = {name: value for name, value in os.environ.items() if "INDUCTOR" not in name}
    printed = subprocess.run([sys.executable, "-c", PROGRAM], env=unset, check=True, capture_output=True)
    snapshot = json.loads(printed.stdout)
    options = {name: hash_ for name, hash_ in snapshot["key_fields"].items() if name.startswith("inductor_")}
    known = {name: default_hashes(name, snapshot["torch_version"]) for name in options}
    assert sum(map(bool, known.values())) > 0.7 * len(options)
    assert [name for name, hashes in known.items() if hashes and options[name] not in hashes] == []


@pytest.mark.parametrize("field", ["inductor_config[cpp.cxx]", "inductor_config[nosuch]", "gm"])
def test_of_what_no_default_is_known_nothing_is_said(field: str) -> None:
    assert default_hashes(field, "2.13.0") == frozenset()


def test_a_default_is_that_of_the_version() -> None:
    field = "inductor_config[triton.cudagraphs]"
    assert detail_hash(False) in default_hashes(field, "2.13.0")
    assert detail_hash(True) not in default_hashes(field, "2.13.0")


@pytest.mark.parametrize(("now", "begin"), [
    (GATHERED.replace("2, '0'", "4, '0'"), "A graph with collectives has code of its own for each number of processes: 2 -> 4."),
    # The rank that sends is no number of processes.
    (BROADCAST.replace("0, '0'", "1, '0'"), "An input's size changed"),
    # The group is the same.
    (GATHERED.replace("mm.default(relu", "mm.default(3"), "An input's size changed"),
    # More than numbers changed.
    (GATHERED.replace("2, '0'", "4, '0'").replace("relu", "tanh"), "An input's size changed"),
])  # fmt: skip
def test_a_graph_with_collectives_is_of_a_number_of_processes(now: str, begin: str) -> None:
    before = BROADCAST if "broadcast" in now else GATHERED
    changes = [field_change("gm", before, now), size("32, 32", "16, 32")]
    ((_, sentence),) = change_advice.change_sentences(changes, "")
    assert sentence.startswith(begin)
