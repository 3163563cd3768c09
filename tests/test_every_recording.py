"""Every recording is unpacked and read once, and held to every check; what fails of one is told together.

`CACHESCOPE_SHARE` draws a quarter of them.
"""

import re
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.analysis.directory.test_false_hits import check_there_is_no_false_hit
from tests.analysis.phases.test_frame import check_phases_are_what_a_plain_replay_says
from tests.analysis.test_real_values import check_nothing_else_is_taken_for_a_value_of_a_process
from tests.analysis.verdicts.test_baked import check_no_copy_of_its_own_directory_is_called_another
from tests.analysis.verdicts.test_first_lookups import (
    check_nothing_becomes_new_or_edited_without_details_of_autograd,
)
from tests.analysis.what_if.test_what_if import check_the_unchanged_schema_gives_the_recorded_outcomes
from tests.answers.test_compared_runs import (
    check_every_lookup_is_compared_and_the_other_way_round_is_the_mirror,
)
from tests.answers.test_costs import check_what_was_avoidable_and_the_rest_are_all_that_was_compiled
from tests.answers.test_one_reason import check_commands_give_one_reason
from tests.answers.test_worklist import check_every_cause_is_there_under_a_name_of_its_own
from tests.auditing.test_recordings import check_nothing_stands_against_it
from tests.conftest import Recording
from tests.readers.logs.test_many_logs import check_workers_tell_what_one_process_reads
from tests.readers.logs.test_repeated_records import check_no_lookup_is_lacking_that_an_event_tells_of
from tests.readers.logs.test_same_details import check_every_fx_entry_holds_the_details_that_the_trace_told
from tests.recordings import RECORDED, Recorded, hold
from tests.report.test_replay import (
    check_the_browser_has_the_numbers_of_the_package,
    check_the_page_says_what_the_package_says,
)
from tests.sampling import drawn
from tests.test_counts import check_every_count, check_what_is_lost
from tests.wild.test_damaged_recordings import check_verdicts_stay_or_become_not_known

CHECKS = (
    check_no_lookup_is_lacking_that_an_event_tells_of,
    check_every_fx_entry_holds_the_details_that_the_trace_told, check_workers_tell_what_one_process_reads, check_every_count,
    check_commands_give_one_reason,
    check_every_cause_is_there_under_a_name_of_its_own,
    check_what_was_avoidable_and_the_rest_are_all_that_was_compiled,
    check_every_lookup_is_compared_and_the_other_way_round_is_the_mirror,
    check_nothing_else_is_taken_for_a_value_of_a_process,
    check_the_unchanged_schema_gives_the_recorded_outcomes, check_what_is_lost,
    check_phases_are_what_a_plain_replay_says, check_there_is_no_false_hit, check_nothing_stands_against_it,
    check_verdicts_stay_or_become_not_known, check_no_copy_of_its_own_directory_is_called_another,
    check_nothing_becomes_new_or_edited_without_details_of_autograd,
)  # fmt: skip
IN_A_BROWSER = (check_the_browser_has_the_numbers_of_the_package, check_the_page_says_what_the_package_says)
DATA = Path(__file__).parent / "data"
# Where whole directories were kept, no lookup was recorded.
SHOWN = sorted(
    (str(path.parent.relative_to(DATA)), path.name.removesuffix(".tar.xz"))
    for path in DATA.rglob("*.tar.xz")
    if path.parent.name != "directories"
)


@pytest.mark.sweep
@pytest.mark.parametrize(("version", "name"), RECORDED)
def test_every_check_of_a_recording_holds(
    version: str, name: str, recording: Recording, tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:  # fmt: skip
    hold(CHECKS, Recorded(version, name, recording(version, name), tmp_path, record_property))


@pytest.mark.sweep
@pytest.mark.parametrize(("folder", "name"), SHOWN)
def test_what_a_browser_shows_of_a_recording_is_right(
    folder: str, name: str, browser: Any, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    unpacked = tmp_path / "recording"
    with tarfile.open(DATA / folder / f"{name}.tar.xz") as archive:
        archive.extractall(unpacked, filter="data")
    hold(IN_A_BROWSER, Recorded(folder, name, unpacked, tmp_path, record_property), browser)


def test_every_check_is_run_and_all_that_fail_are_named(tmp_path: Path) -> None:
    ran = []

    def check_one(recorded: Recorded) -> None:
        ran.append(recorded.room)
        raise AssertionError(recorded.name)

    def check_another(recorded: Recorded) -> None:
        ran.append(recorded.room)

    def check_a_third(recorded: Recorded) -> None:
        raise ValueError(recorded.version)

    recorded = Recorded("2.13.0", "training", tmp_path, tmp_path, lambda name, value: None)
    with pytest.raises(ExceptionGroup, match=r"2\.13\.0 training: check_one, check_a_third") as raised:
        hold([check_one, check_another, check_a_third], recorded)
    assert [str(failure) for failure in raised.value.exceptions] == ["training", "2.13.0"]
    assert ran == [tmp_path / "check_one", tmp_path / "check_another"]


def test_every_check_is_listed() -> None:
    """One that nobody lists would never run."""
    written = {
        name
        for path in Path(__file__).parent.rglob("test_*.py")
        if "from tests.recordings import" in (text := path.read_text(encoding="utf-8"))
        for name in re.findall(r"^def (check_\w+)", text, re.MULTILINE)
    }
    assert written == {check.__name__ for check in (*CHECKS, *IN_A_BROWSER)}


@pytest.mark.parametrize("seed", ["57daff2", "1"])
def test_a_quarter_is_of_every_version_and_the_same_again(seed: str) -> None:
    cases = [(version, f"{version} {name}") for version, name in RECORDED]
    quarter = drawn(cases, seed, one_in=4)
    assert quarter == drawn(reversed(cases), seed, one_in=4) != drawn(cases, "another", one_in=4)
    assert {name.split()[0] for name in quarter} == {version for version, _ in RECORDED}
    assert len(quarter) == pytest.approx(len(RECORDED) / 4, abs=1)
