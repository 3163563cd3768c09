"""Which files of torch 2.10's caching package another isolation key would find, held against what torch stored."""

import ast
import json
import os
import pickle

import pytest

import cachescope
from cachescope import IsolationSchema
from cachescope.analysis.contexts.caching_files import caching_files
from cachescope.errors import CachescopeError
from cachescope.frames.directory_rows import EntryRow
from cachescope.keys.caching_key import caching_names, pickled_name
from tests.conftest import Directory

SCHEMAS = {
    "all": IsolationSchema.all(),
    "none": IsolationSchema.none(),
    "compile only": IsolationSchema(False, True),
    "runtime only": IsolationSchema(True, False),
}


@pytest.fixture
def first(directory: Directory) -> dict[str, object]:
    """What torch 2.10.0 said in the first recorded step: fcache."""
    provenance = json.loads((directory("caching_2.10.0") / "provenance.json").read_text())
    truth: dict[str, object] = provenance["steps"][0]["truth"]
    return truth


def test_a_schema_finds_what_was_stored_by_it(directory: Directory, first: dict[str, dict[str, str]]) -> None:
    """Torch called `tagged` under several schemas: each finds its own file, and the others only their own."""
    scope = cachescope.read(directory("caching_2.10.0") / "default_root")
    paths = scope.entries.set_index("entry")["path"]
    stored = {}
    for one in first["stored"]:
        (callee, params), isolation_key = ast.literal_eval(one["key"])  # type: ignore[index]
        stored[callee, repr(params), isolation_key] = os.path.basename(one["path"])  # type: ignore[index]
    calls = list({(name, params): (name, ast.literal_eval(params)) for name, params, _ in stored}.values())
    for name, schema in SCHEMAS.items():
        key = cachescope.isolation_key(first["isolation_context"], schema)
        assert key == first["isolation_keys"][name]
        for row in scope.caching_files(key, calls).itertuples():
            expected = stored.get((row.callee, row.params.replace("complex(1.0, 2.0)", "(1+2j)"), key))
            if row.status == "found":
                assert os.path.basename(paths[row.entry]) == row.file_name == expected
            else:
                assert row.status == ("unknown" if row.callee == "mixed" else "absent")
                assert expected is None
    statuses = scope.caching_files(first["isolation_keys"]["none"], calls).set_index("callee")["status"]
    assert statuses["tagged"] == "found"
    assert statuses["squared"] == "absent"


def test_the_calls_of_a_dump_are_found_again_and_only_under_their_key(
    directory: Directory, first: dict[str, dict[str, str]]
) -> None:
    scope = cachescope.read(directory("caching_2.10.0") / "deterministic_root")
    found = scope.caching_files(first["isolation_keys"]["all"])
    assert len(found) == 12
    assert set(found["status"]) == {"found"}
    assert found["reason"].isna().all()
    under_none = scope.caching_files(first["isolation_keys"]["none"]).set_index("callee")["status"]
    assert (under_none["tagged"], set(under_none.drop("tagged"))) == ("found", {"absent"})


def test_a_name_that_does_not_follow_from_the_values_is_unknown_and_not_absent(directory: Directory) -> None:
    scope = cachescope.read(directory("caching_2.10.0") / "default_root")
    one, equal = ("".join(["te", "xt"]) for _ in range(2))
    plain = [((3,), {}), ((one, equal), {}), ((object,), {})]
    calls = [("mixed", ("encoded", 7)), *(("plain", params) for params in plain)]
    rows = scope.caching_files("0" * 32, calls)
    assert rows["status"].tolist() == ["unknown", "absent", "unknown", "unknown"]
    assert rows["entry"].isna().all()
    assert "no name can be made" in rows["reason"].iloc[3]
    with pytest.raises(CachescopeError, match="not a pickled key"):
        scope.caching_files("0" * 32, [b"not a key"])


@pytest.mark.slow
def test_recorded_memoizer_entries_are_named_by_their_parameters(directory: Directory) -> None:
    entries = cachescope.read(directory("torch_2.13.0")).entries
    memoized = entries[(entries["cache"] == "memoizer") & (entries["status"] == "ok")]
    assert len(memoized)
    assert not memoized["detail"].str.contains("the name is not").any()


ONE, OTHER = "1" * 32, "2" * 32


def stored(*files: tuple[str | None, str], cache: str = "caching_package") -> list[EntryRow]:
    return [
        EntryRow(entry=10 + at, cache=cache, name=name, path=f"/root/{name}/{file}")
        for at, (name, file) in enumerate(files)
    ]


def statuses(entries: list[EntryRow], *calls: tuple[str, object] | bytes) -> list[tuple[str, int | None]]:
    return [(row.status, row.entry) for row in caching_files(entries, ONE, calls)]


def test_calls_are_looked_for_by_function_and_name() -> None:
    """Made by hand: names are of torch's own rule, which tests/keys/test_caching_key.py holds."""
    call = ("fn", ((3,), {}))
    name = caching_names(*call, ONE).name
    assert statuses(stored(("other", "x"), ("fn", name)), call) == [("found", 11)]
    assert statuses(stored(("other", name)), call) == [("absent", None)]
    assert statuses(stored((None, name)), call) == [("absent", None)]
    assert statuses(stored(("fn", name), cache="memoizer"), call) == [("absent", None)]
    assert statuses(stored(("fn", caching_names(*call, OTHER).name)), call) == [("absent", None)]


def test_a_call_of_several_names_is_found_by_any_and_else_unknown() -> None:
    call = ("fn", ("e", 7))
    names = caching_names(*call, ONE)
    assert len(names.others) == 1
    assert statuses(stored(("fn", names.others[0])), call) == [("found", 10)]
    # The name of these very objects comes first.
    assert statuses(stored(("fn", names.others[0]), ("fn", names.name)), call) == [("found", 11)]
    assert statuses(stored(), call) == [("unknown", None)]


def test_keys_that_were_dumped_are_one_call_each() -> None:
    def dumped(params: object, key: str) -> bytes:
        return pickle.dumps((("fn", params), key), 4)

    name = pickled_name(dumped(((3,), {}), ONE))
    keys = [dumped(((3,), {}), key) for key in (ONE, OTHER)]
    # First what was dumped, once, whatever the schema was.
    fn, given = caching_files(stored(("fn", name)), ONE, [("given", ((1,), {})), *keys])
    assert (fn.callee, fn.params, fn.file_name, fn.status) == ("fn", "((3,), {})", name, "found")
    assert (given.callee, given.status) == ("given", "absent")
    assert {fn.isolation_key, given.isolation_key} == {ONE}
    assert fn.reason is given.reason is None
    # What is no call of a function stands for itself.
    for odd in ((("fn", 1, 2), ONE), ("fn", ONE)):
        (row,) = caching_files(stored(), ONE, [pickle.dumps(odd, 4)])
        assert row.status == "absent" and "fn" in row.callee and row.params == "None"


def test_parameters_that_have_no_name() -> None:
    (row,) = caching_files(stored(), ONE, [("fn", ((object,), {}))])
    assert row.status == "unknown" and row.file_name is None
    said = "no name can be made of these parameters: cannot pickle a "
    assert row.reason is not None and row.reason.startswith(said)
