"""Keys that seem to stand for more than one thing: entries and lookups in, doubts out; made by hand."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from cachescope.analysis.directory.equal_code import SourceOf
from cachescope.analysis.directory.false_hits import false_hits
from cachescope.scope import Scope
from tests.made import Stored, entry, fx, run, scope_of


def stored(name: str, **told: Any) -> Stored:
    return entry(told.pop("cache", "fxgraph"), "f1", told.pop("details", None), name=name, **told)


def found(*entries: Stored, sources: dict[int, str] | None = None) -> list[dict[str, Any]]:
    scope = scope_of(entries=entries)
    return doubts_of(scope, lambda row: (sources or {}).get(row.entry))


def doubts_of(scope: Scope, source_of: SourceOf) -> list[dict[str, Any]]:
    tables = scope.tables
    read = (scope.shown.rows, tables.entries.rows, tables.runs.rows, ())
    return [asdict(one) for one in false_hits(*read, tables.hash_details, source_of)]


CODE = "entries of one key and equal guards hold different generated code: "
NOT_READ = "entries of one key and equal guards name different generated code (caaaaaaa… and cbbbbbbb…), and it could not be read"
A, B = ({"code_key": "c" + letter * 51} for letter in "ab")


@pytest.mark.parametrize(
    ("told", "sources", "evidence"),
    [
        ([A, B], {0: "x\ny", 1: "x\nz"}, CODE + "line 2 is 'y' and 'z'"),
        ([A, B], {0: "  x", 1: "z"}, CODE + "line 1 is 'x' and 'z'"),
        ([A, B], {0: "x" * 60, 1: "y" * 61}, CODE + f"line 1 is {'x' * 60!r} and {'y' * 60 + '…'!r}"),
        ([A, B], {0: "x", 1: "x\ny"}, CODE + "1 and 2 lines"),
        # But for what identifies the process it is the same.
        ([A, B], {0: "x\n# of 1", 1: "x\n# of 2"}, None),
        ([A, A], {0: "x", 1: "y"}, None),
        ([A, B], {0: "x"}, NOT_READ),
        ([A, B], {}, NOT_READ),
        ([A, B, {"code_key": "c" + "d" * 51}], {}, NOT_READ),
        ([A, B, {"code_key": "c" + "d" * 51}], {0: "x", 2: "y"}, CODE + "line 1 is 'x' and 'y'"),
        # Of three, the first two are compared.
        ([A, B, {"code_key": "c" + "d" * 51}], {0: "x", 1: "y", 2: "z"}, CODE + "line 1 is 'x' and 'y'"),
        ([A, {}], {0: "x"}, None),
        ([{}, {}], {}, None),
        # Of other guards, keys, caches or damaged nothing is compared.
        ([A, {**B, "guards_expr": "s"}], {0: "x", 1: "y"}, None),
        ([A, {**B, "status": "damaged"}], {0: "x", 1: "y"}, None),
        ([A, {**B, "cache_key": "f2"}], {0: "x", 1: "y"}, None),
        ([A, {**B, "cache_key": None}], {0: "x", 1: "y"}, None),
        ([{**A, "cache": "triton"}, {**B, "cache": "triton"}], {0: "x", 1: "y"}, None),
        ([{**A, "guards_expr": "s"}, {**B, "guards_expr": "s"}], {0: "x", 1: "y"}, CODE + "line 1 is 'x' and 'y'"),
        # A process finds either: they may be in two directories.
        ([A, {**B, "root": "/other"}], {0: "x", 1: "y"}, CODE + "line 1 is 'x' and 'y'"),
    ],
    ids=range(20),
)  # fmt: skip
def test_the_code_of_one_key(told: list[dict[str, Any]], sources: dict[int, str], evidence: str | None) -> None:  # fmt: skip
    rows = found(*(stored(f"e{at}", **one) for at, one in enumerate(told)), sources=sources)
    assert [row["kind"] for row in rows] == ([] if evidence is None else ["different_code"])
    for row in rows:
        assert row["evidence"].startswith(evidence)
        assert row["entries"] == tuple(range(len(told)))
        assert (row["cache"], row["cache_key"], row["fields"]) == ("fxgraph", "f1", ("code_key",))
        assert (row["lookups"], row["runs"], row["hits"]) == ((), (), 0)


def test_code_is_read_where_keys_differ_and_once_for_each() -> None:
    asked: list[int] = []
    scope = scope_of(entries=[stored(f"e{at}", **told) for at, told in enumerate((A, B, A, B))])
    rows = doubts_of(scope, lambda row: asked.append(row.entry))
    assert len(rows) == 1
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("name", "values", "kind", "said"),
    [
        ("fx_keys", (("fa",), ("fb",)), "different_graphs", "point to different FX graphs: fa and fb"),
        ("fx_keys", (("fa",), ()), "different_graphs", "point to different FX graphs: fa and none"),
        ("fx_keys", (("fa", "fb"), ("fc",)), "different_graphs", "point to different FX graphs: fa, fb and fc"),
        ("fx_keys", (("f" * 12,), ("g" * 13,)), "different_graphs", f"graphs: {'f' * 12} and {'g' * 12}…"),
        ("fx_keys", tuple((f"f{n}",) for n in range(4)), "different_graphs", "FX graphs: f0 and f1 and f2 and f3"),
        ("fx_keys", tuple((f"f{n}",) for n in range(5)), "different_graphs", "FX graphs: f0 and f1 and f2 and f3 and more"),
        ("fx_keys", (("fa",), ("fa",)), None, ""),
        ("device_types", (("cpu",), ("cuda",)), "different_devices", "run on different devices: cpu and cuda"),
        ("device_types", (("cpu",), ("cpu",)), None, ""),
    ],
)  # fmt: skip
def test_what_entries_of_one_key_point_to(
    name: str, values: tuple[tuple[str, ...], ...], kind: str | None, said: str
) -> None:
    rows = found(*(stored(f"e{at}", **{name: value}) for at, value in enumerate(values)))
    assert [(row["kind"], row["fields"]) for row in rows] == ([] if kind is None else [(kind, (name,))])
    for row in rows:
        assert row["evidence"] == f"entries of one key and equal guards {said}" or row["evidence"].endswith(said)  # fmt: skip
        assert row["entries"] == tuple(range(len(values)))


def test_the_details_of_entries_count_as_well() -> None:
    one, other = {"gm": "g", "x": "1"}, {"gm": "g", "x": "2"}
    (row,) = found(stored("a", details=one), stored("b", details=other), stored("c"))
    assert (row["kind"], row["fields"], row["entries"]) == ("different_details", ("x",), (0, 1))
    scope = scope_of(run(fx("f1", "hit", one, at=1)), entries=[stored("a", details=other)])
    (row,) = scope.false_hits.to_dict("records")
    assert (row["fields"], row["entries"], row["lookups"], row["hits"]) == (("x",), (0,), (0,), 1)
    assert row["evidence"] == "one key was recorded with different hashes of x"
