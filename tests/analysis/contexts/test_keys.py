"""What is known of contexts, and the keys and groups that follow; made by hand."""

import json
from dataclasses import replace
from typing import Any

import pytest

from cachescope import IsolationSchema
from cachescope.analysis.contexts.differences import manifest_difference
from cachescope.analysis.contexts.keys import (
    FORMS,
    chosen_forms,
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
from cachescope.keys.isolation import schema_without
from cachescope.terms import COMPILE_FORMS, RUNTIME_FORMS
from tests.analysis.plain_rows import context_row

ALL, NONE = IsolationSchema.all(), IsolationSchema.none()
VALUES: dict[str, Any] = {form: {"a": 1} if form in RUNTIME_FORMS else "x" for form in FORMS}


def context(**told: Any) -> dict[str, dict[str, Any]]:
    """A context as torch has it; a form that is Ellipsis is missing."""
    values = {form: value for form, value in {**VALUES, **told}.items() if value is not ...}
    return {
        "runtime_context": {form: v for form, v in values.items() if form not in COMPILE_FORMS},
        "compile_context": {form: v for form, v in values.items() if form in COMPILE_FORMS},
    }


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
    frame = isolation_keys(
        frame_of([row(3), row(4, missing_forms=("runtime",)), row(5, text_only=(path,))], ContextRow)
    )
    assert frame["context"].tolist() == [3, 4, 5]
    assert frame["isolation_key"].iloc[0] == isolation_key(context())
    assert frame["isolation_key"].isna().tolist() == [False, True, True]
    assert frame["lacking"].tolist() == [(), ("runtime",), ()]
    assert frame["text_only"].tolist() == [(), (), (path,)]
    plain = {"runtime_context": False, "compile_context": {"runtime": True}}
    assert isolation_keys([context()], plain)["isolation_key"].tolist() == [isolation_key(context(), plain)]


def test_schemas() -> None:
    assert chosen_forms(ALL) == FORMS
    assert chosen_forms(NONE) == ()
    without = schema_without(["runtime", "inductor_configs"])
    assert chosen_forms(without) == tuple(f for f in FORMS if f not in ("runtime", "inductor_configs"))
    assert schema_without([]) == ALL and schema_without(FORMS) == NONE


def test_forms_that_differ_or_may() -> None:
    one, other = known_snapshots(
        [context(new_b=1, runtime="A", runtime_version=...), context(new_a=1, runtime="B", new_b=1)]
    )
    assert compared(one, other) == (("runtime",), ("runtime_version", "new_b", "new_a"))
    assert compared(other, one) == (("runtime",), ("runtime_version", "new_a", "new_b"))
    assert compared(one, one) == ((), ("runtime_version", "new_b"))


def test_the_least_change_comes_first() -> None:
    made = [
        context(),
        context(runtime="B"),
        context(runtime="B", runtime_version="2"),
        context(inductor_configs={}),
    ]
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
