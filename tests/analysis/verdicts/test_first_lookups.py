"""First lookups, also beside AOTAutograd entries that say nothing of their keys, and lookups that a pre-flight predicts would miss: recorded, and made by hand."""

import hashlib
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cachescope
from cachescope.analysis.history.history import History
from cachescope.analysis.verdicts.judging import guards_would_fail, judge_predicted
from cachescope.analysis.verdicts.misses import VerdictsSoFar, Why
from cachescope.answers.chosen import Chosen
from cachescope.answers.summary import footer
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.samples import sample
from cachescope.verdict_kinds import kind_of
from tests.analysis.plain_rows import entry_row, history_of
from tests.analysis.what_if.test_replay import row
from tests.conftest import Recording
from tests.made import CODE, Details, Run, aot, entry, fx, miss_rows, run, scope_of
from tests.recordings import Recorded
from tests.wild.damaged_logs import logs

CHANGED = ("cpp_runtime_thread_count", "inductor_config[epilogue_fusion]")
"""What the recorded pre-flight had changed: it ran with one thread and without this fusion."""


@pytest.fixture
def predicted(tmp_path: Path) -> Path:
    """A real cache, which a run without a recording made, and the traces of a pre-flight under other settings."""
    return shutil.copytree(sample("preflight"), tmp_path / "cache")


def aot_misses(scope: cachescope.Scope, run: int) -> pd.DataFrame:
    found = scope.misses.merge(scope.lookups[["lookup", "run", "cache", "cache_key"]], on="lookup")
    return found[(found["cache"] == "aotautograd") & (found["run"] == run)].set_index("cache_key")


def without_earlier_runs(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The AOTAutograd misses of the last run: as its trace and the directory tell, and as all traces do."""
    every = cachescope.read(folder / "trace", folder / "cache")
    last = every.runs.sort_values("start_time").iloc[-1]
    told = aot_misses(cachescope.read(last["source"], folder / "cache"), 0)
    assert len(told)
    return told, aot_misses(every, last["run"]).loc[told.index]


@pytest.mark.parametrize("name", [
    "rank_in_config",
    *(
        pytest.param(name, marks=pytest.mark.slow)
        for name in (
            "bypass_custom_pass", "combined", "isolation_context", "matmul_precision", "options_undone",
            "three_changes", "tour",
        )
    ),
])  # fmt: skip
def test_what_changed_in_the_graphs_changed_in_the_key_above_them(recording: Recording, name: str) -> None:
    told, recorded = without_earlier_runs(recording("2.13.0", name))
    assert set(recorded["verdict"]) == {"key_changed"}
    assert set(told["verdict"]) == {"key_changed"}
    assert set(told["evidence"]) == {"inferred"}
    for ours, torchs in zip(told["changed"], recorded["changed"], strict=True):
        assert ours
        assert set(ours) <= set(torchs)


SLOW = ("graph_constant", "nearest_inputs", "rename_argument")


@pytest.mark.parametrize(
    "name", ["captured_tensor", *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
)
def test_a_graph_is_not_called_new_where_nothing_tells(recording: Recording, name: str) -> None:
    told, recorded = without_earlier_runs(recording("2.13.0", name))
    assert set(recorded["verdict"]) == {"key_changed"}
    assert set(told["verdict"]) == {"first_lookup"}
    assert set(told["evidence"]) == {"not_known"}


def test_the_misses_of_the_graphs_are_its_cause(predicted: Path) -> None:
    scope = cachescope.read(predicted)
    misses = aot_misses(scope, 0)
    assert misses["changed"].tolist() == [CHANGED] * 2
    # The graphs have baselines whose values can be shown.
    assert not misses["root"].any()
    assert scope.causes["fields"].tolist() == [CHANGED]


@pytest.mark.parametrize(
    ("gone", "evidence"),
    [(["aotautograd"], "not_known"), (["fxgraph"], "not_known"), (["aotautograd", "fxgraph"], "inferred")],
)
def test_without_entries_a_graph_is_new_or_not_known(predicted: Path, gone: list[str], evidence: str) -> None:
    for cache in gone:
        shutil.rmtree(predicted / "cache" / cache)
    misses = aot_misses(cachescope.read(predicted), 0)
    assert set(zip(misses["verdict"], misses["evidence"], strict=True)) == {("first_lookup", evidence)}


OTHER: Details = {"gm": "def forward(self, y):\n    return (torch.fft.fft(y),)"}


@pytest.mark.parametrize(("entries", "evidence"), [
    ([], "inferred"),
    # Of another graph is an entry whose graphs are known, and are others.
    ([entry("aotautograd", "a2", at=1, fx_keys=("f2",)), entry("fxgraph", "f2", OTHER, at=1)], "inferred"),
    ([entry("aotautograd", "a2", at=1, fx_keys=("f2",)), entry("fxgraph", "f2", at=1)], "not_known"),
    ([entry("aotautograd", "a2", at=1, fx_keys=("f2",))], "not_known"),
    # One that names none may be of any graph; of one that was stored later, this is no question.
    ([entry("aotautograd", "a2", at=1)], "not_known"),
    ([entry("aotautograd", "a2", at=50)], "inferred"),
])  # fmt: skip
def test_a_graph_is_new_where_each_entry_is_known_to_be_of_another(
    entries: list[tuple[EntryRow, Details | None]], evidence: str
) -> None:
    details = {"gm": CODE}
    made = run(aot("a1", details=details, at=9), fx("f1", details=details, at=9), cache_dir="/cache")
    above = miss_rows(scope_of(made, entries=entries))[0]
    assert (above["verdict"], above["evidence"]) == ("first_lookup", evidence)


@pytest.mark.parametrize(("size", "at", "is_pointed_to", "evidence"), [
    ("[4]", 1, True, "not_known"),
    ("[4]", 1, False, "not_known"),
    ("[5]", 1, True, "inferred"),
    ("[4]", 50, False, "inferred"),
])  # fmt: skip
def test_a_graph_with_the_inputs_of_one_in_the_directory_may_be_of_one_function(
    size: str, at: float, is_pointed_to: bool, evidence: str
) -> None:
    """Seen with torch 2.15: one function under autocast, without gradients, or with an input that needs one."""
    details = {"gm": CODE, "example_inputs[0]": "[4]"}
    stored = [entry("fxgraph", "f2", {**OTHER, "example_inputs[0]": size}, at=at)]
    if is_pointed_to:
        stored.append(entry("aotautograd", "a2", at=at, fx_keys=("f2",)))
    made = run(aot("a1", details=details, at=9), fx("f1", details=details, at=9), cache_dir="/cache")
    rows = miss_rows(scope_of(made, entries=stored))
    assert {(row["verdict"], row["evidence"]) for row in rows} == {("first_lookup", evidence)}
    graph = next(row for row in rows if row["lookup"] == 1)
    assert ("takes the same inputs" in graph["evidence_text"]) is (evidence == "not_known")


def test_a_graph_that_the_run_has_found_as_well_is_no_earlier_form_of_another() -> None:
    inputs = {"example_inputs[0]": "[4]"}
    found = fx("f2", "hit", {**OTHER, **inputs}, at=20, compile_id="1/0")
    made = run(fx("f1", details={"gm": CODE, **inputs}, at=9), found, cache_dir="/cache")
    stored = [entry("fxgraph", "f2", {**OTHER, **inputs}, at=1)]
    (row,) = miss_rows(scope_of(made, entries=stored))
    assert (row["verdict"], row["evidence"]) == ("first_lookup", "inferred")


@pytest.mark.parametrize(("details", "verdict", "evidence"), [
    ({"gm": CODE}, "first_lookup", "not_known"), (None, "details_not_recorded", "not_known"),
])  # fmt: skip
def test_above_a_graph_that_was_found_no_key_is_a_cold_start(
    details: Details | None, verdict: str, evidence: str
) -> None:
    """As after aotautograd/ was removed, seen from the second run alone."""
    rows = miss_rows(scope_of(run(aot("a1", details=details, at=1), fx("f1", "hit", {"gm": CODE}, at=2))))
    assert [(row["verdict"], row["evidence"]) for row in rows] == [(verdict, evidence)]
    # Another function of the process may have stored it.
    before = (aot("a0", details=OTHER, at=-1), fx("f1", details={"gm": CODE}, at=0))
    above = aot("a1", details=details, at=1, compile_id="1/0")
    again = (above, fx("f1", "hit", {"gm": CODE}, at=2, compile_id="1/0"))
    rows = miss_rows(scope_of(run(*before, *again)))
    assert rows[-1]["evidence"] == "inferred"


@pytest.mark.parametrize(("is_there", "changed"), [(True, ("x",)), (False, ("gm",))])
def test_an_entry_of_this_form_says_more_than_another_form(is_there: bool, changed: tuple[str, ...]) -> None:
    """It was compiled with another graph before, and in the directory there is this one with another x, and a y that its key alone has."""
    sides = [{"gm": gm, "x": "2"} for gm in (OTHER["gm"], CODE)]
    lookups = []
    for at, details in enumerate(sides):
        told: dict[str, Any] = {"compile_id": f"0/{at}"}
        graph = fx(f"f{at}", details={**details, "y": "2"}, at=10 * at + 1, took=1.0, **told)
        lookups += [aot(f"a{at}", details=details, at=10 * at, **told), graph]
    other = entry("fxgraph", "f9", {"gm": CODE, "x": "1", "y": "1"}, at=-8)
    entries = [entry("aotautograd", "a9", at=-9, fx_keys=("f9",)), other]
    rows = miss_rows(scope_of(run(*lookups, cache_dir="/cache"), entries=entries if is_there else []))
    (above,) = (row for row in rows if row["lookup"] == 2)
    assert (above["verdict"], above["changed"]) == ("key_changed", changed)
    assert ("one field of the key differs: x;" in above["reason"]) is is_there


@pytest.mark.parametrize(("outcomes", "evidence"), [
    (["full_miss"], "inferred"),
    (["full_miss", "hit"], "inferred"),
    # It was there before it was missed, as another process wrote it.
    (["hit"], "not_known"),
    (["hit", "full_miss"], "not_known"),
])  # fmt: skip
def test_an_entry_that_a_recorded_miss_wrote_is_represented_by_it(outcomes: list[str], evidence: str) -> None:
    details = {"gm": CODE}
    others = [run(aot("a2", one, OTHER, at=at), cache_dir="/cache") for at, one in enumerate(outcomes)]
    made = run(aot("a1", details=details, at=9), fx("f1", details=details, at=9), cache_dir="/cache")
    scope = scope_of(*others, made, entries=[entry("aotautograd", "a2", at=0.5)])
    (above,) = (row for row in miss_rows(scope) if row["lookup"] == len(outcomes))
    assert (above["verdict"], above["evidence"]) == ("first_lookup", evidence)


COLD, NEW = "first lookups (cold start)", "first lookups (new graphs)"


def traces(folder: Path) -> list[Path]:
    return sorted((folder / "trace").iterdir(), key=lambda path: path.read_bytes()[:21])


def first_lookups(*paths: Path) -> list[tuple[str, str, tuple[int, ...]]]:
    causes = cachescope.read(*paths, index=False).causes
    rows = causes[causes["verdict"] == "first_lookup"]
    return list(zip(rows["summary"], rows["kind"], rows["runs"], strict=True))


@pytest.mark.parametrize("name", ["new_graph", "new_graph_fx"])
def test_a_graph_that_no_earlier_run_had_is_new_in_a_warm_cache(name: str, recording: Recording) -> None:
    first, second = traces(recording("2.13.0", name))
    assert first_lookups(first, second) == [(COLD, "", (0,)), (NEW, "new graph", (1,))]
    # What hits in it was stored by a process that was not read.
    assert first_lookups(second) == [(NEW, "new graph", (0,))]
    assert first_lookups(first) == [(COLD, "", (0,))]


@pytest.mark.parametrize("name", ["new_graph", "new_graph_fx"])
def test_a_graph_is_new_where_the_run_has_each_graph_that_it_is_like(name: str, recording: Recording) -> None:
    # A text log names no functions, and the graphs before are alike; but none of them was replaced.
    logs = sorted((recording("2.13.0", name) / "text").iterdir())
    assert first_lookups(*logs) == [(COLD, "", (0,)), (NEW, "new graph", (1,))]


@pytest.mark.parametrize(("version", "name"), [
    # What others stored may lie on another machine, and a trace does not say that torch could not write.
    ("2.13.0", "two_programs"), ("2.6.0", "entries_not_writable"),
    # Also of ranks that start at once, and of a process that goes on to hit what it stored.
    *(("2.13.0", name) for name in ("cold_warm", "four_ranks", "two_ranks_cold", "in_process", "training")),
])  # fmt: skip
def test_what_nothing_shows_as_stored_is_a_cold_start(version: str, name: str, recording: Recording) -> None:
    assert {found[0] for found in first_lookups(*traces(recording(version, name)))} == {COLD}


@pytest.mark.parametrize("name", ["failed_codegen", "failed_compiler", "interrupted", "killed_compiling"])
def test_a_compile_that_ended_early_without_a_recorded_lookup_may_have_been_of_the_same_graph(
    name: str, recording: Recording
) -> None:
    first, second, _ = traces(recording("2.6.0", name))
    scope = cachescope.read(first, second, index=False)
    assert not len(scope.lookups[scope.lookups["run"] == 0])
    (place,), *_ = scope.runs["unrecorded_compiles"]
    assert place.startswith("matmul_relu (")
    assert set(scope.misses["evidence"]) == {"not_known"}
    said = "run 0 had begun to compile matmul_relu, and its log has no lookup of that"
    assert said in str(scope.explain(0))
    # Alone, nothing speaks against a cold start.
    assert first_lookups(second) == [(COLD, "", (0,))]


def test_below_a_changed_key_a_graph_without_details_is_no_cold_start(recording: Recording) -> None:
    # torch 2.15 writes no hash details of FX keys into text logs.
    scope = cachescope.read(recording("2.15.0", "recompiles") / "text", index=False)
    lookups = scope.misses.merge(scope.lookups[["lookup", "cache", "compile_id"]], on="lookup")
    graphs = lookups[lookups["cache"] == "fxgraph"]
    found = {at: set(of["verdict"]) for at, of in graphs.groupby("compile_id")}
    assert found.pop("0/0") == {"first_lookup"}
    assert len(found) == 4
    assert set().union(*found.values()) == {"details_not_recorded"}


@pytest.mark.parametrize("outcome", ["bypass", "disabled"])
def test_below_a_lookup_without_a_key_a_graph_without_details_may_be_a_cold_start(outcome: str) -> None:
    """As of a torch.autograd.Function, in a text log of torch 2.15."""
    first, second = (run(aot(None, outcome, at=at), fx(f"f{at}", at=at + 1)) for at in (0, 9))
    rows = {row["lookup"]: row for row in miss_rows(scope_of(first, second))}
    assert rows[1]["verdict"] == "first_lookup"
    assert rows[3]["verdict"] == "details_not_recorded"


def test_every_form_says_that_the_graph_is_new(recording: Recording) -> None:
    _, second = traces(recording("2.13.0", "new_graph"))
    scope = cachescope.read(second, index=False)
    (cause,) = scope.causes.itertuples()
    check = scope.check(min_hit_rate=1.0)
    for text in (footer(Chosen(scope)), str(scope), str(scope.explain()), str(check), cause.summary):
        assert "cold start" not in text
    assert NEW in footer(Chosen(scope)) and NEW in str(check)


@pytest.mark.parametrize("way", ["trace", "text", pytest.param("both", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["four_processes", pytest.param("four_ranks", marks=pytest.mark.slow)])
def test_four_at_once_race_and_then_hit(name: str, way: str, recording: Recording) -> None:
    folder = recording("2.13.0", name)
    kinds = ("trace", "text", "cache") if way == "both" else (way,)
    scope = cachescope.read(*(folder / kind for kind in kinds))
    assert len(scope.runs) == 8
    told = scope.lookups.merge(scope.misses, on="lookup", how="left")
    assert set(told.loc[told["run"] >= 4, "outcome"]) == {"hit"}
    racing = told[told["run"] < 4]
    assert set(racing["outcome"]) == {"full_miss"}
    assert set(racing["verdict"]) == {"first_lookup", "compiled_concurrently"}
    for _, of_cache in racing.groupby("cache"):
        # One looked first; every other looked while that one compiled.
        assert (of_cache["verdict"] == "first_lookup").sum() == 1
        first = of_cache[of_cache["verdict"] == "first_lookup"]
        assert first["time"].iloc[0] == of_cache["time"].min()
    if name == "four_ranks":
        assert sorted(scope.runs["rank"].iloc[:4]) == [0, 1, 2, 3]
        (race,) = scope.causes[scope.causes["verdict"] == "compiled_concurrently"].itertuples()
        assert len(race.ranks) >= 3


def rank_of_a_start(rank: int, graphs: int, key: str = "a", at: float = 0) -> Run:
    """A rank as TORCH_TRACE alone shows it since 2.13: of AOTAutograd's keys it has no details."""
    lookups = []
    for graph in range(graphs):
        told = {"compile_id": f"{graph}/0", "function": f"f{graph}", "file": "/p.py"}
        code, since = {"gm": f"{CODE} {graph}"}, at + 10 * graph + rank / 10
        below = fx(f"f{graph}", details=code, at=since + 1, took=5.0, **told)
        lookups += [aot(f"{key}{graph}", at=since, **told), below]
    return run(*lookups, rank=rank, pid=rank, cache_dir="/cache")


@pytest.mark.parametrize(("since", "verdict"), [(30, "first_lookup"), (500, "key_changed")])
def test_another_branch_in_another_rank_of_a_job_is_no_edit(since: float, verdict: str) -> None:
    """As of pipeline stages of one class: rank 1 comes to the function when rank 0 has compiled it."""
    told = {"function": "f", "file": "/p.py", "line": 1, "took": 1.0}

    def rank(number: int, at: float, more: str) -> Run:
        code = f"def forward(self, x):\n    a = torch.mm(x, x)\n    b = torch.relu(a){more}\n    return (b,)"
        later = (fx(f"f9{one}", details={"gm": str(one)}, at=at + 20 * one, took=1.0, compile_id=f"{one}/0") for one in range(1, 4))  # fmt: skip
        of_rank = {"rank": number, "pid": number, "clock_first_us": 0, "clock_last_us": 70_000_000}
        looked_up = fx(f"f{number}", details={"gm": code}, at=at, **told)
        return run(looked_up, *later, cache_dir="/cache", **of_rank)

    scope = scope_of(rank(0, 0, ""), rank(1, since, "\n    b = torch.softmax(b, -1)"))
    (lookup,) = scope.lookups.loc[scope.lookups["cache_key"] == "f1", "lookup"]
    assert [row["verdict"] for row in miss_rows(scope) if row["lookup"] == lookup] == [verdict]


def test_of_ranks_that_start_at_once_new_graphs_are_first_lookups_of_aotautograd_too() -> None:
    rows = miss_rows(scope_of(*(rank_of_a_start(rank, 3) for rank in range(2))))
    assert [row["verdict"] for row in rows] == ["first_lookup"] * 6 + ["compiled_concurrently"] * 6
    # Of a graph that another start had compiled, nothing shows why its key is another one.
    later = [rank_of_a_start(rank, 1, "a9", at=100) for rank in range(2)]
    scope = scope_of(rank_of_a_start(0, 1), *later)
    assert [row["verdict"] for row in miss_rows(scope)][2:3] == ["details_not_recorded"]


TOLD = "its stored in /cache is damaged"


def lookup(at: int = 0, cache: str = "fxgraph", key: str = "f1", **told: Any) -> LookupRow:
    return replace(row(at, 0, at, cache, key, False, None, None, None), **{"prediction": TOLD, **told})


def stored(cache: str, key: str, status: str = "ok", damage: str | None = None) -> EntryRow:
    return entry_row(0, cache, key, "/cache", "/cache/e", 1, status, damage)


DAMAGED = stored("fxgraph", "f1", "damaged", "truncated at 4 bytes")


def judged(history: History, *said: tuple[int, Why]) -> VerdictsSoFar:
    found = VerdictsSoFar(len(history.lookups))
    for at, why in said:
        found.record(at, why)
    judge_predicted(history, found)
    return found


@pytest.mark.parametrize(("made", "entries", "kind"), [
    (lookup(), [DAMAGED], "damaged"),
    (lookup(), [stored("fxgraph", "f1"), DAMAGED], "damaged"),
    # torch found the AOTAutograd stored, and not the graph that it points to.
    (lookup(cache="aotautograd", key="a1", status_detailed="hit"), [], "graph entry"),
    (lookup(status_detailed="miss"), [DAMAGED], "damaged"),
    # Nothing lies there, or what torch may load; nothing of it under another key, or in another cache.
    (lookup(), [], None),
    (lookup(), [stored("fxgraph", "f1")], None),
    (lookup(), [stored("fxgraph", "f1", "damaged", None)], None),
    (lookup(), [stored("fxgraph", "f1", "damaged", "content hash differs from the name")], None),
    (lookup(), [stored("fxgraph", "f1", "unreadable", "truncated")], None),
    (lookup(), [stored("fxgraph", "f2", "damaged", "empty file")], None),
    (lookup(), [stored("aotautograd", "f1", "damaged", "empty file")], None),
    # A lookup that was made, one that would not miss, and one whose guards would fail.
    (lookup(prediction=None), [DAMAGED], None),
    (lookup(outcome="hit"), [DAMAGED], None),
    (lookup(outcome="unknown"), [DAMAGED], None),
    (lookup(outcome="guard_miss"), [DAMAGED], None),
], ids=range(15))  # fmt: skip
def test_what_the_directory_shows(made: LookupRow, entries: list[EntryRow], kind: str | None) -> None:
    found = judged(history_of([made], entries=entries))
    if kind is None:
        assert found.why == [None]
        return
    why = "predicted: the directory shows it as it is now"
    assert found.why == [Why("entry_unavailable", TOLD, "inferred", why, kind=kind)]
    # It is compared with nothing: no lookup was made before.
    assert found.baseline == [None]


def test_each_lookup_has_its_own_reason_and_keeps_one_that_it_has() -> None:
    rows = [lookup(key="f2"), lookup(1), lookup(2, prediction="other"), lookup(3), lookup(4, prediction="")]
    before = Why("disabled", "its caches are off", "recorded", "")
    found = judged(history_of(rows, entries=[DAMAGED]), (3, before))
    reasons = [None if why is None else why.reason for why in found.why]
    assert reasons == [None, TOLD, "other", "its caches are off", ""]


def test_guards_that_would_fail() -> None:
    found = guards_would_fail("f1", "no guards hold")
    wanted = ("guard_failed", "no guards hold", "inferred", "f1")
    assert (found.verdict, found.reason, found.evidence, found.kind) == wanted
    assert found.evidence_text.startswith("predicted: the guards of the entries were evaluated")


_AUTOGRAD = re.compile(
    rb'(\{"artifact": \{"name": "aotautograd_cache_\w+", .*"has_payload": ")\w{32}("\}\n)((?:\t.*\n)+)'
)


def _without_details(record: re.Match[bytes]) -> bytes:
    about = json.loads(record[3].replace(b"\n\t", b"\n"))
    about.pop("components", None)
    text = json.dumps(about).encode()
    return b"".join([record[1], hashlib.md5(text).hexdigest().encode(), record[2], b"\t", text, b"\n"])


def check_nothing_becomes_new_or_edited_without_details_of_autograd(recorded: Recorded) -> None:
    """As a trace of torch 2.12 or later is, unless AOTAutograd's logger is at DEBUG."""
    changed = []
    for path in logs(recorded.folder, "trace"):
        plain, count = _AUTOGRAD.subn(_without_details, path.read_bytes())
        (recorded.room / path.name).write_bytes(plain)
        changed.append(count)
    if not any(changed):
        return
    whole, part = (
        cachescope.read(one).misses.set_index("lookup") for one in (recorded.folder / "trace", recorded.room)
    )
    assert [*whole.index] == [*part.index]
    for one, other in zip(whole.itertuples(), part.itertuples(), strict=True):
        assert kind_of(one).is_first or not kind_of(other).is_first, (one, other)
        assert one.kind.startswith("edit ") or not other.kind.startswith("edit "), (one, other)


@pytest.mark.parametrize("name", ["in_process", "config_flip", "recompiles"])
def test_nothing_becomes_new_or_edited(name: str, recording: Recording, tmp_path: Path) -> None:
    given = Recorded("2.13.0", name, recording("2.13.0", name), tmp_path, lambda *_: None)
    check_nothing_becomes_new_or_edited_without_details_of_autograd(given)
