"""Why vLLM compiled again, and its own lookups, in every answer: rates, checks, differences, what-if, what to do."""

import json
from pathlib import Path

import pandas as pd
import pytest

import cachescope
from cachescope.answers.cards import Cards
from cachescope.cli import main
from cachescope.errors import NotFoundError
from cachescope.report.vllm import vllm_lines
from cachescope.scope import Scope
from tests.vllm_folders import ENV, folder_name, make_folder
from tests.vllm_logs import NOON, start, write_log
from tests.vllm_recordings import VERSIONS, Recorded, recorded

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
    pd.testing.assert_frame_equal(
        frame.loc[~of_vllm, columns].reset_index(drop=True), alone[columns], check_dtype=False
    )
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
    works = Cards.of(scope, most=20).works
    (home,) = (work for work in works if "VLLM_CONFIG_ROOT" in work.title)
    assert {change.field for change in home.changes} == {"env[VLLM_CONFIG_ROOT]", "env[VLLM_XLA_CACHE_PATH]"}
    assert home.advice is not None and "does not count" in home.advice
    assert not any(work.settings or "code generation" in (work.advice or "") for work in works)


def test_a_key_of_vllm_has_no_hash_details(scope: Scope) -> None:
    with pytest.raises(NotFoundError, match="vllm_factors"):
        scope.hash_details(lookup=0)


def test_runs_of_vllm_have_no_context_and_no_prediction(scope: Scope, beside_torch: Scope) -> None:
    assert scope.contexts["run"].isna().all() and set(scope.contexts["known_from"]) == {"entries"}
    assert set(beside_torch.contexts["run"]) == set(
        beside_torch.lookups[beside_torch.lookups["cache"] != "vllm"]["run"]
    )


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
