"""Why vLLM's own lookups missed: what real logs and folders say of each declared change, where nothing is blamed; and a whole model that was not used."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cachescope
from cachescope.analysis.verdicts.misses import Why
from cachescope.analysis.verdicts.vllm_misses import Judged, not_loaded
from cachescope.scope import Scope
from tests.vllm_folders import ENV, folder_name, make_folder
from tests.vllm_logs import NOON, said, start, write_log
from tests.vllm_recordings import CHANGED, LOADED, VERSIONS, Recorded, recorded_ranks

OTHER = {**ENV, "VLLM_A": "2"}


@pytest.fixture(scope="module")
def scope(vllm: Recorded) -> Scope:
    return cachescope.read(vllm.cache, vllm.logs)


def by_step(scope: Scope) -> dict[str, Any]:
    missed = scope.lookups.merge(scope.misses, on="lookup", how="left")
    rows = missed.merge(scope.runs[["run", "source"]], on="run")
    return {Path(row.source).stem: row for row in rows.itertuples()}


def verdicts(*paths: Path) -> list[Any]:
    return list(cachescope.read(*paths).misses.itertuples())


def test_each_step_is_a_lookup_with_its_outcome(scope: Scope, vllm: Recorded) -> None:
    found = {step: row.outcome for step, row in by_step(scope).items()}
    assert found == {step: "hit" if step in LOADED[vllm.version] else "full_miss" for step in vllm.steps}
    assert set(scope.lookups["cache"]) == {"vllm"}


def test_each_declared_change_is_named_and_nothing_else(scope: Scope, vllm: Recorded) -> None:
    steps = by_step(scope)
    found = {step: steps[step] for step in CHANGED[vllm.version]}
    assert {step: row.changed for step, row in found.items()} == CHANGED[vllm.version]
    assert {row.verdict for row in found.values()} == {"key_changed"}
    # vLLM keeps nothing of the configuration but a hash, which may be that of another model.
    assert {step for step, row in found.items() if row.evidence == "inferred"} == {"config"}
    baselines = scope.lookups.set_index("lookup")["cache_key"]
    assert {baselines[row.baseline_lookup] for row in found.values()} == {vllm.folder("first")}


def test_nothing_is_blamed_where_nothing_changed(scope: Scope, vllm: Recorded) -> None:
    steps = by_step(scope)
    for step in ("first", "rank"):
        row = steps[step]
        assert (row.verdict, row.changed, row.evidence) == ("first_lookup", (), "inferred")
    assert all(pd.isna(steps[step].verdict) for step in LOADED[vllm.version])


def test_of_logs_alone_the_hashes_are_compared(vllm: Recorded) -> None:
    steps = by_step(cachescope.read(vllm.logs))
    for step, changed in CHANGED[vllm.version].items():
        hashes = {"env_hash" if name.startswith("env[") else name for name in changed}
        assert (steps[step].verdict, set(steps[step].changed)) == ("key_changed", hashes)


def test_an_edited_file_is_known_from_vllm_itself(vllm: Recorded) -> None:
    row = by_step(cachescope.read(vllm.logs / "edited.log"))["edited"]
    assert (row.verdict, row.changed, row.evidence) == ("key_changed", ("code_hash",), "recorded")


@pytest.mark.parametrize("version", VERSIONS)
def test_of_two_ranks_each_is_compared_with_itself(version: str, tmp_path: Path) -> None:
    told = recorded_ranks(version, tmp_path)
    scope = cachescope.read(told.cache, told.logs)
    missed = scope.lookups.merge(scope.misses, on="lookup")
    rows = missed.merge(scope.runs[["run", "source", "rank"]], on="run")
    found = {f"{Path(row.source).stem}_{row.rank}": row for row in rows.itertuples()}
    first = [row for step, row in found.items() if step.startswith("first")]
    assert {row.verdict for row in first} == {"first_lookup"}
    if version == "0.13.0":
        assert found["bundles_0"].changed == ("env[VLLM_RAY_BUNDLE_INDICES]",)
        # Another torch cannot load what was stored: so says vLLM, and no factor is blamed for that.
        assert (found["torch_0"].verdict, found["torch_0"].kind) == ("entry_unavailable", "load error")
        return
    port, variable = ("env[VLLM_NIXL_SIDE_CHANNEL_PORT]",), ("env[VLLM_USE_TRITON_AWQ]",)
    wanted = {"ports_0": port, "ports_1": port, "on_one_1": variable}
    assert {step: found[step].changed for step in wanted} == wanted
    assert {found[f"torch_{rank}"].changed for rank in (0, 1)} == {("code_hash", "compiler_hash")}
    assert found["alone_torch_0"].changed == ("compiler_hash",)
    # Configuration and code both differ: it may be another model.
    alone = found["alone_0"]
    assert (alone.verdict, alone.changed, alone.evidence) == ("first_lookup", (), "not_known")


def folder(
    env: dict[str, Any], at: int, tree: str = "", name: str | None = None
) -> tuple[str, dict[str, Any]]:
    """The tree of a folder, and what is in it; written so many seconds after the start."""
    return tree, {"env": env, "time": NOON + at, "name": name}


BEFORE, NOW = folder(ENV, -500), folder(OTHER, 3)
# Folders, of which the last is looked up, how the start ended, and what is said of it.
FOLDERS: dict[str, tuple[list[tuple[str, dict[str, Any]]], str, tuple[str, str, tuple[str, ...], str]]] = {
    "made by this start": ([BEFORE, NOW], "compiled", ("key_changed", "", ("env[VLLM_A]",), "inferred")),
    "a variable is no longer counted": (
        [folder({**ENV, "VLLM_RAY_BUNDLE_INDICES": "0"}, -500), folder(ENV, 3)], "compiled",
        ("key_changed", "", ("env[VLLM_RAY_BUNDLE_INDICES]",), "inferred")),
    "there before": ([BEFORE, folder(OTHER, -300)], "compiled", ("entry_unavailable", "not known", (), "not_known")),
    "copied": ([folder(ENV, 80_000), folder(OTHER, 80_001)], "compiled", ("first_lookup", "not known", (), "not_known")),
    "its name does not follow": (
        [BEFORE, folder(OTHER, 3, name="0123456789")], "compiled", ("details_not_recorded", "vllm", (), "not_known")),
    "partly stored before": ([BEFORE, NOW], "partial", ("entry_unavailable", "partly stored", (), "recorded")),
    "a tree in two places": (
        [folder(ENV, -500, "one"), folder(OTHER, 3, "one"), folder({**ENV, "VLLM_LIST": []}, -500, "two"), folder(OTHER, 3, "two")],
        "compiled", ("details_not_recorded", "vllm", (), "not_known")),
}  # fmt: skip


@pytest.mark.parametrize("case", FOLDERS)
def test_a_start_beside_folders(case: str, tmp_path: Path) -> None:
    folders, outcome, wanted = FOLDERS[case]
    *_, looked_up = (make_folder(tmp_path / tree, **told) for tree, told in folders)
    (miss,) = verdicts(tmp_path, write_log(tmp_path / "server.log", start(looked_up, outcome=outcome)))
    assert (miss.verdict, miss.kind, miss.changed, miss.evidence) == wanted
    assert str(miss.baseline).startswith("entry ") is bool(miss.changed)


@pytest.mark.parametrize(("copied", "evidence", "text"), [
    (0, "recorded", "this one was made by this start"),
    (80_000, "inferred", "no earlier start into this one was read"),
])  # fmt: skip
def test_why_is_known_once_the_other_was_used(copied: int, evidence: str, text: str, tmp_path: Path) -> None:
    old = make_folder(tmp_path, time=NOON - 497 + copied)
    new = make_folder(tmp_path, OTHER, time=NOON + 3 + copied)
    log = write_log(tmp_path / "server.log", start(old, NOON - 500), start(new, pid=2))
    scope = cachescope.read(tmp_path, log)
    first, miss = scope.misses.itertuples()
    assert (miss.verdict, miss.changed, miss.evidence) == ("key_changed", ("env[VLLM_A]",), evidence)
    assert miss.baseline_lookup == first.lookup
    assert miss.evidence_text.endswith(f"run {scope.lookups['run'][0]} had used the other before, and {text}")


def test_first_starts_are_one_cause_which_says_what_they_may_be(tmp_path: Path) -> None:
    log = write_log(tmp_path / "server.log", start("aaaaaaaaaa"))
    assert cachescope.read(log).causes["summary"].tolist() == ["first starts of vLLM (cold start)"]
    make_folder(tmp_path, time=NOON + 80_000)
    copied = make_folder(tmp_path, OTHER, time=NOON + 80_001)
    log = write_log(tmp_path / "server.log", start(copied))
    causes = cachescope.read(tmp_path, log).causes
    assert causes["summary"].tolist() == ["first starts of vLLM, or changed factors"]


def test_the_second_compile_into_a_folder_is_not_explained(tmp_path: Path) -> None:
    make_folder(tmp_path, time=NOON - 500)
    new = make_folder(tmp_path, OTHER, time=NOON + 3)
    log = write_log(tmp_path / "server.log", start(new), start(new, NOON + 60, pid=2))
    first, second = verdicts(tmp_path, log)
    assert first.changed == ("env[VLLM_A]",)
    assert (second.verdict, second.kind, second.changed) == ("entry_unavailable", "not known", ())
    assert second.baseline_lookup == first.lookup


SAME = "aaaaaaaaaa"
FIRST = start(folder_name(ENV), env=ENV)
FIRST_LOOKUP = ("first_lookup", "vllm", (), "inferred")
NOT_KNOWN = ("first_lookup", "not known", (), "not_known")
NEAREST = ("key_changed", "", ("code_hash",), "recorded")
DISABLED = "vLLM's torch.compile cache is disabled."


def of_other(at: int, pid: int, **told: Any) -> str:
    return start(folder_name(OTHER), NOON + at, pid=pid, **{"env": OTHER, **told})


def beside_nearer(**between: Any) -> list[str]:
    """A start that stored its part and logged its hashes, another one just before, and one that differs in its code."""
    first = start(folder_name(ENV, code="old"), env=ENV, code="old")
    return [first, of_other(60, 2, **between), start(folder_name(ENV), NOON + 120, pid=3, env=ENV)]


# Starts in one log, and what is said of the last one; what it is compared with, if anything, is the first.
STARTS: dict[str, tuple[list[str], tuple[str, str, tuple[str, ...], str]]] = {
    "of another model nothing changed": (
        [FIRST, start(folder_name(ENV, "other", "other"), NOON + 60, pid=2, env=ENV, config="other", code="other")], NOT_KNOWN),
    "nor of another part": ([FIRST, of_other(60, 2, prefix="eagle_head")], FIRST_LOOKUP),
    "nor of another rank": ([FIRST, of_other(60, 2, prefix="eagle_head"), of_other(120, 3, rank="rank_1_0")], FIRST_LOOKUP),
    "without hashes it is not known": ([start(SAME), start("bbbbbbbbbb", NOON + 60, pid=2)], ("details_not_recorded", "vllm", (), "not_known")),
    # It is compared with the nearest that can be.
    "the nearest logged no hashes": (beside_nearer(env=None), NEAREST),
    "the nearest is not known to have stored": (beside_nearer(outcome="not known"), NEAREST),
    "the one just before is farther": (beside_nearer(code="old"), NEAREST),
    "a cache that is off": ([start(SAME, before=[DISABLED])], ("disabled", "vllm", (), "recorded")),
    "in another directory": ([start(SAME), start(SAME, NOON + 60, pid=2, root="/d")], ("entry_unavailable", "another directory", (), "recorded")),
    "still made in another directory": ([start(SAME), start(SAME, NOON + 1, pid=2, root="/d")], FIRST_LOOKUP),
    "two at once": ([start(SAME), start(SAME, NOON + 5, pid=2)], ("compiled_concurrently", "", (), "inferred")),
}  # fmt: skip


@pytest.mark.parametrize("case", STARTS)
def test_a_start_after_others(case: str, tmp_path: Path) -> None:
    starts, wanted = STARTS[case]
    scope = cachescope.read(write_log(tmp_path / "server.log", *starts))
    first, *_, miss = [*scope.misses.itertuples()] * (1 if len(starts) > 1 else 2)
    assert first.verdict == ("first_lookup" if len(starts) > 1 else "disabled")
    assert (miss.verdict, miss.kind, miss.changed, miss.evidence) == wanted
    is_compared = wanted[0] not in ("first_lookup", "disabled", "details_not_recorded")
    assert (miss.baseline_lookup == 0) if is_compared else pd.isna(miss.baseline_lookup)
    assert scope.lookups["outcome"].iloc[-1] == ("disabled" if wanted[0] == "disabled" else "full_miss")
    assert ("VLLM_LOGGING_LEVEL=DEBUG" in miss.reason) is (wanted[0] == "details_not_recorded")


@pytest.mark.parametrize(
    ("prefix", "verdict"), [("backbone", "details_not_recorded"), ("eagle_head", "first_lookup")]
)
def test_a_folder_not_read_is_unknown_beside_another(prefix: str, verdict: str, tmp_path: Path) -> None:
    make_folder(tmp_path, prefix=prefix, time=NOON - 500)
    (miss,) = verdicts(tmp_path, write_log(tmp_path / "server.log", start("aaaaaaaaaa")))
    assert (miss.verdict, miss.changed) == (verdict, ())


@pytest.mark.sweep
def test_a_thousand_engines_that_differ_in_a_port_are_one_cause(tmp_path: Path) -> None:
    starts = []
    for number in range(1000):
        env = {**ENV, "VLLM_SIDE_PORT": number}
        name = make_folder(tmp_path, env, time=NOON + 20 * number + 3)
        starts.append(start(name, NOON + 20 * number, pid=number + 1))
    scope = cachescope.read(tmp_path, write_log(tmp_path / "server.log", *starts))
    found = scope.causes[["verdict", "fields", "misses"]].values.tolist()
    assert found == [["key_changed", ("env[VLLM_SIDE_PORT]",), 999], ["first_lookup", (), 1]]


@pytest.mark.parametrize("hours", [-8, 9])
def test_a_clock_of_another_time_zone_is_told_by_two_folders(hours: int, tmp_path: Path) -> None:
    make_folder(tmp_path, time=NOON - 100_000)
    made = ("2", 3), ("3", 603)
    names = [make_folder(tmp_path, {**ENV, "VLLM_A": value}, time=NOON + at) for value, at in made]
    starts = [start(name, NOON + 3600 * hours + 600 * at, pid=at + 1) for at, name in enumerate(names)]
    log = write_log(tmp_path / "server.log", *starts)
    assert {miss.changed for miss in verdicts(tmp_path, log)} == {("env[VLLM_A]",)}
    (miss,) = verdicts(tmp_path, write_log(tmp_path / "server.log", starts[0]))
    assert (miss.changed, miss.evidence) == ((), "not_known")


def test_a_model_that_could_not_be_saved_is_why_the_next_start_compiled(tmp_path: Path) -> None:
    path = f"/c/torch_compile_cache/torch_aot_compile/{'e' * 64}/rank_0_0/model"
    failed = said(f"unable to save AOT compiled function to {path}: Can't pickle f", NOON + 11)
    log = write_log(tmp_path / "a.log", start("a" * 10), failed)
    _, miss = verdicts(log, write_log(tmp_path / "b.log", start("a" * 10, NOON + 3600, pid=2)))
    assert (miss.verdict, miss.kind, miss.evidence) == ("entry_unavailable", "not saved", "inferred")
    assert "could not save the whole compiled model: Can't pickle f" in miss.reason


EDITED = "Source code has changed since the last compilation. Recompiling the model."
CODE_CHANGED, OTHER_CHANGED = (
    Judged(Why("key_changed", "it changed", "inferred", "", changed), baseline=3)
    for changed in (("code_hash",), ("code_hash", "env[VLLM_A]"))
)
NEW = Judged(Why("first_lookup", "it is new", "inferred", ""), baseline=3)


@pytest.mark.parametrize(
    ("changed", "baseline"), [(None, None), (NEW, None), (OTHER_CHANGED, None), (CODE_CHANGED, 3)]
)
def test_files_that_were_edited(changed: Judged | None, baseline: int | None) -> None:
    """They are compared with another start only if nothing else changed since then."""
    found = not_loaded(EDITED, changed)
    why = found.why
    assert (why.verdict, why.changed, why.evidence) == ("key_changed", ("code_hash",), "recorded")
    assert found.baseline == baseline


@pytest.mark.parametrize(("changed", "reason"), [
    (None, "a whole compiled model was there and could not be loaded: EOFError"),
    (NEW, "a whole compiled model was there and could not be loaded: EOFError"),
    (CODE_CHANGED, "a whole compiled model was there and could not be loaded: EOFError; of its graphs, it changed"),
])  # fmt: skip
def test_an_error_of_loading_it(changed: Judged | None, reason: str) -> None:
    found = not_loaded("EOFError", changed)
    why = found.why
    assert (why.verdict, why.kind, why.evidence) == ("entry_unavailable", "load error", "recorded")
    assert found.why.reason == reason
