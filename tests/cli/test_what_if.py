"""``cachescope what-if`` on the shipped sample."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import cachescope
from cachescope.cli import main

FUSION = "inductor_config[epilogue_fusion]"


@pytest.fixture
def sample() -> str:
    return str(cachescope.sample("config_flip"))


def test_without_a_toggle_it_ranks_what_would_help(sample: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["what-if", sample]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("6 lookups in 3 runs: 2 hit, 4 missed")
    assert "nothing changes" in printed and FUSION in printed and "2 misses" in printed


def test_a_toggle_says_what_would_have_hit(sample: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["what-if", sample, "--without", FUSION]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("2 -> 4 of 6 lookups hit (33 % -> 67 % by count")
    assert "what-if keys" in printed and "torch's keys cannot be rebuilt" in " ".join(printed.split())
    assert "What would have hit if" not in printed


def test_json_holds_the_frames(sample: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["what-if", sample, "--without", FUSION, "--sensitivity", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    scope = cachescope.read(sample)
    assert [row["outcome_after"] for row in printed["what_if"]] == scope.what_if(without=FUSION).frame[
        "outcome_after"
    ].tolist()
    assert printed["schema"]["without"] == [FUSION]
    assert printed["sensitivity"][0]["fields"] == [FUSION]
    frames = {name for name in printed if name not in ("cachescope", "schema")}
    assert frames <= set(cachescope.describe()["frame"])


def test_a_schema_file(sample: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "schema.json"
    file.write_text('{"runtime_context": {"torch_determinism_configs": true}, "compile_context": true}')
    assert main(["what-if", sample, "--schema", str(file)]) == 0
    assert capsys.readouterr().out.startswith("2 -> 4 of 6 lookups hit")


@pytest.mark.parametrize(
    ("content", "words"), [("[]", "mapping"), ("{", "JSON"), ('{"runtime_context": true}', "compile_context")]
)
def test_a_schema_that_is_none_is_one_line(
    content: str, words: str, sample: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "schema.json"
    file.write_text(content)
    assert main(["what-if", sample, "--schema", str(file)]) == 1
    error = capsys.readouterr().err
    assert words in error and str(file) in error and error.count("\n") == 1


def test_a_schema_file_that_is_not_there(sample: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["what-if", sample, "--schema", "/nowhere.json"]) == 1
    assert "/nowhere.json: cannot be read" in capsys.readouterr().err


def test_a_field_that_is_not_there_is_wrong_usage(sample: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["what-if", sample, "--without", "inductor_config[epilog_fusion]"]) == 2
    assert FUSION in capsys.readouterr().err


def test_an_empty_field_is_wrong_usage(sample: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["what-if", sample, "--without", ""]) == 2
    assert capsys.readouterr().err.endswith("is named by a text, not the empty one\n")


@pytest.mark.slow
def test_redact_hides_the_paths(sample: str, capsys: pytest.CaptureFixture[str]) -> None:
    for json_ in ([], ["--json"]):
        assert main(["what-if", sample, "--redact", *json_]) == 0
        assert sample not in capsys.readouterr().out
