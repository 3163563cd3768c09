"""Why vLLM compiled again, in the answer and in the lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import cachescope
from cachescope.answers.vllm import VllmFolders
from cachescope.cli import main
from tests.vllm_folders import ENV, make_folder
from tests.vllm_recordings import VERSIONS, Recorded, recorded

NOON = 1_790_000_000


@pytest.fixture(scope="module")
def vllm_run(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return recorded(VERSIONS[-1], tmp_path_factory.mktemp("vllm"))


def explained(capsys: pytest.CaptureFixture[str], *paths: Path) -> str:
    assert main(["explain", *map(str, paths)]) == 0
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_explain_names_each_change(vllm_run: Recorded, capsys: pytest.CaptureFixture[str]) -> None:
    text = explained(capsys, vllm_run.cache)
    assert (
        "9 folders whose names follow from their factors; 8 of them made although another was there before"
        in text
    )
    assert "env[VLLM_NIXL_SIDE_CHANNEL_PORT]: 5600 → 5601 (apparently differs by port)" in text
    assert (
        "the configuration differs (the model, its settings, vLLM's version); vLLM keeps only its hash"
        in text
    )


def test_json_has_the_frames(vllm_run: Recorded, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--json", str(vllm_run.cache)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert len(printed["vllm_folders"]) == 18
    assert {"vllm_changes", "vllm_fragments", "vllm_ranks", "vllm_starts"} <= printed.keys()


def test_without_vllm_there_is_no_word_of_it() -> None:
    assert VllmFolders.of(cachescope.read(cachescope.sample("config_flip"))) is None


def test_the_folders_of_a_thousand_ports_are_one_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for port in range(7000, 7040):
        make_folder(tmp_path, {**ENV, "VLLM_SIDE_PORT": port}, time=NOON + port)
    text = explained(capsys, tmp_path)
    assert "env[VLLM_SIDE_PORT]: 40 values (apparently port); without it 1 of 40 folders" in text


def test_names_that_do_not_follow_are_said_to_be_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_folder(tmp_path, name="0123456789")
    make_folder(tmp_path, name="9876543210")
    text = explained(capsys, tmp_path)
    assert "0 folders whose names follow" in text
    assert "0123456789: the name follows from no factors in it" in text


def test_hostile_names_steer_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for value in ("\x1b[31m", "\u202e"):
        make_folder(tmp_path, {**ENV, "VLLM_\x1b[2J\n::error::": value})
    assert main(["explain", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert not any(line.lstrip().startswith("::") for line in printed.splitlines())
