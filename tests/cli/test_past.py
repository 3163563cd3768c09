"""A cache directory without a log: `explain` tells the misses that made its further entries."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Run
from tests.conftest import Directory, Recording

pytestmark = pytest.mark.slow


def test_the_field_that_made_the_second_entry_is_named(run: Run, recording: Recording) -> None:
    out = run("explain", recording("2.13.0", "config_flip") / "cache").out
    assert "inductor_config[epilogue_fusion]   True -> False" in out
    assert "1 entry was made although the graph had been stored before" in out


def test_equal_code_is_said_to_be_equal_and_only_then(run: Run, recording: Recording) -> None:
    assert (
        "The generated source is the same"
        in run("explain", recording("2.13.0", "cache_key_tag") / "cache").out
    )
    assert (
        "The generated source is the same" not in run("explain", recording("2.13.0", "inputs") / "cache").out
    )


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


def test_with_a_log_the_log_has_the_word(run: Run, recording: Recording) -> None:
    folder = recording("2.13.0", "config_flip")
    assert "made although" not in run("explain", folder / "trace", folder / "cache").out


def test_json_lists_them(run: Run, recording: Recording) -> None:
    printed = json.loads(run("explain", recording("2.13.0", "training") / "cache", "--json").out)
    assert [miss["verdict"] for miss in printed["past_misses"]] == ["key_changed", "key_changed"]
