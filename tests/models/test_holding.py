"""What holds the lookups of real models finds what does not fit: a session that did something else is not held."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from models.holding import hold

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


def kinds(folder: Path) -> set[str]:
    # What follows from what is not what these are about.
    return {fault.kind for fault in hold(folder, "trace").faults}


@pytest.mark.slow
def test_a_session_as_it_was_is_held(session: Path) -> None:
    assert kinds(session) == set()


@pytest.mark.slow
def test_another_change_than_the_one_told_is_a_false_blame(session: Path) -> None:
    rewrite(session / "session.json", lambda content: content["steps"][2].update(change="tag"))
    assert kinds(session) == {"false_blame"}


@pytest.mark.slow
def test_a_miss_without_a_change_is_a_false_blame(session: Path) -> None:
    rewrite(session / "session.json", lambda content: content["steps"][2].update(change=None))
    assert kinds(session) == {"false_blame"}


@pytest.mark.slow
def test_another_number_of_hits_is_a_wrong_count(session: Path) -> None:
    def one_more(report: Any) -> None:
        report["programs"][-1]["after"]["inductor"]["fxgraph_cache_hit"] += 1

    rewrite(next((session / "steps").glob("01_*.json")), one_more)
    assert kinds(session) == {"count"}


@pytest.mark.slow
def test_another_program_is_no_baseline(session: Path) -> None:
    def renamed(report: Any) -> None:
        report["programs"][0]["program"] = "vit:infer"

    rewrite(next((session / "steps").glob("02_*.json")), renamed)
    assert kinds(session) == {"other_program"}


@pytest.mark.slow
def test_a_damaged_log_is_a_problem(session: Path) -> None:
    trace = sorted((session / "trace").iterdir())[0]
    trace.write_bytes(trace.read_bytes().replace(b'{"name": "fx_graph_cache', b'{"name" "fx_graph_cache', 1))
    assert hold(session, "trace").faults
