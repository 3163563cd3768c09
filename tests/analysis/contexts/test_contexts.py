"""Contexts reconstructed from runs equal torch's own, and keys, groups and differences follow from the forms."""

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cachescope
from cachescope import IsolationSchema
from cachescope.analysis.contexts.differences import context_pairs
from cachescope.analysis.contexts.keys import FORMS, known_contexts
from cachescope.errors import SchemaError
from cachescope.keys import isolation_key
from cachescope.keys.isolation import schema_without
from cachescope.terms import RUNTIME_FORMS
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


def test_what_is_no_context_or_no_schema_is_refused() -> None:
    with pytest.raises(SchemaError):
        cachescope.isolation_keys([{"runtime_context": None}])
    with pytest.raises(SchemaError):
        cachescope.isolation_keys([FABRICATED["cuda"]], {"runtime_context": True})
