"""What changed in one field, on what torch really printed; which inputs are of the model, and what the program calls them."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cachescope
from cachescope.analysis.aot_config import aot_config_parts, argument_name, argument_sources
from cachescope.analysis.differences import (
    FieldChange,
    field_change,
    field_changes,
    is_reordered,
    static_inputs,
)
from cachescope.details import HashDetails
from cachescope.wording import short
from tests.conftest import Recording
from tests.made import component, set_of


def changes_of(folder: Path, run: int, cache: str) -> dict[str, FieldChange]:
    scope = cachescope.read(folder / "trace")
    lookups = scope.lookups
    (lookup,) = lookups[(lookups["run"] == run) & (lookups["cache"] == cache)]["lookup"]
    return {change.field: change for change in scope.changes(int(lookup))}


@pytest.mark.parametrize(("run", "field", "parts"), [
    (1, "example_inputs[0]", {"shape"}),
    (2, "example_inputs[1]", {"dtype"}),
    (2, "example_inputs[0]", {"dtype"}),
    (3, "example_inputs[0]", {"stride"}),
])  # fmt: skip
def test_the_part_that_changed_is_named(run: int, field: str, parts: set[str], recording: Recording) -> None:
    # Batch size, then dtype, then a transposed input. The first run is nearest to each of them: the run before differs
    # in what it had changed as well.
    change = changes_of(recording("2.13.0", "inputs"), run, "fxgraph")[field]
    assert change.kind == "tensor"
    assert parts <= {name for name, _, _ in change.parts} <= parts | {"memory_format"}


def test_a_graph_is_told_as_a_unified_diff(recording: Recording) -> None:
    diff = changes_of(recording("2.13.0", "graph_relu_tanh"), 1, "fxgraph")["gm"].diff
    assert "-    relu = torch.ops.aten.relu.default(mm);  mm = None" in diff
    assert "+    tanh = torch.ops.aten.tanh.default(mm);  mm = None" in diff


@pytest.mark.parametrize(("before", "after", "summary"), [
    ("y = f(x, dim = 1)", "y = f(x, dim = 2)", "dim = 1 -> 2 in 1 line"),
    ("y = f(x, dim = 1)\nz = g(y, 1)", "y = f(x, dim = 2)\nz = g(y, 2)", "1 -> 2 in 2 lines"),
    ("y = 0.5 * x", "y = 0.25 * x", "0.5 -> 0.25 in 1 line"),
    ("y = torch.sin(x)", "y = torch.cos(x)", "sin -> cos in 1 line"),
    # Several differ, or one is gone.
    ("y = f(x, 1, 2)", "y = f(x, 3, 4)", "1 line of code gone, 1 new"),
    ("y = f(x, 1)", "y = f(x)", "1 line of code gone, 1 new"),
])  # fmt: skip
def test_where_one_name_or_number_of_code_changed_it_is_named(before: str, after: str, summary: str) -> None:
    sides = (f"def forward(self):\n{code}\n" for code in (before, after))
    assert field_change("gm", *sides).summary == summary


def test_settings_in_pickled_bytes_are_named_where_they_can_be_read(recording: Recording) -> None:
    # activation_memory_budget, which was changed, is beyond what torch printed.
    change = changes_of(recording("2.13.0", "autograd_config"), 1, "aotautograd")["autograd_config"]
    assert "can be read in them none does" in change.summary and change.parts == ()
    before, after = (
        pickle.dumps({"cse": True, "solver": solver, "budget": budget}, protocol=2).decode(errors="replace")
        for solver, budget in (("dp", 2.0), ("ilp", 2.5))
    )
    change = field_change("autograd_config", before, after)
    assert change.parts == (("solver", "'dp'", "'ilp'"), ("budget", "2.0", "2.5"))
    assert (change.kind, change.summary) == ("value", "solver 'dp' -> 'ilp'; budget 2.0 -> 2.5")


@settings(max_examples=30)
@given(st.text(), st.text())
def test_any_two_texts_give_one_line(before: str, after: str) -> None:
    change = field_change("inductor_config[x]", before, after)
    assert "\n" not in change.summary
    assert len(change.summary) < 1000


def test_inputs_of_the_model_are_said_to_be() -> None:
    """Where the code of the graph says which they are."""
    code = "def forward(self, x : torch.Tensor, w : torch.nn.parameter.Parameter):\n    return (x @ w,)"
    details = HashDetails()
    sets = []
    for size in ("[8, 8]", "[9, 8]"):
        tensor = TENSOR.replace("[8, 8]", size)
        fields = {"gm": code, "example_inputs[0]": tensor, "example_inputs[1]": tensor, "x": size}
        sets.append(set_of(details, fields))
    changes = field_changes(details, *sets)
    wanted = {"example_inputs[0]": False, "example_inputs[1]": True, "x": False}
    assert {change.field: change.is_static for change in changes} == wanted


TENSOR = (
    "TensorMetadata(dtype=torch.float32, shape=torch.Size([8, 8]), stride=(8, 1), device=device(type='cpu'))"
)
OPAQUE = "opaque bytes, which torch hashes and does not spell out, differ"


@pytest.mark.parametrize(("field", "before", "after", "kind", "summary"), [
    ("x", None, "a\nb", "new", "not there -> a b"),
    ("x", None, None, "new", "not there -> "),
    ("x", "a\nb", None, "gone", "a b -> not there"),
    ("x", str([*range(50), 60]), str([*range(1, 50), 60]), "value", "[0-49, 60] -> [1-49, 60]"),
    ("x", "[0, 1]", "[1]", "value", "[0, 1] -> [1]"),
    ("x", "\x00a", "b", "opaque", OPAQUE),
    ("x", "b", "\x00a", "opaque", OPAQUE),
    ("x", "b", "\ufffda", "opaque", OPAQUE),
    ("x", "<bytes>", "<bytes>", "opaque", OPAQUE),
    ("x", "a", "a", "opaque", "the hashes differ and the printed value does not: a"),
    ("x", "f at 0x7f0001", "g at 0x7f0002", "value", "f at 0x7f0001 -> g at 0x7f0002"),
    ("gm", "a\nb\nc", "a\nd\ne\nc", "graph", "1 line of code gone, 2 new"),
    ("gm", "a\nb", "a", "graph", "1 line of code gone, 0 new"),
    ("gm", "a", "a\n\n", "graph", "the printed code is equal: a captured tensor, an attribute, an annotation or the class of the graph differs"),
    ("x", TENSOR, TENSOR, "tensor", None),
    ("x", TENSOR, TENSOR.replace("float32", "float64"), "tensor", "dtype torch.float32 -> torch.float64"),
    ("x", TENSOR, TENSOR.replace("[8, 8]", "[9, 8]"), "tensor", "shape [8, 8] -> [9, 8]"),
    ("x", TENSOR, "8", "value", None),
    ("x", "8", TENSOR, "value", None),
    ("x", "f at 0x7f0001", "f at 0x7f0002", "opaque", None),
    ("x", "1", "2", "value", "1 -> 2"),
    ("x", "1", "", "value", "1 -> (empty)"),
    ("x", "a  b\nc", "d", "value", "a b c -> d"),
    # What a device is called is compared in the system's own field alone.
    ("system_info[device]", "{'name': 'A'}", "{'name': 'B'}", "value", None),
])  # fmt: skip
def test_what_kind_of_change_it_is(
    field: str, before: str | None, after: str | None, kind: str, summary: str | None
) -> None:
    change = field_change(field, before, after)
    assert (change.field, change.kind, change.before, change.after) == (field, kind, before, after)
    assert summary is None or change.summary == summary


@pytest.mark.parametrize(("before", "after", "parts"), [
    ("a=1, b=2", "a=1, b=3", [("b", "2", "3")]),
    ("a=1, b=2", "a=1", [("b", "2", "not there")]),
    ("a=1", "a=1, b=2", [("b", "not there", "2")]),
    ("a=1, b=2", "b=3, a=4", [("a", "1", "4"), ("b", "2", "3")]),
    # What stands within brackets is no part of its own.
    ("a=f(1, b=2), c=3", "a=f(1, b=5), c=3", [("a", "f(1, b=2)", "f(1, b=5)")]),
    ("a=[1, b=2], c=3", "a=[1, b=2], c=4", [("c", "3", "4")]),
    ("a=f([1], b=2), c=3", "a=f([1], b=4), c=4", [("a", "f([1], b=2)", "f([1], b=4)"), ("c", "3", "4")]),
])  # fmt: skip
def test_the_parts_of_a_tensor(before: str, after: str, parts: list[tuple[str, str, str]]) -> None:
    found = field_change("x", f"TensorMetadata({before})", f"TensorMetadataAndValues({after})")
    assert (found.kind, list(found.parts)) == ("tensor", parts)


def test_a_long_part_is_cut() -> None:
    before, after = (f"TensorMetadata(a={'x' * 79}{text})" for text in ("1", "22"))
    assert field_change("x", before, after).summary == f"a {'x' * 79}1 -> {'x' * 79}…"


@pytest.mark.parametrize(("text", "length", "wanted"), [
    ("abcd", 4, "abcd"), ("abcde", 4, "abc…"), ("a \n b", 4, "a b"), ("", 4, ""),
    ("x" * 200, None, "x" * 200), ("x" * 201, None, "x" * 199 + "…"),
])  # fmt: skip
def test_one_short_line(text: str, length: int | None, wanted: str) -> None:
    assert (short(text) if length is None else short(text, length)) == wanted


LONG = "x" * 100


@pytest.mark.parametrize(("before", "after", "summary"), [
    ("a" * 80, f"{'a' * 79}b", f"{'a' * 80} -> {'a' * 79}b"),
    ("a" * 81, f"{'a' * 80}b", f"…{'a' * 25} -> …{'a' * 24}b"),
    # One of them is long: 24 characters before and after what differs.
    ("a", LONG, f"a -> {LONG}"),
    (LONG, "a", f"{LONG} -> a"),
    (f"{LONG}1", f"{LONG}2", f"…{'x' * 24}1 -> …{'x' * 24}2"),
    (f"1{LONG}", f"2{LONG}", f"1{'x' * 24}… -> 2{'x' * 24}…"),
    (f"{LONG}1{LONG}", f"{LONG}22{LONG}", f"…{'x' * 24}1{'x' * 24}… -> …{'x' * 24}22{'x' * 24}…"),
    (f"{'y' * 24}1{LONG}", f"{'y' * 24}2{LONG}", f"{'y' * 24}1{'x' * 24}… -> {'y' * 24}2{'x' * 24}…"),
    (f"{'y' * 25}1{LONG}", f"{'y' * 25}2{LONG}", f"…{'y' * 24}1{'x' * 24}… -> …{'y' * 24}2{'x' * 24}…"),
    (f"{LONG}1{'y' * 24}", f"{LONG}2{'y' * 24}", f"…{'x' * 24}1{'y' * 24} -> …{'x' * 24}2{'y' * 24}"),
    (f"{LONG}1{'y' * 25}", f"{LONG}2{'y' * 25}", f"…{'x' * 24}1{'y' * 24}… -> …{'x' * 24}2{'y' * 24}…"),
    # Taken away, and put in.
    (f"{LONG}1{'y' * 90}", f"{LONG}{'y' * 90}", f"…{'x' * 24}1{'y' * 24}… -> …{'x' * 24}{'y' * 24}…"),
    # A difference that is long itself is cut.
    ("a" * 300, "b", f"{'a' * 199}… -> b"),
    ("a" * 200, "b", f"{'a' * 200} -> b"),
    (f"{LONG}{'a' * 176}", f"{LONG}b", f"…{'x' * 24}{'a' * 176} -> …{'x' * 24}b"),
    (f"{LONG}{'a' * 177}", f"{LONG}b", f"…{'x' * 24}{'a' * 175}… -> …{'x' * 24}b"),
    (f"{'a' * 300}{LONG}", f"b{LONG}", f"{'a' * 199}… -> b{'x' * 24}…"),
])  # fmt: skip
def test_of_long_values_what_differs_is_shown(before: str, after: str, summary: str) -> None:
    assert field_change("x", before, after).summary == summary


def test_an_input_that_another_one_moved_is_told_by_its_place() -> None:
    """By the name that the program has for it; what is at its place now is no change of it."""
    source = "LocalSource(local_name={!r}, is_input=True)".format
    config = "(0, True, False, False, False, [{}], [], True, False, None)".format
    texts = {one: TENSOR.replace("float32", f"float{n}") for one, n in (("x", 16), ("y", 32), ("z", 64))}

    def inputs(names: str) -> list[str]:
        fields = [(f"example_inputs[{at}]", texts[name]) for at, name in enumerate(names)]
        return [component(*one) for one in [*fields, ("aot_config", config(", ".join(map(source, names))))]]

    store = HashDetails()
    one, other, fewer = (store.add(inputs(names))[0] or 0 for names in ("xyz", "zxy", "xy"))
    found = {change.field: change for change in field_changes(store, one, other)}
    assert found["aot_config"].summary == "order of arguments x, y and 1 more -> z, x and 1 more"
    assert found["example_inputs[1]"].summary == "x, which was example_inputs[0]"
    assert found["example_inputs[1]"].parts == (("place", "example_inputs[0]", "example_inputs[1]"),)
    found = {change.field: change for change in field_changes(store, fewer, one)}
    assert found["aot_config"].summary == "arguments not there -> z"
    assert found["example_inputs[2]"].summary == "z, not there -> torch.float64 [8, 8]"
    # Of equal inputs their sources tell which is gone, as of equal layers one of which was taken out.
    texts |= dict.fromkeys("vw", texts["y"])
    layers, without = (store.add(inputs(names))[0] or 0 for names in ("yvwz", "ywz"))
    (gone,) = [one for one in field_changes(store, layers, without) if one.kind == "gone"]
    assert gone.summary == "v, torch.float32 [8, 8] -> not there"
    (added,) = [one for one in field_changes(store, without, layers) if one.kind == "new"]
    assert added.summary == "v, not there -> torch.float32 [8, 8]"
    alone, more = (store.add(inputs(names))[0] or 0 for names in ("x", "xvw"))
    said = {change.field: change.summary[:3] for change in field_changes(store, alone, more)}
    assert (said["example_inputs[1]"], said["example_inputs[2]"]) == ("v, ", "w, ")
    # One without a name, as what DDPOptimizer made an input, is not called by what it lacks.
    unnamed = ([line.replace(source("x"), "None") for line in inputs(names)] for names in ("xy", "yx"))
    found = {one.field: one for one in field_changes(store, *(store.add(each)[0] or 0 for each in unnamed))}
    assert found["example_inputs[1]"].summary == "dtype torch.float32 -> torch.float16"
    # Which name an input had before is not told where its aot_config is lost.
    lost = store.add(inputs("yx")[:-1])[0] or 0
    found = {change.field: change for change in field_changes(store, lost, fewer)}
    assert found["example_inputs[0]"].summary == "dtype torch.float32 -> torch.float16"


def test_every_field_that_changed_between_two_sets() -> None:
    store = HashDetails()
    before, after = set_of(store, dict.fromkeys("abc", "1")), set_of(store, {"a": "1", "b": "2", "d": "1"})
    found = [(change.field, change.before, change.after) for change in field_changes(store, before, after)]
    assert found == [("b", "1", "2"), ("d", None, "1"), ("c", "1", None)]


@pytest.mark.parametrize(("before", "after", "is_one"), [
    ("{'a', 'b'}", "{'b', 'a'}", True), ("[1, {'a', 'b'}]", "[1, {'b', 'a'}]", True),
    ("{'a': {1, 2}}", "{'a': {2, 1}}", True),
    # A list in another order is another list, with or without a set in it.
    ("['a', 'b']", "['b', 'a']", False), ("[{1}, 'a', 'b']", "[{1}, 'b', 'a']", False),
    ("{'a', 'b'}", "{'a', 'b'}", False), ("{'ab'}", "{'ba'}", False), ("{'a', 'b'}", "{'a', 'c'}", False),
    ("{f(1), 2}", "{2, f(1)}", False),
    # Written in another way it is no other order.
    ("{1, 2}", "{2,1}", False), ("{1, 2}", "{1.0, 2}", False), ("{1, 2", "2, 1{", False),
    (None, "{1}", False), ("{1}", None, False),
])  # fmt: skip
def test_a_set_in_another_order(before: str | None, after: str | None, is_one: bool) -> None:
    assert is_reordered(before, after) is is_one


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
    assert static_inputs(details, set_of(details, {"gm": code})) == static


@pytest.mark.parametrize(("told", "static"), [
    ("(1, True, False, False, False, [X, Y, W], [0], True, False, None)", {0, 2}),
    ("(2, True, False, False, False, [A, X, Y, W], [], True, False)", {0, 1, 3}),
    ("(x, True, False, False, False, [X, Y, W], [0], True, False, None)", {1}),
    ("(99999999999, True, False, False, False, [X, Y, W], [0], True, False, None)", {1}),
])  # fmt: skip
def test_what_a_graph_holds_itself_comes_before_its_arguments(told: str, static: set[int]) -> None:
    """torch 2.13, torch/_functorch/aot_autograd.py: the first `num_params_buffers` inputs, as of an optimizer's compiled step."""
    details = HashDetails()
    code = "def forward(self, x : torch.Tensor, w : torch.nn.parameter.Parameter):"
    assert static_inputs(details, set_of(details, {"gm": code, "aot_config": told})) == static


def test_buffers_are_static_by_their_sources() -> None:
    """As torch 2.10 prints them; its code annotates a buffer as any tensor, and AOTAutograd's fields list no static inputs."""
    local = "LocalSource(local_name='{}', is_input=True, dynamism=None, is_derefed_cell_contents=False)"
    module = f"UnspecializedNNModuleSource(base={local.format('self')})"
    attribute = f"AttrSource(base={module}, member='scale')"
    buffer = f"DictGetItemSource(base=UnspecializedParamBufferSource(base={module}, member='_buffers'), index='mean')"
    details = HashDetails()
    sources = f"[{local.format('x')}, {buffer}, {attribute}]"
    made = set_of(details, {"aot_config": f"(0, True, False, False, False, {sources}, True, False)"})
    assert static_inputs(details, made) == {1}


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


CONFIG = "(0, True, False, False, True, [{}], {}True, False{})"


def told(sources: str, *, before_213: bool = False) -> str:
    return CONFIG.format(sources, *("", "") if before_213 else ("[0], ", ", None"))


@pytest.mark.parametrize("version", ["2.6.0", "2.10.0", "2.13.0", "2.15.0"])
def test_inputs_have_the_names_of_the_program(version: str, recording: Recording) -> None:
    scope = cachescope.read(recording(version, "training"))
    lookup = scope.lookups.query("cache == 'aotautograd'")["lookup"].iloc[0]
    details = scope.hash_details(lookup=int(lookup)).set_index("field")["value_text"]
    names = [argument_name(source) for source in argument_sources(details["aot_config"])]
    assert names == ["fn.0.weight", "fn.0.bias", "args[0]", "fn.2.weight", "fn.2.bias"]


def test_a_renamed_argument_is_told_with_both_names(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "rename_argument"))
    assert scope.misses["reason"].str.endswith("differs: aot_config, arguments x -> batch").any()


LOCAL = "LocalSource(local_name='{}', is_input=True, dynamism=None, is_derefed_cell_contents=False)"
X, Y, Z = (LOCAL.format(name) for name in "xyz")


@pytest.mark.parametrize("before_213", [True, False])
@pytest.mark.parametrize(("before", "after", "parts"), [
    ([X, Y], [X, Z], [("arguments", "y", "z")]),
    ([X], [X, Y, Z], [("arguments", "not there", "y, z")]),
    ([X, Y, Z], [], [("arguments", "x, y and 1 more", "not there")]),
    ([X, Y], [Y, X], [("order of arguments", "x, y", "y, x")]),
    # An intermediate value that DDPOptimizer made an input has no source.
    ([X, "None"], [X, "None", "None"], [("arguments", "not there", "None")]),
    # Both names are equal: what differs is only in the whole texts.
    ([X], [X.replace("is_input=True", "is_input=False")], []),
])  # fmt: skip
def test_what_differs_in_the_arguments(
    before: list[str], after: list[str], parts: list[tuple[str, str, str]], before_213: bool
) -> None:
    sides = (told(", ".join(side), before_213=before_213) for side in (before, after))
    assert [*aot_config_parts(*sides)] == parts


@pytest.mark.parametrize(("told", "name"), [
    ("prop=<TensorProperty.SIZE: 0>, idx=0", "x.size()[0]"),
    ("prop=<TensorProperty.STRIDE: 1>, idx=1", "x.stride()[1]"),
    ("prop=<TensorProperty.STORAGE_OFFSET: 2>, idx=None", "x.storage_offset()"),
    ("prop=<TensorProperty.SIZE: 0>", None),
])  # fmt: skip
def test_a_symbolic_size_is_called_as_the_program_gets_it(told: str, name: str | None) -> None:
    """torch/_dynamo/source.py, `TensorPropertySource.name`."""
    assert argument_name(f"TensorPropertySource(base={X}, {told})") == name


def test_a_global_of_another_module_is_named_by_the_module() -> None:
    """torch/_dynamo/symbolic_convert.py, `import_source`."""
    names = [argument_name(f"GlobalSource(global_name='{name}')") for name in ("__import_a_dot_b", "a_dot_b")]
    assert names == ["a.b", "a_dot_b"]


def test_of_two_layouts_only_what_both_have_is_compared() -> None:
    older = told(X, before_213=True).replace("True, False)", "False, False)")
    assert aot_config_parts(older, told(X)) == (("enable_log", "False", "True"),)


def test_places_of_static_inputs_move_with_the_arguments() -> None:
    one, other = told(X), told(X).replace("[0], ", "[0, 1], ")
    assert aot_config_parts(one, other) == (("static_input_indices", "[0]", "[0, 1]"),)
    assert aot_config_parts(one, other.replace(X, f"{X}, {Y}")) == (("arguments", "not there", "y"),)


SOURCES = st.recursive(
    st.sampled_from(
        [X, Y, "None", "GlobalSource(global_name='g')", "RandomValueSource(random_call_index=1)"]
    ),
    lambda inner: st.builds("AttrSource(base={}, member={!r})".format, inner, st.text()),
)


@given(st.lists(SOURCES), st.lists(SOURCES), st.text())
def test_any_sources_and_any_text_are_compared(before: list[str], after: list[str], text: str) -> None:
    one, other = (told(", ".join(side)) for side in (before, after))
    for name, *sides in aot_config_parts(one, other):
        assert name and sides[0] != sides[1]
    assert aot_config_parts(one, one) == () == aot_config_parts(one, text)
    assert argument_sources(text) == () and argument_name(text) is None


_PROGRAM = """
import sys, types
import torch
from torch._dynamo.backends.debugging import eager
from cachescope.analysis.aot_config import argument_name, argument_sources

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(4, 4)
        self.blocks = torch.nn.ModuleList([torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)])
        self.by_name = torch.nn.ModuleDict({"a b": torch.nn.Linear(4, 4)})
        self.scale = torch.ones(4)
        self.kept = {"bias": torch.ones(4), 3: [torch.ones(4)]}
        self.states = {self.first.weight: {"momentum": torch.ones(4)}}

    def forward(self, x, *others):
        for block in self.blocks:
            x = block(self.first(x))
        x = shifted(x + self.states[self.first.weight]["momentum"])
        return self.by_name["a b"](x) * self.scale + self.kept["bias"] + self.kept[3][0] + others[0] + weight + elsewhere()

sys.modules["some.where"] = module = types.ModuleType("some.where")
exec("import torch\\nheld = torch.ones(4)\\ndef elsewhere(): return held", module.__dict__)
elsewhere = module.elsewhere

def shifting(shift):
    return lambda x: x + shift

weight, by, model, seen = torch.ones(4), torch.ones(4), Model(), []
shifted = shifting(by)

def backend(graph, inputs):
    nodes = graph.graph.find_nodes(op="placeholder")
    config = f"(0, True, False, False, False, {[node._dynamo_source for node in nodes]}, [], True, False, None)"
    seen.append([argument_name(source) for source in argument_sources(config)])
    seen.append(list(inputs))
    return eager(graph, inputs)

x, other = torch.ones(2, 4), torch.ones(4)
torch.compile(model, backend=backend)(x, other)
names, held = seen
for name, value in zip(names, held, strict=True):
    name = name.replace("some.where", "sys.modules['some.where']").replace("self.by_name.a b", "self.by_name['a b']").replace(".1.", "[1].").replace(".0.", "[0].")
    assert eval(name, {"self": model, "x": x, "others": [other], "weight": weight, "shift": by, "sys": sys}) is value, name
print(len(names))
"""


@pytest.mark.torch
def test_a_name_finds_the_tensor_that_torch_takes() -> None:
    """The truth are the tensors that Dynamo hands to a backend: each is what its name means in the program."""
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 10
