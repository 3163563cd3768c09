"""What every command says of the inputs of data/field_cases, whose README has the right answers."""

import html
import re
from pathlib import Path

import pytest

import cachescope
from tests.cli.conftest import Run
from tests.truth import MADE

CASES = Path(__file__).parents[1] / "data" / "field_cases"
# The whole answer of `explain` has these words; the lookups are those of truth.MADE.
RIGHT: dict[str, list[str]] = {
    "vllm-0.9-two-starts.log": ["compiled in 48.2 s", "loaded in 3.8 s"],
    "vllm-0.7-head.log": ["03bd9e11aa, rank 0, run 0: loaded"],
    "vllm-windows.log": ["backbone of c4410d77ef, rank 0, run 0: compiled in 9.2 s"],
    "vllm-tagged.log": ["backbone of 88aa10fe21, rank 0, run 0: loaded", "draft_model of 88aa10fe21, rank 0, run 0: compiled in 12.6 s"],
    "vllm-unsaved.log": ["could not be saved: cannot pickle 'RLock' object", "compiled in 30.2 s",
         "no load of the whole model is logged; inferred: because run 0 could not save it"],
    "esc-lost.log": ["rank 0, run 0: loaded", "rank 1, run 1: compiled in 33.0 s"],
    "framed.log": ["All 5 lookups hit"],
    "damaged-at-default-level.log": ["compile 0/0: an entry could not be loaded: EOFError", "does not say that there was none"],
    "unpicklable-at-default-level.log": ["compile 2/0: bypassed, the key could not be pickled: AttributeError: Can't pickle local object", "make_scaler"],
    "pad-mm": ["1 entry of 913 B"],
    "vllm-devices": ["vLLM: 1 folder 41c09d7a55 (rank_0_0_dev0, rank_1_0_dev1): no cache_key_factors.json"],
    "glued-progress.log": ["1 hit, 1 missed"],
}  # fmt: skip
# What would say that there was nothing to find.
DENIED = re.compile(
    r"caches? (?:were|was) off|nothing was (?:compiled(?! twice)|looked up)|no cache was asked", re.IGNORECASE
)
COMMANDS = ("explain", "entries", "time", "compiles", "diff", "check", "report")


def said(run: Run, command: str, path: Path, tmp_path: Path) -> str:
    more = {"check": ["--min-hit-rate", "0.01"], "diff": [str(path)], "report": ["--markdown"]}
    result = run(command, str(path), *more.get(command, []))
    return " ".join((result.out + result.err).split())


@pytest.mark.parametrize("name", RIGHT)
def test_the_answer_is_right(name: str, run: Run, tmp_path: Path) -> None:
    words = RIGHT[name]
    scope = cachescope.read(CASES / name)
    told = scope.lookups["cache"] + " " + scope.lookups["outcome"].str.removeprefix("full_")
    assert told.tolist() == MADE.get(name, [])
    outcomes = scope.lookups["outcome"].tolist()
    explained = said(run, "explain", CASES / name, tmp_path)
    # As the page has them: without its elements, and places where a line may break.
    written = scope.report(tmp_path / "page.html").read_text()
    page = re.sub(r"(?s)<(script|style)\b.*?</\1>|<wbr>", "", written)
    shown = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())
    assert all(word in text for word in words for text in (explained, shown)), (explained, shown)
    assert not DENIED.search(shown)
    assert "unknown outcome" not in explained and "not understood" not in explained
    told = run("explain", str(CASES / name), "--json").json
    assert [row["outcome"] for row in told["lookups"]] == outcomes
    for command in COMMANDS:
        answer = said(run, command, CASES / name, tmp_path)
        assert not DENIED.search(answer), f"{command}: {answer}"
        if outcomes and command == "report":
            told = (f"{outcomes.count('hit')} hit", "lookups hit", "lookup hit")
            assert any(words in answer for words in told)


def test_json_has_why_a_whole_model_was_not_loaded(run: Run) -> None:
    starts = run("time", str(CASES / "vllm-unsaved.log"), "--json").json["vllm_starts"]
    assert [(start["run"], start["unsaved_by"]) for start in starts] == [(0, None), (1, 0)]


def test_counters_alone_are_quoted_and_nothing_is_denied(run: Run, tmp_path: Path) -> None:
    for command in COMMANDS:
        answer = said(run, command, CASES / "default-level.log", tmp_path)
        assert "no line of a lookup stands in this file" in answer and "which of these is not known" in answer
        assert "say of the FX cache: 1 miss, 2 hit" in answer and not DENIED.search(answer)


def test_counters_of_several_processes_are_not_added(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "two.log"
    log.write_text(
        "{'fxgraph_cache_miss': 1}\n{'fxgraph_cache_miss': 1}\n{'fxgraph_cache_hit': 1, 'fxgraph_cache_miss': 0}\n"
    )
    assert "FX cache: 1 miss; then 1 hit, 0 miss;" in said(run, "explain", log, tmp_path)


def test_the_device_of_answers_of_pad_mm(run: Run, tmp_path: Path) -> None:
    devices = said(run, "devices", CASES / "pad-mm", tmp_path)
    assert "NVIDIA GeForce RTX 3090" in devices and "Triton 3.4.0, cuda 12.6" in devices
    (entry,) = run("entries", str(CASES / "pad-mm"), "--json").json["entries"]
    assert (entry["status"], entry["detail"]) == ("ok", "4 answers of pad_mm (Triton 3.4.0, cuda 12.6)")


def test_each_device_of_a_fork_is_a_rank() -> None:
    folders = cachescope.read(CASES / "vllm-devices").vllm_folders
    assert (set(folders["folder"]), folders["rank"].tolist()) == ({"41c09d7a55"}, [0, 1])


def test_every_input_is_held_to_its_answer() -> None:
    assert {path.name for path in CASES.iterdir()} == {*RIGHT, "default-level.log", "README.md"}
