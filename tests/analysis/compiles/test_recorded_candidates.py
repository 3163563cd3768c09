"""Guard misses of keys with several entries, against the number of files that lay under the key."""

import json
import re
from pathlib import Path

import pytest

import cachescope
from tests.conftest import unpacked

pytestmark = pytest.mark.slow

_RECORDED = sorted((Path(__file__).parents[2] / "data" / "candidates").glob("*.tar.xz"))
_SOME = re.compile(r"; (?P<known>one|\d+) of (?P<all>\d+) stored entries needs? (?P<needs>.*?), from ")
_ALL = re.compile(r"; the stored entr(?:y needs|ies need) (?P<needs>.*?), from ")
# By hand, from kind_programs.py: what the entries of the first three sizes need.
_NEEDS = {"11 to 100", "101 to 1000", "1001 or more"}


@pytest.mark.parametrize("archive", _RECORDED, ids=lambda path: path.name.removesuffix(".tar.xz"))
def test_a_guard_miss_says_of_how_many_entries_it_knows_the_guards(archive: Path, tmp_path: Path) -> None:
    folder = unpacked(archive, tmp_path)
    entries = json.loads((folder / "entries.json").read_text())
    scope = cachescope.read(folder / "trace")
    missed = scope.misses[scope.misses["verdict"] == "guard_failed"]["lookup"]
    rows = {lookup: scope.facts.lookups[lookup] for lookup in missed.tolist()}
    # Torch 2.6 keeps one entry for a key of AOTAutograd, and says nothing of its guards.
    graphs = {number: row for number, row in rows.items() if row.cache == "fxgraph" or row.guards_expr}
    assert len(graphs) >= 3
    for lookup, row in graphs.items():
        told = scope.explain(int(lookup)).sizes or ""
        if some := _SOME.search(told):
            known, there = 1 if some["known"] == "one" else int(some["known"]), int(some["all"])
            assert told.endswith("; what the others need is not known")
        else:
            some = _ALL.search(told)
            known = there = len(some["needs"].split(" or ")) - some["needs"].count("or more")
        assert there == entries[row.run][row.cache_key] >= known > 0
        needs = set(re.findall(r"\d+ to \d+|\d+ or more", some["needs"]))
        assert needs <= _NEEDS and len(needs) == known


def test_one_was_recorded_where_torch_names_the_guards_of_some(tmp_path: Path) -> None:
    """Otherwise the test above shows nothing."""
    scope = cachescope.read(unpacked(_RECORDED[0].with_name("2.13.0.tar.xz"), tmp_path) / "trace")
    told = [scope.explain(int(lookup)).sizes or "" for lookup in scope.misses["lookup"]]
    assert [some[0] for one in told if (some := _SOME.search(one))] == [
        "; one of 2 stored entries needs 11 to 100, from ",
        "; 2 of 3 stored entries need 1001 or more or 11 to 100, from ",
    ]
