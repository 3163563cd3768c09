"""Contexts reconstructed from runs equal torch's own, and keys, groups and differences follow from the forms; recorded, and made by hand."""

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cachescope
from cachescope import IsolationSchema
from cachescope.analysis.contexts.differences import context_pairs, manifest_difference
from cachescope.analysis.contexts.keys import (
    compared,
    context_groups,
    isolation_keys,
    joining_schemas,
    known_contexts,
    known_snapshots,
)
from cachescope.columns import frame_of
from cachescope.errors import NotFoundError, SchemaError
from cachescope.frames.context_rows import ContextRow
from cachescope.keys import isolation_key
from cachescope.keys.isolation import FORMS, chosen_forms, schema_without
from cachescope.terms import COMPILE_FORMS, RUNTIME_FORMS
from tests.analysis.plain_rows import context_row
from tests.conftest import Recording
from tests.keys.test_isolation import FABRICATED, SCHEMAS


def values_of(row: Any) -> dict[str, object]:
    """The forms of one row that are known, as torch has them."""
    known = {form: getattr(row, form) for form in FORMS if form not in row.missing_forms}
    return {
        form: json.loads(value) if form in RUNTIME_FORMS else None if pd.isna(value) else value
        for form, value in known.items()
    }


def torchs(path: Path) -> dict[str, object]:
    context = json.loads(path.read_text())
    return {form: value for values in context.values() for form, value in values.items()}


def written(folder: Path, *snapshots: object) -> list[Path]:
    paths = [folder / f"{number}.json" for number in range(len(snapshots))]
    for path, snapshot in zip(paths, snapshots, strict=True):
        path.write_text(json.dumps(snapshot))
    return paths


@pytest.mark.parametrize("parts", [
    ("trace",),
    *(
        pytest.param(parts, marks=pytest.mark.slow)
        for parts in (("text",), ("trace", "text"), ("trace", "cache"))
    ),
])  # fmt: skip
def test_each_form_of_a_run_is_torchs_or_listed_missing(parts: tuple[str, ...], recording: Recording) -> None:
    folder = recording("2.13.0", "isolation_context")
    scope = cachescope.read(*(folder / part for part in parts))
    assert len(scope.contexts) == 2
    for row, name in zip(scope.contexts.itertuples(), ("base", "settings"), strict=True):
        expected = torchs(folder / "contexts" / f"{name}.json")
        found = values_of(row)
        assert {form: expected[form] for form in found} == found
        assert set(found) == set(RUNTIME_FORMS)
        assert row.hashed_forms == ("torch_version_hash",)


def test_the_torch_key_of_a_run_is_known_where_a_snapshot_has_the_same(recording: Recording) -> None:
    folder = recording("2.13.0", "isolation_context")
    scope = cachescope.read(folder / "trace", folder / "contexts" / "base.json")
    base, *runs = scope.contexts.itertuples()
    for row in runs:
        assert row.torch_version_hash == base.torch_version_hash
        # torch/version.py, which says what torch was built for, is one of the files of that key.
        assert row.missing_forms == ("triton_version_hash", "accelerator_properties")
        assert row.hashed_forms == ()
    expected = torchs(folder / "contexts" / "base.json")
    found = values_of(runs[0])
    assert {form: expected[form] for form in found} == found


def test_keys_of_captured_contexts_are_torchs_under_every_schema(recording: Recording) -> None:
    folder = recording("2.13.0", "isolation_context") / "contexts"
    scope = cachescope.read(folder)
    bare = [json.loads(path.read_text()) for path in sorted(folder.iterdir())]
    for schema in SCHEMAS[::17]:
        expected = [isolation_key(context, schema) for context in bare]
        assert cachescope.isolation_keys(scope.contexts, schema)["isolation_key"].tolist() == expected
        assert cachescope.isolation_keys(bare, schema)["isolation_key"].tolist() == expected


@pytest.mark.parametrize("name", FABRICATED)
def test_a_fabricated_context_keeps_its_key_through_a_file_and_a_frame(name: str, tmp_path: Path) -> None:
    scope = cachescope.read(*written(tmp_path, FABRICATED[name]))
    for schema in SCHEMAS[::29]:
        (key,) = cachescope.isolation_keys(scope.contexts, schema)["isolation_key"]
        assert key == isolation_key(FABRICATED[name], schema)


@pytest.mark.parametrize("version", ["2.6.0", "2.10.0", "2.13.0", "2.15.0"])
def test_every_printed_config_is_verified_by_its_hash(version: str, recording: Recording) -> None:
    contexts = cachescope.read(recording(version, "config_flip") / "trace").contexts
    configs = [json.loads(text) for text in contexts["inductor_configs"]]
    assert [config["epilogue_fusion"] for config in configs] == [True, False, True]
    if version == "2.15.0":
        # The system of 2.15 names Triton, GPU or not.
        assert contexts["triton_version_hash"].str.startswith("3.9.0").all()
    (matmul,) = set(contexts["cuda_matmul_precision_configs"])
    assert ("allow_tf32" in matmul) == (version == "2.6.0")


def test_equal_contexts_are_one_group_and_others_are_joined_by_the_smallest_change(tmp_path: Path) -> None:
    one = FABRICATED["cuda"]
    other = json.loads(json.dumps(one))
    other["compile_context"]["runtime_version"] = "13.0"
    other["runtime_context"]["inductor_configs"]["epilogue_fusion"] = True
    scope = cachescope.read(*written(tmp_path, one, other, one))
    (pair,) = scope.context_pairs().to_dict("records")
    assert (pair["before"], pair["after"], pair["undecided"]) == (0, 1, ())
    assert pair["differing"] == ("inductor_configs", "runtime_version")
    joining = IsolationSchema.from_json(pair["schema"])
    assert joining == schema_without(pair["differing"])
    assert pair["isolation_key"] == isolation_key(one, joining) == isolation_key(other, joining)
    groups = scope.context_groups()
    wanted = [[(), (0, 2)], [(), (1,)], [("inductor_configs", "runtime_version"), (0, 1, 2)]]
    assert groups[["without", "contexts"]].values.tolist() == wanted
    # No larger schema joins them.
    for left_out in itertools.chain([()], [(form,) for form in FORMS]):
        assert isolation_key(one, schema_without(left_out)) != isolation_key(other, schema_without(left_out))


def test_the_field_inside_a_form_that_differs_is_named_with_both_values(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "isolation_context") / "contexts")
    rows = scope.context_difference(0, 1)[["form", "field", "status", "before", "after"]].values.tolist()
    assert rows == [
        ["inductor_configs", "deterministic", "changed", "false", "true"],
        ["torch_determinism_configs", "torch.are_deterministic_algorithms_enabled", "changed", "false", "true"],
        ["cuda_matmul_precision_configs", "torch.backends.cuda.matmul.fp32_precision", "changed", '"none"', '"tf32"'],
    ]  # fmt: skip


def test_a_scope_of_nothing_recorded_has_no_groups(recording: Recording) -> None:
    # Entries keep their hash details since 2.8.
    scope = cachescope.read(recording("2.6.0", "config_flip") / "cache")
    assert scope.contexts.empty
    assert scope.context_groups().empty
    assert scope.context_pairs().empty


@pytest.mark.parametrize("scenario", ["config_flip", "cold_warm", "two_ranks_cold_shapes"])
def test_of_a_directory_alone_the_contexts_are_those_of_the_runs_that_filled_it(
    scenario: str, recording: Recording
) -> None:
    folder = recording("2.13.0", scenario)
    alone, runs = (cachescope.read(folder / what).contexts for what in ("cache", "trace"))
    assert set(alone["known_from"]) == {"entries"} and alone["run"].isna().all()
    forms = ["inductor_configs", "torch_determinism_configs", "runtime", "system"]
    shown = [form for form in forms if form in alone]
    stored = set(alone[shown].astype(str).itertuples(index=False))
    assert stored and stored <= set(runs[shown].astype(str).itertuples(index=False))
    if scenario == "config_flip":
        assert len(alone) == 2
    # With a run, its context says it.
    assert len(cachescope.read(folder / "cache", folder / "trace").contexts) == len(runs)


@pytest.mark.slow
def test_of_many_contexts_the_later_are_compared_with_the_first_alone() -> None:
    one = cachescope.read(cachescope.sample("config_flip")).all_contexts.rows[0]
    many = [replace(one, context=n, inductor_configs=f'{{"max_autotune": {n}}}') for n in range(70)]
    pairs = context_pairs(known_contexts(many))
    assert len(pairs) == 64 * 63 // 2 + 6
    assert [pair.before for pair in pairs if pair.after >= 64] == [0] * 6
    assert {pair.after for pair in pairs} == set(range(1, 70))


ALL, NONE = IsolationSchema.all(), IsolationSchema.none()
VALUES: dict[str, Any] = {form: {"a": 1} if form in RUNTIME_FORMS else "x" for form in FORMS}


def context(**told: Any) -> dict[str, dict[str, Any]]:
    """A context as torch has it; a form that is Ellipsis is missing."""
    values = {form: value for form, value in {**VALUES, **told}.items() if value is not ...}
    of_compile = {form: value for form, value in values.items() if form in COMPILE_FORMS}
    runtime = {form: value for form, value in values.items() if form not in COMPILE_FORMS}
    return {"runtime_context": runtime, "compile_context": of_compile}


def row(number: int = 0, **told: Any) -> ContextRow:
    forms = {**dict.fromkeys(RUNTIME_FORMS, '{"a": 1}'), **dict.fromkeys(COMPILE_FORMS, "x")}
    several: dict[str, Any] = dict.fromkeys(("missing_forms", "hashed_forms", "text_only", "device_properties"), ())  # fmt: skip
    return context_row(number, **{**forms, **several, **told})


def test_a_row_is_the_context_it_was_made_of() -> None:
    (known,) = known_contexts([row(7, runtime=None)])
    assert known.number == 7
    assert known.context == context(runtime=None)
    assert known.tokens["inductor_configs"] == '{"a": 1}'
    assert (known.tokens["runtime"], known.tokens["runtime_version"]) == ("null", '"x"')
    assert known.key(ALL) == isolation_key(context(runtime=None))
    (empty,) = known_contexts([row(inductor_configs=None)])
    assert empty.context["runtime_context"]["inductor_configs"] is None


def test_what_a_row_lacks() -> None:
    (known,) = known_contexts(
        [row(missing_forms=("inductor_configs", "runtime", "torch_version_hash", "new"),
             hashed_forms=("torch_version_hash",), torch_detail_hash="h")]
    )  # fmt: skip
    assert known.context == context(inductor_configs=..., runtime=..., torch_version_hash=...)
    tokens = (known.tokens["inductor_configs"], known.tokens["runtime"], known.tokens["torch_version_hash"])
    assert tokens == (None, None, "hash h")
    assert known.newer == ("new",)
    assert known.lacking(ALL) == ("inductor_configs", "torch_version_hash", "runtime", "new")
    # Only a schema that takes a whole section may take a form that is not known yet.
    assert known.lacking(IsolationSchema(False, {"runtime": True})) == ("runtime",)
    assert known.lacking(IsolationSchema(True, False)) == ("inductor_configs", "new")
    assert known.lacking(NONE) == ()
    assert known.key(ALL) is None
    assert known.key(NONE) is not None


def test_what_is_only_text_has_no_key_where_it_is_chosen() -> None:
    path = "runtime_context[inductor_configs][pass]"
    (known,) = known_contexts([row(text_only=(path,))])
    assert known.chosen_text_only(ALL) == (path,)
    assert known.key(ALL) is None
    off = schema_without(["inductor_configs"])
    assert known.chosen_text_only(off) == ()
    assert known.key(off) == isolation_key(context(), off)


def test_a_snapshot_or_a_bare_context() -> None:
    bare = context(inductor_configs={"b": 1, "a": {1, 2}})
    snapshot = {"context": context(), "not_json": ["runtime_context[inductor_configs][x]"]}
    newer = context(newer={"z": 1})
    empty = {"runtime_context": None, "compile_context": {"runtime": "CUDA"}}
    one, two, three, four = known_snapshots([bare, snapshot, newer, empty])
    assert [known.number for known in (one, two, three, four)] == [0, 1, 2, 3]
    assert one.text_only == ("runtime_context[inductor_configs][a]",)
    assert one.tokens["inductor_configs"] == json.dumps({"a": "set(1, 2)", "b": 1})
    assert (two.text_only, two.newer) == (("runtime_context[inductor_configs][x]",), ())
    assert (three.newer, three.context) == (("newer",), context())
    assert four.tokens["runtime"] == '"CUDA"'
    assert {form for form, token in four.tokens.items() if token is None} == set(FORMS) - {"runtime"}
    with pytest.raises(SchemaError):
        known_snapshots([{"runtime_context": None}])


def test_the_frame_of_keys() -> None:
    path = "runtime_context[inductor_configs][pass]"
    rows = [row(3), row(4, missing_forms=("runtime",)), row(5, text_only=(path,))]
    frame = isolation_keys(frame_of(rows, ContextRow))
    assert frame["context"].tolist() == [3, 4, 5]
    assert frame["isolation_key"].iloc[0] == isolation_key(context())
    assert frame["isolation_key"].isna().tolist() == [False, True, True]
    assert frame["lacking"].tolist() == [(), ("runtime",), ()]
    assert frame["text_only"].tolist() == [(), (), (path,)]
    plain = {"runtime_context": False, "compile_context": {"runtime": True}}
    assert isolation_keys([context()], plain)["isolation_key"].tolist() == [isolation_key(context(), plain)]


def test_forms_that_differ_or_may() -> None:
    told = [context(new_b=1, runtime="A", runtime_version=...), context(new_a=1, runtime="B", new_b=1)]
    one, other = known_snapshots(told)
    assert compared(one, other) == (("runtime",), ("runtime_version", "new_b", "new_a"))
    assert compared(other, one) == (("runtime",), ("runtime_version", "new_a", "new_b"))
    assert compared(one, one) == ((), ("runtime_version", "new_b"))


def test_the_least_change_comes_first() -> None:
    newer = context(runtime="B", runtime_version="2")
    made = [context(), context(runtime="B"), newer, context(inductor_configs={})]
    schemas = joining_schemas(known_snapshots([*made, *made]))
    left_out = [tuple(form for form in FORMS if form not in chosen_forms(schema)) for schema in schemas]
    assert left_out == [
        (), ("inductor_configs",), ("runtime",), ("runtime_version",),
        ("inductor_configs", "runtime"), ("runtime", "runtime_version"),
        ("inductor_configs", "runtime", "runtime_version"),
    ]  # fmt: skip
    # What may be equal all the same joins none.
    assert joining_schemas(known_snapshots([context(), context(runtime=...)])) == [ALL]


def test_groups_are_numbered_the_largest_first() -> None:
    made = [
        context(), context(runtime="B"), context(runtime="B"), context(runtime=...), context(new=1),
        context(runtime="C"),
    ]  # fmt: skip
    groups = context_groups(known_snapshots(made), ALL)
    found = [(row.group, row.contexts) for row in groups]
    assert found == [(0, (1, 2)), (1, (0,)), (2, (5,)), (None, (3,)), (None, (4,))]
    keys = [row.isolation_key for row in groups]
    assert keys == [*(isolation_key(made[at]) for at in (1, 0, 5)), None, None]
    schema = {"runtime_context": False, "compile_context": {"runtime": True}}
    off = context_groups(known_snapshots(made), schema)
    assert [row.contexts for row in off] == [(0, 4), (1, 2), (5,), (3,)]
    assert off[0].without == tuple(form for form in FORMS if form != "runtime")
    # Of a hash alone a group is known, and its key is not.
    hashed = [
        replace(row(n), missing_forms=("torch_version_hash",), hashed_forms=("torch_version_hash",), torch_detail_hash="h")
        for n in range(2)
    ]  # fmt: skip
    (group,) = context_groups(known_contexts(hashed), ALL)
    assert (group.group, group.contexts, group.isolation_key) == (0, (0, 1), None)


def test_manifests() -> None:
    old, new = {"files": {"a": "1", "b": "2", "c": "3"}}, {"files": {"b": "9", "c": "3", "d": "4"}}
    frame = manifest_difference(old, {"torch_manifest": new})
    rows = list(frame[["file", "status"]].itertuples(index=False, name=None))
    assert rows == [("a", "removed"), ("b", "changed"), ("d", "added")]
    assert frame["before"].fillna("-").tolist() == ["1", "2", "-"]
    assert frame["after"].fillna("-").tolist() == ["-", "9", "4"]
    with pytest.raises(NotFoundError, match="holds no manifest"):
        manifest_difference(old, {"torch_manifest": None})
    with pytest.raises(TypeError, match="a manifest or a snapshot, a mapping, not int"):
        manifest_difference(old, 3)  # type: ignore[arg-type]
