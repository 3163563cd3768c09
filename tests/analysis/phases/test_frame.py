"""The frame phases: of the traces as they were read, whatever became of them since; and what hits could save, of rows made by hand."""

import gzip
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cachescope
from cachescope.analysis.phases.frame import NOT_NAMED, Readings, compile_of, read_phases, readings_of_runs
from cachescope.analysis.phases.names import BACKENDS, REST, WAITING_FOR_BUILD, WAITING_FOR_TEST
from cachescope.frames.compile_rows import PhaseRow
from cachescope.frames.recorded_rows import LookupRow, RunRow
from cachescope.readers.logs.second_pass import CHANGED
from cachescope.rows import columns_of
from tests.analysis.phases.replay import events_of, replayed, traces_of
from tests.analysis.plain_rows import lookup_row
from tests.conftest import RECORDINGS, Archive, Recording
from tests.readers.logs.test_trace_process import NOON, record
from tests.readings import read_once
from tests.recordings import Recorded


@pytest.fixture
def log(recording: Recording, tmp_path: Path) -> Path:
    """A copy of the trace of a cold start, by a name of its own."""
    traces = (recording("2.13.0", "training") / "trace").iterdir()
    largest = max(traces, key=lambda path: path.stat().st_size)
    return Path(shutil.copy(largest, tmp_path / "one.log"))


def test_a_trace_that_is_gone_is_a_problem_and_no_zero(log: Path) -> None:
    scope = cachescope.read(log)
    log.unlink()
    assert scope.phases.empty
    assert scope.phase_problems[["source", "kind"]].values.tolist() == [[str(log), "missing"]]


@pytest.mark.parametrize("change", ["shorter", "same size", "another process", "packed"])
def test_a_trace_that_changed_since_is_a_problem(change: str, log: Path) -> None:
    data = log.read_bytes()
    pid = data.split(b" ", 3)[2]
    if change == "packed":
        log.write_bytes(gzip.compress(data[: len(data) // 2]))
    scope = cachescope.read(log)
    match change:
        case "shorter":
            log.write_bytes(data[:-1000])
        case "same size":
            os.utime(log, ns=(0, 0))
        case "packed":
            log.write_bytes(gzip.compress(data))
        case _:
            log.write_bytes(data.replace(b" %b torch" % pid, b" 99 torch") + data)
    assert scope.phases.empty
    assert scope.phase_problems["kind"].tolist() == [CHANGED]


def test_of_a_trace_that_grows_the_part_counts_that_was_read(log: Path) -> None:
    data = log.read_bytes()
    cut = data.rindex(b"\nV", 0, len(data) // 2) + 1
    log.write_bytes(data[:cut])
    before, late = cachescope.read(log), cachescope.read(log)
    phases = before.phases
    with log.open("ab") as file:
        file.write(data[cut:])
    pd.testing.assert_frame_equal(late.phases, phases)
    assert late.phase_problems.empty
    assert late.read_again().phases["count"].sum() > phases["count"].sum()


@pytest.mark.slow
def test_a_saved_scope_keeps_its_phases(log: Path, tmp_path: Path) -> None:
    scope = cachescope.read(log)
    scope.save(tmp_path / "saved")
    log.unlink()
    again = cachescope.read(tmp_path / "saved")
    pd.testing.assert_frame_equal(again.phases, scope.phases)
    assert again.phase_problems.empty


def test_a_saved_scope_says_which_events_could_not_be_read(log: Path, tmp_path: Path) -> None:
    log.write_bytes(log.read_bytes().replace(b'"ts": 1', b'"ts": -1', 1))
    scope = cachescope.read(log)
    assert scope.problems.empty
    assert scope.phase_problems["kind"].tolist() == ["bad_value"]
    scope.save(tmp_path / "saved")
    saved = cachescope.read(tmp_path / "saved")
    pd.testing.assert_frame_equal(saved.problems, scope.phase_problems)


def test_a_copy_of_a_trace_is_not_counted_again(log: Path, tmp_path: Path) -> None:
    phases = cachescope.read(log).phases
    copied = shutil.copy(log, tmp_path / "two.log")
    pd.testing.assert_frame_equal(cachescope.read(log, copied).phases, phases)


def test_a_text_log_has_no_events(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "training") / "text")
    assert len(scope.runs) == 4
    assert scope.phases.empty
    assert scope.phase_problems.empty


def test_an_event_of_no_known_name_is_a_phase_of_its_own(log: Path) -> None:
    before = cachescope.read(log).phases
    log.write_bytes(log.read_bytes().replace(b'"name": "gc"', b'"name": "new in 3"'))
    phases = cachescope.read(log).phases
    (row,) = phases[phases["event"] == "new in 3"].to_dict("records")
    assert row["phase"] == "not named: new in 3"
    assert pd.isna(row["is_skipped_by_hit"])
    assert phases["self_time_ns"].sum() == before["self_time_ns"].sum()


@pytest.mark.parametrize("name", ["/**", "a\x00b", "\ud800", "/"])
def test_a_source_of_any_name_is_gone_at_once(name: str) -> None:
    """As a saved scope that was changed may hold it."""
    row: dict[str, Any] = dict.fromkeys(column.name for column in columns_of(RunRow))
    phases, problems = read_phases([RunRow(**row | {"run": 0, "source": "one", "sources": (name,)})], {})
    assert (phases, len(problems)) == ([], 1)


def phase(self_time_ns: int, is_skipped: bool | None, segment: int = 1, **other: object) -> PhaseRow:
    values: dict[str, Any] = {"run": 0, "compile_id": "0/0", "phase": "p", "event": "e", "count": 1, "unended": 0}  # fmt: skip
    times = {"time_ns": self_time_ns, "self_time_ns": self_time_ns}
    return PhaseRow(**values | times | {"segment": segment, "is_skipped_by_hit": is_skipped} | other)


def lookup(
    cache: str, outcome: str, saved: int | None = None, segment: int = 1, **other: object
) -> LookupRow:
    told = {"cache": cache, "outcome": outcome, "segment": segment, "time_saved_ns": saved}
    return lookup_row(**{"compile_id": "0/0"} | told | other)


def readings(rows: list[PhaseRow], lookups: list[LookupRow]) -> Readings:
    return readings_of_runs(rows, lookups)[0]


ROWS = [phase(10, True), phase(3, False), phase(1, None)]


@pytest.mark.parametrize(("lookups", "could_save", "saved", "hits", "without_time"), [
    # A miss could save the phases that a hit skips; of an AOTAutograd hit everything stays.
    ([lookup("aotautograd", "full_miss"), lookup("fxgraph", "full_miss")], 10, 0, 0, 0),
    ([lookup("aotautograd", "hit", 50), lookup("fxgraph", "hit", 40)], 0, 40, 1, 0),
    # Without FX lookups it saved its own time; an FX hit still traces for AOTAutograd.
    ([lookup("aotautograd", "hit", 50)], 0, 50, 1, 0),
    ([lookup("fxgraph", "hit", 40)], 10, 40, 1, 0),
    # What was compiled without a lookup could have been saved.
    ([], 10, 0, 0, 0),
    # A time that is not recorded is not zero.
    ([lookup("fxgraph", "hit")], 10, None, 1, 1),
    ([lookup("fxgraph", "hit"), lookup("fxgraph", "hit", 7)], 10, 7, 2, 1),
    # Events name no attempt: torch/_dynamo/utils.py prints the CompileId; envelopes have the attempt as well.
    ([lookup("aotautograd", "hit", segment=0, compile_id="0/0_1")], 0, None, 1, 1),
])  # fmt: skip
def test_what_hits_could_save_and_saved(
    lookups: list[LookupRow], could_save: int, saved: int | None, hits: int, without_time: int
) -> None:
    found = readings(ROWS, lookups)
    assert (found.total_ns, found.could_save_ns, found.stays_ns) == (14, could_save, 14 - could_save)
    assert (found.saved_ns, found.hits, found.hits_without_time) == (saved, hits, without_time)


def test_each_compile_under_one_compile_id_is_judged_by_its_own_lookup() -> None:
    rows = [phase(10, True), phase(20, True, segment=2)]
    made = [lookup("aotautograd", "hit"), lookup("aotautograd", "full_miss", segment=2)]
    assert readings(rows, made).could_save_ns == 20
    assert readings(rows, [lookup("aotautograd", "hit", run=1)]).could_save_ns == 30


@pytest.mark.parametrize(("compile_id", "segment", "wanted"), [
    (None, 2, (None, 2)), ("0/0", 2, ("0/0", 2)), ("0/0", 0, ("0/0", 0)),
    # Of an attempt, that of the first one.
    ("0/0_1", 0, ("0/0", 1)), ("0/0_2", 3, ("0/0", 3)),
])  # fmt: skip
def test_the_compile_of_one(compile_id: str | None, segment: int, wanted: tuple[str | None, int]) -> None:
    assert compile_of(lookup("fxgraph", "hit", segment=segment, compile_id=compile_id)) == wanted


def test_hits_of_both_caches_and_of_other_compiles() -> None:
    made = [
        lookup("aotautograd", "hit", 50), lookup("fxgraph", "hit", 40),
        lookup("aotautograd", "hit", 5, compile_id="1/0"), lookup("aotautograd", "hit", compile_id="2/0"),
        lookup("fxgraph", "full_miss", compile_id="3/0"), lookup("aotautograd", "hit", 9, compile_id="3/0"),
    ]  # fmt: skip
    found = readings([*ROWS, phase(6, True, compile_id="9/9", unended=2), phase(0, None, unended=1)], made)
    assert (found.saved_ns, found.hits, found.hits_without_time) == (45, 3, 1)
    assert (found.total_ns, found.could_save_ns, found.stays_ns, found.unended) == (20, 6, 14, 3)


def test_runs_are_read_apart() -> None:
    rows = [phase(1, True), phase(2, True, run=4)]
    found = readings_of_runs(rows, [lookup("fxgraph", "hit", 3, run=4)])
    assert {run: (one.total_ns, one.saved_ns) for run, one in found.items()} == {0: (1, 0), 4: (2, 3)}


def traced(
    folder: Path,
    pid: int,
    *events: tuple[float, str, str],
    cache: str = "/c",
    compile_ids: tuple[str, ...] = (),
    version: str | None = None,
) -> None:
    """A trace of a process: when what began or ended, in seconds, and code that it wrote into a folder."""
    code = record({"inductor_output_code": {"filename": f"{cache}/ab/cab.py"}})
    told = [
        record({"chromium_event": {}}, json.dumps({"name": name, "ts": (NOON + at) * 1e6, "ph": ph, "args": {"compile_id": compile_id}}))
        for (at, ph, name), compile_id in zip(events, compile_ids or ("0/0",) * len(events), strict=True)
    ]  # fmt: skip
    if version is not None:
        said = json.dumps({"pytorch_version": version})
        told.append(record({"artifact": {"name": "torch_version", "encoding": "json"}}, said))
    (folder / f"{pid}.log").write_text("".join([*told, code]).replace(" 7 torch", f" {pid} torch"))


TEST = (
    (1, "B", "Scheduler.codegen"),
    (2, "B", "compile_file"),
    (9, "E", "compile_file"),
    (10, "E", "Scheduler.codegen"),
)


@pytest.mark.parametrize(("began", "ended", "cache", "waited"), [
    (1, 11, "/c", 7),
    (5, 11, "/c", 4),
    (5, 9, "/c", 4),
    (5, 8, "/c", 0),
    (9, 20, "/c", 0),
    (1, 11, "/d", 0),
])  # fmt: skip
def test_only_a_stretch_that_lasts_to_the_end_of_the_test_of_another_is_a_wait(
    began: float, ended: float, cache: str, waited: float, tmp_path: Path
) -> None:
    traced(tmp_path, 1, *TEST)
    traced(tmp_path, 2, (began, "B", "Scheduler.codegen"), (ended, "E", "Scheduler.codegen"), cache=cache)
    scope = cachescope.read(tmp_path)
    assert len(scope.runs) == 2
    times = scope.phases.groupby(["run", "phase"])["self_time_ns"].sum() / 1e9
    (run,) = scope.runs["run"][scope.runs["pid"] == 2]
    assert times[run].get(WAITING_FOR_TEST, 0) == waited
    assert times[run].get("code generation", 0) == ended - began - waited
    assert WAITING_FOR_TEST not in times[1 - run]


@pytest.mark.parametrize("earlier", [
    [(0, "B", "Scheduler.codegen"), (0.5, "E", "Scheduler.codegen")],
    [(0, "B", "Scheduler.codegen"), (0.1, "B", "compile_file"), (0.2, "E", "compile_file"), (0.5, "E", "Scheduler.codegen")],
])  # fmt: skip
def test_who_asked_before_or_tests_waits_for_nobody(
    earlier: list[tuple[float, str, str]], tmp_path: Path
) -> None:
    """torch asks once a process: torch/_inductor/cpu_vec_isa.py, `valid_vec_isa_list`."""
    traced(tmp_path, 1, *TEST)
    later = (5, "B", "Scheduler.codegen"), (11, "E", "Scheduler.codegen")
    traced(tmp_path, 2, *earlier, *later, compile_ids=("0/0",) * len(earlier) + ("1/0",) * 2)
    phases = cachescope.read(tmp_path).phases
    assert WAITING_FOR_TEST not in set(phases["phase"])


def waited_for_the_compiler(folder: Path, *loads: tuple[float, str, str], cache: str = "/c") -> float:
    """Of one process beside another one, which has the compiler build from second 2 to 9 what it loads, as torch 2.15 writes it."""
    built = [(0, "B", "Scheduler.codegen"), (1, "E", "Scheduler.codegen"), (1, "B", "PyCodeCache.load_by_key_path"), (2, "B", "compile_file"),
             (3, "B", "async_compile.wait"), (9, "E", "async_compile.wait"), (9, "E", "compile_file"), (10, "E", "PyCodeCache.load_by_key_path")]  # fmt: skip
    folder.mkdir()
    traced(folder, 1, *built)
    traced(folder, 2, *loads, cache=cache)
    scope = cachescope.read(folder)
    assert len(scope.runs) == 2
    times = scope.phases.groupby(["run", "phase"])["self_time_ns"].sum() / 1e9
    (run,) = scope.runs["run"][scope.runs["pid"] == 2]
    assert WAITING_FOR_BUILD not in times[1 - run]
    assert times[run].sum() == loads[-1][0] - loads[0][0]
    return float(times[run].get(WAITING_FOR_BUILD, 0))


GENERATES = (0, "B", "Scheduler.codegen"), (1, "E", "Scheduler.codegen")


@pytest.mark.parametrize(("began", "ended", "waited"), [(1, 10, 7), (4, 9, 5), (4, 8, 0), (9, 20, 0)])
def test_who_loads_code_that_it_generated_until_another_has_built_it_waits_for_that(
    began: float, ended: float, waited: float, tmp_path: Path
) -> None:
    loads = (began, "B", "PyCodeCache.load_by_key_path"), (ended, "E", "PyCodeCache.load_by_key_path")
    around = (0, "B", "code_gen"), *GENERATES, *loads, (ended, "E", "code_gen")
    assert waited_for_the_compiler(tmp_path / "same", *around) == waited
    assert waited_for_the_compiler(tmp_path / "other", *around, cache="/d") == 0
    # What it generated no code for was stored.
    assert waited_for_the_compiler(tmp_path / "stored", *loads) == 0


@pytest.mark.parametrize(("files", "waited"), [
    ([(2, 5), (6, 9)], 6),
    ([(2, 6), (3, 9)], 7),
    ([(2, 9), (4, 6)], 7),
    ([(0, 3), (20, 21)], 2),
])  # fmt: skip
def test_one_compiler_after_the_other_is_waited_for(
    files: list[tuple[float, float]], waited: float, tmp_path: Path
) -> None:
    """torch builds a header that all kernels share, then the kernels: each is a file of its own, and threads build several at once."""
    for pid, (began, ended) in enumerate(files, 2):
        traced(tmp_path, pid, (began, "B", "compile_file"), (ended, "E", "compile_file"))
    around = (0, "B", "code_gen"), *GENERATES, (1, "B", "PyCodeCache.load_by_key_path")
    traced(tmp_path, 1, *around, (10, "E", "PyCodeCache.load_by_key_path"), (10, "E", "code_gen"))
    scope = cachescope.read(tmp_path)
    (run,) = scope.runs["run"][scope.runs["pid"] == 1]
    times = scope.phases[scope.phases["run"] == run].groupby("phase")["self_time_ns"].sum() / 1e9
    assert times.get(WAITING_FOR_BUILD, 0) == waited


FRAME = (
    (0, "B", "entire_frame_compile"),
    (1, "B", "build_guards"),
    (2, "E", "build_guards"),
    (5, "B", "gc"),
    (6, "E", "gc"),
    (6.5, "E", "entire_frame_compile"),
)


@pytest.mark.parametrize(("version", "events", "taken", "total"), [
    ("2.11.0", FRAME, 3.5, 6.5),
    ("2.15.0+cu132", FRAME, 3.5, 6.5),
    ("2.10.0", FRAME, 0, 6.5),
    (None, FRAME, 0, 6.5),
    ("unknown", FRAME, 0, 6.5),
    # Only the first frame takes it.
    ("2.15.0", (*FRAME, *((at + 10, ph, name) for at, ph, name in FRAME)), 3.5, 13),
    # Of a frame that failed, nothing says when its guards would have been built.
    ("2.15.0", tuple(event for event in FRAME if event[2] != "build_guards"), 0, 6.5),
    ("2.15.0", FRAME[:-1], 0, 6),
])  # fmt: skip
def test_what_the_first_frame_takes_after_its_guards_is_importing_backends(
    version: str | None, events: tuple[tuple[float, str, str], ...], taken: float, total: float,
    tmp_path: Path,
) -> None:  # fmt: skip
    """torch/_dynamo/convert_frame.py, `clear_compile_context_weakrefs`: it asks `_is_registered_backend`, which imports them once."""
    traced(tmp_path, 1, *events, version=version)
    times = cachescope.read(tmp_path).phases.groupby("phase")["self_time_ns"].sum() / 1e9
    assert times.get(BACKENDS, 0) == taken
    assert times.sum() == total


# Of real models.
ARCHIVES = sorted(
    f"{kind}/{path.name.removesuffix('.tar.xz')}"
    for kind in ("models", "starts")
    for path in (RECORDINGS.parent / kind).glob("*.tar.xz")
)
# Threads of a pool write their times a little later than they take them.
SLACK_NS = 2_000_000


def hold(folder: Path) -> int:
    """Hold each trace of a recording against its replay, and return how many there are."""
    held = 0
    for path, trace in traces_of(folder):
        scope = read_once(path)
        phases = scope.phases
        assert scope.phase_problems.empty
        plain = replayed(events_of(trace))
        by_name = phases.groupby("event")
        assert by_name["count"].sum().to_dict() == plain.counts
        wanted = {name: us * 1000 for name, us in plain.open_us.items()}
        assert by_name["time_ns"].sum().to_dict() == pytest.approx(wanted, rel=0.005, abs=SLACK_NS)
        assert phases["self_time_ns"].sum() == pytest.approx(plain.roots_us * 1000, rel=0.01)
        assert (phases["self_time_ns"] <= phases["time_ns"]).all()
        assert not phases["phase"].str.startswith(NOT_NAMED).any()
        if not scope.runs["failed_compiles"].map(len).any():
            # What torch does about an exception is in no event.
            rest = phases["self_time_ns"][phases["phase"] == REST].sum()
            assert rest <= 0.05 * phases["self_time_ns"].sum()
        # Lookups and events name compiles alike, but for attempts after the first, which events do not name.
        places = set(zip(phases["compile_id"], phases["segment"], strict=True))
        is_later = scope.lookups["compile_id"].str.contains("_", regex=False)
        first, later = scope.lookups[~is_later], scope.lookups[is_later]
        assert set(zip(first["compile_id"], first["segment"], strict=True)) <= places
        assert {name.partition("_")[0] for name in later["compile_id"]} <= {name for name, _ in places}
        held += 1
    return held


@pytest.mark.parametrize(("version", "name"), [
    ("2.6.0", "training"), ("2.10.0", "config_flip"), ("2.13.0", "training"),
    ("2.13.0", "killed_compiling"), ("2.15.0", "cold_warm"),
])  # fmt: skip
def test_phases_are_what_a_plain_replay_says(version: str, name: str, recording: Recording) -> None:
    assert hold(recording(version, name))


@pytest.mark.parametrize("version", ["2.6.0", "2.10.0"])
def test_no_hit_saves_what_a_warm_start_spends_too(version: str, recording: Recording) -> None:
    """Most of it is child processes that load the code of the vector test: up to torch 2.12, each of them imports torch."""
    phases = cachescope.read(recording(version, "cold_warm")).phases
    cold, *warm = phases.groupby("run")["self_time_ns"].sum()
    could_save = phases["self_time_ns"][(phases["run"] == 0) & (phases["is_skipped_by_hit"] == True)].sum()  # noqa: E712
    assert could_save <= cold - min(warm)


@pytest.mark.sweep
@pytest.mark.parametrize("name", ARCHIVES)
def test_phases_of_models_are_what_a_plain_replay_says(name: str, archive: Archive) -> None:
    assert hold(archive(name))


def check_phases_are_what_a_plain_replay_says(recorded: Recorded) -> None:
    assert hold(recorded.folder)
