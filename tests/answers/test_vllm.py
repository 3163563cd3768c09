"""Why vLLM compiled again, and its own lookups, in every answer: rates, checks, differences, what-if, what to do.

Whether a start would use a folder is told from its environment: beside what vLLM itself did in each recorded step.
"""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cachescope
from cachescope.analysis.vllm.factors import Named
from cachescope.answers.cards import Cards
from cachescope.answers.chosen import Chosen
from cachescope.answers.vllm import VllmStart, prospect_of
from cachescope.cli import main
from cachescope.errors import NotFoundError
from cachescope.report.vllm import vllm_lines
from cachescope.scope import Scope
from tests.vllm_folders import ENV, folder_name, make_folder
from tests.vllm_logs import NOON, start, write_log
from tests.vllm_recordings import CHANGED, VERSIONS, Recorded, recorded

OTHER = {**ENV, "VLLM_A": "2"}


@pytest.fixture(scope="module")
def vllm_run(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return recorded("0.13.0", tmp_path_factory.mktemp("vllm"))


@pytest.fixture(scope="module")
def newest(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return recorded(VERSIONS[-1], tmp_path_factory.mktemp("vllm"))


@pytest.fixture(scope="module")
def scope(vllm_run: Recorded) -> Scope:
    return cachescope.read(vllm_run.cache, vllm_run.logs)


@pytest.fixture(scope="module")
def beside_torch(vllm_run: Recorded) -> Scope:
    return cachescope.read(vllm_run.logs, cachescope.sample("config_flip"))


def step(scope: Scope, name: str) -> int:
    sources = scope.runs.set_index("run")["source"].str.endswith(f"/{name}.log")
    (lookup,) = scope.lookups[scope.lookups["run"].map(sources)]["lookup"]
    return int(lookup)


def test_rates_of_torch_are_as_without_vllm(beside_torch: Scope) -> None:
    alone = cachescope.read(cachescope.sample("config_flip")).hit_rates(["cache"])
    rates = beside_torch.hit_rates(["cache"])
    pd.testing.assert_frame_equal(rates[rates["cache"] != "vllm"].reset_index(drop=True), alone)
    (own,) = rates[rates["cache"] == "vllm"].itertuples()
    assert (own.lookups, own.hits, own.misses) == (13, 4, 9)


def test_time_that_torch_recorded_is_not_counted_twice(beside_torch: Scope, scope: Scope) -> None:
    alone = cachescope.read(cachescope.sample("config_flip"))
    for column in ("time_lost_ns", "time_saved_ns", "time_hit_rate"):
        assert beside_torch.hit_rates()[column][0] == alone.hit_rates()[column][0]
    told_by_vllm = scope.vllm_starts["compile_time_ns"].sum()
    assert scope.hit_rates()["time_lost_ns"][0] == scope.causes["time_lost_ns"].sum() == told_by_vllm
    assert pd.isna(scope.hit_rates()["time_hit_rate"][0])


def test_a_replay_leaves_vllm_alone(beside_torch: Scope) -> None:
    field = "inductor_config[epilogue_fusion]"
    alone = cachescope.read(cachescope.sample("config_flip")).what_if(without=[field]).frame
    frame = beside_torch.what_if(without=[field]).frame
    of_vllm = frame["cache"] == "vllm"
    assert not frame.loc[of_vllm, "changed_side"].any()
    assert frame.loc[of_vllm, "outcome"].equals(frame.loc[of_vllm, "outcome_after"])
    columns = ["cache_key", "outcome", "outcome_after"]
    others = frame.loc[~of_vllm, columns].reset_index(drop=True)
    pd.testing.assert_frame_equal(others, alone[columns], check_dtype=False)
    assert "not replayed" in beside_torch.cause_savings().set_index("summary").loc["code_hash", "why"]
    assert "13 lookups of vLLM's own cannot be replayed" in str(beside_torch.what_if(without=[field]))


def test_explain_says_why_and_names_both_values(scope: Scope) -> None:
    explained = scope.explain(step(scope, "port"))
    assert (explained.verdict, explained.evidence) == ("key_changed", "recorded")
    (change,) = explained.changes
    assert (change.field, change.before, change.after) == ("env[VLLM_NIXL_SIDE_CHANNEL_PORT]", "5600", "5601")
    assert change.differs_by == ("port",)
    assert scope.explain(step(scope, "again")).outcome == "hit"


def test_what_to_do_is_said_of_vllm_and_not_of_torch(scope: Scope) -> None:
    works = Cards.of(Chosen(scope), most=20).works
    (home,) = (work for work in works if "VLLM_CONFIG_ROOT" in work.title)
    assert {change.field for change in home.changes} == {"env[VLLM_CONFIG_ROOT]", "env[VLLM_XLA_CACHE_PATH]"}
    assert home.advice is not None and "does not count" in home.advice
    assert not any(work.settings or "code generation" in (work.advice or "") for work in works)


def test_a_key_of_vllm_has_no_hash_details(scope: Scope) -> None:
    with pytest.raises(NotFoundError, match="vllm_factors"):
        scope.hash_details(lookup=0)


def test_runs_of_vllm_have_no_context_and_no_prediction(scope: Scope, beside_torch: Scope) -> None:
    assert scope.contexts["run"].isna().all() and set(scope.contexts["known_from"]) == {"entries"}
    of_torch = beside_torch.lookups[beside_torch.lookups["cache"] != "vllm"]
    assert set(beside_torch.contexts["run"]) == set(of_torch["run"])


def test_past_misses_are_said_beside_logs_of_vllm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vllm_run = recorded("0.33.0", tmp_path)
    assert main(["explain", "--no-index", str(vllm_run.cache), str(vllm_run.logs / "first.log")]) == 0
    assert "entry was made although the graph had been stored before" in capsys.readouterr().out


@pytest.mark.slow
def test_a_report_is_made(scope: Scope, tmp_path: Path) -> None:
    scope.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "env[VLLM_NIXL_SIDE_CHANNEL_PORT]" in page and "reconstructed from hash details" not in page


def test_two_folders_are_compared(vllm_run: Recorded, capsys: pytest.CaptureFixture[str]) -> None:
    keys = vllm_run.folder("first"), vllm_run.folder("variable")
    assert main(["diff", "--no-index", "--json", *keys, str(vllm_run.cache), str(vllm_run.logs)]) == 0
    (changed,) = json.loads(capsys.readouterr().out)["differences"]
    assert changed["fields"] == ["env[VLLM_USE_TRITON_AWQ]"]


def passes(before: Path, after: Path) -> bool:
    return cachescope.read(after).check(against=cachescope.read(before)).passed


@pytest.mark.slow
def test_a_check_sees_what_changed_since_its_baseline(vllm_run: Recorded, tmp_path: Path) -> None:
    first = vllm_run.logs / "first.log"
    assert passes(first, vllm_run.logs / "again.log") and passes(first, first)
    for name in ("variable", "port", "config"):
        assert not passes(first, vllm_run.logs / f"{name}.log")
    # Another part of the model, and another model, are no change.
    one = write_log(tmp_path / "one.log", start(folder_name(ENV), env=ENV))
    draft = start(folder_name(OTHER), env=OTHER, prefix="eagle_head")
    model = start(folder_name(ENV, "other", "other"), env=ENV, config="other", code="other")
    for text in (draft, model):
        assert passes(one, write_log(tmp_path / "two.log", text))


def test_a_start_that_may_have_stored_nothing_is_no_baseline(tmp_path: Path) -> None:
    new = cachescope.read(write_log(tmp_path / "new.log", start(folder_name(ENV), env=ENV)))
    for outcome, fields in (("compiled", [("env_hash",)]), ("not known", [])):
        log = write_log(tmp_path / "before.log", start(folder_name(OTHER), env=OTHER, outcome=outcome))
        assert [since.fields for since in new.changed_since(cachescope.read(log))] == fields
    # Of factors that only one of them keeps the hashes are compared.
    make_folder(tmp_path / "tree")
    beside_factors = cachescope.read(tmp_path / "tree", tmp_path / "new.log")
    before = write_log(tmp_path / "before.log", start(folder_name(OTHER), env=OTHER))
    assert [one.fields for one in beside_factors.changed_since(cachescope.read(before))] == [("env_hash",)]


def explained(capsys: pytest.CaptureFixture[str], *paths: Path) -> str:
    assert main(["explain", *map(str, paths)]) == 0
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_explain_names_each_change(newest: Recorded, capsys: pytest.CaptureFixture[str]) -> None:
    text = explained(capsys, newest.cache)
    made = "9 folders whose names follow from their factors; 8 of them made although another was there before"
    assert made in text
    assert "env[VLLM_NIXL_SIDE_CHANNEL_PORT]: 5600 → 5601 (apparently differs by port)" in text
    said = "the configuration differs (the model, its settings, vLLM's version); vLLM keeps only its hash"
    assert said in text


def test_json_has_the_frames_and_vllms_lookups(
    newest: Recorded, vllm_run: Recorded, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "--json", str(newest.cache)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert len(printed["vllm_folders"]) == 18
    assert {"vllm_changes", "vllm_fragments", "vllm_ranks", "vllm_starts"} <= printed.keys()
    assert main(["explain", "--json", "--no-index", str(vllm_run.cache), str(vllm_run.logs)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert {row["cache"] for row in printed["lookups"]} == {"vllm"}
    assert ["env[VLLM_USE_TRITON_AWQ]"] in [row["changed"] for row in printed["lookups"]]


def test_without_vllm_there_is_no_word_of_it() -> None:
    assert vllm_lines(cachescope.read(cachescope.sample("config_flip"))) == []


def test_folders_of_many_ports_are_one_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for port in range(7000, 7040):
        make_folder(tmp_path, {**ENV, "VLLM_SIDE_PORT": port}, time=NOON + port)
    text = explained(capsys, tmp_path)
    assert "env[VLLM_SIDE_PORT]: 40 values (apparently port); without it 1 of 40 folders" in text


def test_names_that_do_not_follow_are_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_folder(tmp_path, name="0123456789")
    make_folder(tmp_path, name="9876543210")
    text = explained(capsys, tmp_path)
    assert "vLLM: 2 folders" in text
    assert "0123456789: the name follows from no factors in it" in text


@pytest.mark.parametrize("value", ["\x1b[31m", "\u202e"])
def test_hostile_names_steer_nothing(value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a folder alone, and where a log says that it was made for a lookup."""
    make_folder(tmp_path, time=NOON - 500)
    new = make_folder(tmp_path, {**ENV, "VLLM_\x1b[2J\n::error::": value}, time=NOON + 3)
    log = write_log(tmp_path.parent / f"{tmp_path.name}.log", start(new))
    for sources in ([tmp_path], [tmp_path, log]):
        assert main(["explain", "--no-index", *map(str, sources)]) == 0
        printed = capsys.readouterr().out
        assert "\x1b" not in printed and "\u202e" not in printed
        assert not any(line.lstrip().startswith("::") for line in printed.splitlines())


# What every step has (`environment` of tests/data/record_vllm.py), as far as vLLM counts it.
ALL = {"VLLM_TARGET_DEVICE": "cpu"}


def differing(found: VllmStart) -> dict[str, set[str]]:
    return {one.folder: {other.name for other in one.differing} for one in found.prospects}


def test_a_step_may_use_its_own_folder_and_not_those_of_another_environment(vllm: Recorded) -> None:
    read = cachescope.read(vllm.cache)
    folders = {step: vllm.folder(step) for step in vllm.factors}
    named = {row.name for row in read.named_of_vllm}
    said = 0
    for step, folder in folders.items():
        found = VllmStart.of(read, ALL | vllm.steps[step]["environment"])
        prospects = differing(found)
        if folder in named:
            # vLLM used it, so nothing may be said to keep it from that.
            assert prospects[folder] == set() and found.may_hit
        variables = {name for name in CHANGED[vllm.version].get(step, ()) if name.startswith("env[")}
        # Paths below HOME follow from a function of vLLM's own.
        told = {name[4:-1] for name in variables} - {"VLLM_CONFIG_ROOT", "VLLM_XLA_CACHE_PATH"}
        if step in CHANGED[vllm.version]:
            assert prospects[folders["first"]] == told, step
            said += bool(told)
    assert said == 2


def test_every_variable_that_the_folder_has_is_equal_differs_or_is_not_known(vllm: Recorded) -> None:
    read = cachescope.read(vllm.cache)
    counts = {row.name: sum(name.startswith("env[") for name in row.values) for row in read.named_of_vllm}
    for one in VllmStart.of(read, {"VLLM_TARGET_DEVICE": "tpu"}).prospects:
        assert one.equal + len(one.differing) + len(one.not_known) == counts[one.folder]
        (other,) = (other for other in one.differing if other.name == "VLLM_TARGET_DEVICE")
        assert (other.here, other.reads_as, other.folder) == ("tpu", '"tpu"', '"cpu"')
        # Most can be read: those that cannot are few.
        assert len(one.not_known) < 0.2 * counts[one.folder]


def test_what_vllm_sets_itself_and_what_it_refuses_is_not_known(vllm: Recorded) -> None:
    read = cachescope.read(vllm.cache)
    for environment in ({}, {"VLLM_DISABLE_SHARED_EXPERTS_STREAM": "x"}):
        for one in VllmStart.of(read, ALL | environment).prospects:
            # vLLM's CPU platform sets it: 0.13.0 and 0.33.0, vllm/platforms/cpu.py.
            assert "VLLM_DISABLE_SHARED_EXPERTS_STREAM" in one.not_known


def test_the_command(vllm: Recorded, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "pod.env"
    file.write_text("# of a pod\nexport VLLM_TARGET_DEVICE=cpu\nVLLM_API_KEY=hunter2-is-my-key\nnonsense\n")
    assert main(["vllm", str(vllm.cache), "--env", str(file), "--json"]) in (0, 3)
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert main(["vllm", str(vllm.cache), "--env", str(file)]) == (0 if answer["may_hit"] else 3)
    text = capsys.readouterr().out
    assert "hunter2" not in text + json.dumps(answer)
    # 0.13.0 counts the key of the server.
    assert ("VLLM_API_KEY is (secret)" in text) == (vllm.version == "0.13.0")
    assert "Not known before a start" in text
    file.write_bytes(b"\xff\x00=\xff\nVLLM_TARGET_DEVICE=tpu\n")
    assert main(["vllm", str(vllm.cache), "--env", str(file)]) == 3
    printed = " ".join(capsys.readouterr().out.split())
    assert 'VLLM_TARGET_DEVICE is tpu, which is "tpu" to vLLM; the folder has "cpu"' in printed
    assert main(["vllm", str(vllm.cache), "--env", str(tmp_path / "none")]) == 1


def test_without_factors_nothing_is_said(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "torch_compile_cache" / "0123456789" / "rank_0_0").mkdir(parents=True)
    (tmp_path / "torch_compile_cache" / "0123456789" / "rank_0_0" / "vllm_compile_cache.py").write_text("{}")
    assert main(["vllm", str(tmp_path)]) == 3
    text = " ".join(capsys.readouterr().out.split())
    assert "no folder here keeps its factors" in text and "not known of 1 further folder" in text


def test_of_another_release_what_is_not_set_is_not_known() -> None:
    """Defaults change from release to release; a folder of none that is known has another set of variables."""
    values = {"env[VLLM_TARGET_DEVICE]": '"cpu"', "env[VLLM_USE_TRITON_AWQ]": "true"}
    one = prospect_of(Named("f", values, 0), {"VLLM_TARGET_DEVICE": "tpu"})
    assert [other.name for other in one.differing] == ["VLLM_TARGET_DEVICE"]
    assert one.not_known == ("VLLM_USE_TRITON_AWQ",)
