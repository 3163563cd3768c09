"""The catalogue of bypasses: reasons as torch's sources and real recordings have them, errors among them."""

import json

import pytest

import cachescope
from cachescope.analysis.verdicts.causes import bypass_advice
from cachescope.catalogue import facts
from cachescope.catalogue.bypasses import BypassFacts, bypass_facts, bypasses, cacheable_since, versions
from cachescope.columns import pandas_type
from cachescope.errors import NotFoundError
from cachescope.readers.json_record import Record
from cachescope.readers.logs.trace_artifacts import lookup_from_artifact
from cachescope.rows import columns_of
from tests.conftest import DATA, Archive, Recording

_PASS = "Unsupported post grad custom pass"
# What each recording's programs did, and so what torch had to say.
RECORDED = {
    ("2.6.0", "bypass_custom_pass"): {("aotautograd", ""), ("fxgraph", _PASS)},
    ("2.10.0", "bypass_custom_pass"): {("aotautograd", _PASS), ("fxgraph", _PASS)},
    ("2.13.0", "bypass_custom_pass"): {("aotautograd", _PASS), ("fxgraph", _PASS)},
    ("2.15.0", "bypass_custom_pass"): {("aotautograd", _PASS), ("fxgraph", _PASS)},
    ("2.13.0", "bypass_custom_pass_fx"): {("fxgraph", _PASS)},
    ("2.13.0", "bypass_freezing"): {
        ("aotautograd", "Cannot cache a graph with freezing enabled"),
        ("fxgraph", "mkldnn tensors unpickleable"),
    },
    ("2.13.0", "force_disabled"): {("aotautograd", "FX graph cache is not enabled")},
}
_FUNCTION = "Unsupported call_function target {}. \n Function module: {}, \nFunction name: {}"
_COND = _FUNCTION.format("cond", "torch.ops.higher_order", "cond")


@pytest.mark.slow
@pytest.mark.parametrize(("version", "name"), RECORDED)
def test_what_was_recorded_has_its_row(recording: Recording, version: str, name: str) -> None:
    scope = cachescope.read(recording(version, name))
    bypassed = scope.lookups.query("outcome == 'bypass'")
    found = set()
    for row in bypassed.itertuples():
        known = bypass_facts(row.bypass_reason or "", row.cache)
        assert known is not None and version in known.versions and row.cache in known.caches
        found.add((row.cache, known.message))
    assert found == RECORDED[version, name]
    advice = scope.causes.query("verdict == 'bypassed'")["advice"]
    assert set(advice) <= set(bypasses(version)["advice"])


def test_where_the_fx_cache_alone_is_off_autograds_reason_explains_both_lookups(recording: Recording) -> None:
    causes = cachescope.read(recording("2.13.0", "force_disabled")).causes
    # Its runs: caches on; all off by one variable; both off by one each; the FX graph cache alone off.
    found = {row.verdict: (row.runs, row.misses) for row in causes.itertuples()}
    assert found == {"first_lookup": ((0,), 2), "disabled": ((1, 2), 2), "bypassed": ((3,), 2)}


@pytest.mark.parametrize(("reason", "message"), [
    ("Can't cache HigherOrderOperator: cond", "Can't cache HigherOrderOperator: …"),
    ("Can't cache HigherOrderOperators.", "Can't cache HigherOrderOperators."),
    (_COND, _FUNCTION.format("…", "…", "…")),
    # A log whose lines were trimmed, and the words of 2.5.
    (_COND.replace(" \n", "\n").replace("\n ", "\n"), _FUNCTION.format("…", "…", "…")),
    ("Unsupported call_function target <function f at 0x7f>", "Unsupported call_function target …"),
    ("Unsupported call_method method add: None", "Unsupported call_method method …: …"),
    ("Unsupported call_method method None", "Unsupported call_method method …"),
])  # fmt: skip
def test_a_reason_is_the_row_with_its_fixed_words(reason: str, message: str) -> None:
    known = bypass_facts(reason, "aotautograd")
    assert known is not None and known.message == message


@pytest.mark.parametrize(
    "reason",
    ["no", "freezing is on", "cannot serialize mkldnn tensors", "mkldnn tensors unpickleable, it seems"],
)
def test_of_other_words_it_is_said_that_nothing_is_known(reason: str) -> None:
    assert bypass_facts(reason, "fxgraph") is None
    assert bypass_advice(reason, "fxgraph").startswith("Not known: ")


def test_a_library_that_was_cut_is_to_be_deleted() -> None:
    """With real torch 2.10, cut to 100 bytes and to none, and deleted: torch then built it again and found its entries."""
    for how in ("cannot read file data", "file too short"):
        advice = bypass_advice(f"/cache/7o/c7ok.main.so: {how}", "aotautograd", "ImportError")
        assert "delete the file that the error names" in advice
    assert "An error ended the lookup" in bypass_advice("no module named x", "aotautograd", "ImportError")


def test_a_key_that_cannot_be_pickled_is_told_as_such_where_it_is_an_error() -> None:
    """As torch 2.7 ends AOTAutograd's lookup, and bypasses the FX cache."""
    of_aot = bypass_advice("Failed to pickle cache key", "aotautograd", "Exception")
    assert of_aot == bypass_advice("Failed to pickle cache key", "fxgraph")


def test_where_torch_gives_no_reason_the_cache_decides() -> None:
    of_fx, of_aot = bypass_advice(None, "fxgraph"), bypass_advice("", "aotautograd")
    assert "compiler_bisector" in of_fx and "FX graph lookup of the same compile" in of_aot


def test_operators_that_a_later_torch_caches_are_told_from_those_that_none_does() -> None:
    # `super().__init__(NAME, cacheable=True)` in torch/_higher_order_ops.
    assert cacheable_since("tag_activation_checkpoint") == "2.11.0"
    assert cacheable_since("run_dtensor_rng_op") is None  # In 2.12 alone.
    since = bypass_advice("Can't cache HigherOrderOperator: tag_activation_checkpoint", "fxgraph")
    assert since.startswith("Torch 2.11 and later cache graphs with tag_activation_checkpoint.")
    said = "No torch up to 2.15 caches graphs with cond by itself."
    assert bypass_advice(_COND, "aotautograd").startswith(said)
    # A function of the user's is no operator, whatever its name.
    of_user = bypass_advice(_FUNCTION.format("cond", "__main__", "cond"), "aotautograd")
    assert "graphs with cond" not in of_user and '{"__main__.cond": "1"}' in of_user


def test_a_custom_function_is_allowed_by_a_setting_of_its_own() -> None:
    """The words are those of torch 2.7.1; with 2.9.1, 2.10 and 2.11 the setting brought the hit, and marking its context changes nothing."""
    context = "torch.autograd.function", "FunctionCtx"
    advised = bypass_advice(_FUNCTION.format("<class 'FunctionCtx'>", *context), "aotautograd")
    assert "autograd_cache_allow_custom_autograd_functions = True" in advised
    assert "unsafe_marked" not in advised


def test_the_line_to_copy_names_the_function() -> None:
    advised = bypass_advice(_COND, "aotautograd")
    assert '{"torch.ops.higher_order.cond": "1"}' in advised
    # Both caches refuse it, and the same lifts it.
    assert advised == bypass_advice("Can't cache HigherOrderOperator: cond", "fxgraph")


def test_what_has_no_name_is_not_called_none() -> None:
    # `getattr(node.target, "__name__", None)`: torch/_functorch/_aot_autograd/autograd_cache.py, `check_node_safe`.
    partial_of = _FUNCTION.format("functools.partial(<built-in f>)", "functools", None)
    advised = bypass_advice(partial_of, "aotautograd")
    assert "None" not in advised and "MODULE.NAME" in advised


def test_no_option_is_named_for_functions_of_compiled_autograd() -> None:
    module = "torch._dynamo.compiled_autograd.ops"
    reason = _FUNCTION.format(f"{module}.validate_outputs", module, "validate_outputs")
    assert "unsafe_marked_cacheable_functions" not in bypass_advice(reason, "aotautograd")


def test_the_frame_is_as_declared() -> None:
    frame = bypasses()
    wanted = {column.name: pandas_type(column.dtype) for column in columns_of(BypassFacts)}
    assert dict(frame.dtypes) == wanted
    assert frame.notna().all(axis=None) and not frame.duplicated(["message", "caches"]).any()
    assert set(frame["caches"].explode()) == {"aotautograd", "fxgraph"}
    assert len(bypasses("2.13.0")) < len(frame)
    assert versions() == facts.versions()
    with pytest.raises(NotFoundError, match=r"2\.3\.0"):
        bypasses("2.3.0")


_VERSIONS = sorted(path.name.removesuffix(".tar.xz") for path in (DATA / "errors").glob("*.tar.xz"))
_REASONS = {"text": "KeyError: 'scale'", "none": "AssertionError"}


@pytest.mark.parametrize("version", _VERSIONS)
@pytest.mark.parametrize("way", _REASONS)
def test_a_bypass_names_the_error_that_ended_the_lookup(version: str, way: str, archive: Archive) -> None:
    folder = archive(f"errors/{version}") / version / way
    lenient, strict = (json.loads((folder / f"{how}.json").read_text()) for how in ("lenient", "strict"))
    scope = cachescope.read(folder / "trace")
    bypassed = scope.lookups.query("cache == 'aotautograd' and outcome == 'bypass'")
    assert len(bypassed) == lenient["bypasses"] == 2
    # The tensor's own function is compiled as well; torch does not cache what it calls.
    own = bypassed.set_index("function")["bypass_exception"].to_dict()
    assert own == {"scaled": strict["raised"], "__torch_dispatch__": "BypassAOTAutogradCache"}
    causes = scope.causes.query("verdict == 'bypassed'").set_index("kind")
    assert causes.loc[_REASONS[way], "advice"] == bypass_advice("", "aotautograd", strict["raised"])
    assert "an error ended the lookup: " + _REASONS[way] in str(scope.explain())


def test_where_torch_names_no_class_an_error_is_told_from_its_own_decision() -> None:
    """By hand, in the form of torch 2.6."""
    for is_error, named in ((True, "Exception"), (False, None)):
        payload = Record({"cache_bypass_reason": "", "cache_bypass_hard_exception": is_error})
        lookup = lookup_from_artifact("aotautograd_cache_bypass", payload)
        assert lookup.bypass_exception == named
    own = bypass_advice("", "aotautograd", None)
    assert bypass_advice("", "aotautograd", "Exception") != own
    assert bypass_advice("", "aotautograd", "BypassAOTAutogradCache") == own
