"""What was avoidable: held against seconds added up by hand from the frames, and against torch's own runs of the compiler."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cachescope
from cachescope.analysis.phases.names import VECTOR_TEST, WAITING_FOR_TEST
from cachescope.answers.cards import Cards
from cachescope.answers.chosen import Chosen
from cachescope.answers.costs import Costs, cost_of_fields, headline
from cachescope.answers.names import run_name
from cachescope.answers.summary import footer
from cachescope.figures.texts import run_labels
from cachescope.report.why_missed import cost_text
from cachescope.wording import duration
from tests.conftest import Recording
from tests.made import CODE, aot, entry, fx, run, scope_of
from tests.programs import python
from tests.readings import read_once
from tests.recordings import Recorded


def check_what_was_avoidable_and_the_rest_are_all_that_was_compiled(recorded: Recorded) -> None:
    scope = read_once(recorded.folder)
    costs = Costs.of(Chosen(scope))
    lookups = scope.lookups.set_index("lookup")
    of_test = scope.phases[scope.phases["phase"].isin([VECTOR_TEST, WAITING_FOR_TEST])]
    for what, compiles in costs.compiles.items():
        places = zip(of_test["run"], of_test["compile_id"], of_test["segment"], strict=True)
        assert of_test["self_time_ns"][[place in compiles for place in places]].sum() <= costs.others[what]
    missed = scope.misses.set_index("lookup")
    of_graphs = lookups["cache"].isin(["fxgraph", "vllm"])
    times = lookups["time_taken_ns"][missed.index][lambda _: of_graphs].dropna()
    if not costs.is_timed:
        assert times.empty
        return
    by_run = times.groupby(lookups["run"]).sum()
    if costs.ranks_ns is None:
        assert costs.amount == by_run.sum()
    else:
        # Of each job its slowest rank; nothing is counted twice.
        assert by_run.max() <= costs.amount <= by_run.sum() and costs.ranks_ns <= by_run.sum()
    # A first lookup is never avoidable, and neither is an edited graph, or an argument of another name.
    for cause, _ in costs.avoidable:
        assert cause.verdict != "first_lookup" and not {"gm", "aot_config"} & {*cause.fields}


@pytest.mark.parametrize(("sample", "said"), [
    # By hand from the seconds of each miss: 13.4 s of first compiles, 2.0 s with each changed setting, 992 ms of an edited function.
    ("tour", "4.0 s of the 18.4 s compiled after misses were avoidable: 2.0 s by epilogue_fusion, 2.0 s by cpp_runtime_thread_count; "
        "13.4 s of first compiles, 8.5 s of them torch's test of the CPU's vector instructions, once a folder"),
    ("config_flip", "1.6 s of the 15.4 s compiled after misses were avoidable, by epilogue_fusion"),
    ("dynamic_guards", "Nothing was compiled twice: 9.6 s of first compiles, 7.2 s of them torch's test of the CPU's vector instructions, once a folder; "
        "1.6 s for other sizes or values, which guards keep apart"),
    ("entry_truncated", "1.6 s of the 11.7 s compiled after misses were avoidable, by a damaged entry"),
    # The slowest of four ranks: 12.72 s; the ranks' misses add up to 49.9 s, those made while another rank compiled to 37.5 s.
    ("four_ranks", "Nothing was compiled that had been compiled before: 12.7 s of first compiles, 9.9 s of them waiting for another process's "
        "test of the CPU's vector instructions, once a folder. That is the slowest rank of each start; "
        "all ranks together compiled for 49.9 s, 37.5 s of them on graphs that several compiled at once"),
    ("triton_kernels", "no lookups were read; "),
])  # fmt: skip
def test_the_headline_of_samples(sample: str, said: str) -> None:
    assert headline(Chosen(cachescope.read(cachescope.sample(sample)))).startswith(said)


def test_a_size_that_is_symbolic_in_one_run_alone_is_no_edit(recording: Recording) -> None:
    # The code of the graph is another one, and its program is not; AOTAutograd's and the FX lookup are one cause.
    scope = cachescope.read(recording("2.13.0", "symbolic_sizes") / "trace")
    kind = "sizes or integers became fixed: matmul_relu (record_programs.py:34)"
    assert scope.causes["kind"].tolist()[1:] == [kind]
    assert (scope.causes["misses"].tolist()[1], scope.causes["roots"].tolist()[1]) == (2, 1)
    said = headline(Chosen(scope))
    assert said.startswith("Nothing was compiled twice")
    assert said.endswith("for sizes or integers that became symbolic, fixed or unbacked")


def test_where_everything_hits_what_stays_is_named(recording: Recording) -> None:
    scope = cachescope.read(recording("2.13.0", "config_flip") / "trace")
    (hit,) = scope.hit_rates(by=["run"]).query("hit_rate == 1")["run"]
    text = headline(Chosen(cachescope.read(scope.runs["source"][hit])))
    total = scope.phases[scope.phases["run"] == hit]["self_time_ns"].sum()
    assert text.startswith(f"All 2 lookups hit. The start spent {total / 1e9:.1f} s in torch all the same: ")
    assert " loading, " in text


def test_nothing_is_claimed_of_reasons_that_are_not_known() -> None:
    """The same graph under another key, and no details of either."""
    first, again = run(fx("f0", at=0, took=2.0)), run(fx("f1", at=10, took=3.0))
    assert headline(Chosen(scope_of(first, again))) == (
        "No compile is known to have been avoidable: 3.0 s for a reason that is not known; 2.0 s of first compiles"
    )


def test_nothing_is_denied_of_a_miss_without_a_time_or_an_outcome_that_was_not_seen() -> None:
    """The second run has another option and no time; then the outcome of its lookup is lost."""
    keys = [{"gm": CODE, "inductor_config[epilogue_fusion]": value} for value in ("True", "False")]
    first = run(fx("f0", details=keys[0], at=0, took=5.0), cache_dir="/cache")
    untimed, unseen = fx("f1", details=keys[1], at=20), fx("f0", "unknown", details=keys[0], at=20)
    for again, said in (
        (untimed, "1 miss whose time is not recorded was avoidable, by epilogue_fusion; 5.0 s"),
        (unseen, "No compile is known to have been avoidable: 5.0 s"),
    ):
        text = headline(Chosen(scope_of(first, run(again, cache_dir="/cache"))))
        assert text.startswith(f"{said} of first compiles")


@pytest.mark.parametrize(("name", "said"), [
    ("config_flip", "2 of 4 misses were avoidable, by epilogue_fusion"),
    # The first process stored nothing. Only its trace says why; its text log names no entry.
    ("failed_codegen", "No compile is known to have been avoidable: 2 misses of first compiles; 2 misses for a reason that is not known"),
    ("killed_compiling", "No compile is known to have been avoidable: 2 misses of first compiles; 2 misses for a reason that is not known"),
])  # fmt: skip
def test_beside_a_text_log_that_names_no_entry_a_changed_key_is_not_known_to_be_avoidable(
    name: str, said: str, recording: Recording
) -> None:
    first, *_ = sorted((recording("2.13.0", name) / "text").iterdir())
    again = recording("2.13.0", "options_undone") / "text" / "03_off_1.log"
    assert headline(Chosen(cachescope.read(first, again, index=False))).startswith(said)


def test_what_another_rank_compiled_again_is_not_denied() -> None:
    """The slowest rank compiles for the first time; the other one compiles a graph again that it had stored, under another option."""
    keys = [{"gm": CODE, "inductor_config[epilogue_fusion]": value} for value in ("True", "False")]
    before = run(fx("f0", details=keys[0], at=0, took=2.0), cache_dir="/cache", rank=1)
    slow = run(fx("f9", details={"gm": f"{CODE}9"}, at=50, took=9.0), cache_dir="/cache", rank=0)
    again = run(fx("f1", details=keys[1], at=50, took=1.0), cache_dir="/cache", rank=1)
    text = headline(Chosen(scope_of(before, slow, again)))
    assert "twice" not in text and "had been compiled before" not in text


def test_what_all_ranks_compiled_has_what_a_single_process_did() -> None:
    alone = run(fx("f0", details={"gm": CODE}, at=0, took=5.0))
    lasts = {"clock_first_us": 0, "clock_last_us": 5_000_000}
    made = (fx(f"f{rank}", details={"gm": f"{rank}"}, at=90, took=3.0) for rank in (1, 2))
    ranks = [run(one, rank=rank, **lasts) for rank, one in enumerate(made, 1)]
    said = "8.0 s of first compiles. That is the slowest rank of each start; all ranks together compiled for 11.0 s"
    assert headline(Chosen(scope_of(alone, *ranks))).endswith(said)


def test_what_ranks_compiled_at_once_under_another_option_was_no_first_compile() -> None:
    """Of one graph each rank is the first to look up, and the other one misses it while it is compiled."""
    lasts = {"clock_first_us": 0, "clock_last_us": 5_000_000}
    fusion = "inductor_config[epilogue_fusion]"
    ways = [{"gm": f"{CODE}{graph}", fusion: value} for value in ("True", "False") for graph in "01"]
    before = run(*(fx(f"f{at}", details=ways[at], at=at, took=0.5) for at in range(2)), cache_dir="/cache")
    ranks = [
        run(fx("f2", details=ways[2], at=90 + rank / 10, took=3.0),
            fx("f3", details=ways[3], at=96 - rank / 10, took=3.0, compile_id="1/0"), rank=rank, cache_dir="/cache", **lasts)
        for rank in range(2)
    ]  # fmt: skip
    said = "6.0 s of the 7.0 s compiled after misses were avoidable, by epilogue_fusion; 1.0 s of first compiles."
    assert headline(Chosen(scope_of(before, *ranks))).startswith(said)


def test_processes_that_are_no_ranks_could_have_started_one_after_another() -> None:
    details = {"gm": CODE}
    runs = [run(fx("f0", details=details, at=at, took=10.0), cache_dir="/cache") for at in (0, 1)]
    assert headline(Chosen(scope_of(*runs))) == (
        "10.0 s of the 20.0 s compiled after misses were avoidable, by starting at once; 10.0 s of first compiles"
    )


@pytest.mark.parametrize(("others", "told"), [
    ([], "1 of 2 misses was avoidable, by epilogue_fusion"),
    (["2"], "2 of 3 misses were avoidable, by epilogue_fusion"),
])  # fmt: skip
def test_misses_without_a_time_are_counted_as_one_counts(others: list[str], told: str) -> None:
    keys = [{"gm": CODE, "inductor_config[epilogue_fusion]": value} for value in ("True", "False", *others)]
    runs = [run(fx(f"f{n}", details=one, at=20 * n), cache_dir="/cache") for n, one in enumerate(keys)]
    assert headline(Chosen(scope_of(*runs))).startswith(told)


def test_a_call_with_gradients_on_in_a_process_that_had_them_off_first_is_another_call() -> None:
    """Another process had made the call with gradients off, too: that its key was near does not make them a setting."""
    off, on = ({"gm": CODE, "grad_enabled": value} for value in ("False", "True"))
    first = aot("a1", details=off, at=0), fx("f1", details={"gm": CODE}, at=1, took=1.0)
    why = "0/0: GLOBAL_STATE changed: grad_mode"
    again = (
        aot("a1", "hit", details=off, at=20),
        fx("f1", "hit", details={"gm": CODE}, at=20),
        aot("a2", details=on, at=21, compile_id="0/1", recompile_reasons=why),
        fx("f2", details={"gm": f"{CODE}2"}, at=22, took=5.0, compile_id="0/1"),
    )
    found = Chosen(scope_of(run(*first, cache_dir="/cache"), run(*again, cache_dir="/cache")))
    said = "5.0 s for other sizes or values, which guards keep apart; 1.0 s of first compiles"
    assert headline(found).endswith(said)


@pytest.mark.parametrize("field", ["grad_enabled", "autocast_state[cpu]"])
def test_what_a_call_is_made_under_is_no_setting(field: str) -> None:
    keys = [{"gm": CODE, field: value} for value in ("False", "True")]
    runs = [run(aot(f"a{n}", details=one, at=20 * n), cache_dir="/cache") for n, one in enumerate(keys)]
    said = headline(Chosen(scope_of(*runs)))
    assert said == "Nothing was compiled twice: 1 miss of first compiles; 1 miss for other inputs"


def test_another_machine_is_no_setting() -> None:
    keys = [{"gm": CODE, "system_info[device]": device} for device in ("A100", "H100")]
    made = [fx(f"f{n}", details=details, at=20 * n, took=5.0) for n, details in enumerate(keys)]
    runs = [run(one, cache_dir="/cache") for one in made]
    assert headline(Chosen(scope_of(*runs))) == (
        "Nothing was compiled twice: 5.0 s of first compiles; 5.0 s on another machine or torch"
    )


_COUNTS = """
import json, sys, time, traceback
import torch, torch._inductor.cpp_builder as builder
made, compiled = [], builder._run_compile_cmd
def timed(*args):
    began = time.perf_counter_ns()
    compiled(*args)
    made.append(("check_build" in {frame.name for frame in traceback.extract_stack()}, time.perf_counter_ns() - began))
builder._run_compile_cmd = timed
def first(x): return (x.sin() + 1).relu()
def bypassed(x): return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))
for name in sys.argv[2:]:
    torch.compile(globals()[name])(torch.ones(16))
json.dump([ns for is_test, ns in made if is_test], open(sys.argv[1], "w"))
"""


@pytest.mark.torch
@pytest.mark.parametrize(("functions", "of"), [
    (("first",), "of first compiles"),
    (("bypassed", "first"), "not cached (bypassed)"),
])  # fmt: skip
def test_the_test_of_the_cpu_takes_as_long_as_torch_takes_for_it(
    tmp_path: Path, functions: tuple[str, ...], of: str
) -> None:
    """It is told with what was compiled around it."""
    environment = {
        **os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"), "TORCH_TRACE": str(tmp_path / "trace"),
    }  # fmt: skip
    python(_COUNTS, tmp_path / "out", *functions, variables=environment)
    tests = json.loads((tmp_path / "out").read_text())
    scope = cachescope.read(tmp_path / "trace")
    phase = scope.phases[scope.phases["phase"] == VECTOR_TEST]
    assert phase["count"].sum() == len(tests) > 0
    assert phase["self_time_ns"].sum() == pytest.approx(sum(tests), rel=0.05)
    took = duration(int(phase["self_time_ns"].sum()))
    assert f"{of}, {took} of them torch's test of the CPU's vector instructions" in headline(Chosen(scope))


_WAITS = """
import glob, json, os, sys, time, traceback
import torch, torch._inductor.compile_fx, torch.utils._filelock as locks
waited, enter = [0], locks.FileLock.__enter__
def timed(lock):
    began = time.perf_counter_ns()
    given = enter(lock)
    if "check_build" in {frame.name for frame in traceback.extract_stack()}:
        waited[0] += time.perf_counter_ns() - began
    return given
locks.FileLock.__enter__ = timed
while sys.argv[2] == "second" and not glob.glob(os.environ["TORCHINDUCTOR_CACHE_DIR"] + "/locks/*"):
    time.sleep(0.01)
torch.compile(lambda x: (x.sin() + 1).relu())(torch.ones(16))
json.dump(waited, open(sys.argv[1], "w"))
"""


@pytest.mark.torch
def test_what_a_process_waits_for_the_test_of_another_is_no_code_generation(tmp_path: Path) -> None:
    """The truth is the time that torch's own lock takes to enter."""
    environment = {
        **os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"), "TORCH_TRACE": str(tmp_path / "trace"),
    }  # fmt: skip
    names = "first", "second"
    commands = ([sys.executable, "-c", _WAITS, tmp_path / name, name] for name in names)
    started = [subprocess.Popen(command, env=environment) for command in commands]
    assert [process.wait() for process in started] == [0, 0]
    _, waited = (json.loads((tmp_path / name).read_text())[0] for name in names)
    scope = cachescope.read(tmp_path / "trace")
    phases = scope.phases[scope.phases["phase"] == WAITING_FOR_TEST]
    (told,) = phases["self_time_ns"]
    assert scope.runs["pid"][phases["run"].item()] == started[1].pid
    assert told == pytest.approx(waited, rel=0.2, abs=10**9) and waited > 2 * 10**9


@pytest.mark.parametrize(("name", "said"), [
    # The graphs of the one deleted entry of AOTAutograd hit, and Inductor compiled nothing.
    ("aot_entry_deleted", "1 miss whose time is not recorded was avoidable, by a deleted entry; "),
    # Beside compiles that were.
    ("entry_deleted", "avoidable, by a deleted entry; so was 1 miss whose time is not recorded"),
])  # fmt: skip
def test_an_avoidable_miss_without_a_time_is_in_the_headline_as_on_its_card(
    name: str, said: str, recording: Recording
) -> None:
    scope = cachescope.read(recording("2.13.0", name))
    assert said in headline(Chosen(scope))
    assert "deleted" in repr(scope) and "avoidable" in " ".join(map(cost_text, Cards.of(Chosen(scope)).works))


def test_the_ranks_of_first_lookups_are_told_where_other_ranks_had_none() -> None:
    hit = fx("f0", "hit", at=5)
    missed = fx("f1", details={"gm": CODE}, at=9, took=2.0)
    some = scope_of(*(run(hit, *[missed] * (rank == 2), rank=rank) for rank in range(4)))
    assert "first lookups (cold start): 1 miss on rank 2, 2.0 s" in footer(Chosen(some))
    every = scope_of(run(missed, rank=2))
    assert "first lookups (cold start): 1 miss, 2.0 s    " in footer(Chosen(every))
    missed = (fx(f"f{rank}", details={"gm": f"graph_{rank}"}, at=9, took=2.0) for rank in range(2))
    each = [run(one, rank=rank) for rank, one in enumerate(missed)]
    assert "2 misses, 4.0 s in 2 ranks    " in footer(Chosen(scope_of(*each)))
    told = footer(Chosen(scope_of(*each, entries=[entry("mega_cache", "blob", root="/shipped")])))
    said = "holds 0 of the 2 FX keys that missed: cachescope diff FILE RUN"
    assert f"/shipped/mega_cache/lo/blob/entry {said}" in told


def test_of_runs_of_several_days_each_says_its_own() -> None:
    def names(*starts: float) -> list[str]:
        scope = scope_of(*(run(fx("f0", at=at)) for at in starts))
        told = [run_name(scope.facts, one) for one in scope.facts.runs]
        assert [*run_labels(scope.facts.runs.values()).values()] == [
            f"{name.partition(' (')[0]} · {name.rpartition(', ')[2].rstrip(')')}" for name in told
        ]
        return told

    assert all(re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\)$", name) for name in names(0, 24 * 3600.0))
    assert not any(re.search(r"\d{4}-\d\d-\d\d", name) for name in names(0, 60.0))


@pytest.mark.parametrize(("fields", "cost"), [
    (["autocast_state"], "inputs"), (["disable_amp"], "inputs"),  # up to torch 2.12
    # mode="reduce-overhead"
    (["fx_kwargs[cudagraphs]", "inductor_config[triton.cudagraphs]"], "avoidable"),
    (["fx_kwargs[is_inference]"], "inputs"),
])  # fmt: skip
def test_what_changed_fields_cost(fields: list[str], cost: str) -> None:
    assert cost_of_fields(fields) == cost
