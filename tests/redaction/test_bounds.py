"""Redaction of long and of many texts: a megabyte of anything takes a second or so, and no path is tried one by one."""

from __future__ import annotations

import time

import pytest

from cachescope.report.redact import Identities, Redaction

_LONG = (
    "a", "token", "a:", "/torch/", "/", "\\", "'/", '"', "user", "AB=", "password='", "&a", "%41", "a-", "a.", "<path-", "1",
    "0:", "a_", "add_", " ", "bearer ", "a@", "a://", "1+", "s0/", "&#x2f;", "0123abcd-", "~a", "../", "\\u002f", "b'/",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("part", _LONG)
def test_a_long_line_is_hidden_in_linear_time(part: str) -> None:
    before = time.process_time()
    shown = Redaction()(part * (400_000 // len(part)) + "!g")
    # A quarter of a second as a rule. One look back at the whole text for each of its places would take hours.
    assert time.process_time() - before < 10
    assert isinstance(shown, str)


@pytest.mark.slow
def test_many_paths_with_blanks_are_found_at_once() -> None:
    paths = [f"/tmp/a folder/of mine/{number}/x y" for number in range(5000)]
    redaction = Redaction(Identities(paths=paths))
    before = time.process_time()
    shown = redaction([f"is in {path}, not known" for path in paths])
    assert time.process_time() - before < 10
    assert len(set(shown)) == 5000 and all(
        text.startswith("is in <path-") and text.endswith(">, not known") for text in shown
    )
