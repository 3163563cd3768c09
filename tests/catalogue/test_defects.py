"""The known defects and limits of torch's and vLLM's caches: one is named only where the version has it and its sign was recorded."""

import pytest

import cachescope
from cachescope.catalogue.defects import all_defects, known_defect
from cachescope.catalogue.facts import release
from cachescope.errors import NotFoundError
from tests.made import aot, run, scope_of

ENTER = "Unsupported call_function target <function _enter_autocast at 0x7f>. \n Function module: torch.amp.autocast_mode"
WEAK = "Failed to pickle cache key: AttributeError: Can't pickle local object 'WeakValueDictionary.__init__.<locals>.remove'"
# What torch writes where each shows, as in its sources and threads; a release that has it, and one that has it no longer or not yet.
SIGNS = {
    "autocast in a compiled function": ("bypass", ENTER, "2.13.0", "2.14.0"),
    "DTensor.to_local() in a compiled function": (
        "bypass", "Unsupported call_function target <f>. \n Function module: m, \nFunction name: prim_to_local", "2.11.0", "2.12.1"),
    "a weak container in a tensor subclass": ("bypass", WEAK, "2.12.1", "2.11.0"),
    "the mesh of a DTensor without a stable hash": (
        "bypass", "Failed to pickle cache key: AttributeError: 'FakeScriptObject' object has no attribute '_stable_hash'", "2.12.1",
        "2.13.0"),
    "a .best_config file that is JSON, but no object": (
        "error", "AssertionError: Expected dict for best_config, got <class 'list'>", "2.14.0", "2.6.0"),
    "AsyncCollectiveTensor by turns with Tensor": (
        "recompile", "0/0: ___check_type_id(L['x'], 94), type=<class 'torch.distributed.AsyncCollectiveTensor'>", "2.13.0", "2.14.0"),
    "functions under torch.no_grad() are compiled as one": (
        "recompile",
        "0/1: ___check_obj_id(fn.__closure__[1].cell_contents.__code__, 140052165270064), type=<class 'code'>  # return func(*args, **kwargs)"
        "  # utils/_contextlib.py:124 in decorate_context", "2.13.0", "2.15.0"),
}  # fmt: skip


def test_each_has_its_facts() -> None:
    every = all_defects()
    assert len({one.name for one in every}) == len(every) >= 15
    for one in every:
        assert one.kind in ("defect", "limit") and one.project in ("torch", "vllm")
        assert one.meaning.endswith(".") and one.meanwhile.endswith(".")
        assert one.threads or "sources" in one.basis
        assert (one.sign is None) == (one.sign_in is None)
        if one.first_version and one.last_version:
            assert release(one.first_version) <= release(one.last_version)
    assert {one.name for one in every if one.sign} == set(SIGNS)


@pytest.mark.parametrize("name", SIGNS)
def test_one_is_named_by_its_sign_and_version_alone(name: str) -> None:
    place, text, has, has_not = SIGNS[name]
    found = known_defect(has, [("bypass", "no"), (place, text)])
    assert found is not None and found.name == name
    assert known_defect(has_not, [(place, text)]) is None
    assert known_defect(None, [(place, text)]) is known_defect("no version", [(place, text)]) is None
    for other in {place for place, *_ in SIGNS.values()} - {place}:
        assert known_defect(has, [(other, text)]) is None


def test_code_behind_a_guard_is_no_sign() -> None:
    _, text, has, _ = SIGNS["AsyncCollectiveTensor by turns with Tensor"]
    guard = "0/0: x.size(0) == 4  # y = AsyncCollectiveTensor(x)"
    assert known_defect(has, [("recompile", guard)]) is None
    assert known_defect(has, [("recompile", f"{guard}\n{text}")]) is not None


@pytest.mark.parametrize("version", ["2.3.1", "2.15.0", "no version"])
def test_of_a_release_that_was_not_read_nothing_is_said(version: str) -> None:
    assert all(known_defect(version, [(place, text)]) is None for place, text, *_ in SIGNS.values())
    with pytest.raises(NotFoundError, match=r"there are those of 2\.4 to 2\.14"):
        cachescope.defects(version)


@pytest.mark.parametrize(("version", "is_named"), [("2.13.0", True), ("2.14.0", False), (None, False)])
def test_a_cause_leads_with_it(version: str | None, is_named: bool) -> None:
    scope = scope_of(run(aot(None, "bypass", bypass_reason=ENTER), torch_version=version))
    (cause,) = scope.causes.itertuples()
    said = "This may be a known defect of torch (pytorch #191106, pytorch #192555): "
    assert cause.advice.startswith(said) is is_named


def test_the_frame_is_that_of_a_version() -> None:
    every, of_one = cachescope.defects(), cachescope.defects("2.13.0")
    assert 15 <= len(of_one) < len(every) == len(all_defects())
    assert set(of_one["project"]) == {"torch"} and "hint_override is in no key" not in set(of_one["name"])
