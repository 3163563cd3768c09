"""Every lookup of every recording, read three ways, against what was changed; test_counts.py counts them."""

import contextlib
import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from scenarios import SCENARIOS, VERSIONS, Run, expectation

import cachescope
from tests.conftest import Recording
from tests.readings import read_once

pytestmark = pytest.mark.slow

WAYS = ("trace", "text", "all")
CASES = [(version, name) for version, names in VERSIONS.items() for name in names]


def read_way(folder: Path, way: str) -> cachescope.Scope:
    sources = {
        "trace": ["trace"],
        "text": ["text"],
        "all": ["trace", "text", *sorted(p.name for p in folder.glob("cache*"))],
    }[way]
    steps = json.loads((folder / "scenario.json").read_text())["steps"]
    if not any("TORCH_LOGS" in step.get("environment", {}) for step in steps):
        sources = [source for source in sources if source != "text"]
    return read_once(*(folder / source for source in sources))


def lookups_of(scope: cachescope.Scope) -> list[Run]:
    """The lookups in the notation of scenarios.py."""
    told = scope.lookups.merge(scope.misses, on="lookup", how="left")
    runs: list[Run] = [[] for _ in range(len(scope.runs))]
    for row in told.itertuples():
        letter = "A" if row.cache == "aotautograd" else "B" if row.direction == "backward" else "F"
        words = [letter, row.outcome]
        if row.outcome != "hit":
            words += [row.verdict, *sorted(row.changed), *([] if row.root else ["<"])]
        runs[row.run].append(" ".join(words))
    return runs


def with_sorted_fields(runs: list[Run]) -> list[Run]:
    def sort(line: str) -> str:
        head, fields = line.split()[:3], line.split()[3:]
        follows = ["<"] if "<" in fields else []
        return " ".join([*head, *sorted(f for f in fields if f != "<"), *follows])

    return [[sort(line) for line in run] for run in runs]


def each_way(cases: Iterable[tuple[str, str]]) -> list[tuple[str, str, str]]:
    """Every recording, each way."""
    return [(version, name, way) for version, name in cases for way in WAYS]


@pytest.mark.parametrize(("version", "name", "way"), each_way(CASES))
def test_every_lookup_is_explained(version: str, name: str, way: str, recording: Recording) -> None:
    folder = recording(version, name)
    expected = expectation(version, name, way)
    if expected is None:
        # Some versions print a warning or two, which is a log of torch that tells of no lookup.
        with contextlib.suppress(cachescope.SourceError):
            assert cachescope.read(folder / way).lookups.empty
        return
    assert lookups_of(read_way(folder, way)) == with_sorted_fields(expected)


def test_scenarios_are_all_recorded() -> None:
    root = Path(__file__).parent / "data" / "recordings"
    recorded = {(p.parent.name, p.name.removesuffix(".tar.xz")) for p in root.glob("*/*.tar.xz")}
    # Those of tests/wild have expectations of their own.
    assert recorded >= set(CASES)
    assert set(SCENARIOS) == {name for version, name in CASES if version == "2.13.0"}
