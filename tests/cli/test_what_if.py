"""``cachescope what-if`` on the shipped sample."""

import re
from pathlib import Path

import pytest

import cachescope
from tests.cli.conftest import Run
from tests.conftest import Recording

FUSION = "inductor_config[epilogue_fusion]"
SAMPLE = str(cachescope.sample("config_flip"))


def test_without_a_toggle_it_ranks_what_would_help(run: Run) -> None:
    done = run("what-if", SAMPLE)
    assert done.status == 0 and done.out.startswith("6 lookups in 3 runs: 2 hit, 4 missed")
    assert "with no field left out" in done.out
    assert re.search(r"^  epilogue_fusion +2 misses", done.out, re.MULTILINE)


def test_a_toggle_says_what_would_have_hit(run: Run) -> None:
    done = run("what-if", SAMPLE, "--without", FUSION)
    assert done.status == 0 and done.out.startswith("2 -> 4 of 6 lookups hit (33 % -> 67 % by count")
    assert "what-if keys" in done.out and "torch's keys cannot be rebuilt" in done.flat
    assert "What would have hit if" not in done.out


@pytest.mark.slow
def test_a_list_that_is_cut_says_so(recording: Recording) -> None:
    scope = cachescope.read(recording("2.15.0", "upgrade"))
    varying = tuple(scope.replay.table.varying)
    assert f"… and {len(varying) - 6} more fields: .safety has all" in str(scope.what_if(without=varying))


def test_json_holds_the_frames(run: Run) -> None:
    printed = run("what-if", SAMPLE, "--without", FUSION, "--sensitivity", "--json").json
    after = cachescope.read(SAMPLE).what_if(without=FUSION).frame["outcome_after"]
    assert [row["outcome_after"] for row in printed["what_if"]] == after.tolist()
    assert printed["schema"]["without"] == [FUSION] and printed["sensitivity"][0]["fields"] == [FUSION]
    frames = {name for name in printed if name not in ("cachescope", "schema")}
    assert frames <= set(cachescope.describe()["frame"])


def test_a_schema_file(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_text('{"runtime_context": {"torch_determinism_configs": true}, "compile_context": true}')
    done = run("what-if", SAMPLE, "--schema", file)
    assert done.status == 0 and done.out.startswith("2 -> 4 of 6 lookups hit")
