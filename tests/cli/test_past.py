"""A cache directory without a log: `explain` tells the misses that made its further entries."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Run
from tests.conftest import Directory, Recording

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "kinds", "said", "unsaid"),
    [
        ("config_flip", ["cache"], "inductor_config[epilogue_fusion]   True -> False", "2 entries"),
        ("config_flip", ["cache"], "1 entry was made although the graph had been stored before", "2 entries"),
        # With a log the log has the word.
        ("config_flip", ["trace", "cache"], "6 lookups", "made although"),
        ("cache_key_tag", ["cache"], "The generated source is the same", "but kernels"),
        ("inputs", ["cache"], "made although", "generated source is the same"),
    ],
)  # fmt: skip
def test_what_made_further_entries_is_told(
    name: str, kinds: list[str], said: str, unsaid: str, run: Run, recording: Recording
) -> None:
    out = run("explain", *(recording("2.13.0", name) / kind for kind in kinds)).out
    assert said in out and unsaid not in out


def test_equal_code_with_other_kernels_is_no_reason_to_call_a_field_needless(
    run: Run, directory: Directory, recording: Recording
) -> None:
    blocks = " ".join(run("explain", directory("compile_flags") / "cache").out.split()).split("cache_key_tag")
    flag, tag = blocks
    assert "but kernels compiled from it differ: what changed does matter" in flag
    assert "and so are its compiled kernels: what changed was not needed for this graph" in tag
    # The recordings hold no compiled files.
    out = " ".join(run("explain", recording("2.13.0", "cache_key_tag") / "cache").out.split())
    assert "not all compiled kernels could be compared" in out


def test_json_lists_them(run: Run, recording: Recording) -> None:
    printed = json.loads(run("explain", recording("2.13.0", "training") / "cache", "--json").out)
    assert [miss["verdict"] for miss in printed["past_misses"]] == ["key_changed", "key_changed"]
