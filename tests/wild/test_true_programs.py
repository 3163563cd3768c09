"""Programs run with real torch, and what is said of them beside torch's own counters. A cause names the known defect of torch whose sign it has."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import upstream_page

import cachescope
from cachescope.answers.cards import Cards
from cachescope.answers.chosen import Chosen
from cachescope.answers.costs import headline
from cachescope.answers.summary import counts_text
from tests.capture.preflights import told_by
from tests.cli.conftest import command, environment

pytestmark = [pytest.mark.torch, pytest.mark.sweep]
PROGRAMS = Path(__file__).parents[1] / "data" / "true_programs.py"
_STATES = (("hit", "hit"), ("miss", "full_miss"), ("bypass", "bypass"))


class Ran(NamedTuple):
    counted: dict[str, int]
    output: str  # with standard error
    told: dict[str, Any]  # what `cachescope record` says, where it recorded


def ran(
    name: str, folder: Path, *, choice: str = "", cache: str | None = "cache", log: Path | None = None
) -> Ran:
    """One program, recorded below the folder, or, with a log, as it is with torch's default levels."""
    told = {"PLACE": str(folder), "CHOICE": choice, "TMPDIR": str(folder), "TORCHINDUCTOR_VEC_ISA_OK": "1"}
    env = environment(**told | ({} if cache is None else {"TORCHINDUCTOR_CACHE_DIR": str(folder / cache)}))
    program: list[object] = [sys.executable, PROGRAMS, name]
    if log is None:
        program = [*command("record", "--json", "-o", folder / "runs" / name, "--"), *program]
    done = subprocess.run(
        [str(one) for one in program], capture_output=True, text=True, env=env, timeout=900, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    if log is not None:
        log.write_text(done.stderr + done.stdout)
        return Ran(json.loads(done.stdout.splitlines()[-1]), done.stdout + done.stderr, {})
    # What the program printed comes before what is told of it.
    printed, _, answer = done.stdout.partition("\n{\n")
    counted = json.loads(printed.splitlines()[-1])
    return Ran(counted, printed + done.stderr, json.loads("{" + answer))


def agrees(one: Ran) -> None:
    """Every lookup that torch counted is one of the recording, and no other."""
    found = Counter((row["cache"], row["outcome"]) for row in of_last_run(one))
    for cache, name in (("aotautograd", "autograd_cache"), ("fxgraph", "fxgraph_cache")):
        for state, outcome in _STATES:
            assert found[cache, outcome] == one.counted.get(f"{name}_{state}", 0), (cache, state)


def read_again(folder: Path, name: str) -> dict[str, Any]:
    """What `cachescope explain` says of the files of one name of all recorded runs."""
    done = told_by(["explain", "--json", *sorted(folder.rglob(name))], environment())
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def of_last_run(one: Ran) -> list[dict[str, Any]]:
    return [row for row in one.told["lookups"] if row["run"] in one.told["recorded"]["runs"]]


def missing(one: Ran) -> str:
    return " ".join(one.told["recorded"]["not_recorded"])


def test_logs_at_the_default_level(tmp_path: Path) -> None:
    """Without a lookup line torch's counters are quoted, whether standard error is in the log or not."""
    log = tmp_path / "program.log"
    counted = ran("plain", tmp_path, log=log).counted
    for text in (log.read_text(), json.dumps(counted) + "\n"):
        log.write_text(text)
        with pytest.raises(cachescope.errors.SourceError) as error:
            cachescope.read(log)
        assert "no line of a lookup stands in this file" in str(error.value) and "1 miss" in str(error.value)


def test_a_key_that_cannot_be_pickled(tmp_path: Path) -> None:
    log = tmp_path / "program.log"
    assert ran("unpicklable", tmp_path, log=log).counted["autograd_cache_bypass"] == 1
    scope = cachescope.read(log)
    said = "bypassed, the key could not be pickled: AttributeError: Can't pickle"
    assert scope.problems["message"].str.contains(said).any()
    assert "does not say that there was none" in counts_text(scope)
    recorded = ran("unpicklable", tmp_path)
    agrees(recorded)
    assert all("Can't pickle local object" in row["reason"] for row in recorded.told["lookups"])


def test_a_damaged_entry(tmp_path: Path) -> None:
    ran("plain", tmp_path)
    for entry in (tmp_path / "cache" / "aotautograd").rglob("*/*"):
        entry.write_bytes(entry.read_bytes()[:100])
    log = tmp_path / "program.log"
    assert ran("plain", tmp_path, log=log).counted["autograd_cache_miss"] == 1
    messages = cachescope.read(log).problems["message"]
    assert messages.str.contains("an entry could not be loaded: .*pickle data was truncated").any()


def test_a_mega_cache_that_holds_more_than_is_used(tmp_path: Path) -> None:
    ran("mega_saved", tmp_path, cache="made")
    loaded = ran("mega_loaded", tmp_path)
    agrees(loaded)
    assert loaded.counted["autograd_cache_hit"] == 1
    assert "a mega-cache was loaded, or lookups missed" in missing(loaded)
    assert "is not known" in missing(loaded)


def test_a_package_of_aotinductor(tmp_path: Path) -> None:
    saved = ran("aoti_saved", tmp_path)
    (row,) = saved.told["lookups"]
    assert (row["outcome"], row["kind"]) == ("disabled", "AOTInductor")
    timed = told_by(["time", "--json", tmp_path / "runs"], environment())
    assert [one["could_save_ns"] for one in json.loads(timed.stdout)["time"]] == [0]
    loaded = ran("aoti_loaded", tmp_path)
    assert loaded.told["lookups"] == []
    assert "nothing was compiled and stored" not in missing(loaded) and "ahead of time" in missing(loaded)


def test_a_function_that_was_compiled_ahead_of_time(tmp_path: Path) -> None:
    for _ in range(2):
        saved = ran("precompile_saved", tmp_path)
    above, graph = saved.told["lookups"][-2:]
    assert saved.counted["autograd_cache_miss"] == 1 and above["outcome"] == "full_miss"
    assert (graph["outcome"], graph["kind"], graph["evidence"]) == ("disabled", "below a lookup", "inferred")
    advice = " ".join(cause["advice"] or "" for cause in saved.told["causes"])
    assert "unset" not in advice and "puts a random name into the key" in advice
    loaded = ran("precompile_loaded", tmp_path)
    assert loaded.told["lookups"] == []
    scope = cachescope.read(tmp_path / "runs" / "precompile_loaded")
    assert "were loaded from a package" in counts_text(scope)


def test_the_recompile_limit_with_state_of_each_block(tmp_path: Path) -> None:
    for outcome in ("full_miss", "hit"):
        found = ran("limit", tmp_path)
        agrees(found)
        assert {row["outcome"] for row in found.told["lookups"][-6:]} == {outcome}
        (failed,) = found.told["runs"][-1]["failed_compiles"]
        assert "recompile limit exceeded" in failed
    missed = [row for row in found.told["lookups"] if row["kind"]]
    again = [row for row in missed if row["kind"].startswith("compiled again: forward")]
    assert len(again) == 4 and all("self.factor == " in row["reason"] for row in again)


@pytest.mark.parametrize("choice", ["", "reset"])
def test_what_ctrl_c_ended_and_its_process_compiles_again(choice: str, tmp_path: Path) -> None:
    found = ran("interrupted", tmp_path, choice=choice)
    agrees(found)
    assert "interrupted" in found.output and found.counted["fxgraph_cache_miss"] == 2
    (cause,) = [one for one in found.told["causes"] if one["verdict"] != "first_lookup"]
    assert (cause["verdict"], cause["kind"]) == ("entry_unavailable", "interrupted")
    for path in (tmp_path / "runs").rglob("*.log"):
        scope = cachescope.read(path, index=False)
        # A trace has no lookup of the graph that was not compiled to its end.
        assert (scope.lookups["outcome"] == "hit").sum() == 2
        assert not set(scope.causes["kind"]) & {"deleted", "failed compile"}


def test_entries_that_hold_their_graphs(tmp_path: Path) -> None:
    agrees(cold := ran("bundled", tmp_path))
    assert [row["outcome"] for row in cold.told["lookups"]] == ["full_miss", "disabled", "disabled"]
    (cause,) = cold.told["causes"]
    assert (cause["verdict"], cause["misses"]) == ("first_lookup", 3)
    agrees(warm := ran("bundled", tmp_path))
    assert warm.counted["autograd_cache_hit"] == 1


def test_a_directory_that_is_fresh_for_a_while(tmp_path: Path) -> None:
    for _ in range(2):
        agrees(found := ran("fresh", tmp_path))
    rows = of_last_run(found)
    assert {row["cache_dir"] for row in rows if row["outcome"] == "hit"} == {None}
    assert all(row["cache_dir"].startswith(f"{tmp_path}/tmp") for row in rows if row["outcome"] != "hit")
    causes = [one for one in found.told["causes"] if one["verdict"] != "first_lookup"]
    assert {(one["verdict"], one["kind"]) for one in causes} == {("entry_unavailable", "another directory")}
    assert all("fresh_cache()" in one["advice"] for one in causes)
    # A text log names a directory where it was written to, which the second run did in the fresh one alone.
    text = cachescope.read(*sorted((tmp_path / "runs" / "fresh").glob("*/torch.log")))
    kinds = text.causes.query("verdict == 'entry_unavailable'")["kind"].tolist()
    assert kinds and "deleted" not in kinds


def test_a_compile_that_fails_in_a_fresh_directory(tmp_path: Path) -> None:
    """Nothing names its directory, so that what lies in another one is not said to have been deleted there."""
    for choice in ("", "failing"):
        agrees(found := ran("fresh_failed", tmp_path, choice=choice))
    for told in (found.told, read_again(tmp_path, "torch.log")):
        missed = [one for one in told["lookups"] if one["run"] == 1 and one["outcome"] == "full_miss"]
        (row,) = [one for one in missed if one["cache"] == "aotautograd"]
        assert (row["verdict"], row["kind"]) == ("entry_unavailable", "not known")
        assert "directory is not recorded" in row["reason"]


def test_what_is_compiled_under_a_decorator_of_torch(tmp_path: Path) -> None:
    agrees(found := ran("wrapped", tmp_path))
    program = enumerate(PROGRAMS.read_text().splitlines(), 1)
    code = {line: number for number, line in program if "return torch." in line}
    lines = {"halved": code["    return torch.relu(x) / 2"], "squared": code["    return torch.sin(x) * x"]}
    places = {(row["function"], row["file"], row["line"]) for row in found.told["lookups"]}
    assert places == {(name, str(PROGRAMS), line) for name, line in lines.items()}
    # Of a text log the function is not known.
    assert {row["function"] for row in read_again(tmp_path, "torch.log")["lookups"]} <= {None, "inner"}
    (again,) = [one for one in found.told["causes"] if one["kind"].startswith("compiled again: squared")]
    assert "pytorch #163503" in again["advice"] and "as a with block" in again["advice"]
    agrees(found := ran("wrapped", tmp_path / "followed", choice="block"))
    assert not [one for one in found.told["causes"] if "compiled again" in one["kind"]]


def test_what_is_compiled_twice_before_its_backward_pass(tmp_path: Path) -> None:
    """The first entry is not stored yet, so its graphs are those of a first compile; the next process finds both."""
    agrees(found := ran("twice_before_backward", tmp_path))
    told = [(row["kind"], row["root"]) for row in of_last_run(found) if row["verdict"]]
    assert told.count(("not stored yet", False)) == 1 and [kind for kind, root in told if root] == [""], told
    agrees(found := ran("twice_before_backward", tmp_path, choice="modules"))
    assert [row["outcome"] for row in of_last_run(found)][:6] == ["hit"] * 6
    (again,) = [one for one in found.told["causes"] if "compiled again: " in one["kind"]]
    assert "'args[0]' dtype mismatch" in again["kind"]
    assert "If the two calls are of different modules" in again["advice"]
    assert "cast" not in again["advice"]


def test_sizes_that_vary_together(tmp_path: Path) -> None:
    """torch names the first guard that fails; to mark its tensor alone is an error here."""
    causes = []
    for choice in ("", "keys,values"):
        agrees(found := ran("growing", tmp_path / (choice or "none"), choice=choice))
        causes.append([one for one in found.told["causes"] if "compiled again" in one["kind"]])
    (unmarked,), marked = causes
    assert "mark_dynamic(keys, 0)" in unmarked["advice"]
    assert "Other sizes changed with it" in unmarked["advice"]
    assert not marked


def test_a_closure_cell_that_becomes_symbolic(tmp_path: Path) -> None:
    found = ran("cell", tmp_path)
    agrees(found)
    causes = found.told["causes"]
    (again,) = [cause for cause in causes if cause["summary"].startswith("compiled again: scaled")]
    assert "count ==" in again["summary"] and "symbolic" in again["advice"]
    assert {change["field"] for change in again["changes"]} == {"gm", "aot_config", "example_inputs[1]"}


@pytest.mark.parametrize(("before", "after", "said"), [
    ("2.5", "3", "an argument is an integer where it was a float: "),
    ("3", "2.5", "an argument is a float where it was an integer: "),
])  # fmt: skip
def test_an_argument_of_another_type(before: str, after: str, said: str, tmp_path: Path) -> None:
    ran("number", tmp_path, choice=before)
    again = ran("number", tmp_path, choice=after)
    agrees(again)
    (cause,) = (one for one in again.told["causes"] if one["verdict"] == "key_changed")
    assert cause["summary"].startswith(said) and "symbolic" not in cause["advice"]
    assert "pass one type" in cause["advice"]


def test_a_graph_that_is_frozen_is_not_edited_code(tmp_path: Path) -> None:
    ran("frozen", tmp_path, choice="false")
    again = ran("frozen", tmp_path, choice="true")
    agrees(again)
    (cause,) = (one for one in again.told["causes"] if one["verdict"] == "key_changed")
    assert "gm" in cause["fields"] and "Freezing makes constants" in cause["advice"]
    assert "avoidable, by freezing" in headline(Chosen(cachescope.read(tmp_path / "runs")))


def test_the_buckets_of_ddp_are_no_edit(tmp_path: Path) -> None:
    """The whole graph is the same, and in the end its buckets are again."""
    kinds = []
    for choice in ("1.2", "2.5", "0", "1.2"):
        agrees(found := ran("buckets", tmp_path, choice=choice))
        missed = [row for row in of_last_run(found) if row["outcome"] == "full_miss"]
        kinds.append({row["kind"].partition(": ")[0] for row in missed} - {""})
    assert kinds == [set(), {"split otherwise by DDPOptimizer"}, {"split otherwise by DDPOptimizer"}, set()]
    assert not missed
    scope = cachescope.read(tmp_path / "runs")
    assert "avoidable, by another split of DDPOptimizer" in headline(Chosen(scope))
    # A text log does not show what Dynamo traced.
    told = {one["kind"].partition(": ")[0] for one in read_again(tmp_path, "torch.log")["causes"]}
    assert "edited, or split otherwise by DDPOptimizer" in told
    assert not [kind for kind in told if kind.startswith("edit ")]


def test_a_mesh_among_the_inputs_is_no_other_torch(tmp_path: Path) -> None:
    """torch 2.13 hashes equal fields otherwise once it has pickled a mesh; what differs is what it prints."""
    for choice, verdict in (
        ("whole", "first_lookup"),
        ("one", "key_changed"),
        ("part", "no_detail_differs"),
        ("more", "key_changed"),
        ("option", "key_changed"),
    ):
        agrees(found := ran("mesh", tmp_path, choice=choice))
        missed = {row["cause"] for row in of_last_run(found)}
        told = [one for one in found.told["causes"] if one["cause"] in missed]
        assert {one["verdict"] for one in told} == {verdict}
        fields = {field for one in told for field in one["fields"]}
        option = {"inductor_config[epilogue_fusion]"} if choice == "option" else set()
        assert fields <= {"aot_config", "gm", *(f"example_inputs[{at}]" for at in range(4)), *option}
        # That it is this alone is not known, for torch hashes the mesh otherwise in each process.
        if choice in ("more", "option"):
            assert told[0]["fields"] == [*(option or {"example_inputs[0]"})]
            assert told[0]["kind"] == "beside a DeviceMesh" and "_hash" in told[0]["advice"]
    assert "another build" not in json.dumps(found.told["causes"])
    assert "epilogue_fusion" not in headline(Chosen(cachescope.read(tmp_path / "runs")))


def test_a_guard_that_failed_is_no_edit_of_what_another_guard_recompiled(tmp_path: Path) -> None:
    ran("unbiased", tmp_path, choice="scale")
    again = ran("unbiased", tmp_path, choice="bias")
    agrees(again)
    kinds = {row["kind"] for row in of_last_run(again) if row["outcome"] == "full_miss"}
    assert len(kinds) == 1 and "'bias'" in kinds.pop()


def test_a_directory_that_is_set_too_late(tmp_path: Path) -> None:
    agrees(ran("setdefault", tmp_path, cache=None))
    assert not (tmp_path / "own").exists()


def test_an_edit_within_a_checkpointed_block_is_shown_where_a_trace_has_it(tmp_path: Path) -> None:
    for choice in ("sin,exp", "cos,log"):
        agrees(ran("checkpointed", tmp_path, choice=choice))
    before, after = (tmp_path / "runs" / "checkpointed").iterdir()
    for words in (["explain", before, after], ["diff", before, after]):
        told = told_by(words, environment()).stdout
        for old, new in (("sin", "cos"), ("exp", "log")):
            assert f"{old} -> {new}" in told or f"{new} -> {old}" in told
            assert f"= torch.{old}(" in told and f"= torch.{new}(" in told
        assert "the printed code is equal" not in told
    told = told_by(["explain", *sorted((tmp_path / "runs").rglob("torch.log"))], environment()).stdout
    assert "the printed code is equal: the code within wrap_body_0, a" in told


def test_an_edited_custom_operator(tmp_path: Path) -> None:
    agrees(ran("custom_op", tmp_path, choice="4"))
    edited = ran("custom_op", tmp_path, choice="6")
    agrees(edited)
    # torch finds the entry of the other size.
    assert edited.counted["autograd_cache_hit"] == 1 and "expected the size of the entry" in edited.output
    runs = tmp_path / "runs"
    hit = cachescope.read(runs).explain(int(edited.told["lookups"][-2]["lookup"]))
    assert "The graph calls cachescope_true::firsts, which no key holds the code of" in hit.reason
    told = told_by(["explain", runs], environment())
    assert "hits call cachescope_true::firsts" in " ".join(told.stdout.split())


def test_a_quantised_subclass(tmp_path: Path) -> None:
    for choice, outcome in (("a", "full_miss"), ("a", "hit"), ("b", "full_miss")):
        found = ran("quantised", tmp_path, choice=choice)
        agrees_of_last(found, outcome)
    (cause,) = [one for one in found.told["causes"] if one["verdict"] != "first_lookup"]
    assert "example_inputs" in " ".join(cause["fields"])


def agrees_of_last(one: Ran, outcome: str) -> None:
    state = {"full_miss": "miss", "hit": "hit"}[outcome]
    assert one.counted[f"autograd_cache_{state}"] == 1 and one.told["lookups"][-2]["outcome"] == outcome


def test_with_compiled_autograd_no_entry_of_a_training_graph_is_stored(tmp_path: Path) -> None:
    agrees(ran("compiled_autograd", tmp_path))
    again = ran("compiled_autograd", tmp_path)
    agrees(again)
    assert again.counted["autograd_cache_miss"] == 1 and again.counted["fxgraph_cache_hit"] == 2
    last = again.told["recorded"]["runs"]
    kinds = [(one["verdict"], one["kind"]) for one in again.told["causes"] if set(last) & set(one["runs"])]
    assert ("entry_unavailable", "compiled autograd") in kinds
    assert ("entry_unavailable", "never stored") not in kinds
    told = told_by(["explain", tmp_path / "runs"], environment())
    assert told.stdout.startswith("No compile is known to have been avoidable")
    # Its guards fix the sizes of the model, which are no branch that could be called on both sides.
    agrees(ran("compiled_autograd", tmp_path, choice="16"))
    told = told_by(["explain", tmp_path / "runs"], environment())
    assert "the model is another one" in told.stdout and "each side" not in told.stdout


def test_a_branch_on_a_size_that_went_the_other_way(tmp_path: Path) -> None:
    """The graph is another one, and nothing was edited: the sentence and the advice name the size, and the advice is followed."""
    agrees(ran("branch", tmp_path, choice="16"))
    agrees(other := ran("branch", tmp_path, choice="5"))
    assert other.counted["autograd_cache_miss"] == 1
    runs = tmp_path / "runs"
    (card,) = Cards.of(Chosen(cachescope.read(runs))).cards
    said = "x.size(0) is 5; the graph that it is compared with needs 11 or more, from "
    assert card.guards is not None and card.guards.text.startswith(said)
    said = (
        "Pad x.size(0) to 11 or more where the result allows it; or call it once with x.size(0) on each side"
    )
    assert card.advice is not None and card.advice.startswith(said)
    # Padded, and on each side.
    for sizes in ("11", "16,5"):
        agrees(found := ran("branch", tmp_path, choice=sizes))
        assert found.counted["autograd_cache_hit"] == len(sizes.split(","))


@pytest.mark.parametrize("name", ["autocast", "weak_container"])
def test_the_cause_of_a_bypass_is_said_to_be_a_known_defect(name: str, tmp_path: Path) -> None:
    settings = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"), "TORCH_TRACE": str(tmp_path / "trace")}
    program = upstream_page.FOLDER / f"{name}.py"
    subprocess.run([sys.executable, program], env=os.environ | settings, check=True, timeout=300)
    advised = " ".join(cachescope.read(tmp_path / "trace").causes["advice"].dropna())
    assert "This may be a known defect of torch" in advised
