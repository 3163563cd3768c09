"""Pre-flights of programs that look a key up again: with other sizes, and twice in one run."""

from pathlib import Path

import pytest

from cachescope.scope.preflight import read_preflight
from tests.capture.preflights import assert_came_true, predicted, preflown, program, really

pytestmark = [pytest.mark.torch, pytest.mark.slow]


def test_guards_that_do_not_hold_are_predicted(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    few = {"PREFLIGHT_PROGRAM_SIZES": "5 6"}
    really(program("guarded_size"), cache, tmp_path / "first", **few)
    many = {"PREFLIGHT_PROGRAM_SIZES": "50 60"}
    traces = preflown(program("guarded_size"), cache, tmp_path / "preflight", **many)
    told = predicted(traces, cache)
    assert set(read_preflight(str(traces), [str(cache)]).misses["verdict"]) == {"guard_failed"}
    assert_came_true(told, really(program("guarded_size"), cache, tmp_path / "second", **many))
    # Both are stored now.
    assert {outcome for *_, outcome in predicted(traces, cache)} == {"hit"}


def test_the_second_lookup_of_a_key_finds_what_the_first_would_store(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    told = predicted(preflown(program("twice"), cache, tmp_path / "preflight"), cache)
    assert [outcome for *_, outcome in told] == ["miss"] * 3 + ["hit"] * 3
    assert_came_true(told, really(program("twice"), cache, tmp_path / "real"))
