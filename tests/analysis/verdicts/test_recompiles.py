"""Earlier compiles of one function in one process: rows in, the nearest of them out."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.analysis.key_distance import KeyDistances
from cachescope.analysis.verdicts.recompiles import Recompile, Recompiles, recompile_of
from cachescope.details import HashDetails
from cachescope.frames.recorded_rows import LookupRow
from tests.analysis.plain_rows import TEMPLATE, history_of
from tests.made import CODE, Made, aot, fx, miss_rows, run, scope_of, set_of

Told = tuple[str | None, str, dict[str, Any]]


def made(*told: Told) -> tuple[Recompiles, list[LookupRow], KeyDistances]:
    """Lookups of one process by their compile ids, with a letter for the value of each of three fields."""
    store = HashDetails()
    found = []
    for at, (compile_id, values, others) in enumerate(told):
        code = set_of(store, dict(zip("abc", values, strict=True)))
        row = replace(TEMPLATE, lookup=at, run=0, compile_id=compile_id, cache_key=f"f{at}", detail_set=code)
        found.append(replace(row, **others))
    history = history_of(found, store)
    return Recompiles(history), found, history.keys


def at(compile_id: str | None, values: str = "222", **told: Any) -> Told:
    return compile_id, values, told


@pytest.mark.parametrize(("before", "now", "wanted"), [
    ([], at("0/0"), None),
    ([], at("0/1"), None),
    ([at("0/0")], at("0/1"), 0),
    ([at("0/0")], at("0/0"), None),
    ([at("0/1")], at("0/0"), None),
    ([at("1/0")], at("0/1"), None),
    ([at("0/0")], at("0/0_1"), None),
    ([at("0/0_1")], at("0/1"), 0),
    ([at("0/9")], at("0/10"), 0),
    ([at("a/0/0")], at("a/0/1"), 0),
    ([at(None)], at("0/1"), None),
    ([at("0/0")], at(None), None),
    ([at("what")], at("what"), None),
    ([at("0/0", run=1)], at("0/1"), None),
    ([at("0/0", cache="aotautograd")], at("0/1"), None),
    ([at("0/0", detail_set=None)], at("0/1"), None),
    # A forward graph and a backward graph are no forms of one another.
    ([at("0/0", direction="backward")], at("0/1", direction="forward"), None),
    ([at("0/0", direction="forward")], at("0/1", direction="backward"), None),
    ([at("0/0", direction="backward")], at("0/1", direction="backward"), 0),
    ([at("0/0", direction="forward")], at("0/1", direction="inference"), 0),
    # The nearest, and of those as near the latest.
    ([at("0/0", "211"), at("0/1", "221")], at("0/2", "111"), 0),
    ([at("0/0", "211"), at("0/1", "121")], at("0/2", "111"), 1),
    ([at("0/0", "221"), at("0/1", "211"), at("0/1", "222")], at("0/2", "111"), 1),
    # Compile ids that begin again mean other functions from there on.
    ([at("0/3", "111"), at("0/0")], at("0/1", "111"), 1),
    ([at("0/0", "111"), at("0/2"), at("0/1")], at("0/3", "111"), 2),
    ([at("0/0", "111"), at("0/1"), at("0/1"), at("0/2")], at("0/3", "111"), 0),
    ([at("0/0", "111"), at("0/2"), at("1/0")], at("0/1", "111"), None),
    ([at("0/0", segment=1), at("0/0", segment=2, detail_set=None)], at("0/1", segment=1), None),
    ([at("0/0", "111", segment=1), at("0/0", segment=2)], at("0/1", "111", segment=1), 1),
    # Of the last 32 lookups of the function.
    ([at("0/0", "111"), *[at("0/1")] * 31], at("0/2", "111"), 0),
    ([at("0/0", "111"), *[at("0/1")] * 32], at("0/2", "111"), 32),
])  # fmt: skip
def test_the_nearest_earlier_compile(before: list[Told], now: Told, wanted: int | None) -> None:
    recompiles, _, _ = made(*before, now)
    assert recompiles.before(len(before)) == wanted


@pytest.mark.parametrize(("one", "other", "is_before"), [
    (at("0/0"), at("0/1"), True),
    (at("0/1"), at("0/0"), False),
    (at("0/0"), at("0/0"), False),
    (at("0/0"), at("1/1"), False),
    (at("0/0", run=1), at("0/1"), False),
    (at("0/0", cache="aotautograd"), at("0/1"), False),
    (at(None), at("0/1"), False),
    (at("0/0"), at(None), False),
    (at(None), at(None), False),
])  # fmt: skip
def test_if_a_compile_is_an_earlier_one_of_a_function(one: Told, other: Told, is_before: bool) -> None:
    recompiles, (before, after), _ = made(one, other)
    assert recompiles.is_recompiled(before, after) is is_before


TENSOR = "TensorMetadata(dtype={}, shape={})"


@pytest.mark.parametrize(("before", "after", "fields", "parts"), [
    ({"a": "1"}, {"a": "1"}, 0, set()),
    ({"a": "1"}, {"a": "2"}, 1, set()),
    ({"example_inputs[0]": "1"}, {"example_inputs[0]": "2"}, 1, {"example_inputs[0]"}),
    ({"a": "1"}, {"a": "1", "example_inputs[0]": "2"}, 1, {"example_inputs[0]"}),
    ({"example_inputs[0]": TENSOR.format(1, 2)}, {"example_inputs[0]": TENSOR.format(1, 3)}, 1, {"example_inputs[0].shape"}),
    ({"a": "1", "example_inputs[0]": TENSOR.format(1, 2), "example_inputs[1]": TENSOR.format(1, 2)},
     {"a": "2", "example_inputs[0]": TENSOR.format(2, 3), "example_inputs[1]": TENSOR.format(1, 3)}, 3,
     {"example_inputs[0].dtype", "example_inputs[0].shape", "example_inputs[1].shape"}),
])  # fmt: skip
def test_key_distance(before: dict[str, str], after: dict[str, str], fields: int, parts: set[str]) -> None:
    store = HashDetails()
    one, other = (set_of(store, side) for side in (before, after))
    nearness = KeyDistances(store)
    for _ in range(2):
        assert nearness.parts(one, other) == parts
        for pair in ((one, other), (other, one)):
            assert (nearness.fields(*pair), len(nearness.parts(*pair))) == (fields, len(parts))


SIZE = "0/0: tensor 'x' size mismatch at index 0. expected 8, actual 12"
DTYPE = "0/1: tensor 'w' dtype mismatch. expected Double, actual Float"
MODULE = "0/0: s.k == 2 # return x * s.k # model.py:9 in forward (HINT: torch._dynamo.config.…)"


@pytest.mark.parametrize(("reasons", "changed", "before", "kind", "sentence"), [
    ([SIZE], (), None, "tensor 'x' size mismatch at index 0", f"a guard of compile 0/0 failed: {SIZE[5:]}"),
    ([SIZE], ("inductor_config[a]",), "0/0", "tensor 'x' size mismatch at index 0", f"a guard of compile 0/0 failed: {SIZE[5:]}"),
    # That of the compile which it is compared with.
    ([DTYPE, SIZE], ("gm",), "0/0_1", "tensor 'x' size mismatch at index 0", f"a guard of compile 0/0 failed: {SIZE[5:]}"),
    ([DTYPE, SIZE], ("gm",), "0/1", "tensor 'w' dtype mismatch", f"a guard of compile 0/1 failed: {DTYPE[5:]}"),
    ([DTYPE, SIZE], (), None, "tensor 'w' dtype mismatch", f"a guard of compile 0/1 failed: {DTYPE[5:]}"),
    ([MODULE], ("gm",), "0/0", "s.k == …", "a guard of compile 0/0 failed: s.k == 2 # return x * s.k # model.py:9 in forward"),
    # With real torch 2.10: a learning rate that a scheduler changes is one cause, whatever it was.
    (["0/0: self.rate == 0.1 # for group in groups: # model.py:9 in step"], ("gm",), "0/0", "self.rate == …",
     "a guard of compile 0/0 failed: self.rate == 0.1 # for group in groups: # model.py:9 in step"),
    (["0/0: x.dim() == y.dim()"], ("gm",), "0/0", "x.dim() == y.dim()", "a guard of compile 0/0 failed: x.dim() == y.dim()"),
    (["0/1: 2 <= L['x'].size()[0]"], (), None, "2 <= L['x'].size()[0]", "a guard of compile 0/1 failed: 2 <= L['x'].size()[0]"),
    (["0/0: ___check_type_id(x, 94388148792736), type=A"], (), None, "___check_type_id(x, …), type=A",
     "a guard of compile 0/0 failed: ___check_type_id(x, 94388148792736), type=A"),
    (["0/0: BACKEND_MATCH failure: torch.compile detected different backend callables."], ("gm",), "0/0", None, None),
    (None, (), None, None, None),
    (None, ("gm", "inductor_config[a]"), "0/0", None, None),
    (None, ("gm", "grad_enabled"), "0/0", "gm, grad_enabled", None),
    (None, ("aot_config", "example_inputs[0]", "example_inputs[1]", "gm"), "0/0",
     "aot_config, example_inputs[0], example_inputs[1] and 1 more", None),
])  # fmt: skip
def test_what_is_told_as_a_recompile(
    reasons: list[str] | None, changed: tuple[str, ...], before: str | None, kind: str | None,
    sentence: str | None,
) -> None:  # fmt: skip
    told = None if reasons is None else "\n".join(reasons)
    row = replace(TEMPLATE, function="f", file="/a/m.py", line=3, compile_id="4/1", recompile_reasons=told)
    earlier = None if before is None else replace(TEMPLATE, compile_id=before)
    for one, place in ((row, "f (m.py:3)"), (replace(row, function=None, file=None, line=None), "frame 4")):
        wanted = None if kind is None else Recompile(f"compiled again: {place}: {kind}", sentence)
        assert recompile_of(one, changed, earlier) == wanted


@pytest.mark.parametrize(("scenario", "kinds"), [
    ("recompiles", {"tensor 'w' dtype mismatch": 2, "tensor 'x' size mismatch at index 0": 2, "tensor 'x' stride mismatch at index 0": 2,
                    "tensor 'x' requires_grad mismatch": 3, "GLOBAL_STATE changed: grad_mode": 1}),
    ("recompiles_fx", {"tensor 'w' dtype mismatch": 1, "tensor 'x' size mismatch at index 0": 1, "tensor 'x' stride mismatch at index 0": 1,
                       "tensor 'x' requires_grad mismatch": 2}),
    ("recompiles_dynamic", {"tensor 'x' size mismatch at index 0": 2}),
])  # fmt: skip
def test_a_recorded_program(recording: Any, scenario: str, kinds: dict[str, int]) -> None:
    scope = cachescope.read(recording("2.13.0", scenario))
    causes = scope.causes
    again = causes[causes["kind"].str.startswith("compiled again: ")]
    start = "compiled again: matmul_relu (record_programs.py:34): "
    assert dict(zip(again["kind"].str.removeprefix(start), again["misses"], strict=True)) == kinds
    # Each compile failed a guard of every earlier one: both answers tell the same one.
    assert {guard.partition(". expected ")[0] for guard in scope.recompiles["guard"]} >= set(kinds)


def test_a_text_log_names_the_guard_where_it_is_asked_to(tmp_path: Path) -> None:
    """The lines are those of torch 2.13, with other names."""
    head = "V1126 09:15:13.267000 29 torch/_dynamo/guards.py:5396] [0/1] [__recompiles] "
    told = (
        "Recompiling function by_size in /a/m.py:22",
        "    triggered by the following guard failure(s):",
        f"    - {SIZE}       # x # m.py:3",
    )
    missed = (
        "I1126 09:15:{}.300000 29 torch/_inductor/codecache.py:1563] [0/{}] fx graph cache miss for key f{}"
    )
    lines = [missed.format(12, 0, "a" * 51), *(head + line for line in told), missed.format(13, 1, "b" * 51)]
    (tmp_path / "log").write_text("\n".join(lines) + "\n")
    scope = cachescope.read(tmp_path / "log")
    assert scope.lookups["recompile_reasons"].tolist()[1] == f"{SIZE} # x # m.py:3"
    (kind,) = scope.causes["kind"][scope.causes["kind"].str.startswith("compiled again")]
    assert kind == "compiled again: by_size (m.py:22): tensor 'x' size mismatch at index 0"


def test_a_compile_after_a_guard_failed_is_no_edit_of_what_another_run_compiled_there() -> None:
    """As of six blocks with a number each, after a run that trained them: its second compile was for a tensor with gradients."""
    place = {"function": "forward", "file": "/a/blocks.py", "line": 1}
    served = {"gm": CODE, "grad_enabled": "False", "requires_grad": "False"}
    trained = served | {"grad_enabled": "True", "requires_grad": "True"}
    another = served | {"gm": CODE.replace("torch.mm(x, x)", "torch.mm(x, x) * 1")}

    def looked_up(key: str, outcome: str, details: dict[str, str], at: int, number: int, **told: Any) -> Made:
        return fx(key, outcome, details, at=at, compile_id=f"0/{number}", took=1, **place, **told)

    again = looked_up("f3", "full_miss", another, 25, 1, recompile_reasons="0/0: s.k == 0")
    before = looked_up("f1", "full_miss", served, 0, 0), looked_up("f2", "full_miss", trained, 5, 1)
    scope = scope_of(run(*before), run(looked_up("f1", "hit", served, 20, 0), again))
    (found,) = [row for row in miss_rows(scope) if row["lookup"] == 3]
    assert found["kind"] == "compiled again: forward (blocks.py:1): s.k == …"
    assert found["reason"] == "a guard of compile 0/0 failed: s.k == 0"
    assert found["baseline_lookup"] == 2


def test_what_a_process_had_found_and_compiled_again_without_gradients_is_no_edit() -> None:
    """Of a graph that the AOTAutograd entry holds torch 2.13 records no new hash details: only the key says which it was."""
    place = {"function": "forward", "file": "/a/train.py", "line": 9}
    trained = {"gm": CODE, "fx_kwargs[is_inference]": "False"}
    served = {"gm": CODE.replace("return (b,)", "return b"), "fx_kwargs[is_inference]": "True"}
    scope = scope_of(
        run(fx("f1", details=trained, at=0, took=1, direction="forward", **place)),
        run(
            fx("f1", "hit", at=20, direction="forward", **place),
            fx("f2", details=served, at=25, took=1, compile_id="0/1", direction="inference",
               recompile_reasons="0/0: GLOBAL_STATE changed: grad_mode", **place),
        ),
    )  # fmt: skip
    (found,) = [row for row in miss_rows(scope) if row["lookup"] == 2]
    assert found["kind"] == "compiled again: forward (train.py:9): GLOBAL_STATE changed: grad_mode"


def test_what_a_forward_graph_keeps_for_its_backward_graph_is_no_size_of_the_program() -> None:
    """As of gradient checkpointing, with which a backward graph takes the state of the random generator, of a symbolic size."""

    def compiled(at: int, forward: str, **kept: str) -> list[Made]:
        told = {"function": "f", "file": "/a/m.py", "line": 9, "took": 1}
        graphs = {"False": {"gm": forward}, "True": {"gm": CODE.replace("relu", "tanh"), **kept}}
        for flag, details in graphs.items():
            details["fx_kwargs[is_backward]"] = flag
        return [fx(f"f{at + n}", details=one, at=at + n, **told) for n, one in enumerate(graphs.values())]

    edited = CODE.replace("torch.mm(x, x)", "torch.mm(x, x) * 1")
    scope = scope_of(run(*compiled(0, CODE)), run(*compiled(20, edited, **{"example_inputs[0]": "('s63',)"})))
    told = {row["lookup"]: (row["verdict"], row["kind"].partition(" ")[0]) for row in miss_rows(scope)}
    assert (told[2], told[3]) == (("key_changed", "edit"), ("key_changed", ""))


def test_no_guard_explains_a_key_whose_graph_had_been_compiled_before() -> None:
    """As of a warm start under another autocast, read alone: its FX graphs are found, also of what the program compiles again."""
    place = {"function": "f", "file": "/a/m.py", "line": 9}
    later = {"compile_id": "0/1", "recompile_reasons": f"{SIZE} # x # m.py:3", **place}
    first = [aot("a1", details={"gm": CODE, "x": "1"}, at=0, **place), fx("f1", "hit", at=1, **place)]
    again = [aot("a2", details={"gm": CODE, "x": "2"}, at=5, **later), fx("f2", "hit", at=6, **later)]
    compiled = [again[0], fx("f2", details={"gm": CODE}, at=6, took=1, **later)]
    for lookups, kind in ((again, "not known"), (compiled, "compiled again: f (m.py:9): ")):
        (found,) = [row for row in miss_rows(scope_of(run(*first, *lookups))) if row["lookup"] == 2]
        assert found["kind"].startswith(kind)


def test_what_is_compiled_again_for_other_inputs_than_another_run_had_is_no_first_lookup() -> None:
    """As of a model that generates tokens, once for each prompt: one compile for the prompt, another for the tokens; no details of AOTAutograd."""
    guard, place = "0/0: len(kwargs) == 6", {"function": "f", "file": "/p.py", "line": 1}

    def lookups(size: int) -> list[Made]:
        made: list[Made] = []
        for number, graph in enumerate([CODE, CODE.replace("torch.mm(x, x)", "torch.mm(x, x) * 1")]):
            told: dict[str, Any] = {**place, "compile_id": f"0/{number}", "at": size + number}
            told |= {"traced_code": f"t{number}", "recompile_reasons": guard if number else None}
            inputs = TENSOR.format("torch.float32", f"torch.Size([1, {size + number}])")
            details = {"gm": graph.replace("b = ", f"b = {size}; b = "), "example_inputs[0]": inputs}
            made += [aot(f"a{told['at']}", **told), fx(f"f{told['at']}", details=details, took=1.0, **told)]
        return made

    scope = scope_of(run(*lookups(10)), run(*lookups(20)))
    found = miss_rows(scope)[4:]
    kinds = {row["kind"] for row in found if row["verdict"] == "key_changed"}
    assert kinds == {"other inputs of the same code: f (p.py:1), shape"}
    assert [row["cause"] for row in found] == [found[0]["cause"]] * 4


LONG = "9" * 5_000
INPUT = "TensorMetadata(dtype=torch.float32, shape=torch.Size([{}]), stride=(1,))"


@pytest.mark.parametrize(("field", "before", "after", "compile_id"), [
    ("fx_kwargs[static_input_idxs]", f"[{LONG}]", f"[{LONG}, {'1, ' * 50}1]", "0/0"),
    (f"example_inputs[{LONG}]", INPUT.format(3), INPUT.format(4), "0/0"),
    (f"inductor_config[a{LONG}]", "1", "2", "0/0"),
    ("inductor_config[a]", "1", "2", f"0/{LONG}"),
])  # fmt: skip
def test_a_number_of_more_digits_than_python_reads_is_a_text(
    field: str, before: str, after: str, compile_id: str
) -> None:
    earlier, later = (
        fx(key, details={"gm": CODE, field: text}, at=at, compile_id=compile_id)
        for key, text, at in (("f1", before, 0), ("f2", after, 9))
    )
    scope = scope_of(run(earlier), run(later))
    assert scope.misses["changed"].tolist() == [(), (field,)]
    assert str(scope.explain(1)) and len(scope.sensitivity())
