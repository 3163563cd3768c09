"""Advice by what changed. What it promises is followed with a real torch in tests/wild/test_advice.py.

Metadata and graphs are written by hand as torch 2.13 prints them, but where a recording is named.
"""

from collections.abc import Sequence

import pytest

import cachescope
from cachescope.analysis.differences import FieldChange, field_change
from cachescope.analysis.verdicts.causes import AdviceFacts, cause_advice
from cachescope.analysis.verdicts.recompiles import OF_ANOTHER_CALL
from cachescope.verdict_kinds import OTHER_INPUTS, OTHERWISE, RECOMPILE, UPGRADE, Verdict
from tests.conftest import Recording
from tests.made import CODE, fx, run, scope_of

TENSOR = (
    "TensorMetadata(dtype={dtype}, shape=torch.Size([{shape}]), stride={stride}, device=device(type={device}), "
    "layout=torch.strided, memory_format={memory_format}, storage_offset=0, storage_bytes={bytes}, "
    "requires_grad={grad}, is_quantized=False)"
)
BEFORE = {
    "dtype": "torch.float32", "shape": "4, 8", "stride": "(8, 1)", "device": "'cuda', index=0",
    "memory_format": "torch.contiguous_format", "bytes": "128", "grad": "False",
}  # fmt: skip


GRAPH = "def forward(self, p_0):\n    {local} = torch.ops.aten.mul.Tensor({argument}, {number})\n    return ({local},)"


def changes_advice(changes: Sequence[FieldChange]) -> str | None:
    """The advice for a key whose fields changed."""
    return cause_advice(AdviceFacts("key_changed", changes=tuple(changes)))


@pytest.mark.parametrize(("name", "said", "is_edit"), [
    ("graph_relu_tanh", "The code of the graph changed", True),
    ("graph_constant", "A number in the code of the graph changed", True),
    # What the program captured is another tensor: no code was edited.
    ("captured_tensor_fx", "The printed code is equal", False),
    ("rename_argument", "The FX graphs below were found", False),
    ("autograd_config", "The FX graphs below were found", False),
])  # fmt: skip
def test_recorded_changes_of_programs(recording: Recording, name: str, said: str, is_edit: bool) -> None:
    causes = cachescope.read(recording("2.13.0", name)).causes
    (cause,) = causes[causes["verdict"] == "key_changed"].itertuples()
    assert cause.advice.startswith(said) and cause.kind.startswith("edit") is is_edit


def test_an_upgrade_is_one_sentence() -> None:
    changes = tuple(FieldChange(f"inductor_config[option_{n}]", "new", None, "1", "") for n in range(75))
    facts = AdviceFacts("key_changed", f"{UPGRADE}torch 2.13.0 -> 2.15.0", changes=changes)
    advice = cause_advice(facts) or ""
    assert "a cache serves the very build that made it" in advice
    assert "option" not in advice
    assert "option" in (cause_advice(AdviceFacts("key_changed", changes=changes)) or "")


@pytest.mark.parametrize("kind", [
    "damaged", "graph entry", "load error", "another directory", "deleted", "failed compile",
    "process ended", "not saved", "not known",
])  # fmt: skip
def test_each_way_an_entry_is_unavailable_has_advice_of_its_own(kind: str) -> None:
    assert "/tmp" not in (cause_advice(AdviceFacts("entry_unavailable", kind)) or "/tmp")


@pytest.mark.parametrize(("reason", "said"), [
    ("could not be loaded: EOFError: Ran out of input", "torch found the entry and could not load it, and says why. Delete the files under that key"),
    ("OSError: [Errno 30] Read-only file system: '/c/locks'", "torch writes below TORCHINDUCTOR_CACHE_DIR also to load what is stored"),
    ("could not be loaded: Failed to load artifact: /c/ek/cek.py", "The system refused the code of the entry"),
    ("could not be loaded: NotADirectoryError: [Errno 20] Not a directory: '/c/aotautograd/a1'", "The operating system could not read what lies there"),
])  # fmt: skip
def test_no_entry_is_to_be_deleted_where_the_directory_cannot_be_used(reason: str, said: str) -> None:
    advice = cause_advice(AdviceFacts("entry_unavailable", "load error", reason)) or ""
    assert advice.startswith(said)
    assert ("elete the files" in advice) == ("[Errno " not in reason)


@pytest.mark.parametrize(("is_backward", "said"), [
    (True, "The code of the graph changed."),
    (False, "cast it to one dtype before the compiled call"),
])  # fmt: skip
def test_what_a_backward_graph_is_given_is_no_input_of_the_program(is_backward: bool, said: str) -> None:
    """As of torch 2.5, where a tanh saves its result and a relu where it was zero, and no key of AOTAutograd is above them."""
    saved = "TensorMetadata(dtype={}, shape=torch.Size([4, 32]))".format
    changes = (
        field_change("gm", CODE, CODE.replace("relu", "tanh")),
        field_change("example_inputs[3]", saved("torch.bool"), saved("torch.float32")),
    )
    advice = cause_advice(AdviceFacts("key_changed", changes=changes, is_backward=is_backward)) or ""
    assert said in advice and ("cast it" in advice) != is_backward


def deleted(cache_dir: str | None) -> AdviceFacts:
    return AdviceFacts("entry_unavailable", "deleted", cache_dir=cache_dir)


def elsewhere(cache_dir: str | None) -> AdviceFacts:
    return AdviceFacts("entry_unavailable", "another directory", cache_dir=cache_dir)


_TENSOR = "TensorMetadata(dtype=torch.{}, shape=torch.Size([{}]), stride=({}), device=device(type='cpu'))"
_FAILED = "a guard of compile 0/0 failed:"
_PASSED = field_change("example_inputs[1]", None, _TENSOR.format("float64", "", ""))
_SYMBOLIC, _GROWN, _STRIDED = (
    field_change("example_inputs[0]", *(_TENSOR.format("float32", *side) for side in sides))
    for sides in (
        (("8, 4", "4, 1"), ("8, s0", "s0, 1")), (("8, 4", "4, 1"), ("9, 4", "4, 1")),
        (("1, 4", "4, 1"), ("1, 4", "s0, 1")),
    )
)  # fmt: skip
_BRANCHED = field_change("gm", "x + 1\nreturn x", "x.sin()\nreturn x")
_TRAINED = field_change("fx_kwargs[is_inference]", "True", "False")
_TAKES = "def forward(self, L_x_ : torch.{}):\n    return (L_x_,)".format
_PARAMETER = field_change("gm", _TAKES("Tensor"), _TAKES("nn.parameter.Parameter"))
_CONJUGATED = field_change(
    "example_inputs[0]", *(f"TensorMetadata(shape=torch.Size([8]), is_conj={one})" for one in (False, True))
)
_ARGUMENTS = field_change("aot_config", "static_input_indices=[]", "static_input_indices=[0]")
_SGD = "/usr/lib/python3/site-packages/torch/optim/sgd.py"


def never_stored(reason: str) -> AdviceFacts:
    return AdviceFacts("entry_unavailable", "never stored", reason)


@pytest.mark.parametrize(("facts", "said"), [
    (AdviceFacts("first_lookup"), None),
    (AdviceFacts("disabled"), "AOTInductor"),
    # A scheduler that changes a learning rate; with torch 2.9.1 four compiles became one, and none in the next process.
    (AdviceFacts("key_changed", f"{RECOMPILE}step (sgd.py:105): self.param_groups[0]['lr'] == …", file=_SGD), "finds the entry. Beside foreach=True it needs capturable=True."),
    (AdviceFacts("key_changed", f"{RECOMPILE}step (own.py:105): self.param_groups[0]['lr'] == …", file="/a/own.py"), "one value in every call"),
    (AdviceFacts("key_changed", f"{RECOMPILE}step (sgd.py:105): len(self.state) != …", file=_SGD), "the same number in every call"),
    # As of a model that generates a token at a time after its prompt.
    (AdviceFacts("key_changed", f"{RECOMPILE}f (a.py:1): tensor 'args[0]' size mismatch at index 1", f"{_FAILED} tensor 'args[0]' size mismatch at index 1. expected 7, actual 1", changes=(_SYMBOLIC,)), "to or from 0 or 1"),
    (AdviceFacts("key_changed", f"{RECOMPILE}f (a.py:1): tensor 'x' size mismatch at index 1", f"{_FAILED} tensor 'x' size mismatch at index 1. expected 1, actual 12"), "to or from 0 or 1"),
    (AdviceFacts("key_changed", f"{RECOMPILE}f (a.py:1): tensor 'x' size mismatch at index 1", f"{_FAILED} tensor 'x' size mismatch at index 1. expected 11, actual 10", changes=(_SYMBOLIC,)), "mark_dynamic(x, 1)"),
    # A number that torch saw vary, beside what a mode brings with it.
    (AdviceFacts("key_changed", f"{RECOMPILE}f (a.py:1): scale == …", f"{_FAILED} scale == 0.25", changes=(_PASSED,)), "as a tensor"),
    (AdviceFacts("key_changed", f"{RECOMPILE}f (a.py:1): scale == …", f"{_FAILED} scale == -1e-05 # f(x)", changes=(_PASSED,)), "as a tensor"),
    (AdviceFacts("key_changed", f"{RECOMPILE}f (a.py:1): n == …", f"{_FAILED} n == 3 # y == 0.5", changes=(_PASSED,)), "one value in every call"),
    (AdviceFacts("key_changed", f"{RECOMPILE}f (a.py:1): n == …", changes=(_SYMBOLIC,)), "is symbolic now"),
    (AdviceFacts("key_changed", f"{RECOMPILE}f (a.py:1): tensor 'x' size mismatch at index 1", changes=(_SYMBOLIC,)), "mark_dynamic(x, 1)"),
    # What stands between two graphs has no name to mark.
    (AdviceFacts("key_changed", f"{RECOMPILE}f (a.py:1): tensor '___stack0' size mismatch at index 0", changes=(_SYMBOLIC,)), "With dynamic=True it is"),
    (AdviceFacts("key_changed", f"{RECOMPILE}f (a.py:1): tensor 'kwargs['ids']' size mismatch at index 1", changes=(_SYMBOLIC,)), "mark_dynamic(ids, 1)"),
    (AdviceFacts("key_changed", f"{RECOMPILE}f (a.py:1): tensor 'batch['ids']' size mismatch at index 1", changes=(_SYMBOLIC,)), "mark_dynamic(batch['ids'], 1)"),
    # With torch 2.13 contiguous() made two compiles one, and clone(memory_format=torch.contiguous_format) those of a batch of one; dynamic=True and mark_dynamic did not.
    (AdviceFacts("key_changed", f"{RECOMPILE}f (a.py:1): tensor 'x' stride mismatch at index 0", changes=(_SYMBOLIC,)), "contiguous_format)."),
    (AdviceFacts("key_changed", f"{RECOMPILE}f (a.py:1): n == …", changes=(_STRIDED,)), "contiguous_format)."),
    (AdviceFacts("key_changed", f"{RECOMPILE}f (a.py:1): GLOBAL_STATE changed: grad_mode", changes=(_SYMBOLIC,)), "once for each such state."),
    (AdviceFacts("key_changed", f"{RECOMPILE}f (a.py:1): GLOBAL_STATE changed: grad_mode", changes=(_SYMBOLIC,), graphs_below="equal"), "FX graphs below were found"),
    # What the guard compares leads, whatever else differs from the compile that it is compared with.
    (AdviceFacts("key_changed", f"{RECOMPILE}f (a.py:1): tensor 'x' requires_grad mismatch", changes=(_SYMBOLIC,)), "pass tensor.detach(). A size"),
    (AdviceFacts("key_changed", f"{RECOMPILE}f (a.py:1): tensor 'args[0]' rank mismatch", changes=(_SYMBOLIC,)), "another number of dimensions, which needs code of its own."),
    (AdviceFacts("key_changed", f"{RECOMPILE}f (a.py:1): tensor 'x' dtype mismatch"), "cast it to one dtype"),
    # Nobody edits code within a process.
    (AdviceFacts("key_changed", f"{RECOMPILE}f (a.py:1): tensor 'x' size mismatch at index 0", changes=(_GROWN, _BRANCHED)), "to one size."),
    # Of a parameter nothing is to be cast or detached.
    (AdviceFacts("key_changed", f"{RECOMPILE}f (a.py:1): tensor 'self.w' dtype mismatch"), "one value in every call"),
    # Another module that torch's own wrapper calls, by its class, by the place of its call, by its parameters.
    (AdviceFacts("key_changed", f"{RECOMPILE}f (a.py:1): ___check_type_id(fn, …), type=<class 'torch.nn.modules.linear.Linear'>"), "two calls are of different modules"),
    (AdviceFacts("first_lookup", f"{RECOMPILE}f (a.py:1): tensor 'args[0]' dtype mismatch", f"{OF_ANOTHER_CALL}f (a.py:2)"), "If they are of one: an input's dtype changed: cast it"),
    (AdviceFacts("first_lookup", f"{RECOMPILE}f (a.py:1): GLOBAL_STATE changed: grad_mode", f"{OF_ANOTHER_CALL}f (a.py:2)"), "once for each such state."),
    (AdviceFacts("key_changed", f"{RECOMPILE}f (a.py:1): tensor 'args[0]' dtype mismatch", changes=(_GROWN._replace(summary="fn.weight, shape [4] -> [8]"),)), "two calls are of different modules"),
    (AdviceFacts("key_changed", f"{RECOMPILE}f (a.py:1): tensor 'args[0]' dtype mismatch", changes=(_GROWN._replace(summary="args[0], shape [4] -> [8]"),)), "cast it to one dtype"),
    # Another function, or an argument of another class, is no size.
    *((AdviceFacts("key_changed", f"{RECOMPILE}f (a.py:1): {guard}", changes=(_SYMBOLIC,)), "one value in every call") for guard in (
        "___check_type_id(fn, …), type=<class 'method'>", "CodeGuardAccessor: Not a function on fn.__code__",
        "expected type of 'x' to be a tensor type, ' but found <class 'NoneType'>")),
    # An argument of another class, which is no advice on what Inductor is told of its gradients.
    (AdviceFacts("key_changed", f"{RECOMPILE}f (a.py:1): expected type of 'x' to be a tensor type, ' but found <class 'torch.nn.parameter.Parameter'>", changes=(_TRAINED,)), "one value in every call"),
    (AdviceFacts("first_lookup", f"{RECOMPILE}f (a.py:1): GLOBAL_STATE changed: grad_mode"), "once for each such state."),
    # A parameter where a tensor was: Dynamo traced the same code. With torch 2.13 its .data found the entry of the tensor.
    (AdviceFacts("key_changed", f"{OTHERWISE}f (a.py:1)", changes=(_ARGUMENTS, _PARAMETER)), "In the graph's code only the types of arguments changed"),
    (AdviceFacts("key_changed", f"{OTHER_INPUTS}f (a.py:1)", changes=(_CONJUGATED, _PARAMETER)), "In the graph's code only the types of arguments changed"),
    (AdviceFacts("key_changed", f"{OTHER_INPUTS}f (a.py:1)", changes=(_CONJUGATED, _BRANCHED)), None),
    (AdviceFacts("key_changed", f"{OTHERWISE}f (a.py:1)", changes=(_BRANCHED,)), "own operators and backends"),
    (AdviceFacts("key_changed", f"{OTHERWISE}f (a.py:1)", changes=(_BRANCHED, _TRAINED)), "on whether an input needs gradients"),
    # A directory is known by its name.
    (deleted("/tmp/tmpab12_xyz"), "fresh_cache()"),
    (deleted("/tmp/tmpab12_xyz/"), "fresh_cache()"),
    (deleted("C:\\Temp\\torchinductor_me\\"), "Something may have cleared"),
    (deleted("/tmp/torchinductor_me"), "The default directory"),
    (deleted("/tmp/torchinductor_me/"), "The default directory"),
    (deleted("/data/tmpab12_xyz/cache"), "Something may have cleared"),
    (deleted("/data/tmpab12_xyz9"), "Something may have cleared"),
    (deleted(None), "Something may have cleared"),
    (elsewhere("/tmp/tmpab12_xyz/"), "fresh_cache()"),
    (elsewhere("/data/cache"), "Use one directory"),
    (elsewhere(None), "Use one directory"),
    # What was never stored, by its reason.
    (never_stored("written with its backward graph"), "Call backward() once"),
    (AdviceFacts("entry_unavailable", "restarted compile"), "torch gives this attempt up in every process"),
    (never_stored("torch does not cache it"), None),
])  # fmt: skip
def test_what_is_said_where_no_field_changed(facts: AdviceFacts, said: str | None) -> None:
    advice = cause_advice(facts)
    assert advice is None if said is None else said in (advice or "")


def test_of_a_graph_that_other_inputs_made_nothing_is_said_to_be_changed() -> None:
    graph = field_change("gm", "def forward(self, x): return (x,)", "def forward(self, y, z): return (y, z)")
    tensor = "TensorMetadata(dtype=torch.float{}, shape=torch.Size([8]))"
    cast = field_change("example_inputs[0]", tensor.format(32), tensor.format(64))
    alone = cause_advice(AdviceFacts("key_changed", changes=(graph,))) or ""
    both = cause_advice(AdviceFacts("key_changed", changes=(graph, cast))) or ""
    inputs = cause_advice(AdviceFacts("key_changed", changes=(cast,))) or ""
    assert alone and inputs and both == inputs
    assert alone not in both


def test_behind_an_input_that_is_gone_the_others_are_not_compared() -> None:
    # As model.eval() takes num_batches_tracked from the inputs: the next buffer has its number.
    tensor = "TensorMetadata(dtype=torch.{}, shape=torch.Size([{}]), requires_grad={})"
    graph = field_change("gm", "def forward(self, x, y): return (x,)", "def forward(self, x): return (-x,)")
    before, after = tensor.format("int64", "", False), tensor.format("float32", "16", True)
    inputs = field_change("example_inputs[0]", before, after), field_change("example_inputs[1]", after, None)
    changes = [graph, *inputs]
    assert changes_advice(changes) == changes_advice([graph])


@pytest.mark.parametrize(("reason", "said"), [
    ("Unsupported post grad custom pass", "CustomGraphPass"),
    ("Cannot cache a graph with freezing enabled", "freezing off"),
    ("mkldnn tensors unpickleable", "freezing off"),
    ("FX graph cache is not enabled", "TORCHINDUCTOR_FX_GRAPH_CACHE=1"),
    ("of another torch", "Not known: "),
])  # fmt: skip
@pytest.mark.parametrize("verdict", ["bypassed", "entry_unavailable"])
def test_what_was_not_cached_is_advised_on_by_its_reason(verdict: Verdict, reason: str, said: str) -> None:
    kind = "never stored" if verdict == "entry_unavailable" else reason
    advice = cause_advice(AdviceFacts(verdict, kind, cache="aotautograd", bypass_reason=reason))
    assert said in (advice or "")


def test_a_bypass_is_advised_on_where_torch_said_it() -> None:
    """Of a lookup: there. Of a key that was not stored: at its lookup before."""
    frozen = "Cannot cache a graph with freezing enabled"
    bypassed = run(fx(None, "bypass", bypass_reason=frozen, at=0))
    saved = (0, frozen), (9, None)
    runs = (run(fx("f1", at=at, took=1, save_bypass=why), cache_dir="/cache") for at, why in saved)
    for made, verdict in ((scope_of(bypassed), "bypassed"), (scope_of(*runs), "entry_unavailable")):
        assert "freezing off" in made.causes.set_index("verdict")["advice"][verdict]


SET_BY_DTYPE = "Set by torch.set_default_dtype(…)."


@pytest.mark.parametrize(("field", "before", "after", "said"), [
    ("cpp_runtime_thread_count", "2", "1", "OMP_NUM_THREADS"),
    # A key may lack a field.
    ("cpp_runtime_thread_count", "2", None, "only if the graph may become C++ code"),
    ("default_cuda_device_index", None, "1", "only if the graph has no tensor inputs"),
    ("pre_grad_custom_pass", "None", None, "run before the lookup"),
    ("pre_grad_custom_pass", "None", "one", "a uuid() should change only when its pass does"),
    ("autocast_state[cpu]", None, "torch.bfloat16", "torch.autocast("),
    # A set in another order is no other value.
    ("default_dtype", "{'a', 'b'}", "{'b', 'a'}", "PYTHONHASHSEED"),
])  # fmt: skip
def test_what_is_said_of_one_field(field: str, before: str | None, after: str | None, said: str) -> None:
    assert said in (changes_advice([field_change(field, before, after)]) or "")


def options(count: int) -> list[FieldChange]:
    return [field_change(f"inductor_config[option_{number}]", "1", "2") for number in range(count)]


def test_three_options_are_said_one_by_one() -> None:
    advice = changes_advice(options(3)) or ""
    assert all(f"config.option_{number}" in advice for number in range(3))


ALIKE = "options of torch._inductor.config differ; keep them equal in every process."


@pytest.mark.parametrize(("changes", "advice"), [
    ([], None),
    ([field_change("a_field_of_no_torch", "1", "2")], None),
    ([field_change("default_dtype", "{'a', 'b'}", "{'b', 'c'}")], SET_BY_DTYPE),
    # From four on options are one sentence, and what else changed has its own.
    (options(9), f"9 {ALIKE}"),
    ([*options(4), field_change("default_dtype", "a", "b")], f"4 {ALIKE} {SET_BY_DTYPE}"),
    # The same sentence is said once.
    ([field_change(name, "1", "2") for name in ("disable_amp", "autocast_state")],
     "Set by torch.autocast(…) around the call."),
])  # fmt: skip
def test_what_is_said_of_all_that_changed(changes: list[FieldChange], advice: str | None) -> None:
    assert changes_advice(changes) == advice


@pytest.mark.parametrize(("fields", "rest"), [(4, None), (5, "there is 1 more"), (6, "there are 2 more")])
def test_four_sentences_are_said_and_the_others_are_counted(fields: int, rest: str | None) -> None:
    names = ["default_dtype", "grad_enabled", "autocast_state", "cache_key_tag"]
    names += ["autograd_config", "aot_config"]
    advice = changes_advice([field_change(name, "1", "2") for name in names[:fields]]) or ""
    assert advice.startswith(f"{SET_BY_DTYPE} Set by torch.no_grad()")
    assert "Set by TORCH_COMPILE_CACHE_KEY_TAG" in advice
    assert "_functorch.config" not in advice
    assert ("more to say" in advice) is (rest is not None)
    assert rest is None or rest in advice


def test_below_a_key_of_autograd_that_changed_the_graphs_were_found() -> None:
    renamed = field_change("gm", GRAPH.format(local="a", argument="p_0", number="2.5"),
                           GRAPH.format(local="b", argument="p_0", number="2.5"))  # fmt: skip
    other = field_change("gm", "def forward(self, x): return (x,)", "def forward(self, y, z): return (y, z)")
    after = TENSOR.format(**{**BEFORE, "dtype": "b"})
    dtype = field_change("example_inputs[0]", TENSOR.format(**BEFORE), after)
    found = [cause_advice(AdviceFacts("key_changed", changes=changes, graphs_below="equal")) or ""
             for changes in ((renamed,), (other,), (other, dtype))]  # fmt: skip
    assert all(advice.startswith("The FX graphs below were found") for advice in found)
    assert ["Only names in the code" in advice for advice in found] == [True, False, False]
    assert ["is what AOTAutograd alone hashes" in advice for advice in found] == [False, True, True]
    # Another run had stored them: what changed may be the code itself.
    advice = cause_advice(AdviceFacts("key_changed", changes=(other,), graphs_below="found")) or ""
    assert "The FX graphs below were found" in advice and "The code of the graph changed" in advice
    assert "The FX graphs below" not in (changes_advice([renamed]) or "")


def test_sizes_that_are_no_longer_symbolic_need_no_padding() -> None:
    symbolic = TENSOR.format(**{**BEFORE, "shape": "s77, 8", "bytes": "None"})
    changes = [
        field_change("aot_config", "(0, [TensorPropertySource(…)])", "(0, [])"),
        field_change("gm", "def forward(self, s77, p_0):", "def forward(self, p_0):"),
        field_change("example_inputs[0]", "('s77',)", TENSOR.format(**BEFORE)),
        field_change("example_inputs[1]", symbolic, None),
    ]
    off = changes_advice(changes) or ""
    assert "automatic_dynamic_shapes" in off and "Pad" not in off and "argument" not in off
    back = [field_change(change.field, change.after, change.before) for change in changes]
    assert "symbolic now" in (changes_advice(back) or "")
