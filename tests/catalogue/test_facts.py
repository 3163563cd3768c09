"""The catalogue of fields: every recorded field is in it, and lookups by field and version."""

import re
import subprocess
import sys

import pytest

import cachescope
from cachescope.analysis.verdicts.change_advice import field_advice
from cachescope.catalogue.facts import FieldFacts, field_facts, fields, versions
from cachescope.columns import pandas_type
from cachescope.errors import NotFoundError
from cachescope.rows import columns_of
from cachescope.terms import COMPILE_FORMS, RUNTIME_FORMS
from tests.conftest import Recording

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
    assert not {
        name for name in readers if re.search(r"codegen|fx_passes|scheduler|lowering|triton_heur", name)
    }


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


def test_advice_names_variables_that_there_are_and_no_others() -> None:
    fusion = field_advice("inductor_config[epilogue_fusion]")
    assert fusion is not None and "TORCHINDUCTOR" not in fusion
    tuning = field_advice("inductor_config[coordinate_descent_tuning]")
    assert tuning is not None and "TORCHINDUCTOR_COORDINATE_DESCENT_TUNING" in tuning
    assert field_advice("inductor_config[of_a_later_torch]") is not None
    assert 'mode="reduce-overhead"' in (field_advice("fx_kwargs[cudagraphs]") or "")


@pytest.mark.slow
def test_import_does_not_read_the_file() -> None:
    code = (
        "import cachescope, sys; from cachescope.catalogue import facts;"
        "before = facts.document.cache_info().currsize; facts.fields();"
        "print(before, facts.document.cache_info().currsize)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "1"]
