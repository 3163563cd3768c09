"""Guard misses that were recorded: the size, the line, and what torch counted where the advice was followed."""

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import cachescope
from cachescope.answers.cards import Cards
from cachescope.scope import Scope
from tests.conftest import Recording, unpacked

_DATA = Path(__file__).parents[2] / "data"
RECORDED = [
    pytest.param(
        path,
        id=(version := path.name.removesuffix(".tar.xz")),
        marks=() if version == "2.13.0" else pytest.mark.slow,
    )
    for path in sorted((_DATA / "guards").glob("*.tar.xz"))
]
_PROGRAM = (_DATA / "guard_programs.py").read_text(encoding="utf-8").split("\n")
# By hand: which size of `guard_programs.py` fails which condition, and the line that it is from.
TOLD = {
    "bounded": ("x.size(0) is 5", "11 to 4096", "if x.shape[0] > 10 and x.shape[0] < 4097"),
    "at_most": ("x.size(0) is 50", "2 to 32", "if x.shape[0] * 2 <= 64"),
    "remainder": ("x.size(0) is 13", "x.size(0) % 8 == 0", "if x.shape[0] % 8 == 0"),
    "compared": ("x.size(0) is 6, y.size(0) is 9", "x.size(0) > y.size(0)", "if x.shape[0] > y.shape[0]"),
    "number": ("n is 50", "101 or more", "if n > 100"),
    "model": ("tokens.size(1) is 7", "12 or more", "if y.shape[1] >= 12"),
}
PADDED = {"bounded": "Pad x.size(0) to 11 or more", "model": "Pad tokens.size(1) to 12 or more"}


class Recorded(NamedTuple):
    scope: Scope
    facts: dict[str, dict[str, dict[str, int]]]
    folder: Path


def of_folder(folder: Path) -> Recorded:
    facts = {file.stem: json.loads(file.read_text()) for file in folder.glob("*.json")}
    return Recorded(cachescope.read(folder / "trace"), facts, folder)


@pytest.fixture(scope="module", params=RECORDED)
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return of_folder(unpacked(request.param, tmp_path_factory.mktemp("guards")))


def check_told(recorded: Recorded) -> None:
    """Each guard miss names its size, what the entry needs, and the line."""
    scope = recorded.scope
    told: dict[str, set[str | None]] = {}
    for lookup in scope.misses[scope.misses["verdict"] == "guard_failed"]["lookup"]:
        row = scope.lookups.set_index("lookup").loc[lookup]
        name = "model" if row["function"] == "forward" else row["function"]
        explained = scope.explain(int(lookup))
        told.setdefault(name, set()).add(explained.sizes)
        assert (explained.advice or "").startswith(PADDED.get(name, "Call it once with "))
        assert "on each side of that condition" in (explained.advice or "")
    assert told.keys() == TOLD.keys()
    for name, (size, needs, code) in TOLD.items():
        (line,) = (at for at, text in enumerate(_PROGRAM, 1) if text.strip() == f"{code}:")
        begin = f"{size}; the stored entry needs {needs}, from "
        # torch 2.6 does not write the text of lines.
        line_of = f"guard_programs.py:{line}"
        assert told[name] in ({f"{begin}`{code}` at {line_of}"}, {begin + line_of})


def check_counted(recorded: Recorded) -> None:
    """Torch counted misses where the guards fail, and none where the advice was followed."""
    # There each number of the program, a symbol in the graph, makes another key of AOTAutograd; that of FX is one.
    is_2_15 = str(recorded.scope.runs["torch_version"].iloc[0]).startswith("2.15")
    for name in TOLD:
        second, both = recorded.facts["second"][name], recorded.facts["both"][name]
        # torch 2.6 looks its FX graph up for AOTAutograd's entry, and again to compile it.
        assert second["autograd_cache_miss"] == 1 and second["fxgraph_cache_miss"] >= 1
        assert both["fxgraph_cache_hit"] == 1 and "fxgraph_cache_miss" not in both
        assert both.get("autograd_cache_miss", 0) == (is_2_15 and name == "number")


CHECKS = (check_told, check_counted)


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_guard_misses_are_told_in_full(check: Any, recorded: Recorded) -> None:
    check(recorded)


@pytest.mark.parametrize("version", ["2.6.0", "2.10.0", "2.13.0", "2.15.0"])
def test_the_list_of_causes_tells_it_as_well(version: str, recording: Recording) -> None:
    scope = cachescope.read(recording(version, "dynamic_guards") / "trace")
    (card,) = Cards.of(scope).cards
    assert card.guards is not None
    assert card.guards.text.startswith("x.size(0) is 5; the stored entry needs 11 or more, from ")
    assert card.guards.text.endswith("record_programs.py:85")


@pytest.mark.slow
def test_a_trace_that_is_not_there_any_more_tells_no_line(recorded: Recorded, tmp_path: Path) -> None:
    shutil.copytree(recorded.folder / "trace", tmp_path / "trace")
    scope = cachescope.read(tmp_path / "trace")
    misses = scope.misses[scope.misses["verdict"] == "guard_failed"]
    # That of the process that stored the entries.
    Path(scope.runs["source"].iloc[0]).unlink()
    for lookup in misses["lookup"]:
        sizes = scope.explain(int(lookup)).sizes
        assert sizes is None or (" is " in sizes and ", from " not in sizes)


def test_large_traces_are_read_when_asked_for(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cachescope.answers.cards.MOST_BYTES_READ_AGAIN", 10)
    monkeypatch.setattr("cachescope.answers.summary.MOST_BYTES_READ_AGAIN", 10)
    scope = cachescope.read(recorded.folder / "trace")
    assert all(card.guards is None for card in Cards.of(scope).cards)
    (lookup, *_) = scope.misses[scope.misses["verdict"] == "guard_failed"]["lookup"]
    assert scope.explain(int(lookup)).sizes is not None
    # Of what was read there, or of all compiles, nothing is read again.
    assert any(card.guards is not None for card in Cards.of(scope).cards)


@pytest.mark.slow
def test_a_saved_scope_tells_it_without_its_traces(recorded: Recorded, tmp_path: Path) -> None:
    recorded.scope.save(tmp_path / "saved")
    saved = cachescope.read(tmp_path / "saved")
    for lookup in saved.misses[saved.misses["verdict"] == "guard_failed"]["lookup"]:
        assert saved.explain(int(lookup)).sizes == recorded.scope.explain(int(lookup)).sizes is not None


@pytest.mark.models
@pytest.mark.torch
def test_the_advice_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are warm: the check above. Padded: another run, of the entries that the first one stored."""
    monkeypatch.syspath_prepend(_DATA)
    from record_kind import guards as record_into

    (folder := tmp_path / "run").mkdir()
    recorded = of_folder(record_into(folder))
    for check in CHECKS:
        check(recorded)
    (padded := tmp_path / "padded").mkdir()
    counted = of_folder(record_into(padded, steps=("first", "padded"))).facts["padded"]
    assert counted.keys() == PADDED.keys()
    assert all(
        one.get("autograd_cache_hit") == 1 and "fxgraph_cache_miss" not in one for one in counted.values()
    )
