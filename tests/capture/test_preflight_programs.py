"""Every program of `preflight_programs`: each key and each outcome that is foretold, held against torch's real runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.capture.preflight_programs import PROGRAMS
from tests.capture.preflights import (
    assert_came_true,
    copied,
    entries_of,
    foretold,
    preflown,
    program,
    really,
    tree_hash,
)

pytestmark = [pytest.mark.torch, pytest.mark.models]


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_foretold_comes_true(tmp_path: Path, name: str) -> None:
    cache = tmp_path / "cache"
    traces = preflown(program(name), cache, tmp_path / "preflight")
    assert not cache.exists()
    assert_came_true(foretold(traces, cache), really(program(name), cache, tmp_path / "cold"))
    before = tree_hash(cache)
    told = foretold(traces, cache)
    assert tree_hash(cache) == before
    lacking = copied(cache, tmp_path / "lacking")
    assert_came_true(told, really(program(name), cache, tmp_path / "warm"))
    if graphs := entries_of(lacking, "fxgraph"):
        graphs[-1].unlink()
        told = foretold(traces, lacking)
        assert_came_true(told, really(program(name), lacking, tmp_path / "deleted"))


@pytest.mark.parametrize("name", ["mlp", "training", "convolution", "automatic_dynamic", "attention"])
def test_what_is_foretold_under_another_config_comes_true(tmp_path: Path, name: str) -> None:
    cache, changed = tmp_path / "cache", {"PREFLIGHT_PROGRAM_CONFIG": "epilogue_fusion"}
    really(program(name), cache, tmp_path / "before")
    traces = preflown(program(name), cache, tmp_path / "preflight", **changed)
    assert_came_true(foretold(traces, cache), really(program(name), cache, tmp_path / "after", **changed))
