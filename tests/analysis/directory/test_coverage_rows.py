"""Which lookups and entries a mega-cache covers: a few rows and what a bundle holds in, answers out; made by hand."""

from typing import Any

import pytest

from cachescope.analysis.directory.coverage import coverage_rows
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow
from cachescope.readers.directory.bundles import Held
from tests.analysis.plain_rows import entry_row, lookup_row

SMALL, LARGE = "L['t0'] < 8", "L['t0'] > 8"
IN_IT = "its key is in the bundle"
NOT_IN_IT = "it is not in the bundle"
LOST = "it is in the bundle, but of several saves torch loads only the last: save once, at the end"
ONLY_OTHERS = "its key is in the bundle only with other guards"
NOT_STORED = "torch stores no entry for it: it was bypassed or switched off"
GUARDED = "its key is in the bundle with guards on sizes; which sizes it had is not recorded"
ALL_OF_IT = "every entry of the cache directory under its key is in the bundle"
FAILED = "its key is in the bundle only with guards that did not hold for it"
UNREADABLE = "its key is in the bundle; the file could not be read to compare them"
REFUSED = "torch loads nothing of the bundle: it is cut"
NO_GRAPHS = "its entry points to FX graphs that are not in the bundle"


def inside(key: str = "f1", cache: str = "fxgraph", **told: Any) -> EntryRow:
    return EntryRow(cache=cache, path="/bundle", root="/bundle", cache_key=key, **told)


def bundle(*entries: EntryRow, **told: Any) -> Held:
    return Held(list(entries), **{"files": {}, "lost": frozenset(), "refused": None, **told})


def lookup(key: str | None = "f1", outcome: str = "full_miss", *, lookup: int = 0, **told: Any) -> LookupRow:
    usual: dict[str, Any] = {"lookup": lookup, "cache_key": key, "outcome": outcome}
    return lookup_row(**(usual | told))


def entry(key: str | None = "f1", cache: str = "fxgraph", **told: Any) -> EntryRow:
    usual = {"entry": 5, "cache": cache, "cache_key": key, "root": "/c", "path": f"/c/ab/{key}"}
    return entry_row(**(usual | told))


def of_lookup(row: LookupRow, held: Held, *entries: EntryRow) -> tuple[str, str]:
    (one,) = (one for one in coverage_rows([held], [row], entries, no_file) if one.lookup is not None)
    return one.held, one.reason


def of_entry(row: EntryRow, *held: Held, digest: Any = None) -> tuple[str, str]:
    (one,) = coverage_rows(held, [], [row], digest or no_file)
    assert (one.cache, one.cache_key, one.entry, one.lookup) == (row.cache, row.cache_key, row.entry, None)
    return one.held, one.reason


def no_file(path: str) -> str | None:
    raise AssertionError(path)


HIT_SMALL, MISS_SMALL = ({"outcome": "hit", "guards_expr": SMALL}, {"outcome": "guard_miss", "guards_expr": SMALL})  # fmt: skip


@pytest.mark.parametrize(("row", "held", "entries", "answer"), [
    (lookup(), bundle(inside()), [], ("yes", IN_IT)),
    (lookup(outcome="hit"), bundle(inside(guards_expr="")), [], ("yes", IN_IT)),
    (lookup(), bundle(inside("f2")), [], ("no", NOT_IN_IT)),
    (lookup(), bundle(inside("f1", "aotautograd")), [], ("no", NOT_IN_IT)),
    (lookup(), bundle(), [], ("no", NOT_IN_IT)),
    (lookup(), bundle(lost=frozenset({("fxgraph", "f1")})), [], ("no", LOST)),
    (lookup(), bundle(lost=frozenset({("fxgraph", "f2")})), [], ("no", NOT_IN_IT)),
    (lookup(), bundle(inside(), refused="it is cut"), [], ("no", REFUSED)),
    # Lookups without a key; one that stored nothing may be covered by another's entry.
    (lookup(None), bundle(inside()), [], ("unknown", "its key was not recorded")),
    (lookup(None, "bypass"), bundle(inside()), [], ("never", NOT_STORED)),
    (lookup("f2", "bypass"), bundle(inside()), [], ("never", NOT_STORED)),
    (lookup("f2", "disabled"), bundle(inside()), [], ("never", NOT_STORED)),
    (lookup("f2", "would_bypass"), bundle(inside()), [], ("never", NOT_STORED)),
    (lookup("f1", "bypass"), bundle(inside()), [], ("yes", IN_IT)),
    # What cannot be loaded, or not be read.
    (lookup(), bundle(inside(status="damaged", damage="truncated")), [], ("no", "its entry is damaged: truncated")),
    (lookup(), bundle(inside(status="unreadable", damage="newer")), [], ("unknown", "its entry is unreadable: newer")),
    (lookup(), bundle(inside(status="damaged", damage="truncated"), inside(status="unreadable", damage="newer")), [],
     ("unknown", "its entry is unreadable: newer")),
    (lookup(), bundle(inside(status="damaged"), inside()), [], ("yes", IN_IT)),
    # The guards of a hit are those of what it found; those of a guard miss did not hold.
    (lookup(**HIT_SMALL), bundle(inside(guards_expr=SMALL), inside(guards_expr=LARGE)), [],
     ("yes", "its key is in the bundle, with the guards of the entry that it found")),
    (lookup(**HIT_SMALL), bundle(inside(guards_expr=LARGE)), [], ("unknown", GUARDED)),
    (lookup(**MISS_SMALL), bundle(inside(guards_expr=SMALL)), [], ("no", FAILED)),
    (lookup(**MISS_SMALL), bundle(inside(guards_expr=LARGE)), [], ("unknown", GUARDED)),
    (lookup(**MISS_SMALL), bundle(inside(guards_expr=SMALL), inside(guards_expr=LARGE)), [], ("unknown", GUARDED)),
    (lookup(guards_expr=SMALL), bundle(inside(guards_expr=SMALL)), [], ("unknown", GUARDED)),
    (lookup(**MISS_SMALL), bundle(inside(guards_expr=SMALL), inside(guards_expr=None)), [], ("yes", IN_IT)),
    # Guards of damaged ones are nothing.
    (lookup(), bundle(inside(guards_expr=SMALL), inside(status="damaged")), [], ("unknown", GUARDED)),
    # All that the run stored is there.
    (lookup(), bundle(inside(guards_expr=SMALL)), [entry(guards_expr=SMALL)], ("yes", ALL_OF_IT)),
    (lookup(), bundle(inside(guards_expr=SMALL)), [entry(guards_expr=LARGE)], ("unknown", GUARDED)),
    (lookup(), bundle(inside(guards_expr=SMALL)), [entry(guards_expr=SMALL), entry(guards_expr=LARGE)], ("unknown", GUARDED)),
    (lookup(), bundle(inside(guards_expr=SMALL)), [entry("f2", guards_expr=SMALL)], ("unknown", GUARDED)),
    (lookup(), bundle(inside(guards_expr=SMALL)), [entry(guards_expr=SMALL, status="damaged")], ("unknown", GUARDED)),
    # A lookup that may have hit needs an entry.
    (lookup(outcome="unknown"), bundle(inside(guards_expr=SMALL)), [], ("unknown", GUARDED)),
    (lookup(outcome="unknown"), bundle(inside(guards_expr=SMALL)), [entry(guards_expr=SMALL)], ("yes", ALL_OF_IT)),
])  # fmt: skip
def test_which_lookups_a_bundle_covers(
    row: LookupRow, held: Held, entries: list[EntryRow], answer: tuple[str, str]
) -> None:
    assert of_lookup(row, held, *entries) == answer


def test_more_misses_than_entries_leave_it_open_which_guards_each_stored() -> None:
    held, stored = bundle(inside(guards_expr=SMALL)), entry(guards_expr=SMALL)
    for outcome, first in (("full_miss", "unknown"), ("hit", "yes")):
        rows = [lookup(), lookup(lookup=1, outcome=outcome)]
        assert [row.held for row in coverage_rows([held], rows, [stored], no_file)] == [first, "yes"]


AOT = {"cache": "aotautograd"}


@pytest.mark.parametrize(("held", "answer"), [
    ([inside("a1", "aotautograd")], ("yes", IN_IT)),
    ([inside("a1", "aotautograd", fx_keys=("f1",))], ("no", NO_GRAPHS)),
    ([inside("a1", "aotautograd", fx_keys=("f1",)), inside()], ("yes", IN_IT)),
    ([inside("a1", "aotautograd", fx_keys=("f1", "f2")), inside()], ("no", NO_GRAPHS)),
    ([inside("a1", "aotautograd", fx_keys=("f1",)), inside(status="damaged")], ("no", NO_GRAPHS)),
    ([inside("a1", "aotautograd", fx_keys=("f1",)), inside(status="damaged"), inside()], ("yes", IN_IT)),
    # One of several that has its graphs is enough.
    ([inside("a1", "aotautograd", fx_keys=("f2",)), inside("a1", "aotautograd", fx_keys=("f1",)), inside()], ("yes", IN_IT)),
])  # fmt: skip
def test_an_aotautograd_entry_needs_its_graphs(held: list[EntryRow], answer: tuple[str, str]) -> None:
    assert of_lookup(lookup("a1", **AOT), bundle(*held)) == answer


@pytest.mark.parametrize(("row", "held", "answer"), [
    (entry(), bundle(inside()), ("yes", "it is in the bundle")),
    (entry(guards_expr=SMALL), bundle(inside(guards_expr=LARGE), inside(guards_expr=SMALL)), ("yes", "it is in the bundle")),
    (entry(guards_expr=SMALL), bundle(inside(guards_expr=LARGE)), ("no", ONLY_OTHERS)),
    (entry(guards_expr=SMALL), bundle(inside()), ("no", ONLY_OTHERS)),
    (entry(guards_expr=SMALL), bundle(inside(guards_expr=LARGE), inside(guards_expr=SMALL, status="damaged")), ("no", ONLY_OTHERS)),
    (entry(guards_expr=SMALL), bundle(inside(guards_expr=LARGE), lost=frozenset({("fxgraph", "f1")})),
     ("no", "torch loads its key from the bundle only with other guards: of several saves it loads the last")),
    (entry("f2"), bundle(inside()), ("no", NOT_IN_IT)),
    (entry("f2"), bundle(lost=frozenset({("fxgraph", "f2")})), ("no", LOST)),
    (entry("a1", **AOT), bundle(inside("a1", "aotautograd", fx_keys=("f1",))), ("no", NO_GRAPHS)),
    (entry(), bundle(refused="it is cut"), ("no", REFUSED)),
    (entry(None, "autotune"), bundle(), ("never", "torch puts no measurements of max-autotune into a bundle")),
])  # fmt: skip
def test_which_entries_a_bundle_covers(row: EntryRow, held: Held, answer: tuple[str, str]) -> None:
    assert of_entry(row, held) == answer


@pytest.mark.parametrize(("row", "name"), [
    (entry("job_0", "pgo"), ("pgo", "job_0")),
    (entry("program_0", "precompile"), ("precompile", "program_0")),
    # Of these torch keeps the folder and the name.
    (entry("k1", "best_config", path="/c/ab/k1.best_config"), ("best_config", "ab/k1.best_config")),
])  # fmt: skip
def test_other_files_are_compared_by_their_content(row: EntryRow, name: tuple[str, str]) -> None:
    def answer(digest: str | None, **told: Any) -> tuple[str, str]:
        asked: list[str] = []
        made = of_entry(row, bundle(**told), digest=lambda path: asked.append(path) or digest)  # type: ignore[func-returns-value]
        assert asked in ([], [row.path])
        return made

    files = {name: "d1"}
    assert answer("d1", files=files) == ("yes", "it is in the bundle")
    assert answer("d2", files=files) == ("no", "the bundle holds another state of it")
    assert answer(None, files=files) == ("unknown", UNREADABLE)
    assert answer("d1") == ("no", NOT_IN_IT)
    assert answer("d1", lost=frozenset({name})) == ("no", LOST)
    assert answer("d1", files=files, refused="it is cut") == ("no", REFUSED)


def test_of_several_bundles_each_covers_its_own() -> None:
    """One that torch refuses takes nothing from the others."""
    held = [bundle(inside(), refused="it is cut"), bundle(inside("f2")), bundle(inside("f3"))]
    assert [of_entry(entry(key), *held)[0] for key in ("f1", "f2", "f3")] == ["no", "yes", "yes"]
    assert of_entry(entry(), *held)[1] == NOT_IN_IT


def test_lookups_of_one_key_and_answer_are_one_row() -> None:
    rows = [
        lookup(lookup=3), lookup(lookup=4, **HIT_SMALL), lookup(lookup=5), lookup("f2", lookup=6),
        lookup(None, "bypass", lookup=7), lookup("c1", lookup=8, cache="code"),
    ]  # fmt: skip
    entries = [entry("c1", "code"), entry("x", status="damaged")]
    made = coverage_rows([bundle(inside(guards_expr=SMALL))], rows, entries, no_file)
    assert [(row.cache, row.cache_key, row.held, row.lookups, row.lookup, row.entry) for row in made] == [
        ("fxgraph", "f1", "unknown", 2, 3, None),
        ("fxgraph", "f1", "yes", 1, 4, None),
        ("fxgraph", "f2", "no", 1, 6, None),
        ("fxgraph", None, "never", 1, 7, None),
    ]
