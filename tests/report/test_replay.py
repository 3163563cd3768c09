"""The replay in the browser gives the numbers of the package: on every recording, and on histories nobody wrote; and fields are left out in the report, opened from disk."""

import contextlib
import random
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import chain, combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cachescope
from cachescope.analysis.what_if.browser_replay import ReplayCodes
from cachescope.answers.names import short_field
from cachescope.report.blocks import Group, Replayable
from cachescope.report.layout import Line
from cachescope.report.page.replay import codes_object, packed, replay_parts
from cachescope.scope import Scope
from tests.conftest import Recording
from tests.made import CODE, Made, Stored, aot, entry, fx, run, scope_of
from tests.readings import read_once
from tests.recordings import Recorded
from tests.report.conftest import Written
from tests.report.replays import agree, blank_page, box, every_box, expected, numbers, told, told_of
from tests.report.test_page_browser import opened

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def page(browser: Any) -> Any:
    return blank_page(browser)


def choices(scope: Scope) -> list[tuple[str, ...]]:
    codes = ReplayCodes.of(scope.replay)
    fields, forms = codes.fields, tuple(form.name for form in codes.forms)
    return [
        (), *((name,) for name in (*fields, *forms)), *combinations(fields[:5], 2), *combinations(forms, 2),
        *combinations(forms, 3), (*fields[:1], *forms), fields,
    ]  # fmt: skip


def readings(folder: Path) -> Iterator[Scope]:
    """All that was recorded, and text logs alone, which know less."""
    for path in (folder, *sorted(folder.rglob("text"))):
        with contextlib.suppress(cachescope.SourceError):
            yield read_once(path)


def check_the_browser_has_the_numbers_of_the_package(recorded: Recorded, browser: Any) -> None:
    counts = {"replays": 0, "changed": 0}
    with contextlib.closing(blank_page(browser)) as page:
        for scope in readings(recorded.folder):
            if len(scope.lookups):
                wanted = choices(scope)
                counts["changed"] += agree(page, scope, wanted)
                counts["replays"] += len(wanted)
    recorded.count("counted: replays in the browser", {recorded.version: counts})


_RUNTIMES = ("'cuda': '12'", "'hip': '6'")
VERSIONS = [f"{{'triton': '{one}', {rest}}}" for one in ("3.4", "3.5") for rest in _RUNTIMES]
GUARDS = (None, "s > 4", "s > 9")


class History:
    """A few processes that look up what differs in a few fields, with or without guards; nobody made sure that it can be."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.has_guards = self.random.random() < 0.4

    def scope(self) -> Scope:
        places = [{"cache_dir": "/cache"}] * 3 + [{"cache_dir": "/other"}, {}]
        runs = []
        for _ in range(self.random.randint(1, 7)):
            compiles = [self.compile(graph) for graph in range(self.random.randint(1, 5))]
            runs.append(run(*chain(*compiles), **self.random.choice(places)))
        return scope_of(*runs, entries=[self.entry() for _ in range(self.random.randint(0, 2))])

    def fields(self) -> dict[str, str]:
        pick = self.random.choice
        fields = {"gm": CODE, "x": pick("123"), "y": pick("12"), "system_info[version]": pick(VERSIONS)}
        shape = pick(["(3,)", "(s0,)"] if self.has_guards else ["(3,)", "(4,)"])
        if pick([True, False]):
            fields["example_inputs[0]"] = f"TensorMetadata(shape={shape})"
        return fields

    def key(self, letter: str, fields: dict[str, str]) -> str:
        text = repr(sorted(fields.items()))
        # What stands in no field may differ.
        return f"{letter}{zlib.crc32(text.encode()):08x}{self.random.choice('aaaaab')}"

    def compile(self, graph: int) -> Iterator[Made]:
        fields, at = self.fields(), self.random.randint(0, 60) / 2
        is_recorded = self.random.random() < 0.9
        for make, own in ((aot, "aot_only"), (fx, "fx_only"))[self.random.randint(0, 1) :]:
            mine = {**fields, own: self.random.choice("112")}
            outcome = self.random.choice(["full_miss"] * 4 + ["hit"] + ["guard_miss"] * self.has_guards)
            told: dict[str, Any] = {"compile_id": f"{graph}/0"}
            if self.has_guards:
                told |= {
                    "guards_expr": self.random.choice(GUARDS),
                    "status_detailed": self.random.choice([None, "hit"]),
                }
            if make is fx and outcome != "hit" and self.random.random() < 0.8:
                told["took"] = self.random.randint(1, 80) / 10
            details = mine if is_recorded else None
            yield make(self.key(own[0], mine), outcome, details, at=at, **told)
            at += 0.1

    def entry(self) -> Stored:
        fields = {**self.fields(), "fx_only": "1"}
        shown = self.random.choice([None, "", "s > 4"]) if self.has_guards else ""
        at = self.random.randint(0, 30)
        return entry("fxgraph", self.key("f", fields), fields, at=at, guards_expr=shown)


@pytest.mark.sweep
def test_so_have_histories_that_nobody_wrote(page: Any, record_property: Any) -> None:
    """Guards, entries that went, graphs below AOTAutograd, keys without details, and hits that nothing explains."""
    counts = Counter[str]()
    for seed in range(300):
        scope = History(seed).scope()
        codes = ReplayCodes.of(scope.replay)
        counts["changed"] += agree(page, scope, choices(scope)[:40])
        counts["stored"] += any(source >= 0 for source in codes.events.source)
        counts["gone"] += any(more < 0 for more in codes.events.more)
        counts["guards"] += any(guards > 0 for guards in codes.events.guards)
        counts["before"] += any(source < 0 for source in codes.events.source)
        counts["below AOTAutograd"] += any(aot >= 0 for aot in codes.misses.aot)
        counts["open"] += any(codes.misses.is_open)
        counts["parts"] += codes.parted is not None
    record_property("counted: made replays in the browser", {"made": dict(counts)})
    assert min(counts.values()) > 20, counts


@given(st.lists(st.integers(-3, 3) | st.integers(-(2**53), 2**53), max_size=60))
def test_packed_numbers_are_read_back(numbers: list[int]) -> None:
    found = packed(numbers)
    assert [i for one in found for i in ([one] if isinstance(one, int) else [one[0]] * one[1])] == numbers
    assert all(isinstance(one, int) or one[1] > 1 for one in found)


def test_codes_hold_no_text_and_no_hash() -> None:
    scope = cachescope.read(cachescope.sample("tour"))
    codes = codes_object(ReplayCodes.of(scope.replay), scope.replay.before)

    def held(value: Any) -> Iterator[Any]:
        for one in (
            value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
        ):
            yield from held(one)
        if not isinstance(value, dict | list | tuple):
            yield value

    assert {type(one) for one in held(codes)} <= {int, float, bool, type(None)}
    assert max(one for one in held(codes["values"])) < 2 * len(scope.lookups)


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
        assert told(graph)[0].startswith("Not safe: ")
        assert told(graph) == told_of(scope, "gm", warnings_only=True)


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
        key = f"f{at if more else 0}"
        runs.append(run(fx(key, outcome, fields, at=10 * at, took=took), cache_dir="/cache"))
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
