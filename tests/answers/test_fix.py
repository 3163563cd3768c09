"""What is found by trying: the pre-flights are recorded ones, chosen by the settings that are tried."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import cachescope
from cachescope.analysis.fixes import HASH_SEED_WAY, Setting
from cachescope.answers import fix as module
from cachescope.answers.fix import Fix
from cachescope.answers.read import Read
from cachescope.report.preflight import fix_lines, fix_object
from tests.conftest import Archive

THREADS = "export OMP_NUM_THREADS=2"
FUSION = "torch._inductor.config.epilogue_fusion = True"
FUSION_AS_OPTION = 'torch.compile(…, options={"epilogue_fusion": True})'
Reads = dict[str, Read]


@pytest.fixture(scope="module")
def reads(archive: Archive) -> Reads:
    folder = archive("preflights/2.13.0")
    steps = ("as_baked", "changed", "half_fixed")
    return {step: cachescope.read(folder / step, folder / "cache") for step in steps}


def fix(reads: Reads, fusion: Sequence[str], fails: Callable[[set[str]], bool] = lambda codes: False) -> Fix:
    """A program that was recorded, in which some lines set back the option; with some it fails."""

    def trial(settings: Sequence[Setting]) -> Read | None:
        codes = {setting.code for setting in settings}
        if fails(codes):
            return None
        if THREADS not in codes:
            return reads["changed"]
        return reads["half_fixed" if codes.isdisjoint(fusion) else "as_baked"]

    found = Fix.of(trial, {})
    assert found is not None
    return found


def codes(found: Fix) -> list[str]:
    return [setting.code for setting in found.settings]


@pytest.mark.slow
def test_both_are_needed(reads: Reads) -> None:
    found = fix(reads, [FUSION])
    assert codes(found) == [THREADS, FUSION]
    assert (found.before.counts["would_hit"], found.after.counts["would_hit"]) == (0, 6)
    assert found.remaining == ()
    # As it is, with both, and with each alone.
    assert found.trials == 4


def test_the_next_way_is_tried_where_the_first_changes_nothing(reads: Reads) -> None:
    assert codes(fix(reads, [FUSION_AS_OPTION])) == [THREADS, FUSION_AS_OPTION]


def failed(found: Fix) -> list[list[str]]:
    return [[setting.code for setting in way] for way in found.failed]


def test_a_way_that_the_program_fails_with_gives_way_to_the_next(reads: Reads) -> None:
    """The threads, which are tried with it, stay as they are."""
    found = fix(reads, [FUSION, FUSION_AS_OPTION], fails=lambda codes: FUSION in codes)
    assert codes(found) == [THREADS, FUSION_AS_OPTION] and failed(found) == [[FUSION]]
    assert found.after.counts["would_hit"] == 6
    assert f"left out, as the command failed with it: {FUSION}" in "\n".join(
        line.text for line in fix_lines(found)
    )
    (reported,) = fix_object(found)["failed_with"]
    assert [setting["code"] for setting in reported] == [FUSION]


def test_what_remains_is_told_where_no_way_of_a_field_works(reads: Reads) -> None:
    ways = {FUSION, FUSION_AS_OPTION}
    found = fix(reads, [*ways], fails=lambda codes: not codes.isdisjoint(ways))
    assert failed(found) == [[FUSION], [FUSION_AS_OPTION]]
    # A half that brings no hit is none.
    assert codes(found) == []
    assert sum(one.misses for one in found.remaining) == 6


@pytest.mark.parametrize("fusion", [[FUSION], []])
def test_what_the_program_fails_with_is_never_claimed(reads: Reads, fusion: list[str]) -> None:
    found = fix(reads, fusion, fails=bool)
    assert found.settings == () and found.after.counts == found.before.counts
    assert sum(one.misses for one in found.remaining) == 6


@pytest.mark.parametrize(("variables", "is_luck", "wanted"), [
    ({}, True, []),
    ({}, False, [FUSION]),
    ({"PYTHONHASHSEED": "7"}, True, [FUSION]),
    ({"PYTHONHASHSEED": "random"}, True, []),
])  # fmt: skip
def test_hits_that_come_once_are_not_claimed_where_sets_are_ordered_anew(
    variables: dict[str, str], is_luck: bool, wanted: list[str], reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    fusion = Setting("attribute", *FUSION.split(" = "))
    monkeypatch.setattr(module, "ways_to_set", lambda *sides: (HASH_SEED_WAY, (fusion,)))
    tried: list[Sequence[Setting]] = []

    def trial(settings: Sequence[Setting]) -> Read | None:
        tried.append(settings)
        hits = fusion in settings and not (is_luck and tried.count(settings) > 1)
        return reads["as_baked" if hits else "changed"]

    found = Fix.of(trial, variables)
    assert found is not None and codes(found) == wanted
    assert found.trials == len(tried) and (found.after.counts["would_hit"] == 6) is bool(wanted)


def test_a_half_that_brings_no_hit_is_no_fix(reads: Reads) -> None:
    found = fix(reads, [])
    assert found.settings == () and found.after.counts["would_hit"] == 0


def test_lookups_that_are_not_known_any_more_are_no_fix(reads: Reads) -> None:
    alone = cachescope.read(Path(reads["as_baked"].runs["source"].iloc[0]))
    assert set(alone.lookups["outcome"]) == {"not_known"}
    found = Fix.of(lambda settings: alone if settings else reads["changed"], {})
    assert found is not None and found.settings == ()


def test_a_program_that_fails_as_it_is_has_no_fix() -> None:
    assert Fix.of(lambda settings: None, {}) is None
