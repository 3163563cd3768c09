"""The replay in the browser gives the numbers of the package: on every recording, and on histories nobody wrote."""

from __future__ import annotations

import contextlib
import tarfile
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jupyter_lab import chromium, missing

import cachescope
from cachescope.analysis.what_if.codes import ReplayCodes
from cachescope.analysis.what_if.recorded import NEVER
from cachescope.report.page.replay import codes_object, packed
from cachescope.scope import Scope
from tests.made import CODE, Made, aot, entry, fx, run, scope_of
from tests.report.replays import agree, blank_page

pytestmark = pytest.mark.slow

DATA = Path(__file__).parent.parent / "data"
# Where whole directories were kept, no lookup was recorded.
ARCHIVES = sorted(
    path.relative_to(DATA) for path in DATA.rglob("*.tar.xz") if path.parent.name != "directories"
)


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    if why := missing():
        pytest.skip(why)
    with chromium() as browser:
        yield blank_page(browser)


def choices(scope: Scope) -> list[tuple[str, ...]]:
    codes = ReplayCodes.of(scope.replayed)
    fields, forms = codes.fields, tuple(form.name for form in codes.forms)
    return [
        (),
        *((name,) for name in (*fields, *forms)),
        *combinations(fields[:5], 2),
        *combinations(forms, 2),
        *combinations(forms, 3),
        (*fields[:1], *forms),
        fields,
    ]


def readings(folder: Path) -> Iterator[Scope]:
    """All that was recorded, and text logs alone, which know less."""
    for path in (folder, *sorted(folder.rglob("text"))):
        with contextlib.suppress(cachescope.SourceError):
            yield cachescope.read(path)


@pytest.mark.sweep
@pytest.mark.parametrize("archive", ARCHIVES, ids=str)
def test_every_recording_has_the_numbers_of_the_package(
    page: Any, archive: Path, tmp_path: Path, record_property: Any
) -> None:
    with tarfile.open(DATA / archive) as archived:
        archived.extractall(tmp_path, filter="data")
    counts = {"replays": 0, "changed": 0}
    for scope in readings(tmp_path):
        if len(scope.lookups):
            wanted = choices(scope)
            counts["changed"] += agree(page, scope, wanted)
            counts["replays"] += len(wanted)
    record_property("counted: replays in the browser", {str(archive.parent): counts})


VERSIONS = (
    "{'triton': '3.4', 'cuda': '12.8'}",
    "{'triton': '3.5', 'cuda': '12.8'}",
    "{'triton': '3.4', 'hip': '6'}",
)
details = st.fixed_dictionaries(
    {
        "gm": st.just(CODE),
        "x": st.sampled_from("123"),
        "y": st.sampled_from("12"),
        "system_info[version]": st.sampled_from(VERSIONS),
    },
    optional={
        "example_inputs[0]": st.sampled_from(["TensorMetadata(shape=(s0,))", "TensorMetadata(shape=(3,))"])
    },
)
guards = st.sampled_from([None, None, "s > 4", "s > 9"])
outcomes = st.sampled_from(["full_miss"] * 4 + ["hit", "guard_miss"])


def looked_up(make: Any, fields: dict[str, str], outcome: str, at: float, **told: Any) -> Made:
    name = "".join(fields.get(field, "")[-7:] for field in sorted(fields) if field != "gm")
    # What stands in no field may differ, and some details are not recorded.
    is_recorded = told.pop("is_recorded")
    key = f"{make.__name__[0]}{sum(map(ord, name))}{name}{told.pop('hidden')}"
    return make(key, outcome, fields if is_recorded else None, at=at, **told)


@st.composite
def compiles(draw: Any) -> list[Made]:
    fields, at, took = draw(details), draw(st.integers(0, 30)), draw(st.integers(1, 80)) / 10
    told = {
        "hidden": draw(st.sampled_from("aaab")),
        "is_recorded": draw(st.sampled_from([True] * 5 + [False])),
    }
    shown = {"guards_expr": draw(guards), "status_detailed": draw(st.sampled_from([None, "hit"]))}
    found = []
    if draw(st.booleans()):
        found.append(
            looked_up(aot, {**fields, "aot_only": draw(st.sampled_from("12"))}, draw(outcomes), at, **told)
        )
    outcome = draw(outcomes)
    timed = {"took": None if outcome == "hit" or draw(st.booleans()) else took}
    return [*found, looked_up(fx, fields, outcome, at + 0.1, **told, **timed, **shown)]


processes = st.tuples(
    st.lists(compiles(), min_size=1, max_size=4), st.sampled_from([None, "/cache", "/cache", "/other"])
)
stored = st.lists(st.tuples(details, st.integers(0, 30), st.sampled_from([None, "", "s > 4"])), max_size=3)


def history(
    made: list[tuple[list[list[Made]], str | None]], before: list[tuple[dict[str, str], int, str | None]]
) -> Scope:
    runs = []
    for looked, place in made:
        for number, one in enumerate(looked):
            for lookup in one:
                lookup.told["compile_id"] = f"{number}/0"
        runs.append(
            run(*(lookup for one in looked for lookup in one), **({"cache_dir": place} if place else {}))
        )
    entries = []
    for fields, at, shown in before:
        key = looked_up(fx, fields, "hit", at, hidden="a", is_recorded=True).key
        assert key is not None
        entries.append(entry("fxgraph", key, fields, at=at, guards_expr=shown))
    return scope_of(*runs, entries=entries)


def test_so_have_histories_that_nobody_wrote(page: Any, record_property: Any) -> None:
    """Guards, entries that went, graphs below AOTAutograd, keys without details, and hits that nothing explains."""
    counts = Counter[str]()

    @given(st.lists(processes, min_size=1, max_size=5), stored)
    def hold(
        made: list[tuple[list[list[Made]], str | None]], before: list[tuple[dict[str, str], int, str | None]]
    ) -> None:
        scope = history(made, before)
        if not len(scope.lookups):
            return
        counts["histories"] += 1
        codes = ReplayCodes.of(scope.replayed)
        counts["changed"] += agree(page, scope, choices(scope))
        counts["walked"] += len(codes.entries.cell) > 0
        counts["gone"] += bool((codes.entries.gone < NEVER).any())
        counts["guards"] += bool((codes.entries.guards > 0).any())
        counts["below AOTAutograd"] += bool((codes.misses.aot >= 0).any())
        counts["open"] += bool(codes.misses.is_open.any())
        counts["parts"] += codes.parted is not None

    hold()
    assert min(counts.values()) > 10, counts
    record_property("counted: made replays in the browser", {"made": counts})


@given(st.lists(st.integers(-3, 3) | st.integers(-(2**53), 2**53), max_size=60))
def test_packed_numbers_are_read_back(numbers: list[int]) -> None:
    found = packed(np.array(numbers, dtype=np.int64))
    assert [
        value for one in found for value in ([one] if isinstance(one, int) else [one[0]] * one[1])
    ] == numbers
    assert all(isinstance(one, int) or one[1] > 1 for one in found)


def test_codes_hold_no_text_and_no_hash() -> None:
    scope = cachescope.read(cachescope.sample("tour"))
    codes = codes_object(ReplayCodes.of(scope.replayed), scope.replayed.before)

    def held(value: Any) -> Iterator[Any]:
        for one in (
            value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
        ):
            yield from held(one)
        if not isinstance(value, dict | list | tuple):
            yield value

    assert {type(one) for one in held(codes)} <= {int, float, bool, type(None)}
    assert max(one for one in held(codes["values"])) < 2 * len(scope.lookups)
