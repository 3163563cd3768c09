"""The catalogue of fields and that of known defects: every recorded field is in it, lookups by field and version; a defect is named only where the version has it and its sign was recorded."""

import re

import pytest

import cachescope
from cachescope.catalogue.defects import all_defects, known_defect
from cachescope.catalogue.facts import FieldFacts, field_facts, fields, release, versions
from cachescope.columns import pandas_type
from cachescope.errors import NotFoundError
from cachescope.rows import columns_of
from cachescope.terms import COMPILE_FORMS, RUNTIME_FORMS
from tests.conftest import Recording
from tests.made import aot, run, scope_of
from tests.programs import python

# They differ in what is in a key: every setting changed, a backward graph, a custom pass.
SCENARIOS = ("combined", "training", "bypass_custom_pass")
RECORDED = ("2.6.0", "2.10.0", "2.13.0", "2.15.0")


def recorded_fields(recording: Recording, version: str) -> set[str]:
    found: set[str] = set()
    for scenario in SCENARIOS:
        scope = cachescope.read(recording(version, scenario))
        for lookup in scope.lookups.query("details == 'recorded'").drop_duplicates("cache_key").itertuples():
            found |= set(scope.hash_details(lookup.cache_key)["field"])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("version", RECORDED)
def test_every_recorded_field_is_in_the_catalogue_of_its_version(recording: Recording, version: str) -> None:
    recorded = recorded_fields(recording, version)
    assert len(recorded) > 250
    facts = {field: field_facts(field, version) for field in recorded}
    assert {field for field, row in facts.items() if row is None or not row.in_key} == set()
    options = {field for field in recorded if field.startswith("inductor_config")}
    listed = fields(version).query("in_key and field.str.startswith('inductor_config')")
    assert set(listed["field"]) == options


def test_the_frame_is_as_declared() -> None:
    for frame in (fields(), fields("2.13.0")):
        declared = {column.name: pandas_type(column.dtype) for column in columns_of(FieldFacts)}
        assert dict(frame.dtypes) == declared
        assert frame["field"].is_unique
        for column in columns_of(FieldFacts):
            if column.missing == "never":
                assert frame[column.name].notna().all(), column.name


@pytest.mark.slow
def test_words_are_those_of_the_contract() -> None:
    for version in versions():
        frame = fields(version)
        assert set(frame["affects"]) <= {"generated code", "host", "inputs", "graph", "unknown"}
        assert set(frame["context_forms"].explode().dropna()) <= {*RUNTIME_FORMS, *COMPILE_FORMS}


def test_host_is_only_said_with_a_basis_and_never_of_what_makes_code() -> None:
    frame = fields().query("affects == 'host'")
    assert len(frame) > 10
    assert frame["basis"].notna().all() and frame["read_by"].str.len().gt(0).all()
    readers = set(frame["read_by"].explode())
    assert not {one for one in readers if re.search(r"codegen|fx_passes|scheduler|lowering|triton_heur", one)}


def test_an_option_that_nothing_found_reads_is_unknown() -> None:
    frame = fields()
    unread = frame[frame["read_by"].str.len().eq(0) & frame["field"].str.startswith("inductor_config")]
    assert set(unread["affects"]) == {"unknown"}


def test_options_that_torch_leaves_out_of_keys_are_marked() -> None:
    facts = field_facts("inductor_config[compile_threads]", "2.13.0")
    assert facts is not None and not facts.in_key and facts.context_forms == ()
    private = field_facts("inductor_config[_micro_pipeline_tp]")
    # save_config_portable left private options out up to 2.7.
    assert private is not None and private.key_versions[0] == "2.8.0" and private.first_version == "2.4.1"


def test_numbered_fields_share_a_row() -> None:
    facts = field_facts("example_inputs[12]")
    assert facts is not None and (facts.field, facts.affects) == ("example_inputs[*]", "inputs")


@pytest.mark.parametrize(
    ("asked", "read"),
    [("2.13.0+cpu", "2.13.0"), ("2.12.0", "2.12.1"), ("2.16.0.dev1", "2.15.0"), ("2.4", "2.4.1")],
)
def test_a_version_that_was_not_read_takes_its_release_or_the_one_before(asked: str, read: str) -> None:
    facts = field_facts("gm", asked)
    assert facts is not None and facts.version == read


def test_fields_and_versions_that_are_not_there() -> None:
    assert field_facts("no_such_field") is None
    assert field_facts("inputs_to_check[0]", "2.13.0") is None
    assert field_facts("gm", "2.3.0") is None
    with pytest.raises(NotFoundError, match=r"2\.3\.0"):
        fields("2.3.0")


@pytest.mark.slow
def test_import_does_not_read_the_file() -> None:
    code = (
        "import cachescope, sys; from cachescope.catalogue import facts;"
        "before = facts.document.cache_info().currsize; facts.fields();"
        "print(before, facts.document.cache_info().currsize)"
    )
    done = python(code)
    assert done.stdout.split() == ["0", "1"]


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
    "the vector instructions of the CPU are in no key": (
        "bypass", "C++ compile error\n\nCommand:\ng++ /c/kd/ckdk.main.cpp\n\nOutput:\n/c/kd/ckdk.main.cpp:16:21: error: ‘at::vec’ has not been declared",
        "2.13.0", "2.3.1"),
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
