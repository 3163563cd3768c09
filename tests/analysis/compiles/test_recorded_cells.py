"""Cells of notebooks, against what Python said in each kernel and shell; and guard misses of keys with several entries, against the files that lay under the key."""

import json
import re
from pathlib import Path

import pytest

import cachescope
from cachescope.cli import main
from cachescope.columns import records
from cachescope.report.compiled import blocks
from tests.conftest import unpacked

pytestmark = pytest.mark.slow

_DATA = Path(__file__).parents[2] / "data"
_RECORDED = sorted((_DATA / "cells").glob("*.tar.xz"))
_PROCESSES = ("kernel", "edited", "shell")
_OF_A_PROCESS = re.compile(r"ipykernel_|ipython-input")


def said(folder: Path) -> list[tuple[str, str, int]]:
    """The places that Python gives, in the order of the compiles."""
    return [tuple(place) for place in json.loads((folder / "places.json").read_text())]


@pytest.fixture(scope="module", params=_RECORDED, ids=lambda path: path.name.removesuffix(".tar.xz"))
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(request.param, tmp_path_factory.mktemp("cells"))


def traced(folder: Path) -> list[tuple[str, str, int]]:
    """The place of each first compile in a trace."""
    compiles = cachescope.read(folder / "trace").compiles
    firsts = compiles[compiles["kind"] == "first"]
    return [tuple(row.values()) for row in records(firsts, ["function", "file", "line"])]


def logged(folder: Path) -> list[tuple[str, str, int]]:
    """The places of the lookups in a text log, each once, but for those of code behind a graph break."""
    rows = records(cachescope.read(folder / "torch.log").lookups, ["function", "file", "line"])
    places = dict.fromkeys(tuple(row.values()) for row in rows)
    return [place for place in places if not place[0].startswith("torch_dynamo_")]


def told(scope: cachescope.Scope) -> dict[str, list[str]]:
    """The lines of `cachescope compiles` below each title."""
    found, below = dict[str, list[str]](), list[str]()
    for line in blocks(scope, most=100):
        below = found.setdefault(line.text, []) if line.style == "bold" else below
        below += [line.text] if line.text and not line.style else []
    return found


@pytest.mark.parametrize("process", _PROCESSES)
def test_places_are_those_of_python(recorded: Path, process: str) -> None:
    *cells, of_magic = said(recorded / process)
    *in_trace, last_in_trace = traced(recorded / process)
    *in_log, last_in_log = logged(recorded / process)
    assert in_trace == in_log == cells
    if recorded.name in ("2.6.0", "2.10.0"):
        # torch/_dynamo/eval_frame.py: these compile a function whose source Python cannot find through one of torch's own, and its graph
        # has no lines of it.
        assert last_in_trace == last_in_log and last_in_log[0] == "inner"
        assert last_in_log[1].endswith("torch/_dynamo/external_utils.py")
    else:
        assert last_in_trace == last_in_log == of_magic


def test_one_cell_of_two_kernels_is_one_place(recorded: Path) -> None:
    """Both have the same cells but for one; what each kernel did is counted together."""
    scope = cachescope.read(recorded / "kernel", recorded / "edited")
    assert set(scope.recompiles["runs"]) == {(0, 1)}
    sections = told(scope)
    assert [line.endswith(", in 2 compiles") for line in sections["graph breaks"]] == [True]
    symbols = [line for line in sections["sizes and numbers that became symbols"] if " is " in line]
    assert symbols and all(line.endswith("; in 2 compiles") for line in symbols)
    names = [line.partition(" (")[0] for line in sections["looked up in caches"]]
    assert sorted(names) == sorted([*dict.fromkeys(names), "edited"])


def test_a_cell_that_was_edited_is_compared_with_what_it_was(recorded: Path) -> None:
    """By hand, from cells_program.py: 1 became 2."""
    scope = cachescope.read(recorded / "kernel", recorded / "edited")
    lookups = {row.lookup: row for row in scope.facts.lookups.values()}
    compared = [
        (lookups[miss.lookup], lookups[miss.baseline_lookup])
        for miss in scope.facts.misses.values()
        if lookups[miss.lookup].run == 1 and miss.baseline_lookup is not None
    ]
    assert compared
    for row, baseline in compared:
        assert (row.function, baseline.function, baseline.run) == ("edited", "edited", 0)
        assert row.file != baseline.file
    assert {row.cache for row, _ in compared} >= {"fxgraph"}


def test_nothing_of_one_process_is_in_the_name_of_a_cell(recorded: Path) -> None:
    scope = cachescope.read(recorded)
    sections = told(scope)
    names = {*sections["compiled again"], *sections["looked up in caches"]}
    assert not any(map(_OF_A_PROCESS.search, names))
    assert any(" (cell " in name for name in names)
    assert not _OF_A_PROCESS.search(str(scope.explain()))


def test_a_redaction_hides_the_hash_of_a_cell(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The text of a short cell can be guessed from it."""
    assert main(["compiles", str(recorded), "--redact"]) == 0
    printed = capsys.readouterr().out
    files = [file for part in ("kernel", "shell") for _, file, _ in said(recorded / part)]
    hashes = re.findall(r"\d{6,}|(?<=-)[0-9a-f]{12}", " ".join(files))
    assert len(hashes) > 8
    assert not [found for found in hashes if found in printed]


@pytest.mark.torch
@pytest.mark.models
def test_cells_that_run_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(_DATA)
    from record_kind import cells as record_into

    folder = record_into(tmp_path)
    for process in _PROCESSES:
        assert traced(folder / process) == logged(folder / process) == said(folder / process)


_CANDIDATES = sorted((Path(__file__).parents[2] / "data" / "candidates").glob("*.tar.xz"))
_SOME = re.compile(r"; (?P<known>one|\d+) of (?P<all>\d+) stored entries needs? (?P<needs>.*?), from ")
_ALL = re.compile(r"; the stored entr(?:y needs|ies need) (?P<needs>.*?), from ")
# By hand, from kind_programs.py: what the entries of the first three sizes need.
_NEEDS = {"11 to 100", "101 to 1000", "1001 or more"}


@pytest.mark.parametrize("archive", _CANDIDATES, ids=lambda path: path.name.removesuffix(".tar.xz"))
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
    scope = cachescope.read(unpacked(_CANDIDATES[0].with_name("2.13.0.tar.xz"), tmp_path) / "trace")
    told = [scope.explain(int(lookup)).sizes or "" for lookup in scope.misses["lookup"]]
    assert [some[0] for one in told if (some := _SOME.search(one))] == [
        "; one of 2 stored entries needs 11 to 100, from ",
        "; 2 of 3 stored entries need 1001 or more or 11 to 100, from ",
    ]
