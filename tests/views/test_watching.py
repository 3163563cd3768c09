"""Following a job: a real trace that grows, in a folder of its own. Every look is taken by hand; nothing waits."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.errors import CachescopeError, SourceError
from cachescope.readers.file_fingerprints import stamps
from cachescope.views import explorer as followed
from cachescope.views.explorer import Explorer, Following
from tests.views.test_compare import picked
from tests.views.test_explorer import opened

pytestmark = pytest.mark.slow  # whole explorers are built


@pytest.fixture
def traces(recording: Any) -> list[Path]:
    """The traces of the recorded tour, first run first: six processes, of which the fourth flips a config."""
    scope = cachescope.read(recording("2.13.0", "tour") / "trace")
    return [Path(source) for source in scope.runs["source"]]


def watched(act: Callable[[Explorer], None], folder: Path) -> None:
    """Act on an explorer that follows a folder, in an event loop as a kernel has one."""

    async def run() -> None:
        explorer = cachescope.read(folder).explore(watch=True)
        try:
            act(explorer)
        finally:
            explorer.close()
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())
    no_thread_is_left()


def no_thread_is_left() -> None:
    for thread in threading.enumerate():
        if thread.name.startswith("cachescope-watch"):
            thread.join(60)
            assert not thread.is_alive()


def copy(trace: Path, folder: Path, share: float = 1.0) -> Path:
    """The beginning of a trace, as a process leaves it that has not ended: mostly in the middle of a record."""
    text = trace.read_bytes()
    to = folder / trace.name
    to.write_bytes(text[: int(len(text) * share)])
    return to


def test_what_a_job_writes_is_shown_and_what_was_chosen_stays(traces: list[Path], tmp_path: Path) -> None:
    copy(traces[3], tmp_path)

    def act(explorer: Explorer) -> None:
        explorer.state.show_lookups(run=0, text="f")
        explorer.state.show_why(1)
        key = explorer.scope.lookups["cache_key"][1]
        # A process that began earlier: its lookups come first, so that all numbers move.
        copy(traces[0], tmp_path)
        explorer.watching.step()
        state = explorer.state
        assert len(explorer.scope.runs) == 2
        assert (state.pane, state.run, state.text) == ("Why", 1, "f")
        assert explorer.scope.lookups["cache_key"][state.lookup] == key and state.lookup > 1
        assert explorer.frame().equals(explorer.scope.explain(state.lookup).frame)
        assert explorer.tabs.children[explorer.tabs.selected_index].children == (explorer.pane("Why"),)
        assert set(explorer.pane("Lookups").frame()["run"]) == {1}
        explorer.state.show_why(0)
        assert explorer.pane("Why").explained.lookup == 0

    watched(act, tmp_path)


def test_what_was_picked_to_compare_stays(traces: list[Path], tmp_path: Path) -> None:
    for trace in traces[2:4]:
        copy(trace, tmp_path)

    def act(explorer: Explorer) -> None:
        pane = opened(explorer, "Compare")
        picked(pane, "A", 1)
        pane.changes.value = "fixed"
        # A process that began earlier: all numbers move.
        copy(traces[0], tmp_path)
        explorer.watching.step()
        assert explorer.state.compared == ((2,), (1,))
        pane = explorer.pane("Compare")
        assert pane.picker.sides == [[2], [1]] and pane.changes.value == "fixed"

    watched(act, tmp_path)


def test_a_log_that_is_cut_anywhere_does_no_harm(traces: list[Path], tmp_path: Path) -> None:
    whole = cachescope.read(traces[0])
    copy(traces[0], tmp_path, 0.2)

    def act(explorer: Explorer) -> None:
        counts = []
        for share in (0.5, 0.77, 0.9, 1.0):
            copy(traces[0], tmp_path, share)
            explorer.watching.step()
            assert explorer.state.error == "" and "cs-error" not in explorer.watching._said.value
            counts.append(len(explorer.scope.lookups))
        assert counts == sorted(counts) and counts[-1] == len(whole.lookups)

    watched(act, tmp_path)


def test_a_field_left_out_that_is_in_no_key_any_more_counts_again(traces: list[Path], tmp_path: Path) -> None:
    log = copy(traces[0], tmp_path)
    field = "inductor_config[epilogue_fusion]"

    def act(explorer: Explorer) -> None:
        explorer.state.pane = "What-if"
        explorer.state.without = (field, "torch_version_hash")
        log.write_bytes(log.read_bytes().replace(field.encode(), b"inductor_config[epilogue_fusiom]"))
        explorer.watching.step()
        assert explorer.state.without == ("torch_version_hash",) and field in explorer.state.error
        pane = explorer.pane("What-if")
        assert pane.tree.off == ["torch_version_hash"]
        assert len(explorer.frame()) == len(explorer.scope.lookups) > 0
        # The next toggle takes the word away.
        pane.tree.off = []
        assert explorer.state.error == "" and explorer.state.without == ()

    watched(act, tmp_path)


def test_nothing_is_read_where_nothing_changed(traces: list[Path], tmp_path: Path) -> None:
    log = copy(traces[0], tmp_path)
    follows = Following(cachescope.read(tmp_path))
    first = follows.scope
    # The first look reads: it cannot know what was written since.
    assert follows.look() and follows.scope is not first
    second = follows.scope
    assert not follows.look() and follows.scope is second
    log.write_bytes(log.read_bytes() + b"\n")
    assert follows.look() and follows.scope is not second


def test_a_source_that_is_gone_is_said_in_place_and_tried_again(traces: list[Path], tmp_path: Path) -> None:
    log = copy(traces[0], tmp_path)

    def act(explorer: Explorer) -> None:
        content = log.read_bytes()
        log.unlink()
        explorer.watching.step()
        said = explorer.watching._said.value
        assert "role='alert'" in said and "SourceError" in said and "tried again" in said
        assert len(explorer.scope.lookups) > 0
        log.write_bytes(content)
        explorer.watching.step()
        assert "alert" not in explorer.watching._said.value

    watched(act, tmp_path)


def test_the_loop_of_a_kernel_looks_by_itself_and_stops(
    traces: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followed, "SHORTEST_PAUSE_S", 0.0)
    monkeypatch.setattr(followed, "PAUSES_PER_WORK", 0)
    copy(traces[0], tmp_path)

    async def run() -> None:
        explorer = cachescope.read(tmp_path).explore(watch=True)
        assert explorer._view_count == 0 and "Watching" in explorer.watching._said.value
        explorer._view_count = 1
        copy(traces[1], tmp_path)
        while len(explorer.scope.runs) < 2:
            await asyncio.sleep(0)
        explorer.watching._stop.click()
        assert "Stopped watching" in explorer.watching._said.value and explorer.watching._stop.disabled
        explorer.stop()

    asyncio.run(asyncio.wait_for(run(), 120))
    no_thread_is_left()


def test_nothing_is_read_while_nobody_looks(traces: list[Path], tmp_path: Path) -> None:
    copy(traces[0], tmp_path)

    def act(explorer: Explorer) -> None:
        assert not explorer.watching._is_seen()
        explorer._view_count = 1
        assert explorer.watching._is_seen()

    watched(act, tmp_path)


def test_pauses_grow_with_work(traces: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy(traces[0], tmp_path)
    follows = Following(cachescope.read(tmp_path))
    times = iter([100.0, 103.0])
    monkeypatch.setattr(followed.time, "monotonic", lambda: next(times))
    follows.look()
    assert follows.pause_s == 15.0


def test_what_cannot_be_followed_says_why(traces: list[Path], tmp_path: Path) -> None:
    scope = cachescope.read(traces[0])
    with pytest.raises(CachescopeError, match="needs the event loop of a notebook"):
        scope.explore(watch=True)
    made = type(scope)(scope.tables)
    with pytest.raises(SourceError, match="no file to follow"):
        made.explore(watch=True)
    with pytest.raises(SourceError, match="no file to read again"):
        made.read_again()


def test_stamps_tell_every_file(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one.log").write_text("1")
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    before = stamps([str(tmp_path), str(tmp_path / "gone"), str(tmp_path / "*.log")])
    assert before[str(tmp_path / "a" / "one.log")][0] == 1
    (tmp_path / "b.log").write_text("22")
    after = stamps([str(tmp_path / "*.log")])
    assert after == {
        str(tmp_path / "b.log"): ((tmp_path / "b.log").stat().st_size, (tmp_path / "b.log").stat().st_mtime_ns),
    }  # fmt: skip
