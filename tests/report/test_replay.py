"""The replay in the browser gives the numbers of the package: on every recording, and on histories nobody wrote."""

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
from cachescope.report.page.replay import codes_object, packed
from cachescope.scope import Scope
from tests.made import CODE, Made, Stored, aot, entry, fx, run, scope_of
from tests.readings import read_once
from tests.recordings import Recorded
from tests.report.replays import agree, blank_page

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


VERSIONS = [
    f"{{'triton': '{triton}', {rest}}}"
    for triton in ("3.4", "3.5")
    for rest in ("'cuda': '12'", "'hip': '6'")
]
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
            yield make(self.key(make.__name__[0], mine), outcome, details, at=at, **told)
            at += 0.1

    def entry(self) -> Stored:
        fields = {**self.fields(), "fx_only": "1"}
        shown = self.random.choice([None, "", "s > 4"]) if self.has_guards else ""
        return entry(
            "fxgraph", self.key("f", fields), fields, at=self.random.randint(0, 30), guards_expr=shown
        )


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
