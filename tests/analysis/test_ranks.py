"""The ranks that are not like the most of them, and the field: in real traces whose hash details were changed by hand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cachescope
from cachescope.keys.hashing import entry_name
from cachescope.readers.logs.byte_source import open_bytes
from cachescope.report.ranks import rank_lines
from cachescope.scope import Scope

FIELD = "inductor_config[cpp.threads]"


@pytest.fixture(scope="module")
def trace() -> bytes:
    """One process of the sample `tour`: eight lookups of four graphs."""
    with open_bytes(str(min((cachescope.sample("tour") / "trace").iterdir()))) as stream:
        return stream.read()


def with_value(trace: bytes, field: str, value: str) -> bytes:
    """The trace as it would be, had the field another value: other hashes and texts, and other keys."""
    own = entry_name(value.encode()).encode()
    old = re.compile(rb"\[[a-z2-7]{51}\] " + re.escape(field).encode() + rb": [^\"\\]*")
    changed = old.sub(lambda _: b"[%s] %s: %s" % (own, field.encode(), value.encode()), trace)
    assert changed != trace
    key = re.compile(rb"\b([af])[a-z2-7]{51}\b")
    return key.sub(lambda m: m[1] + entry_name(m[0] + value.encode()).encode(), changed)


def read(folder: Path, ranks: list[bytes]) -> Scope:
    for rank, data in enumerate(ranks):
        (folder / f"rank_{rank}.log").write_bytes(data)
    return cachescope.read(folder)


def test_equal_ranks_differ_in_nothing(trace: bytes, tmp_path: Path) -> None:
    scope = read(tmp_path, [trace, trace.replace(b" 23440 ", b" 23441 ")])
    assert scope.rank_differences.empty
    assert list(rank_lines(scope.rank_differences)) == []


def test_the_odd_rank_and_its_field_are_named(trace: bytes, tmp_path: Path) -> None:
    odd = with_value(trace, FIELD, "17")
    scope = read(tmp_path, [trace, trace, odd, trace, trace])
    (row,) = scope.rank_differences.to_dict("records")
    assert (row["field"], row["ranks"], row["has_majority"]) == (FIELD, (2,), True)
    assert (row["ranks_compared"], row["values"], row["graphs"]) == (5, 2, 8)
    assert (row["majority_value"], row["other_value"]) == ("-1", "17")
    text = " ".join(line.text for line in rank_lines(scope.rank_differences))
    assert "1 rank of 5 (2): 17, the others -1" in text


def test_a_field_that_holds_the_rank_is_one_row(trace: bytes, tmp_path: Path) -> None:
    scope = read(tmp_path, [with_value(trace, FIELD, str(100 + rank)) for rank in range(4)])
    (row,) = scope.rank_differences.to_dict("records")
    assert (row["field"], row["ranks"], row["has_majority"]) == (FIELD, (0, 1, 2, 3), False)
    assert row["values"] == 4
    assert "each of 4 ranks has its own: 100 in rank 0" in " ".join(
        line.text for line in rank_lines(scope.rank_differences)
    )


def test_ranks_with_another_graph_differ_in_the_graph_and_are_compared_with_their_like(
    trace: bytes, tmp_path: Path
) -> None:
    # Two stages of a pipeline; in the second one rank has another setting.
    stage = with_value(trace, "gm", "<lambda>()")
    scope = read(tmp_path, [trace, trace, trace, stage, stage, with_value(stage, FIELD, "9")])
    rows = {row["field"]: row for row in scope.rank_differences.to_dict("records")}
    assert set(rows) == {"gm", FIELD}
    assert rows[FIELD]["ranks"] == (5,)
    assert rows[FIELD]["ranks_compared"] == 3


def test_runs_without_a_rank_are_not_compared(trace: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(trace)
    (tmp_path / "b.log").write_bytes(with_value(trace, FIELD, "17"))
    assert cachescope.read(tmp_path).rank_differences.empty
