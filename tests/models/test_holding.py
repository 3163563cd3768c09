"""What holds the lookups of real models finds what does not fit: a session that did something else is not held."""

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from models.holding import WAYS, hold

pytestmark = pytest.mark.slow

ARCHIVE = Path(__file__).parents[1] / "data" / "models" / "small_inference.tar.xz"


@pytest.fixture
def session(tmp_path: Path) -> Path:
    folder = tmp_path / "small_inference"
    with tarfile.open(ARCHIVE) as packed:
        packed.extractall(folder, filter="data")
    return folder


def rewrite(path: Path, change: Callable[[Any], None]) -> None:
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def told_as(change: str | None) -> Callable[[Any], None]:
    return lambda content: content["steps"][2].update(change=change)


def one_more(report: Any) -> None:
    report["programs"][-1]["after"]["inductor"]["fxgraph_cache_hit"] += 1


def renamed(report: Any) -> None:
    report["programs"][0]["program"] = "vit:infer"


CHANGES: dict[str, tuple[str, Callable[[Any], None], set[str]]] = {
    "nothing": ("session.json", lambda content: None, set()),
    "another change than the one told": ("session.json", told_as("tag"), {"false_blame"}),
    "a miss without a change": ("session.json", told_as(None), {"false_blame"}),
    "another number of hits": ("steps/01_*.json", one_more, {"count"}),
    "another program": ("steps/02_*.json", renamed, {"other_program"}),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_session_that_did_something_else_is_not_held(what: str, session: Path) -> None:
    """What follows from what is not what this is about."""
    name, change, kinds = CHANGES[what]
    rewrite(next(session.glob(name)), change)
    assert {fault.kind for fault in hold(session, "trace").faults} == kinds


def test_a_damaged_log_is_a_problem(session: Path) -> None:
    trace = sorted((session / "trace").iterdir())[0]
    trace.write_bytes(trace.read_bytes().replace(b'{"name": "fx_graph_cache', b'{"name" "fx_graph_cache', 1))
    assert hold(session, "trace").faults


ARCHIVES = sorted((Path(__file__).parents[1] / "data" / "models").glob("*.tar.xz"))


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name.removesuffix(".tar.xz"))
def test_lookups_of_recorded_models_are_told_as_they_were(archive: Path, tmp_path: Path) -> None:
    folder = tmp_path / archive.name.removesuffix(".tar.xz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    held = [hold(folder, way) for way in WAYS]
    assert all(one.lookups for one in held)
    assert [f"{one.way}: {fault}" for one in held for fault in one.faults] == []
