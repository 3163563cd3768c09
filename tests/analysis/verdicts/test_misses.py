"""Rows in, verdict out: each way in which a miss can be judged, and the frames that it becomes, by small histories made by hand."""

from collections.abc import Sequence
from typing import Any

import pytest

from cachescope.frames.directory_rows import EntryRow
from tests.made import CODE, Details, Made, Run, aot, entry, fx, miss_rows, run, scope_of

G = {"gm": CODE, "x": "1"}
OTHER = "def forward(self, y):\n    return (torch.fft.fft(torch.angle(y)).diff().cumsum(0),)"
HERE = {"cache_dir": "/cache"}
# torch's own words of an entry that it cannot load, and of a directory that it cannot write into.
LOAD_ERROR = "Traceback (most recent call last):\n  File codecache.py\nEOFError: Ran out of input"
NO_ROOM = "OSError: [Errno 28] No space left on device"
WRITTEN = "/cache/fxgraph/11/f11/entry"


F: dict[str, Any] = {"function": "f", "file": "/p.py", "line": 1}
TRACED = {**F, "traced_graph": "t", "traced_code": "t"}


def graph(key: str, details: Details = G, **told: Any) -> Made:
    return fx(key, details=details, **{"took": 3.0, **told})


def again(first: Made, **second: Any) -> tuple[Run, Run]:
    """A key that two processes in one directory missed, one after the other, and that the second stored as its text log says."""
    return run(first, **HERE), run(graph("f11", at=100, **{"entry_path": WRITTEN, **second}), **HERE)


def last(*runs: Run, entries: Sequence[tuple[EntryRow, Details | None]] = ()) -> dict[str, Any]:
    return miss_rows(scope_of(*runs, entries=entries))[-1]


SAVED = {"at": 0, "entry_path": WRITTEN}
# Kind, evidence and part of the reason, where several cases have the same.
GONE = ("deleted", "inferred", "deleted, moved or cleared")
SURELY_GONE = ("deleted", "recorded", "deleted, moved or cleared")
GONE_OR_DAMAGED = ("gone or damaged", "inferred", "deleted, moved, cleared or damaged")
UNTOLD = ("not known", "not_known", "nothing that was read says that run 0 stored it")
WHICH_DIRECTORY = ("not known", "not_known", "whether both used one cache directory is not recorded")
GRAPH_ENTRY = ("graph entry", "recorded", "the FX graph entry that it points to")

# Of the first lookup of a key, of the second, and of the processes: kind, evidence and part of the reason for the second.
UNAVAILABLE: dict[str, tuple[tuple[Run, ...], tuple[str, str, str]]] = {
    "torch would not store it": (
        again(graph("f11", at=0, save_bypass="a custom pass")),
        ("never stored", "recorded", "stored nothing: torch would not store it: a custom pass")),
    "written, whatever failed afterwards": (
        again(graph("f11", **SAVED, compile_error="ValueError: later")), GONE),
    "its time was taken, whatever failed afterwards": (
        again(graph("f11", at=0, compile_error="ValueError: later")), UNTOLD),
    "compiled to the end": (again(graph("f11", **SAVED)), GONE),
    "no text log to say that it was stored": (
        again(graph("f11", at=0)), UNTOLD),
    "cut within its compile": (
        again(graph("f11", at=0, took=None, compile_ended=False)),
        ("not known", "not_known", "its log ends within that compile")),
    "in another directory": (
        (run(graph("f11", **SAVED), cache_dir="/other"), run(graph("f11", at=100), **HERE)),
        ("another directory", "recorded", "in another directory: /other, not /cache")),
    "in a directory that its process used for a while": (
        (run(graph("f11", **SAVED), graph("f11", at=100, compile_id="1/0", cache_dir="/tmp/tmpabcdefgh"), **HERE),),
        ("another directory", "recorded", "in another directory: /cache, not /tmp/tmpabcdefgh")),
    "in a directory that is not known": (
        (run(graph("f11", **SAVED)), run(graph("f11", at=100), **HERE)), WHICH_DIRECTORY),
    "in none that is known": ((run(graph("f11", **SAVED)), run(graph("f11", at=100))), WHICH_DIRECTORY),
    "being compiled for another directory": (
        (run(fx("f11", "unknown", G, at=0), **HERE),
         run(graph("f11", at=50, took=500.0, entry_path=WRITTEN), cache_dir="/other"),
         run(graph("f11", at=100), **HERE)),
        ("not known", "not_known", "it was compiling it for another directory")),
    "without times": (
        (run(graph("f11", at=None, entry_path=WRITTEN), **HERE), run(graph("f11", at=None), **HERE)),
        ("not known", "not_known", "the logs have no times")),
    "without times in one process": (
        (run(graph("f11", at=None, entry_path=WRITTEN), graph("f11", at=None, compile_id="1/0"), **HERE),),
        GONE),
    "found before": (
        (run(graph("f11", at=0), **HERE), run(fx("f11", "hit", G, at=50), **HERE),
         run(graph("f11", at=100, entry_path=WRITTEN), **HERE)),
        SURELY_GONE),
    "found before, and no text log to say that it could not be loaded": (
        (run(graph("f11", at=0), **HERE), run(fx("f11", "hit", G, at=50), **HERE), run(graph("f11", at=100), **HERE)),
        ("gone or damaged", "recorded", "deleted, moved, cleared or damaged")),
    "found since nothing had been stored": (
        (run(graph("f11", at=0, save_error="OSError: full"), **HERE), run(fx("f11", "hit", G, at=50), **HERE),
         run(graph("f11", at=100, entry_path=WRITTEN), **HERE)),
        SURELY_GONE),
    "stored since nothing had been stored": (
        (run(graph("f11", at=0, save_error="OSError: full"), **HERE),
         run(graph("f11", at=50, entry_path=WRITTEN), **HERE), run(graph("f11", at=100), **HERE)),
        GONE_OR_DAMAGED),
    "it cannot be loaded": (
        again(graph("f11", **SAVED), load_error=LOAD_ERROR),
        ("load error", "recorded", "could not be loaded: EOFError: Ran out of input")),
    "it cannot be loaded, and the compile fails for the same reason": (
        again(graph("f11", **SAVED), load_error="Failed to load artifact: /c/ek/cek.py", compile_error=NO_ROOM),
        ("load error", "recorded", f"cek.py; the compile after it failed: {NO_ROOM}")),
    "it cannot be loaded, and nothing is known of before": (
        (run(graph("f11", at=100, load_error=LOAD_ERROR), **HERE),), ("load error", "recorded", "EOFError")),
    "the directory cannot be used": (
        again(graph("f11", **SAVED), took=None, compile_error=NO_ROOM),
        ("load error", "inferred", "this process could not use the directory")),
    "the directory cannot be used, as torch 2.5 says it": (
        again(graph("f11", **SAVED), took=None, compile_error=f"BackendCompilerFailed: backend='inductor' raised:\n{NO_ROOM}\n\nSet TORCH_LOGS"),
        ("load error", "inferred", f"BackendCompilerFailed: backend='inductor' raised: {NO_ROOM}")),
    "its compile failed, and not for want of room": (
        again(graph("f11", **SAVED), took=None, compile_error="ValueError: later"), GONE),
    "its compile failed, and nothing names its directory": (
        again(graph("f11", **SAVED), took=None, entry_path=None, compile_error="ValueError: later"),
        WHICH_DIRECTORY),
    "a graph that torch calls a hit": (
        again(graph("f11", **SAVED), status_detailed="hit"), GONE),
    "missed or refused by its guards": (
        (run(graph("f11", None, **SAVED), **HERE), run(graph("f11", None, at=100), **HERE)),
        ("not known", "not_known", "it was not found, or its guards did not hold")),
    "not found, as a trace tells": (
        (run(graph("f11", None, **SAVED), **HERE), run(graph("f11", None, at=100, status_detailed="miss"), **HERE)),
        GONE_OR_DAMAGED),
}  # fmt: skip


@pytest.mark.parametrize("case", UNAVAILABLE)
def test_what_became_of_an_entry(case: str) -> None:
    runs, (kind, evidence, reason) = UNAVAILABLE[case]
    row = last(*runs)
    assert (row["verdict"], row["kind"], row["evidence"]) == ("entry_unavailable", kind, evidence)
    assert reason in row["reason"]


def pair(key: str = "a11", *graphs: Made, at: float = 0, **told: Any) -> list[Made]:
    return [aot(key, details=G, at=at, **told), *graphs]


def test_only_the_entry_whose_graph_is_looked_up_again_is_found_wanting() -> None:
    twice = pair("a11", graph("f11", at=1), graph("f11", at=2))
    others = {name: {**G, "gm": f"{OTHER} # {name}"} for name in ("0/1", "0/2")}
    once: list[Made] = []
    for at, (name, details) in enumerate(others.items(), 3):
        below = graph(f"f1{at}", details, at=10 * at + 1, compile_id=name)
        once += [aot(f"a1{at}", details=details, at=10 * at, compile_id=name), below]
    rows = miss_rows(scope_of(run(*twice, *once, **HERE)))
    assert [row["lookup"] for row in rows if row["kind"] == "graph entry"] == [0]


# Of processes in one directory, each of which missed one AOTAutograd key and then some graphs of it.
AUTOGRAD: dict[str, tuple[tuple[Run, ...], tuple[str, str, str]]] = {
    "the graph is there twice": (
        (run(*pair("a11", graph("f11", at=1), graph("f11", at=2)), **HERE),), GRAPH_ENTRY),
    "torch calls it a hit": (
        (run(*pair("a11", graph("f11", at=1), status_detailed="hit"), **HERE),), GRAPH_ENTRY),
    "the graph is there twice, in whatever way it missed": (
        (run(*pair("a11", graph("f11", at=1), graph("f12", at=2), graph("f11", at=3, outcome="unknown")), **HERE),),
        GRAPH_ENTRY),
    "graphs that were found are not looked up for it again": (
        (run(*pair("a11", graph("f11", **SAVED), entry_path=WRITTEN), **HERE),
         run(*pair("a11", graph("f11", at=101, outcome="hit"), graph("f11", at=102, outcome="hit"), at=100), **HERE)),
        GONE_OR_DAMAGED),
    "the backward graph of the same key is compiled later": (
        (run(*pair("a11", graph("f11", at=1, compile_ended=True), entry_path=WRITTEN),
             aot("a11", details=G, at=10, compile_id="0/1"), graph("f11", outcome="hit", at=11, compile_id="0/1"),
             fx("f12", details=G, at=20, took=1, direction="backward", compile_id="0/0"), **HERE),),
        ("not stored yet", "inferred", "its entry was not stored yet")),
    "begun anew": (
        (
            run(aot("a11", details=G, at=0), aot("a12", details={**G, "x": "2"}, at=1, compile_id="0/0_1"),
                graph("f12", at=2, compile_id="0/0_1"), **HERE),
            run(*pair("a11", at=100), **HERE),
        ),
        ("restarted compile", "recorded", "torch restarted its compile")),
    "killed": (
        (run(*pair("a11", graph("f11", at=1, outcome="unknown", took=None)), **HERE, exit_status=137),
         run(*pair("a11", at=100), **HERE)),
        ("process ended", "recorded", "its process ended before that: signal SIGKILL")),
    "a graph of a compile in which the process was killed": (
        (run(*pair("a11", graph("f11", at=1, took=None), compile_ended=False), **HERE, exit_status=137),
         run(graph("f11", at=100), **HERE)),
        ("process ended", "recorded", "signal SIGKILL")),
}  # fmt: skip


@pytest.mark.parametrize("case", AUTOGRAD)
def test_what_became_of_an_autograd_entry(case: str) -> None:
    runs, (kind, evidence, reason) = AUTOGRAD[case]
    rows = [row for row in miss_rows(scope_of(*runs)) if row["verdict"] == "entry_unavailable"]
    assert {(row["kind"], row["evidence"]) for row in rows[:1]} == {(kind, evidence)}, rows
    assert reason in rows[0]["reason"]


def damaged(at: float = 50, **told: Any) -> tuple[EntryRow, Details | None]:
    return entry("fxgraph", "f11", at=at, status="damaged", name="bad", **told)


SOUND = entry("fxgraph", "f11", G, at=103)
REFUSED = "truncated at byte 300"


def test_entries_tell_of_damage() -> None:
    first, second = again(graph("f11", **SAVED), entry_path=None)
    cut = damaged(damage=REFUSED)
    row = last(first, second, entries=[cut, SOUND])
    assert (row["kind"], row["evidence"]) == ("damaged", "inferred")
    assert REFUSED in row["reason"]
    # It was damaged since, or had been before a sound one was found; or torch does not warn of it.
    assert last(first, second, entries=[damaged(200, damage=REFUSED), SOUND])["kind"] == "gone or damaged"
    found = run(fx("f11", "hit", G, at=60), **HERE)
    assert last(first, found, second, entries=[cut, SOUND])["kind"] == "gone or damaged"
    assert last(*again(graph("f11", **SAVED)), entries=[cut, SOUND])["kind"] == "deleted"
    # Alone it may have been damaged since, and of another name torch sees nothing.
    assert last(first, second, entries=[cut])["kind"] == "gone or damaged"
    assert last(first, second, entries=[damaged(damage="another name"), SOUND])["kind"] == "deleted"
    refused = again(graph("f11", **SAVED), load_error=LOAD_ERROR)
    assert last(*refused, entries=[cut])["kind"] == "damaged"
    assert last(*refused, entries=[SOUND])["kind"] == "load error"
    # Both are compared with the lookup of the key before.
    assert [last(*refused, entries=found)["baseline_lookup"] for found in ([cut], [SOUND])] == [0, 0]
    assert last(first, second, entries=[cut, SOUND])["baseline_lookup"] == 0
    other = entry("fxgraph", "f12", at=200, status="damaged", name="bad", damage=REFUSED)
    assert last(*refused, entries=[other, SOUND])["kind"] == "load error"


@pytest.mark.parametrize("status", ["damaged", "unreadable"])
def test_an_entry_in_a_remote_cache_tells_nothing_of_the_directory(status: str) -> None:
    """Whether the process asked there is not recorded."""
    first, second = again(graph("f11", **SAVED))
    remote, details = entry("fxgraph", "f11", at=200, status=status, damage=REFUSED)
    remote.path = "redis://host/0/pt2:fx-graph-v1::f11:c1"
    assert last(first, second, entries=[(remote, details), SOUND]) == last(first, second, entries=[SOUND])


def test_an_entry_that_may_not_be_read_proves_nothing() -> None:
    row = last(*again(graph("f11", **SAVED)), entries=[entry("fxgraph", "f11", status="unreadable")])
    assert (row["kind"], row["evidence"]) == ("not known", "not_known")
    assert "cannot be read here" in row["reason"]


@pytest.mark.parametrize(("first", "second", "verdict"), [
    ((0, 5.0), 3, "compiled_concurrently"),
    ((0, 5.0), 5, "compiled_concurrently"),
    ((0, 5.0), 6, "entry_unavailable"),
    ((0, None), 1, "compiled_concurrently"),
    ((0, None), 3, "entry_unavailable"),
])  # fmt: skip
def test_a_key_that_another_compiles(first: tuple[float, float | None], second: float, verdict: str) -> None:
    began, took = first
    runs = run(graph("f11", at=began, took=took), **HERE), run(graph("f11", at=second), **HERE)
    row = last(*runs)
    assert row["verdict"] == verdict
    if verdict == "compiled_concurrently":
        assert (row["evidence"], row["baseline_lookup"]) == ("inferred", 0)
        assert row["reason"].startswith("run 0 had missed the same key")


def test_the_graphs_below_a_key_that_another_rank_compiles_follow_from_what_changed_in_it() -> None:
    """As of two ranks with another batch: each is the first to look up one of the graphs."""

    def rank(number: int, size: int, at: float, *, is_late: bool) -> Run:
        inputs = {"example_inputs[0]": f"TensorMetadata(shape=torch.Size([{size}, 8]))"}
        code = {"gm": f"{CODE} {size}", **inputs, "fx_kwargs[is_inference]": "False"}
        flags = "False", "True"
        graphs = [fx(f"f{size}{flag}", details={**code, "fx_kwargs[is_backward]": flag}, took=9.0, at=at + 2 + is_late * (flag == "True"), **TRACED) for flag in flags]  # fmt: skip
        above = aot(f"a{size}", details={"gm": CODE, **inputs}, at=at + number / 10, **TRACED)
        return run(above, *graphs, rank=number, pid=number + 1 + int(at), **HERE)

    ranks = [rank(number, 16, 100, is_late=not number) for number in range(2)]
    scope = scope_of(rank(0, 8, 0, is_late=False), *ranks)
    rows = miss_rows(scope)[3:]
    (cause,) = {row["cause"] for row in rows if row["verdict"] == "key_changed"}
    assert scope.causes["fields"][cause] == ("example_inputs[0]",)


def test_a_key_that_is_compiled_for_another_directory_and_perhaps_for_this_one() -> None:
    compiling = run(graph("f11", at=0, took=5.0), cache_dir="/other")
    # Where a directory is not known, it may be the same.
    assert last(compiling, run(graph("f11", at=3)))["verdict"] == "compiled_concurrently"
    # With a directory each, one directory alone would have spared nothing.
    scope = scope_of(compiling, run(graph("f11", at=3), **HERE))
    (cause,) = [one for one in scope.causes.itertuples() if one.verdict == "compiled_concurrently"]
    assert cause.kind == "another directory" and "let one rank compile first" in cause.advice
    assert "but for another directory: /other, not /cache" in miss_rows(scope)[-1]["reason"]
    # One of several is for this directory, and is the one that is named.
    row = last(compiling, run(graph("f11", at=1, took=5.0), **HERE), run(graph("f11", at=3), **HERE))
    assert (row["verdict"], row["baseline_lookup"]) == ("compiled_concurrently", 1)
    assert row["reason"].startswith("run 1 had missed")


def test_many_that_compile_one_key_at_once_are_counted() -> None:
    runs = [run(graph("f11", at=at / 100, took=50.0), **HERE) for at in range(12)]
    rows = miss_rows(scope_of(*runs))
    assert rows[0]["verdict"] == "first_lookup"
    assert [row["verdict"] for row in rows[1:]] == ["compiled_concurrently"] * 11
    assert rows[1]["reason"].startswith("run 0 had missed")
    assert rows[8]["reason"].startswith("runs 0, 1, 2, 3, 4, 5, 6, 7 had missed")
    assert rows[11]["reason"].startswith("runs 0, 1, 2, 3, 4, 5, 6, 7 and 3 more had missed")


def test_a_disabled_cache() -> None:
    off = run(fx(None, "disabled", at=0, bypass_reason="off"), fx(None, "disabled", at=1))
    told, untold = miss_rows(scope_of(off))
    assert (told["verdict"], told["reason"]) == ("disabled", "caching was switched off: off")
    assert untold["reason"] == "caching was switched off: cache not enabled"


@pytest.mark.parametrize(("told", "evidence", "shown"), [
    ({"guards_expr": "s0 > 4"}, "recorded", "no entry's guards held: s0 > 4"),
    ({"status_detailed": "miss_guard"}, "recorded", "no entry's guards held: s0 < 9; s0 == 7"),
    ({}, "inferred", "stored for a graph with symbolic sizes"),
])  # fmt: skip
def test_guards_that_did_not_hold(told: dict[str, Any], evidence: str, shown: str) -> None:
    entries = [entry("fxgraph", "f11", G, at=1, guards_expr="s0 < 9", name=name) for name in ("one", "two")]
    hit = fx("f11", "hit", G, at=50, guards_expr="s0 == 7")
    missed = fx("f11", "guard_miss", G, at=100, **told)
    row = last(*(run(one, **HERE) for one in (graph("f11", at=0), hit, missed)), entries=entries)
    assert (row["verdict"], row["kind"], row["evidence"]) == ("guard_failed", "f11", evidence)
    assert (row["baseline_lookup"], shown in row["reason"]) == (1, True), row["reason"]


def test_what_hit_or_is_not_known_is_no_miss() -> None:
    assert miss_rows(scope_of(run(fx("f11", "hit", G, at=0), fx("f12", "unknown", G, at=1)))) == []
    # Whatever torch reports beside it.
    told = {"status_detailed": "hit", "load_error": LOAD_ERROR}
    hits = run(aot("a11", "hit", G, at=0, **told), fx("f11", "hit", G, at=1, **told))
    assert miss_rows(scope_of(hits)) == []
    again = run(aot("a11", "hit", G, at=9, **told), fx("f11", "unknown", G, at=10, **told))
    assert len(miss_rows(scope_of(run(aot("a11", details=G, at=0)), again))) == 1


@pytest.mark.parametrize(("after", "verdict", "changed", "reason"), [
    ({**G, "x": "2"}, "key_changed", ("x",), "the same graph, and one field of the key differs: x, 1 -> 2"),
    ({**G, "x": "2", "y": "3"}, "key_changed", ("x", "y"), "the same graph, and 2 fields of the key differ: x, y"),
    ({**G, **{f"f{n}": "1" for n in range(6)}}, "key_changed", tuple(f"f{n}" for n in range(6)),
     "the same graph, and 6 fields of the key differ: f0, f1, f2 and 3 more"),
    ({**G, **{f"f{n}": "1" for n in range(5)}}, "key_changed", tuple(f"f{n}" for n in range(5)),
     "the same graph, and 5 fields of the key differ: f0, f1, f2 and 2 more"),
    ({**G, **{f"f{n}": "1" for n in range(4)}}, "key_changed", tuple(f"f{n}" for n in range(4)),
     "the same graph, and 4 fields of the key differ: f0, f1, f2, f3"),
    (dict(G), "no_detail_differs", (), "the keys differ and every recorded field is equal"),
    ({"gm": OTHER, "x": "1"}, "first_lookup", (), "nothing that was read before is of this graph"),
])  # fmt: skip
def test_a_new_key(after: Details, verdict: str, changed: tuple[str, ...], reason: str) -> None:
    named = {"function": "f", "file": "a.py"}
    before, now = graph("f11", at=0, **named), graph("f12", after, at=100, **named)
    row = last(run(before, **HERE), run(now, **HERE))
    assert (row["verdict"], tuple(sorted(row["changed"]))) == (verdict, changed)
    assert row["reason"].startswith(reason)
    assert row["baseline_lookup"] == (None if verdict == "first_lookup" else 0)


def test_where_the_run_before_differs_in_more_that_is_said() -> None:
    def reason(between: Details) -> str:
        keys = enumerate((G, between, {**G, "x": "3"}))
        made = (graph(f"f1{at}", fields, at=100 * at) for at, fields in keys)
        return str(last(*(run(one, **HERE) for one in made))["reason"])

    assert reason({**G, "x": "2", "y": "2"}).endswith(" (compared with the run before it, 2 fields differ)")
    assert "compared with the run before" not in reason({**G, "x": "2"})


SYMBOLIC: Details = {**G, "example_inputs[0]": "TensorMetadata(shape=torch.Size([s7, 8]))"}


def test_only_misses_have_changes() -> None:
    """Before, between and after them, hits have none."""
    outcomes = ("hit", "full_miss", "hit", "full_miss", "hit")
    made = [fx(f"f{at}", how, {**G, "x": str(at)}, at=at, took=0.1) for at, how in enumerate(outcomes)]
    scope = scope_of(run(*made))
    changes = [[change.summary for change in scope.changes(lookup)] for lookup in range(len(made))]
    assert changes == [[], ["0 -> 1"], [], ["2 -> 3"], []]


def test_guard_misses_that_follow_are_settled_in_rows_of_their_own() -> None:
    told: dict[str, Any] = {"details": SYMBOLIC, "took": 1.0, "entry_path": "/cache/fxgraph/1/f1/e"}
    scope = scope_of(run(fx("f1", at=0, **told), **HERE), run(fx("f1", at=9, **told), **HERE))
    assert [row.outcome for row in scope.settled.rows] == ["full_miss", "guard_miss"]
    assert [row.outcome for row in scope.tables.lookups.rows] == ["full_miss"] * 2
    alone = scope_of(run(fx("f1", at=0, **told), **HERE))
    assert [row.outcome for row in alone.settled.rows] == ["full_miss"]


@pytest.mark.parametrize(("reason", "kind"), [
    ("no", "no"), ("op 12 of 0xAB34", "op … of …"), ("  first 1 \nsecond", "first …"),
    (None, "torch gave no reason"), ("", "torch gave no reason"),
])  # fmt: skip
def test_the_kind_of_a_bypass_is_its_reason_without_the_single_case(reason: str | None, kind: str) -> None:
    (row,) = miss_rows(scope_of(run(fx(None, "bypass", at=0, bypass_reason=reason))))
    assert (row["verdict"], row["kind"].strip(), row["evidence"]) == ("bypassed", kind, "recorded")
    assert row["reason"].startswith("torch did not cache it: ")


def guarded(*lookups: Made, **told: Any) -> str:
    """Of the last, the guards that did not hold."""
    row = miss_rows(scope_of(run(*lookups), **told))[-1]
    assert row["verdict"] == "guard_failed"
    return str(row["reason"]).partition("held: ")[2]


def test_guards_are_its_own_then_those_of_entries_then_those_of_lookups_before() -> None:
    missed = fx("f1", "guard_miss", G, at=9, guards_expr="own", compile_id="9/0")
    other = fx("f2", "hit", G, at=2, guards_expr="of another", compile_id="1/0")
    before = [fx("f1", "hit", G, at=1, guards_expr="shown"), other]
    told = [*(("fxgraph", "f1", guards) for guards in ("stored", "shown", "")), ("fxgraph", "f2", "of f2")]
    told.append(("aotautograd", "f1", "of aot"))
    entries = [entry(cache, key, G, guards_expr=guards, name=f"of {guards}") for cache, key, guards in told]
    assert guarded(missed) == "own"
    assert guarded(*before, missed) == "own; shown"
    assert guarded(*before, missed, entries=entries) == "own; stored; shown"
    untold = fx("f1", "guard_miss", G, at=9, compile_id="9/0")
    assert guarded(untold) == "not recorded"
    assert guarded(untold, entries=entries) == "stored; shown"


NEEDED = "The FX graphs below were found"


@pytest.mark.parametrize(("graphs", "is_said"), [
    ([], False),
    ([fx("f2", "hit", G, at=11)], True),
    ([fx("f2", "hit", G, at=11), fx("f3", "hit", G, at=12)], True),
    ([fx("f2", "hit", G, at=11), fx("f3", "unknown", G, at=12)], False),
    ([fx("f2", "unknown", G, at=11)], False),
])  # fmt: skip
def test_advice_on_an_autograd_key_says_if_its_graphs_were_found(graphs: list[Made], is_said: bool) -> None:
    changed = aot("a2", details={**G, "aot_config": "2"}, at=10)
    scope = scope_of(run(aot("a1", details={**G, "aot_config": "1"}, at=0)), run(changed, *graphs))
    (advice,) = scope.causes.loc[scope.causes["verdict"] == "key_changed", "advice"]
    assert advice.startswith(NEEDED) is is_said
    assert "What AOTAutograd knows of the arguments" in advice


def test_advice_says_whether_lines_are_lost() -> None:
    for is_cut, said in ((True, "Lines of the log are lost"), (False, "TORCH_LOGS")):
        cut = fx("f2", details=None, at=9, is_details_cut=is_cut)
        scope = scope_of(run(fx("f1", details=G, at=0)), run(cut))
        (advice,) = scope.causes.loc[scope.causes["verdict"] == "details_not_recorded", "advice"]
        assert said in advice


def test_a_miss_without_a_key_had_no_entry() -> None:
    missed = fx(None, details=G, at=9, load_error="EOFError: Ran out of input")
    (row,) = miss_rows(scope_of(run(missed, **HERE)))
    assert row["verdict"] == "first_lookup"


@pytest.mark.parametrize(("told", "details", "may_be_guards"), [
    ({"status_detailed": "full_miss"}, G, False),
    ({}, G, False),
    # A text log does not tell a guard that failed from an entry that is gone.
    ({}, None, True),
])  # fmt: skip
def test_a_graph_that_an_entry_of_autograd_points_to_is_no_first_lookup(
    told: dict[str, Any], details: Details | None, may_be_guards: bool
) -> None:
    """As after fxgraph/ was removed, or lay on a full disk, seen from the second run alone: it is looked up through the entry, and again."""
    twice = [fx("f11", details=details, at=at, **told) for at in (1, 2)]
    rows = miss_rows(scope_of(run(aot("a11", details=G, at=0), *twice, **HERE)))
    assert [row["verdict"] for row in rows] == ["entry_unavailable"] * 3
    assert [row["kind"] for row in rows] == ["graph entry", "not known", "not known"]
    are_guards = ["its guards did not hold" in row["reason"] for row in rows]
    assert are_guards == [False, may_be_guards, may_be_guards]


@pytest.mark.parametrize(("damaged_at", "stored_at", "verdict"), [
    (-5, 12, "entry_unavailable"),
    (30, 12, "first_lookup"),
    # The times of files that were copied there later, in any order, show nothing.
    (-5, 90, "first_lookup"),
])  # fmt: skip
def test_a_damaged_entry_that_was_there_before_is_why_the_first_recorded_lookup_missed(
    damaged_at: float, stored_at: float, verdict: str
) -> None:
    """Seen from a trace of the second run alone, which has no word of it."""
    cut = entry("fxgraph", "f11", at=damaged_at, status="damaged", damage="truncated")
    stored = [cut, entry("fxgraph", "f11", G, at=stored_at, name="other")]
    (row,) = miss_rows(scope_of(run(fx("f11", details=G, at=10), **HERE), entries=stored))
    assert (row["verdict"], row["kind"] == "damaged") == (verdict, verdict == "entry_unavailable")


@pytest.mark.parametrize(("more", "traced", "kind"), [
    ({"fx_kwargs[is_inference]": ("True", "False")}, ("t", "t"), "the same code, compiled otherwise: f (p.py:1)"),
    ({"fx_kwargs[is_inference]": ("True", "False")}, ("t", "u"), "edit "),
    # Whether the code is the same is not recorded.
    ({"fx_kwargs[is_inference]": ("True", "False")}, (None, "t"), ""),
    # What Dynamo traced was not edited, whatever option made another graph of it.
    ({"inductor_config[x]": ("1", "2")}, ("t", "t"), "the same code, compiled otherwise: f (p.py:1), inductor_config[x]"),
    ({"inductor_config[x]": ("1", "2")}, ("t", "u"), "edit "),
    ({"inductor_config[x]": ("1", "2"), "inductor_config[post_grad_custom_post_pass]": ("1", "2")}, ("t", "t"), "edit "),
])  # fmt: skip
def test_that_a_backward_graph_may_follow_is_no_edit(
    more: dict[str, tuple[str, str]], traced: tuple[str | None, str], kind: str
) -> None:
    """As of one function, of which an input needs gradients in the second run; a trace has no details of AOTAutograd's keys."""
    runs = []
    for side in (0, 1):
        graph = CODE.replace("return (b,)", f"return (b, {'a' * side}x)")
        details = {"gm": graph, **{field: values[side] for field, values in more.items()}}
        looked_up = fx(f"f1{side}", details=details, at=10 * side, **F, traced_graph=traced[side])
        runs.append(run(looked_up, **HERE))
    (_, row) = miss_rows(scope_of(*runs))
    assert row["verdict"] == "key_changed"
    assert row["kind"].startswith(kind) and bool(row["kind"]) == bool(kind)


@pytest.mark.parametrize(("batch", "kind"), [
    (4, "the same code, compiled otherwise: f (p.py:1)"),
    (8, "other inputs of the same code: f (p.py:1), shape"),
])  # fmt: skip
def test_what_a_forward_graph_keeps_for_its_backward_graph_is_no_input_of_the_program(
    batch: int, kind: str
) -> None:
    """As with another activation_memory_budget, which no FX key holds, where AOTAutograd's cache is off or bypassed."""
    runs = []
    for size, keeps in ((4, "b, x"), (batch, "x")):
        key: Details = {"gm": CODE.replace("(b,)", f"({keeps})"), "fx_kwargs[is_inference]": "False"}
        lookups = []
        for at, (way, width) in enumerate((("False", 8), ("True", len(keeps)))):
            inputs = f"TensorMetadata(shape=torch.Size([{size}, {width}]))"
            details = {**key, "example_inputs[0]": inputs, "fx_kwargs[is_backward]": way}
            lookups.append(fx(f"f{size}{keeps}{way}", details=details, at=len(runs) * 10 + at, **TRACED))
        runs.append(run(*lookups, **HERE))
    assert miss_rows(scope_of(*runs))[-1]["kind"] == kind


@pytest.mark.parametrize("is_there", [True, False], ids=["the run before", "its entry alone"])
def test_a_recompile_under_the_number_of_another_compile_in_the_run_before_is_one(is_there: bool) -> None:
    """As of a program that no longer makes the first of its calls: one more fits under torch's recompile limit."""
    told = {**F, "recompile_reasons": "0/0: GLOBAL_STATE changed: grad_mode"}
    with_gradients, without = {**G, "grad_enabled": "True"}, {**G, "grad_enabled": "False"}
    before = run(aot("a11", details=with_gradients, at=0, took=1, compile_id="0/1", **told), **HERE)
    warm = aot("a11", "hit", with_gradients, at=10, **told | {"recompile_reasons": None})
    now = run(warm, aot("a22", details=without, at=11, compile_id="0/1", **told), **HERE)
    stored = [entry("aotautograd", "a11", with_gradients, at=1)]
    rows = miss_rows(scope_of(*([before] if is_there else []), now, entries=stored))
    assert rows[-1]["kind"] == "compiled again: f (p.py:1): GLOBAL_STATE changed: grad_mode"


@pytest.mark.parametrize(("graph", "traced", "inputs", "cost", "fields"), [
    # As dropout by `fallback_random`: nearly no line of the graph is the same.
    ("def forward(self, x):\n    return (torch.ops.aten.native_dropout.default(x, 0.5, True),)", "t", ((8, 4), (8, 4)), "avoidable", 1),
    (CODE, "t", ((8, 4), (8, 4)), "avoidable", 1),
    (CODE, "u", ((8, 4), (8, 4)), "changed code", 2),
    # Another size has a graph of its own, whatever was set.
    (CODE, "t", ((8, 4), (9, 4)), "for other inputs", 3),
])  # fmt: skip
def test_a_graph_that_an_option_rewrites_is_no_changed_code(
    graph: str, traced: str, inputs: Any, cost: str, fields: int
) -> None:
    """A trace has no details of AOTAutograd's keys, which would show that the graph was the same before."""
    option = "inductor_config[fallback_random]"
    graphs = CODE, graph.replace("return (b,)", "return (a,)")
    tensor = "TensorMetadata(shape=torch.Size({}))"
    runs = []
    for side, one in enumerate(("t", traced)):
        told = {**F, "at": 10 * side, "traced_graph": one, "traced_code": one}
        key = {"gm": graphs[side], "example_inputs[0]": tensor.format([*inputs[side]])}
        details = key | {option: str(side == 1)}
        runs.append(run(aot(f"a{side}", **told), fx(f"f{side}", details=details, took=1.0, **told), **HERE))
    scope = scope_of(*runs)
    (row,) = [row for row in miss_rows(scope) if row["verdict"] == "key_changed"]
    assert len(row["changed"]) == fields and option in row["changed"]
    assert cost in str(scope)


RANDOM = "a random name"
NOT_CACHED = "not cached (a random name in the key)"


@pytest.mark.parametrize(("name", "more", "kind", "cost"), [
    ("'__compiled_fn_1_9afe2f25_56cc_440b_b986_939a88c4a426'", {}, RANDOM, NOT_CACHED),
    ("None", {}, RANDOM, NOT_CACHED),
    # The graphs below may be found with the same tag.
    ("None", {"cache_key_tag": "x"}, f"{RANDOM}, and more", "for a reason that is not known"),
    ("'mine'", {}, "", "for other inputs"),
])  # fmt: skip
def test_a_key_that_each_process_makes_another_one_is_not_of_other_inputs(
    name: str, more: Details, kind: str, cost: str
) -> None:
    """As torch 2.15 does with caching_precompile; two runs of one program, without a package."""
    names = "'__compiled_fn_1_3557b149_1608_4eaa_b6fe_ff14ed32f2fb'", name
    made = [{**G, "aot_config": f"(0, True, {names[at]})", **(more if at else {})} for at in (0, 1)]
    runs = [run(aot(f"a1{at}", details=made[at], at=10 * at), **HERE) for at in (0, 1)]
    scope = scope_of(*runs)
    (_, row) = miss_rows(scope)
    assert (row["verdict"], row["kind"]) == ("key_changed", kind)
    assert cost in " ".join(str(scope).split())


def test_above_a_graph_that_is_bypassed_nothing_is_stored() -> None:
    """Torch 2.15 misses in both runs and leaves no entry, as for a graph with linalg.inv: with_effects."""
    reason = "Can't cache HigherOrderOperator: with_effects"
    runs = []
    for at in (0, 10):
        below = fx(None, "bypass", at=at + 0.5, took=0.5, bypass_reason=reason)
        runs.append(run(aot("a11", details=G, at=at, took=1), below, **HERE))
    scope = scope_of(*runs)
    (_, row) = scope.misses.query("verdict != 'bypassed'").to_dict("records")
    assert (row["verdict"], row["kind"]) == ("entry_unavailable", "graph bypassed")
    text = str(scope)
    assert "No compile is known to have been avoidable: " in text and "not cached (bypassed)" in text


SPLIT = "Won't cache a graph with fakify_first_call enabled"


@pytest.mark.parametrize(
    ("above", "ended", "field", "kind"),
    [
        # Of one part AOTAutograd's lookup was recorded, and of two before.
        ([1], True, "gm", "split otherwise by DDPOptimizer"),
        # Of two parts, too, and another compile had its id after a reset.
        ([1, 1, 2], True, "gm", "the same code, compiled otherwise"),
        # As with AOTAutograd's cache switched off, or a log without it: nothing shows how many parts there were.
        ([], True, "gm", "the same code, compiled otherwise"),
        # The log ends in the compile: there may have been another part.
        ([1], False, "gm", "the same code, compiled otherwise"),
        ([1], True, "inductor_config[epilogue_fusion]", ""),
    ],
)
def test_another_split_of_ddp_is_told_where_its_parts_are_known(
    above: list[int], ended: bool, field: str, kind: str
) -> None:
    def start(key: str, parts: Sequence[int], at: float, **changed: str) -> Run:
        bypassed = [aot(None, "bypass", bypass_reason=SPLIT, at=at, **TRACED, segment=one) for one in parts]
        details = {"gm": CODE, "inductor_config[epilogue_fusion]": "True", **changed}
        stored = fx(key, details=details, at=at + 1, took=1.0, compile_ended=ended, **TRACED, segment=1)
        return run(*bypassed, stored)

    scope = scope_of(start("f11", [1, 1], 0), start("f22", above, 100, **{field: f"{CODE} + 1"}))
    kinds = [row["kind"].partition(": ")[0] for row in miss_rows(scope) if row["verdict"] == "key_changed"]
    assert kinds == [kind]
