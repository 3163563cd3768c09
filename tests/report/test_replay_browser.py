"""Leaving fields out in the report, opened from disk in a real browser."""

from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.answers.names import short_field
from cachescope.report.blocks import Group, Replayable
from cachescope.report.layout import Line
from cachescope.report.page.replay import replay_parts
from cachescope.scope import Scope
from tests.conftest import Recording
from tests.made import CODE, fx, run, scope_of
from tests.readings import read_once
from tests.recordings import Recorded
from tests.report.conftest import Written
from tests.report.replays import box, every_box, expected, numbers, told, told_of
from tests.report.test_page_browser import opened

FUSION = "inductor_config[epilogue_fusion]"
THREADS = "cpp_runtime_thread_count"
SECRET = "inductor_config[project_nightjar]"
_BOXES = 12


def test_a_toggle_changes_numbers_and_is_taken_back(browser: Any, written: Written, scope_of: Any) -> None:
    scope = scope_of("tour")
    with opened(browser, written("tour")) as shown:
        page = shown.page
        as_recorded = expected(scope)
        assert numbers(page) == as_recorded
        assert page.get_by_text("Everything counts, as recorded.").is_visible()
        box(page, FUSION).uncheck()
        assert numbers(page) == expected(scope, FUSION) != as_recorded
        box(page, THREADS).uncheck()
        assert numbers(page) == expected(scope, FUSION, THREADS)
        assert page.get_by_text(f"Without {short_field(FUSION)}, {THREADS}").is_visible()
        page.get_by_role("button", name="Undo").click()
        assert numbers(page) == expected(scope, FUSION)
        assert (box(page, FUSION).is_checked(), box(page, THREADS).is_checked()) == (False, True)
        page.get_by_role("button", name="Reset").click()
        assert numbers(page) == as_recorded
        page.get_by_role("button", name="Undo").click()
        assert numbers(page) == expected(scope, FUSION)
        page.emulate_media(media="print")
        assert not box(page, FUSION).is_visible()


def test_a_warning_stays_while_others_are_out(browser: Any, recording: Recording, tmp_path: Path) -> None:
    scope = cachescope.read(recording("2.13.0", "four_graphs"))
    with opened(browser, scope.report(tmp_path / "out.html")) as shown:
        graph, other = (box(shown.page, name) for name in ("gm", "aot_config"))
        graph.uncheck()
        assert told(graph) == told_of(scope, "gm")
        # What saves nothing by itself is behind a line.
        shown.page.locator(".cs-tree summary", has_text="saving nothing alone").last.click()
        other.uncheck()
        assert shown.page.get_by_text("What is said beside each is of it alone").is_visible()
        assert told(graph)[0].startswith("Not safe: ") and told(graph) == told_of(
            scope, "gm", warnings_only=True
        )


@pytest.mark.parametrize(("took", "said"), [
    (None, "times not recorded"), (0.25, "250 ms saved"), (0.9995, "1.0 s saved"), (59.94, "59.9 s saved"),
    (59.95, "1 min saved"), (113.5, "1 min 54 s saved"), (1020, "17 min saved"), (3599.6, "1 h saved"),
    (7500, "2 h 5 min saved"),
])  # fmt: skip
def test_times_are_written_as_everywhere(browser: Any, tmp_path: Path, took: float | None, said: str) -> None:
    keys = ({"gm": CODE, "fields": "0"}, {"gm": CODE, "fields": "1"})
    made = [fx(f"f{at}", "full_miss", key, at=10_000 * at, took=took) for at, key in enumerate(keys)]
    scope = scope_of(*(run(one, cache_dir="/cache") for one in made))
    with opened(browser, scope.report(tmp_path / "out.html")) as shown:
        box(shown.page, "fields").uncheck()
        assert numbers(shown.page) == expected(scope, "fields")
        assert numbers(shown.page)[1].endswith(said)


def test_the_keyboard_alone_is_enough(browser: Any, written: Written, scope_of: Any) -> None:
    scope = scope_of("tour")
    with opened(browser, written("tour")) as shown:
        page = shown.page
        box(page, "inductor_configs").focus()
        page.keyboard.press("Space")
        assert numbers(page) == expected(scope, "inductor_configs")
        # The form decides for its fields, and the focus stays where it was.
        assert not box(page, FUSION).is_checked() and box(page, FUSION).is_disabled()
        assert box(page, "inductor_configs").evaluate("one => one === document.activeElement")
        # Past the search and Reset.
        for _ in range(3):
            page.keyboard.press("Shift+Tab")
        page.keyboard.press("Enter")
        undo = page.get_by_role("button", name="Undo")
        assert numbers(page) == expected(scope) and undo.evaluate("one => one === document.activeElement")
        page.keyboard.press("Enter")
        assert numbers(page) == expected(scope) and box(page, FUSION).is_checked()


def check_the_page_says_what_the_package_says(recorded: Recorded, browser: Any) -> None:
    scope = read_once(recorded.folder)
    with opened(browser, scope.report(recorded.room / "report.html"), width=900) as shown:
        boxes = list(every_box(shown.page, scope))
        assert bool(boxes) == bool(replay_parts(scope))
        assert not boxes or numbers(shown.page) == expected(scope)
        for name, toggle in boxes[:: max(1, len(boxes) // _BOXES)]:
            toggle.uncheck()
            assert numbers(shown.page) == expected(scope, name), name
            assert told(toggle) == told_of(scope, name), name
            toggle.check()


def secret_scope() -> Scope:
    """Thirteen fields, one of them named by nobody but its owner; two of sixteen lookups hit, which is 12.5 %."""
    names = [SECRET, *(f"inductor_config[field_{at}]" for at in range(12))]
    varied = [{}, {}, {}, *({name: "1"} for name in names)]
    runs = []
    for at, more in enumerate(varied):
        outcome, took = ("hit", None) if at in (1, 2) else ("full_miss", 2.0)
        fields = {"gm": CODE, **dict.fromkeys(names, "0"), **more}
        runs.append(
            run(fx(f"f{at if more else 0}", outcome, fields, at=10 * at, took=took), cache_dir="/cache")
        )
    return scope_of(*runs)


def test_fields_are_found_by_name_and_names_are_redacted(browser: Any, tmp_path: Path) -> None:
    scope = secret_scope()
    with opened(browser, scope.report(tmp_path / "open.html")) as shown:
        page = shown.page
        assert numbers(page) == expected(scope) and numbers(page)[0].startswith("12 %")
        box(page, SECRET).uncheck()
        as_open = numbers(page)
        assert as_open == expected(scope, SECRET) != expected(scope)
        fields, search = page.locator(".replay .cs-leaf"), page.get_by_label("Search the fields of the keys")
        for sought, count in (("field_1", 3), ("inductor_configs", 13), ("of no name", 0)):
            search.fill(sought)
            assert fields.locator("visible=true").count() == count
        assert numbers(page) == as_open
    with opened(browser, scope.report(tmp_path / "redacted.html", redact=True)) as shown:
        page = shown.page
        assert "nightjar" not in page.content()
        boxes = page.locator(".replay .cs-leaf input")
        found = []
        for at in range(boxes.count()):
            boxes.nth(at).uncheck()
            found.append(numbers(page))
            boxes.nth(at).check()
        assert as_open in found


def test_what_would_be_too_large_is_left_out_aloud() -> None:
    scope = secret_scope()
    (group,) = replay_parts(scope)
    assert isinstance(group, Group) and isinstance(group.blocks[0], Replayable)
    (group,) = replay_parts(scope, most=100)
    assert isinstance(group, Group) and isinstance(group.blocks[0], Line)
    assert "No field can be left out in this page" in group.blocks[0].text
