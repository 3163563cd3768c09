"""Compiles that were recorded, against what torch's counters, torch's own log and Python say of them."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import cachescope
from cachescope.analysis.compiles.frames import value_before
from cachescope.scope import Scope
from tests import conftest

_DATA = Path(__file__).parents[2] / "data"
OF_2_4 = _DATA / "compiles" / "2.4.1.tar.xz"
RECORDED = sorted({*(_DATA / "compiles").glob("*.tar.xz")} - {OF_2_4})
_RECOMPILE = re.compile(r"\[(\d+/\d+)\] \[__recompiles\] Recompiling function (\S+) in (.*):(\d+)$")
_GUARD = re.compile(r"\[(\d+/\d+)\] \[__recompiles\]     - (\d+/\d+: .*)$")
_SYMBOL = re.compile(r"\[(\d+/\d+)\] create_symbol (\w+) = (\S+) for (\S+) (\[[^\]]*\]) .*:(\d+) in (\w+) \(")


class Recorded(NamedTuple):
    """A scope of one trace, and what torch and Python say."""

    scope: Scope
    log: str
    counters: dict[str, dict[str, int]]
    places: list[list[Any]]


def unpacked(archive: Path, folder: Path) -> Recorded:
    return of_folder(conftest.unpacked(archive, folder))


def of_folder(folder: Path) -> Recorded:
    facts = json.loads((folder / "facts.json").read_text())
    log = (folder / "torch.log").read_text()
    return Recorded(cachescope.read(folder / "trace"), log, facts["counters"], facts["places"])


@pytest.fixture(scope="module", params=RECORDED, ids=lambda path: path.name.removesuffix(".tar.xz"))
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return unpacked(request.param, tmp_path_factory.mktemp("compiles"))


def check_counts(recorded: Recorded) -> None:
    """``frames``, ``graph_break`` and ``resumes`` of torch._dynamo.utils.counters."""
    compiles, counters = recorded.scope.compiles, recorded.counters
    kinds = Counter(compiles["kind"])
    assert recorded.scope.compile_problems.empty
    assert len(compiles) - kinds["backward"] == counters["frames"]["total"]
    assert len(compiles) - kinds["backward"] - kinds["limit"] == counters["frames"]["ok"]
    assert compiles["graph_breaks"].map(len).sum() == sum(counters["graph_break"].values()) > 0
    # 2.6 does not count them.
    assert kinds["resume"] == sum(counters.get("resumes", {"": 2}).values())
    assert kinds["backward"] == kinds["limit"] == 1
    assert compiles["time_taken_ns"].notna().all()


def check_recompiles(recorded: Recorded) -> None:
    """Each recompile with its place and its guards, as torch prints them with TORCH_LOGS=recompiles."""
    found = filter(None, map(_RECOMPILE.search, recorded.log.split("\n")))
    said = {match[1]: match.groups()[1:] for match in found}
    guards: dict[str, list[str]] = {compile_id: [] for compile_id in said}
    for match in map(_GUARD.search, recorded.log.split("\n")):
        if match:
            guards[match[1]].append(" ".join(match[2].split()))
    found = recorded.scope.compiles
    found = found[found["kind"].isin(["recompile", "limit"])]
    assert len(said) > 10
    assert found["compile_id"].tolist() == list(said)
    for row in found.itertuples():
        assert (row.function, row.file, str(row.line)) == said[row.compile_id]
        assert list(row.recompile_reasons) == guards[row.compile_id]


def check_symbols(recorded: Recorded) -> None:
    """Each symbol, as torch prints it with TORCH_LOGS=dynamic."""
    said = [match.groups() for match in map(_SYMBOL.search, recorded.log.split("\n")) if match]
    columns = ["compile_id", "symbol", "value", "source", "range", "line", "function"]
    found = recorded.scope.symbols[columns].astype(str)
    assert len(said) > 2
    assert list(found.itertuples(index=False, name=None)) == said
    named = recorded.scope.compiles.explode("symbols").dropna(subset="symbols")
    assert list(zip(named["compile_id"], named["symbols"], strict=True)) == [one[:2] for one in said]


def test_a_value_that_became_a_symbol_has_the_one_before(recorded: Recorded) -> None:
    """By hand, from the calls in compile_programs.py: 3 then 5 rows, 2 then 3, 4 then 12 rows; a flag of 1 that became 2."""
    symbols = recorded.scope.symbols
    found = list(zip(symbols["source"], symbols["changed_from"], symbols["value"], strict=True))
    wanted = {("L['x'].size()[0]", "3", "5"), ("L['n']", "2", "3"), ("L['x'].size()[0]", "4", "12")}
    assert set(found) - {("L['self'].flag", "1", "2")} == wanted


def check_places(recorded: Recorded) -> None:
    """The first compile of each function, against its code object."""
    first = recorded.scope.compiles
    first = first[first["kind"] == "first"]
    assert first[["function", "file", "line"]].to_numpy().tolist() == recorded.places
    # Compile ids began again with the last one.
    assert (first["compile_id"].iloc[-1], first["segment"].iloc[-1]) == ("0/0", 2)


CHECKS = (check_counts, check_recompiles, check_symbols, check_places)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_compiles_are_what_torch_and_python_say(check: Any, recorded: Recorded) -> None:
    check(recorded)


def test_compiles_of_torch_2_4_have_their_functions(tmp_path: Path) -> None:
    """No stack of it has the code that is compiled. It records no reasons, no symbols, no graph breaks, and the limit not at all."""
    recorded = unpacked(OF_2_4, tmp_path)
    check_places(recorded)
    compiles = recorded.scope.compiles
    assert len(compiles) == recorded.counters["frames"]["ok"]
    again = compiles[compiles["kind"] == "recompile"]
    said = {match.groups() for match in map(_RECOMPILE.search, recorded.log.split("\n")) if match}
    names = again[["compile_id", "function", "file", "line"]].astype(str)
    (limit,) = said - set(names.itertuples(index=False, name=None))
    assert limit[1] == "limited" and len(names) == len(said) - 1


def lines_of(*texts: str) -> list[int]:
    """The lines of the program that hold some texts, each the first."""
    program = (RECORDED[0].parents[1] / "compile_programs.py").read_text().split("\n")
    return [next(number for number, line in enumerate(program, 1) if text in line) for text in texts]


def test_graph_breaks_have_their_place_and_their_reason(recorded: Recorded) -> None:
    broken = recorded.scope.compiles.explode("graph_breaks").dropna(subset="graph_breaks")
    where = [text.split(": ", 1) for text in broken["graph_breaks"]]
    file = recorded.places[0][1]
    assert [place for place, _ in where] == [f"{file}:{line}" for line in lines_of("print(", "graph_break()")]
    reasons = [line for text in recorded.counters["graph_break"] for line in text.split("\n")]
    # torch 2.6 names the kind of the exception in the trace alone.
    texts = [reason.removeprefix("Unsupported: ") for _, reason in where]
    assert all(any(text == line.strip() for line in reasons) for text in texts)
    assert broken["restarts"].map(len).tolist() == [1, 1]


def test_a_guard_that_fails_with_one_value_after_another_is_one_row(recorded: Recorded) -> None:
    rows = recorded.scope.recompiles
    limited = rows[rows["function"] == "limited"]
    assert limited[["compiles", "limits"]].to_numpy().tolist() == [[7, 1]]
    assert limited["guard"].str.endswith(" == …").all()
    compiles = recorded.scope.compiles
    of_rows = compiles[compiles["kind"].isin(["recompile", "limit"])]
    assert rows["compiles"].sum() + rows["limits"].sum() == len(of_rows)
    assert rows["time_taken_ns"].sum() == of_rows["time_taken_ns"].sum()
    assert rows["time_taken_ns"].is_monotonic_decreasing
    assert len(rows) == 8
    assert "GLOBAL_STATE changed: grad_mode" in set(rows["guard"])


@pytest.mark.torch
def test_compiles_of_a_process_that_runs_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(_DATA)
    from record_kind import compiles as record_into

    recorded = of_folder(record_into(tmp_path))
    for check in CHECKS:
        check(recorded)


SIZE = "tensor 'x' size mismatch at index 1. expected 3, actual 5"


@pytest.mark.parametrize(("source", "value", "reasons", "before"), [
    ("L['x'].size()[1]", "5", [f"0/0: {SIZE}"], "3"),
    ("L['x'].size()[1]", "5", [f"0/0: {SIZE} # return x # a.py:3 in f"], "3"),
    ("L['self']._modules['x'].weight.size()[0]", "5",
     ["2/0: tensor 'self._modules['x'].weight' size mismatch at index 0. expected 4, actual 5"], "4"),
    ("L['f']", "2.5", ["0/0: L['f'] == 1.5"], "1.5"),
    ("L['n']", "-3", ["0/1: len(layers) == 2", "0/0: n == -2 # return x * n"], "-2"),
    ("L['self'].flag", "2", ["0/0: self.flag == 1 # return (HINT: an attribute)"], "1"),
    # Another size, another input, the same number by chance, or nothing of it.
    ("L['x'].size()[0]", "5", [f"0/0: {SIZE}"], None),
    ("L['y'].size()[1]", "5", [f"0/0: {SIZE}"], None),
    ("L['x'].size()[1]", "6", [f"0/0: {SIZE}"], None),
    ("L['n']", "2", ["0/0: n == 2"], None),
    ("L['n']", "2", ["0/0: m.n == 3"], None),
    ("L['n']", "2", ["0/0: text == '3'", "GLOBAL_STATE changed: grad_mode", ""], None),
    (None, "2", ["0/0: n == 3"], None),
    ("L['n']", None, ["0/0: n == 3"], None),
    ("L['n']", "2", [], None),
])  # fmt: skip
def test_value_before(source: str | None, value: str | None, reasons: list[str], before: str | None) -> None:
    assert value_before(source, value, reasons) == before
