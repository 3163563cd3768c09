"""Values of one process that real torch hashed into keys: what they were is told by the processes themselves."""

import html
import json
import re
from collections import defaultdict
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import pytest

from cachescope.analysis.differences import FieldChange
from cachescope.analysis.process_values import differs_by
from cachescope.cli import main
from cachescope.components import parse_component
from cachescope.details import HashDetails
from cachescope.scope import Scope
from cachescope.views.state import State
from cachescope.views.why import Why
from tests.conftest import Recording, unpacked
from tests.readings import read_once
from tests.recordings import Recorded

pytestmark = pytest.mark.slow

VALUES = Path(__file__).parents[1] / "data" / "values" / "2.13.0.tar.xz"


class Case(NamedTuple):
    """What is wanted: the words before the values, and words of the advice."""

    words: str
    advice: str


CASES = {
    "rank": Case("differs by rank", "holds the rank of the process: keep it out of the key"),
    # Only a group of processes tells its ranks.
    "variable_rank": Case("apparently differs by rank", "apparently holds the rank of the process: keep"),
    "variable_rank_in_path": Case("apparently differs by rank", "apparently holds the rank of the process"),
    "host": Case("apparently differs by host", "apparently holds the name of a host: keep"),
    "path": Case("differs by path", "holds a path: keep it out of the key"),
    "port": Case("apparently differs by port", "apparently holds a port: keep"),
    "endpoint": Case("differs by port", "holds a port: keep it out of the key"),
    "time": Case("differs by time", "holds a time: keep it out of the key"),
    "date": Case("differs by time", "holds a time: keep it out of the key"),
    "address": Case("differs by address", "holds the address of an object: keep"),
    "address_of_pass": Case("differs by address", "holds the address of an object: keep"),
    "pid": Case("differs by pid", "holds the id of the process: keep it out of the key"),
    "random": Case("apparently differs by random number", "apparently holds a random number: keep"),
    "seed": Case("apparently differs by random number", "apparently holds a random number: keep"),
    "time_in_graph": Case("differs by time", "The graph holds a time: keep it out of the key"),
    "pid_in_graph": Case("differs by pid", "The graph holds the id of the process: keep"),
}
OTHERWISE = ("option", "low_rank", "uuid_of_pass", "version")


@pytest.fixture(scope="module")
def values(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked(VALUES, tmp_path_factory.mktemp("values"))


def change_of(folder: Path) -> tuple[Scope, int, FieldChange]:
    scope = read_once(folder)
    missed = scope.misses[scope.misses["verdict"] == "key_changed"]
    assert len(missed) == 1
    lookup = int(missed["lookup"].iloc[0])
    (change,) = scope.changes(lookup)
    return scope, lookup, change


def truths(folder: Path) -> list[dict[str, object]]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("truth_*.json"))]


@pytest.mark.parametrize("name", CASES)
def test_what_got_into_a_key_is_named(name: str, values: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case, folder = CASES[name], values / name
    scope, lookup, change = change_of(folder)
    # What the processes hashed, as they tell it themselves.
    told = {str(one["value"]) for one in truths(folder)}
    if not change.diff:
        assert {change.before, change.after} == told
    assert change.summary.startswith(f"{case.words}: ")
    explained = scope.explain(lookup)
    sentence = rf"{re.escape(change.field)} (?:Change: )?{case.words}: "
    assert re.search(sentence, " ".join(repr(explained).split()))
    assert case.words in explained._repr_html_()
    assert explained.advice is not None
    assert case.advice in explained.advice
    assert explained.frame["differs_by"].tolist() == [change.differs_by]
    assert main(["explain", "--json", str(folder)]) == 0
    causes = json.loads(capsys.readouterr().out)["causes"]
    (cause,) = [one for one in causes if one["verdict"] == "key_changed"]
    assert cause["changes"][0]["summary"] == change.summary
    assert cause["changes"][0]["differs_by"] == list(change.differs_by)
    assert cause["changes"][0]["is_certain"] is not case.words.startswith("apparently")
    assert case.advice in cause["advice"]


def test_a_rank_is_certain_where_torch_tells_the_ranks(values: Path) -> None:
    scope, lookup, change = change_of(values / "rank")
    assert sorted(scope.runs["rank"].tolist()) == [one["rank"] for one in truths(values / "rank")] == [0, 1]
    run = int(scope.lookups.set_index("lookup")["run"][lookup])
    rank = scope.runs.set_index("run")["rank"][run]
    assert change.after == f"{{'rank': '{rank}'}}"


@pytest.mark.parametrize("name", OTHERWISE)
def test_what_differs_otherwise_is_not_taken_for_a_value_of_a_process(name: str, values: Path) -> None:
    _, _, change = change_of(values / name)
    assert {change.before, change.after} == {str(one["value"]) for one in truths(values / name)}
    assert change.process_values is None
    assert change.differs_by == ()
    assert change.is_certain is None


def recognised(scope: Scope) -> set[tuple[str, tuple[str, ...]]]:
    """What is recognised between any two values that a field has in a recording, whether they were compared or not."""
    details: HashDetails = scope.tables.hash_details
    values: dict[str, dict[str, str]] = defaultdict(dict)
    for component in details.components:
        detail = parse_component(component)
        # Texts differ where hashes do not: functions are printed by their addresses.
        values[detail.field][detail.detail_hash] = detail.value_text
    found = set()
    for field, texts in values.items():
        for before, after in permutations(texts.values(), 2):
            if (kinds := differs_by(field, before, after)) is not None:
                found.add((field, kinds.kinds))
    return found


RANKS = {("inductor_config[aot_inductor.output_path]", ("rank",))}
HOLD_RANKS = ("rank_in_config", "two_ranks_cold_paths", "two_ranks_cold_paths_fx")
QUICK = ("combined", "config_flip_fx", "inputs", "upgrade", *HOLD_RANKS[:2])


def nothing_else_is_taken_for_one(folder: Path, name: str) -> None:
    scope = read_once(folder)
    wanted = RANKS if name in HOLD_RANKS else set()
    assert recognised(scope) == wanted
    compared = [change for lookup in scope.misses["lookup"] for change in scope.changes(lookup)]
    assert {(one.field, one.differs_by) for one in compared if one.differs_by} == wanted


def check_nothing_else_is_taken_for_a_value_of_a_process(recorded: Recorded) -> None:
    nothing_else_is_taken_for_one(recorded.folder, recorded.name)


@pytest.mark.parametrize("name", QUICK)
def test_nothing_else_in_recordings_is_taken_for_one(name: str, recording: Recording) -> None:
    nothing_else_is_taken_for_one(recording("2.13.0", name), name)


def test_it_is_said_in_the_report_and_in_the_explorer(values: Path, tmp_path: Path) -> None:
    scope, lookup, change = change_of(values / "rank")
    document = html.unescape(scope.report(tmp_path / "report.html").read_text(encoding="utf-8"))
    # The cells of a row, without the places where a line may break.
    cells = " ".join(re.sub(r"<[^>]+>", " ", document.replace("<wbr>", "")).split())
    assert f"{change.field} differs by rank" in cells
    assert "holds the rank of the process: keep it out of the key" in document
    state = State()
    state.lookup = lookup
    assert "differs by rank" in Why(scope, state).changes.value
