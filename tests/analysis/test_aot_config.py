"""The arguments of a graph in the words of the program, from the sources that torch prints."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cachescope
from cachescope.analysis.aot_config import aot_config_parts, argument_name, argument_sources
from tests.conftest import Recording

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
