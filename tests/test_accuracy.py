"""The page of how right cachescope is says what is counted now; and what scores answers sees what is wrong with them."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests import accuracy, score
from tests.conftest import Archive, Directory, Recording
from tests.recordings import RECORDED
from tests.scenarios import RELEASES
from tests.truth import processes

COUNTED = accuracy.read_rows()
# One of each kind: fields, guards, an entry that is gone, two services in one stream, what a trace does not tell.
QUICK = {
    ("2.13.0", name) for name in ("tour", "dynamic_guards", "entry_deleted", "two_services", "failed_codegen")
}


def test_the_page_is_made_of_what_was_counted() -> None:
    assert accuracy.PAGE.read_text(encoding="utf-8") == accuracy.page_of(COUNTED), "run make accuracy"
    assert not [row for row in COUNTED if row.wrong or (row.false and row.source == accuracy.SOURCES[2])]


def test_every_recording_was_counted() -> None:
    tool = accuracy.tlparse()["tool"]
    for source in ("trace", "directory", tool):
        rows = [row for row in COUNTED if row.source == source and row.release not in RELEASES]
        counted = sorted((row.release, row.recording) for row in rows)
        assert counted == RECORDED


@pytest.mark.parametrize(("version", "name"), [
    one if one in QUICK else pytest.param(*one, marks=pytest.mark.slow) for one in RECORDED
])  # fmt: skip
def test_a_recording_is_told_as_the_page_says(version: str, name: str, recording: Recording) -> None:
    folder = recording(version, name)
    now = [*accuracy.rows_of(version, name, folder), accuracy.tlparse_row(version, name, folder)]
    assert now == [row for row in COUNTED if (row.release, row.recording) == (version, name)]


@pytest.mark.slow
@pytest.mark.parametrize("release", RELEASES)
def test_the_few_recordings_of_a_release_are_told_as_the_page_says(release: str) -> None:
    now = sorted(accuracy.rows_of_release(score.RELEASES / f"{release}.tar.xz"), key=accuracy.place_of)
    assert now == [row for row in COUNTED if row.release == release]
    assert sum(row.counted for row in now if row.source == "trace") >= 30


def test_vllm_made_logs_and_keys_are_told_as_the_page_says(directory: Directory, tmp_path: Path) -> None:
    now = [accuracy.vllm_row(release, tmp_path / release) for release in accuracy.vllm_recordings.VERSIONS]
    now += [accuracy.made_row(), accuracy.recorded_keys_row(directory("caching_2.10.0"))]
    assert set(now) <= set(COUNTED)


@pytest.mark.torch
def test_every_isolation_key_of_this_torch_is_equal(cache_root: Path) -> None:
    assert accuracy.live_keys_row() in COUNTED


@pytest.fixture(scope="module")
def flipped(archive: Archive) -> tuple[score.Answer, list[Any]]:
    """A right answer about one recording, and what is true of it."""
    true = processes(archive("recordings/2.13.0/config_flip"), "2.13.0", "config_flip")
    answer = {"processes": [
        {"files": one["files"], "pid": None, "lookups": [
            {"cache": lookup["cache"], "outcome": lookup["outcome"], **dict(zip(("reason", "changed"), *lookup["reasons"], strict=True))}
            if lookup["reasons"] else {"cache": lookup["cache"], "outcome": lookup["outcome"]}
            for lookup in one["lookups"]
        ]} for one in true
    ]}  # fmt: skip
    return answer, true


RIGHT = {"counted": 6, "found": 6, "right": 6, "wrong": 0, "reasons": 4, "named": 4}


@pytest.mark.parametrize(("process", "lookup", "told", "differs"), [
    (0, 0, {}, {}),
    (1, 0, {"outcome": "hit"}, {"right": 5, "wrong": 1, "named": 3}),
    (1, 0, {"outcome": None}, {"right": 5, "named": 3}),
    (2, 1, {"outcome": "bypass"}, {"right": 5, "wrong": 1}),
    (1, 1, {"reason": None}, {"named": 3}),
    (1, 1, {"changed": ["gm"]}, {"named": 3, "false": 1}),
    (1, 1, {"changed": []}, {"named": 3, "false": 1}),
    (0, 1, {"reason": "key_changed", "changed": ["gm"]}, {"named": 3, "false": 1}),
    (1, 1, {"cache": "aotautograd"}, {"found": 5, "right": 5, "wrong": 1, "named": 3}),
])  # fmt: skip
def test_what_is_wrong_is_counted(
    process: int, lookup: int, told: dict[str, Any], differs: dict[str, int],
    flipped: tuple[score.Answer, list[Any]],
) -> None:  # fmt: skip
    answer = copy.deepcopy(flipped[0])
    answer["processes"][process]["lookups"][lookup].update(told)
    found = score.scored(answer, flipped[1])
    assert +found == +score.Counter(RIGHT | differs)
    assert len(found.wrong) == found["wrong"] + found["false"]


def test_a_process_that_is_left_out_is_not_found(flipped: tuple[score.Answer, list[Any]]) -> None:
    found = score.scored({"processes": flipped[0]["processes"][:2]}, flipped[1])
    assert (found["counted"], found["found"], found["named"]) == (6, 4, 4)


def test_tools_stand_side_by_side_on_what_both_claim(flipped: tuple[score.Answer, list[Any]]) -> None:
    answer, true = flipped
    tools = [
        {"tool": name, "claims": claims, "recordings": {"2.13.0/config_flip": answer}}
        for name, claims in (("one", ["outcomes", "reasons"]), ("two", ["outcomes"]))
    ]
    given = {"2.13.0/config_flip": true, "other": []}
    table = score.side_by_side(score.of_all(json.loads(json.dumps(tools)), given))
    assert "| with torch's outcome | 6 | 6 |" in table and "| named right | 4 | – |" in table
