"""What test_magic.py runs in one process: blocks that are recorded while torch compiles. Needs torch.

Also by hand, with another torch: ``PYTHONPATH=. TORCH_TRACE=… python tests/capture/live_program.py out.json [SCENARIO…]``.
"""

# ruff: noqa: PT017 (it also runs where there is no pytest)
from __future__ import annotations

import contextlib
import inspect
import json
import logging
import os
import sys
import tempfile
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import torch._functorch.config as functorch_config
import torch._inductor.config as inductor_config
from torch._dynamo.utils import counters

import cachescope
from cachescope.capture.live_trace import DETAILS_LOGGER, TRACE_LOGGER, RecordingUnderWayError

LOGGERS = (TRACE_LOGGER, DETAILS_LOGGER, "torch", "torch._functorch", "torch._inductor.codecache", "")
CACHE = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
X = torch.randn(8, 8)


def program(number: int) -> Callable[[torch.Tensor], torch.Tensor]:
    """A graph of its own for each number; Dynamo would make the number an input if it knew the last one."""
    torch._dynamo.reset()

    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x).sum() + number

    return torch.compile(f)


def outcomes(scope: Any, run: int | None = None) -> Counter[tuple[str, str]]:
    lookups = scope.lookups if run is None else scope.lookups[scope.lookups["run"] == run]
    return Counter(zip(lookups["cache"], lookups["outcome"], strict=True))


def counted() -> Counter[tuple[str, str]]:
    """The same, as torch counts it."""
    names = {"hit": "hit", "miss": "full_miss"}
    return Counter(
        {
            (cache, names[what]): counters[group][f"{name}_cache_{what}"]
            for cache, group, name in (
                ("fxgraph", "inductor", "fxgraph"),
                ("aotautograd", "aot_autograd", "autograd"),
            )
            for what in names
        }
    )


def tree(*folders: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path): (path.stat().st_size if path.is_file() else 0, path.stat().st_mtime_ns)
        for folder in folders
        for path in [folder, *sorted(folder.rglob("*"))]
    }


def logging_state() -> dict[str, object]:
    found = {name: logging.getLogger(name) for name in LOGGERS}
    return {n: (g.level, g.propagate, g.disabled, [*g.handlers], [*g.filters]) for n, g in found.items()}


def variables() -> dict[str, str | None]:
    return {name: os.environ.get(name) for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")}


@contextlib.contextmanager
def output() -> Iterator[Path]:
    """What is written to the two streams of the process, by whatever."""
    with tempfile.NamedTemporaryFile(suffix=".txt") as file:
        sys.stdout.flush(), sys.stderr.flush()
        saved = [(number, os.dup(number)) for number in (1, 2)]
        for number, _ in saved:
            os.dup2(file.fileno(), number)
        try:
            yield Path(file.name)
        finally:
            sys.stdout.flush(), sys.stderr.flush()
            for number, copy in saved:
                os.dup2(copy, number)
                os.close(copy)


def outcomes_are_those_of_torchs_counters() -> None:
    f = program(1)
    for fresh_dynamo in range(3):
        torch._dynamo.reset()
        before = counted()
        with cachescope.recording() as r:
            f(X)
            f(X.clone().requires_grad_()).backward()
        assert outcomes(r.scope) == counted() - before, (fresh_dynamo, outcomes(r.scope), counted() - before)
        assert len(r.scope.lookups) and r.scope.problems.empty
        assert set(r.scope.lookups["details"]) <= {"recorded", "from_log"} or fresh_dynamo
    assert {outcome for _, outcome in outcomes(r.scope)} == {"hit"}
    (run,) = r.scope.runs.to_dict("records")
    assert run["torch_version"] == torch.__version__ and run["pid"] == os.getpid()


def disabled_loggers_are_heard_and_stay_disabled() -> None:
    f = program(31)
    found = [logging.getLogger(name) for name in (TRACE_LOGGER, DETAILS_LOGGER)]
    for logger in found:  # as logging.config.dictConfig does with every logger that is there
        logger.disabled = True
    state = logging_state()
    before = counted()
    with output() as shown:
        with cachescope.recording() as r:
            f(X)
        assert shown.read_bytes() == b""
    assert outcomes(r.scope) == counted() - before
    assert set(r.scope.lookups["details"]) <= {"recorded", "from_log"}
    assert logging_state() == state
    for logger in found:
        logger.disabled = False


def a_changed_config_is_named() -> None:
    f = program(2)
    with cachescope.recording() as before:
        f(X)
    torch._dynamo.reset()
    with inductor_config.patch(epilogue_fusion=False), cachescope.recording(against=before) as r:
        f(X)
    mine = r.scope.lookups.loc[r.scope.lookups["run"] == r.run, "lookup"]
    misses = r.scope.misses[r.scope.misses["lookup"].isin(mine)]
    assert set(misses["verdict"]) == {"key_changed"}
    assert set(misses["changed"]) == {("inductor_config[epilogue_fusion]",)}
    assert r.run == 1 and "epilogue_fusion: True -> False" in repr(r)
    assert "epilogue_fusion" in r._repr_html_()
    # torch hashes its options as one field, and prints it as cut bytes.
    torch._dynamo.reset()
    own = Path(before.block.path)
    with functorch_config.patch(recompute_views=True):
        with cachescope.recording(against=before) as flipped:
            f(X)
        with cachescope.preflight(against=own.parent.glob(f"{own.name}*")) as foreseen:
            f(X)
    for one in (flipped, foreseen):
        assert "recompute_views False -> True" in repr(one), repr(one)
        assert "torch._functorch.config.recompute_views = False" in repr(one), repr(one)
    assert {*flipped.scope.contexts["run"]} == {0, 1}
    torch._dynamo.reset()
    torch.set_default_device("cpu")
    with cachescope.recording(against=before) as r:
        f(X)
    torch.set_default_device(None)
    assert "another default device: None -> device(type='cpu')" in repr(r), repr(r)


def the_cache_directory_is_something_to_compare_with() -> None:
    if torch.__version__ < "2.8" and not torch.__version__.startswith("2.1"):
        return  # entries do not hold the hash details yet
    f = program(3)
    f(X)
    torch._dynamo.reset()
    with inductor_config.patch(epilogue_fusion=False), cachescope.recording(against=CACHE) as r:
        f(X)
    (fx,) = r.scope.misses.loc[r.scope.misses["verdict"] == "key_changed", "changed"].unique()
    assert fx == ("inductor_config[epilogue_fusion]",)
    assert "not compared with" not in repr(r)
    torch._dynamo.reset()
    # An option that no other scenario sets: the directory is said to hold other keys.
    with inductor_config.patch(size_asserts=False), cachescope.recording() as alone:
        f(X)
    assert "not compared with " in repr(alone), repr(alone)
    assert f"%%cachescope --against {CACHE}" in " ".join(repr(alone).split()), repr(alone)
    assert "not compared with " in alone._repr_html_()


def recording_changes_no_key() -> None:
    f = program(4)
    f(X)
    torch._dynamo.reset()
    with cachescope.recording() as r:
        f(X)
    assert {outcome for _, outcome in outcomes(r.scope)} == {"hit"}


def a_compile_that_fails_is_told_with_its_error() -> None:
    @torch.compile
    def wrong(x: torch.Tensor) -> torch.Tensor:
        return x @ torch.ones(3)

    with cachescope.recording() as r, contextlib.suppress(Exception):
        wrong(X)
    assert "1 of 1 compile failed" in repr(r) and "RuntimeError" in repr(r) and "wrong (" in repr(r)
    assert "no lookup of this run is recorded: compiles failed" in repr(r), repr(r)


def a_full_disk_stops_nothing_and_is_told() -> None:
    with cachescope.recording() as r:
        (handler,) = (
            one
            for one in logging.getLogger(TRACE_LOGGER).handlers
            if "block" in getattr(one, "baseFilename", "")
        )
        handler.stream.close()
        handler.stream = os.fdopen(os.open("/dev/full", os.O_WRONLY), "w")
        program(19)(X)
    assert "no lookup of this run is recorded" in repr(r)
    assert "the trace is not whole: [Errno 28] No space left on device" in " ".join(repr(r).split()), repr(r)


def what_was_compiled_before_looks_nothing_up() -> None:
    f = program(5)
    f(X)
    with cachescope.recording() as r:
        f(X)
    assert r.scope.lookups.empty and len(r.scope.runs) == 1
    assert "no lookup is recorded" in repr(r.scope) and "torch._dynamo.reset()" in repr(r)


def loggers_are_as_before() -> None:
    for level in (logging.NOTSET, logging.INFO, logging.DEBUG):
        logging.getLogger(DETAILS_LOGGER).setLevel(level)
        before = logging_state()
        with output() as shown, cachescope.recording() as r:
            program(10 + level)(X)
            assert logging_state()[DETAILS_LOGGER][0] == logging.DEBUG
            text = shown.read_text()
        assert logging_state() == before
        assert set(r.scope.lookups["details"]) == {"recorded"}
        assert level == logging.DEBUG or "hash details" not in text
    logging.getLogger(DETAILS_LOGGER).setLevel(logging.NOTSET)


def nothing_is_printed() -> None:
    with output() as shown:
        for fresh in (False, True):
            with cachescope.recording(fresh=fresh) as r:
                program(31 + fresh)(X)
            assert len(r.scope.lookups)
        text = shown.read_text()
    # 2.6 itself warns of one of Dynamo's settings at every compile.
    own = [line for line in text.splitlines() if "skipfiles" not in line and "warnings.warn" not in line]
    assert own == [], text


def messages_that_the_user_asked_for_still_come() -> None:
    logger = logging.getLogger(DETAILS_LOGGER)
    seen: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = seen.append  # type: ignore[method-assign]
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    with output(), cachescope.recording():
        logger.info("of the user's interest")
        logger.debug("not asked for")
    logger.setLevel(logging.NOTSET)
    logger.removeHandler(handler)
    assert [record.getMessage() for record in seen] == ["of the user's interest"]


def an_exception_goes_on_and_leaves_the_scope() -> None:
    before = logging_state()
    try:
        with cachescope.recording() as r:
            program(40)(X)
            raise KeyError("theirs")
    except KeyError as error:
        assert error.args == ("theirs",) and not hasattr(error, "__notes__")
    assert len(r.scope.lookups) and logging_state() == before
    with cachescope.recording():
        pass


def fresh_leaves_the_users_cache_alone() -> None:
    f = program(50)
    f(X)
    default_root = Path(tempfile.gettempdir(), f"torchinductor_{os.environ['USER']}")
    pads = default_root / "cache" / "should_pad"
    pads.mkdir(parents=True, exist_ok=True)
    (pads / "kept").write_text("the user's own")
    before = tree(CACHE, default_root), variables(), logging_state()
    with cachescope.recording(fresh=True) as r:
        folder = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
        assert folder != CACHE and os.environ["TRITON_CACHE_DIR"] == str(folder / "triton")
        f(X)
        _remember_a_pad()
    assert (tree(CACHE, default_root), variables(), logging_state()) == before
    assert not folder.exists() and r.kept is None
    assert {outcome for _, outcome in outcomes(r.scope)} == {"full_miss"}
    assert {"fxgraph", "code"} <= set(r.scope.entries["cache"])
    assert set(r.scope.misses["verdict"]) == {"first_lookup"}


def _remember_a_pad() -> None:
    """What should_pad does on a GPU, with a function that needs none."""
    try:
        from torch._inductor.runtime.caching.memoizers import should_pad_memoizer
    except ImportError:  # 2.10 and earlier
        return
    # The package is off by default, so that its decorators remember nothing: write as they would.
    disk = should_pad_memoizer._disk_cache
    disk.insert("0" * 32, b"a result")
    assert (disk._cache_dir / ("0" * 32)).is_relative_to(os.environ["TORCHINDUCTOR_CACHE_DIR"])
    assert (disk._cache_dir / ("0" * 32)).exists()


def a_fresh_block_that_fails_keeps_its_caches() -> None:
    before = tree(CACHE), variables()
    try:
        with cachescope.recording(fresh=True) as r:
            program(60)(X)
            raise KeyError("theirs")
    except KeyError as error:
        (note,) = error.__notes__
    assert (tree(CACHE), variables()) == before
    assert r.kept is not None and str(r.kept) in note and len(tree(r.kept)) > 1
    assert len(cachescope.read(r.kept).entries) == len(r.scope.entries)


def a_recording_in_a_recording_is_refused() -> None:
    before = logging_state(), variables()
    with cachescope.recording() as r:
        for fresh in (False, True):
            try:
                with cachescope.recording(fresh=fresh):
                    raise AssertionError("not refused")
            except RecordingUnderWayError as error:
                assert "already" in str(error)
        program(70)(X)
    assert len(r.scope.lookups) and (logging_state(), variables()) == before


def threads_are_recorded_and_may_not_record_as_well() -> None:
    refused: list[Exception] = []

    def work() -> None:
        program(80)(X)
        try:
            with cachescope.recording():
                pass
        except RecordingUnderWayError as error:
            refused.append(error)

    with cachescope.recording() as r:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert len(refused) == 1 and len(r.scope.lookups)
    recordings: list[Any] = []

    def record() -> None:
        with cachescope.recording() as one:
            program(81)(X)
        recordings.append(one)

    thread = threading.Thread(target=record)
    thread.start()
    thread.join()
    assert len(recordings[0].scope.lookups)


def a_forked_child_writes_nothing() -> None:
    with cachescope.recording() as r:
        child = os.fork()
        if child == 0:
            torch._logging.trace_structured("dynamo_start", expect_trace_id=False)
            os._exit(0)
        os.waitpid(child, 0)
        program(90)(X)
    assert len(r.scope.lookups) and r.scope.problems.empty and set(r.scope.runs["pid"]) == {os.getpid()}


def the_users_own_trace_goes_on() -> None:
    mine = Path(os.environ["TORCH_TRACE"])
    earlier = len(cachescope.read(mine).lookups)
    with cachescope.recording() as r:
        program(100)(X)
    theirs = cachescope.read(mine)
    assert theirs.lookups["cache_key"].tolist()[earlier:] == r.scope.lookups["cache_key"].tolist()
    # The workers that compile write traces as well; ours says what torch is, into its own file only.
    assert all(trace.read_text().count('"name": "torch_version"') <= 1 for trace in mine.glob("*.log"))


def lookups_are_told_as_in_a_trace_of_the_process() -> None:
    torch._dynamo.reset()

    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.by = torch.nn.Parameter(torch.ones(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x.reshape(x.shape[0] * x.shape[1])) * self.by

    compiled = torch.compile(Scaled(), dynamic=False)
    with cachescope.recording() as block:
        for columns in (5, 7):
            compiled(torch.ones(3, columns)).sum().backward()
    told = ["function", "class_name", "line", "traced_graph", "traced_code", "recompile_reasons", "direction"]
    own = block.scope.lookups[told]
    trace = cachescope.read(os.environ["TORCH_TRACE"]).lookups[told].tail(len(own))
    assert own.notna().any().all(), own.to_string()
    assert own.fillna("").values.tolist() == trace.fillna("").values.tolist()
    compiles = cachescope.read(os.environ["TORCH_TRACE"]).compiles.tail(len(block.scope.compiles))
    of_compile = ["compile_id", "kind", "time_taken_ns", "recompile_reasons", "operators"]
    assert len(block.scope.compiles) == 4
    assert block.scope.compiles[of_compile].values.tolist() == compiles[of_compile].values.tolist()
    assert len(block.scope.phases) and "dynamo_output_graph" in set(block.scope.recorded("0/0")["name"])
    known_by = block.scope.misses["evidence_text"].value_counts()
    assert known_by["torch recorded which guard failed"] == 3, known_by


def a_guard_that_failed_after_an_earlier_block_is_told_as_in_a_trace() -> None:
    @torch.compile
    def scaled(x: torch.Tensor, by: float = 1.0) -> torch.Tensor:
        return (x.sin() * by).relu().sum(-1)

    blocks: list[cachescope.Recording] = []

    def record(x: torch.Tensor, *more: float) -> None:
        with cachescope.recording(against=blocks) as block:
            scaled(x, *more)
        blocks.append(block)

    torch._dynamo.reset()
    for columns in (3, 5):
        record(torch.ones(4, columns))
    record(torch.ones(4, 3), 2.0)
    torch._dynamo.reset()
    record(torch.ones(4, 3))
    record(torch.ones(1, 4, 3).double())
    told = ["verdict", "kind", "reason", "evidence_text", "changed"]
    # The first compile is another matter: the trace has what the process compiled before.
    own, trace = (
        scope.misses[told].tail(6) for scope in (blocks[-1].scope, cachescope.read(os.environ["TORCH_TRACE"]))
    )
    assert set(own["evidence_text"]) == {"torch recorded which guard failed"}, own.to_string()
    # Another scenario pre-flew a block: nothing of that is in the trace of what really ran.
    assert not cachescope.read(os.environ["TORCH_TRACE"]).runs["is_preflight"].any()
    assert own.values.tolist() == trace.values.tolist(), (own.to_string(), trace.to_string())


def a_recording_is_for_one_block() -> None:
    r = cachescope.recording()
    for ask in (lambda: r.scope, lambda: cachescope.recording(against=r)):
        try:
            ask()
        except cachescope.CachescopeError as error:
            assert "not begun" in str(error)
        else:
            raise AssertionError("no error")
    with r:
        assert repr(r) == "cachescope.Recording: under way"
    try:
        with r:
            raise AssertionError("not refused")
    except cachescope.CachescopeError as error:
        assert "one block" in str(error)


SCENARIOS = [
    function
    for name, function in list(globals().items())
    if inspect.isfunction(function)
    and not name.startswith("_")
    and str(inspect.signature(function)) == "() -> 'None'"
]
"""Every function here that takes nothing and returns nothing; test_magic.py reads their names."""

if __name__ == "__main__":
    results: dict[str, str | None] = {}
    program(0)(X)  # what a first compile of a process says and makes is not ours
    chosen = sys.argv[2:]
    for scenario in SCENARIOS:
        if chosen and scenario.__name__ not in chosen:
            continue
        torch._dynamo.reset()
        try:
            scenario()
            results[scenario.__name__] = None
        except BaseException:
            results[scenario.__name__] = traceback.format_exc()
    Path(sys.argv[1]).write_text(json.dumps(results))
