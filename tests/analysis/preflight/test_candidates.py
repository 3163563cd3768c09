"""What a lookup that a pre-flight predicts could find, and whether its guards would hold; made by hand."""

from dataclasses import replace
from pathlib import Path

import pytest

from cachescope.analysis.preflight.would_find import Candidate, StoredEntries, Sure
from cachescope.frames.recorded_rows import ProblemRow
from cachescope.readers.reading import ListedEntry
from cachescope.table import Table
from tests.made import entry, scope_of

FX, AOT = ("fxgraph", "f1"), ("aotautograd", "a1")


@pytest.mark.parametrize(("told", "sizes", "fits"), [
    ({}, [8], "yes"), ({"guards": ""}, [8], "yes"),
    # A recording and a lock say nothing of the guards of what is stored.
    ({"are_guards_known": False}, [8], "maybe"), ({"guards": "L['t0'] <= 8"}, [8], "yes"),
    ({"guards": "L['t0'] <= 8"}, [9], "no"), ({"guards": "L['t1'] <= 8"}, [9, 8], "yes"),
    ({"guards": "L['t1'] <= 8"}, [8, 9], "no"),
    # A size that is not known, or none of that number; what no guard of torch is.
    ({"guards": "L['t1'] <= 8"}, [8, None], "maybe"), ({"guards": "L['t1'] <= 8"}, [8], "maybe"),
    ({"guards": "open('x')"}, [8], "maybe"),
])  # fmt: skip
def test_if_guards_hold_for_sizes(told: dict[str, object], sizes: list[float | None], fits: Sure) -> None:
    candidate = Candidate("the FX entry", **told)  # type: ignore[arg-type]
    assert candidate.fits(sizes, skips_guards=False) == fits
    # Where they are skipped, or no size is a symbol, no guard fails.
    assert candidate.fits(sizes, skips_guards=True) == "yes"
    assert candidate.fits([], skips_guards=False) == "yes"


def stored(
    *entries: object, roots: tuple[str, ...] = ("/cache",), locks: tuple[ListedEntry, ...] = ()
) -> StoredEntries:
    return StoredEntries(replace(scope_of(entries=entries).tables, cache_roots=roots, listed=locks))


@pytest.mark.parametrize(("told", "is_there", "why_not"), [
    ({}, "yes", ""),
    # torch compares no hash.
    ({"status": "damaged", "damage": "content hash differs from the name"}, "yes", ""),
    ({"status": "damaged", "damage": "truncated at 4 bytes"}, "no", "it is damaged: truncated at 4 bytes"),
    ({"status": "damaged", "damage": "empty file"}, "no", "it is damaged: empty file"),
    ({"status": "temporary"}, "no", "it is temporary"),
    ({"status": "foreign"}, "no", "it is foreign"),
    # What is wrong with it here may be no matter to torch.
    ({"status": "damaged", "damage": "an unknown class"}, "maybe", "it could not be read here: an unknown class"),
    ({"status": "unreadable"}, "maybe", "it could not be read here: unreadable"),
    ({"status": "unreadable", "damage": "truncated"}, "maybe", "it could not be read here: truncated"),
])  # fmt: skip
def test_whether_torch_could_load_an_entry(told: dict[str, str], is_there: Sure, why_not: str) -> None:
    (candidate,) = stored(entry(*FX, **told)).under(FX, None)  # type: ignore[arg-type]
    assert (candidate.is_there, candidate.why_not) == (is_there, why_not)
    assert candidate.what == "the FX entry entry… in /cache"
    assert candidate.are_guards_known


def test_lines_of_a_remote_cache_that_could_not_be_read_are_said() -> None:
    places = [f"redis://host:{port}/0" for port in (1, 2)]
    made = [entry(*FX, root=root, path=f"{root}/pt2:fx-graph-v1::f1:c1") for root in places]
    tables = scope_of(entries=made).tables
    for problems, said in ((places[1:], f"some lines of {places[1]} could not be read"), (["/cache"], "")):
        told = Table(
            ProblemRow, [ProblemRow(one, "line 1", "not_json", "it could not be read") for one in problems]
        )
        assert StoredEntries(replace(tables, cache_roots=(), problems=told)).unread_remotely == said
    assert stored().unread_remotely == "a remote cache was not asked"


def number_of(one: Candidate) -> int | None:
    return None if one.entry is None else one.entry.entry


def test_an_entry_is_told_with_its_number_its_guards_and_its_graphs() -> None:
    graphs = {"fx_keys": ("f1", "f2"), "fx_guards": ("L['t0'] > 1", "")}
    entries = stored(
        entry(*FX, name="a" * 20, guards_expr="L['t0'] > 1"),
        entry(*AOT, **graphs),  # type: ignore[arg-type]
        # An entry of an older torch does not name the guards of its graphs.
        entry("aotautograd", "a2", fx_keys=("f1", "f2"), fx_guards=()),
    )
    (fx,), (aot,), (older,) = (
        list(entries.under(key, None)) for key in (FX, AOT, ("aotautograd", "a2"))
    )  # fmt: skip
    assert (fx.what, number_of(fx)) == ("the FX entry aaaaaaaaaaaa… in /cache", 0)
    assert (fx.guards, fx.graphs) == ("L['t0'] > 1", ())
    assert (aot.what, number_of(aot)) == ("the AOTAutograd entry entry… in /cache", 1)
    assert aot.graphs == (("f1", "L['t0'] > 1"), ("f2", ""))
    assert (number_of(older), older.graphs) == (2, (("f1", None), ("f2", None)))


def test_what_a_lock_lists_may_have_any_guards() -> None:
    entries = stored(entry(*AOT), locks=(ListedEntry(*AOT, "/a.lock", ("f1", "f2")),))
    own, found = entries.under(AOT, None)
    assert number_of(own) == 0
    graphs = (("f1", None), ("f2", None))
    what = "the AOTAutograd entry that /a.lock lists"
    assert found == Candidate(what, are_guards_known=False, graphs=graphs)
    assert found.fits([8], skips_guards=False) == "maybe"


def test_only_entries_of_the_directory_and_of_the_key_are_found(tmp_path: Path) -> None:
    one, other, linked = (str(tmp_path / name) for name in ("one", "other", "linked"))
    (tmp_path / "one").mkdir()
    (tmp_path / "linked").symlink_to(one)
    keys = (FX, ("fxgraph", "f2"), AOT, ("triton", "f1"))
    made = [entry(*FX, root=other), *(entry(*key, root=one) for key in keys)]
    entries = stored(*made, roots=(one,))
    assert [number_of(found) for found in entries.under(FX, None)] == [0, 1]
    root = entries.root_of(linked)
    assert root == one
    assert [number_of(found) for found in entries.under(FX, root)] == [1]
    assert list(entries.under(("fxgraph", "f3"), None)) == list(entries.under(("triton", "f1"), None)) == []
    # A directory with no entries was read as well; others were not.
    assert entries.root_of(other) == other
    assert entries.root_of(str(tmp_path / "none")) is entries.root_of(None) is None
    assert list(stored(roots=(one,)).roots.values()) == [one]
