"""A short run of the fuzzing harness, the same inputs each time; and that the harness sees what it is there to see."""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.programs import ran

TESTS = Path(__file__).parents[1]
# A process of its own: an audit hook cannot be taken off again.
pytestmark = pytest.mark.sweep


def python(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(TESTS.parent), str(TESTS)))}
    return ran([sys.executable, *words], environment, status=None, cwd=TESTS)


def test_a_short_run_is_clean(tmp_path: Path) -> None:
    run = python("-m", "fuzz", "--seed", "20261122", "--inputs", "6000", "--keep", str(tmp_path))
    assert run.returncode == 0, run.stdout + run.stderr
    assert "6000 inputs" in run.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("what", "name"), [
    ("open('/tmp/outside', 'w')", "open"),
    ("__import__('antigravity')", "import"),
    ("exec('1')", "exec"),
    ("eval('1')", "exec"),
    ("__import__('os').system('true')", "os.system"),
    ("__import__('subprocess').run(['true'])", "subprocess.Popen"),
    ("__import__('socket').socket()", "socket"),
    ("__import__('pickle').loads(b'cos' + bytes([10]) + b'getcwd' + bytes([10]) + b'.')",
     "pickle.find_class"),
    ("__import__('time').sleep(0) or [0 for _ in range(10**10)]", "goes on after"),
    ("len(bytearray(700 << 20))", "MB"),
    ("None", "nothing"),
])  # fmt: skip
def test_the_watch_sees_what_an_input_must_not_do(what: str, name: str, tmp_path: Path) -> None:
    # `subprocess` and its like are loaded before anyone looks on, as they are in a long run.
    code = f"""
import os, subprocess, socket, pickle, time
from pathlib import Path
from fuzz.watch import NotAllowedError, Watch
import fuzz.watch
fuzz.watch.SECONDS = {1 if name == "goes on after" else 30}
watch = Watch(Path({str(tmp_path)!r}))
def act(): {what}
try:
    with watch.over():
        act()
    print("nothing")
except NotAllowedError as error:
    print(error)
"""
    run = python("-c", code)
    assert name in run.stdout, run.stdout + run.stderr


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> object:
    from fuzz.seeds import Seeds

    return Seeds(tmp_path_factory.mktemp("seeds"))


def test_a_reader_that_loses_a_lookup_is_caught(seeds: object, tmp_path: Path) -> None:
    from cachescope.readers.logs.trace_log import TRACE
    from cachescope.readers.reading import Reading
    from fuzz.logs import Logs, changed_record

    def forgetful(path: str, reading: Reading) -> None:
        TRACE.read(path, reading)
        for process in reading.processes:
            del process.lookups[-1:]

    caught = []
    for read in (TRACE.read, forgetful):
        logs = Logs("trace records", seeds.traces, changed_record, read)  # type: ignore[attr-defined]
        inputs = (logs.make(random.Random(number)) for number in range(100))
        caught.append(sum(fails(logs.check, data, tmp_path) for data in inputs))
    assert caught[0] == 0
    assert caught[1] > 10


@pytest.mark.parametrize(("where", "broken"), [
    ("cachescope.report.redact.Redaction._text", lambda self, text, column: text),
    ("cachescope.report.html.escape", lambda text, quote: text),
    ("cachescope.report.layout.harmless_cut", lambda text, *_: text),
])  # fmt: skip
def test_what_is_shown_as_it_is_is_caught(
    where: str, broken: object, seeds: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fuzz.shown import Shown

    monkeypatch.setenv("CACHESCOPE_NO_INDEX", "1")
    shown = Shown(seeds)  # type: ignore[arg-type]

    def caught(number: int) -> bool:
        return fails(shown.check, shown.make(random.Random(number)), tmp_path)

    assert not any(map(caught, range(20)))
    monkeypatch.setattr(where, broken)
    assert any(map(caught, range(60)))


def test_an_audit_that_does_not_look_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    import fuzz.files
    from cachescope.auditing.pickles import Audited
    from fuzz.pickles import made_pickle

    def caught(number: int) -> bool:
        data = made_pickle(random.Random(number))
        return fails(lambda data, _: fuzz.files.proves(data, "fxgraph"), data, Path())

    assert not any(map(caught, range(500)))
    monkeypatch.setattr(fuzz.files, "audit_pickle", lambda *_: Audited([]))
    assert sum(map(caught, range(500))) > 50


def test_a_lock_that_misses_a_changed_file_is_caught(
    seeds: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cachescope.locking import verifying
    from fuzz.kept import Locks

    monkeypatch.setattr(verifying, "installed_torch", verifying.installed_torch)
    monkeypatch.setattr(verifying, "installed_triton", verifying.installed_triton)
    locks = Locks(seeds)  # type: ignore[arg-type]

    def caught(number: int) -> bool:
        return fails(locks.check, locks.make(random.Random(number)), tmp_path)

    assert not any(map(caught, range(100)))
    monkeypatch.setattr(verifying, "_compared", lambda *_: None)
    assert any(map(caught, range(200)))


def fails(check: Callable[[bytes, Path], None], data: bytes, folder: Path) -> bool:
    try:
        check(data, folder)
    except AssertionError:
        return True
    return False


def test_mutations_break_some_and_not_all(seeds: object) -> None:
    from cachescope.errors import CachescopeError
    from cachescope.readers.pickles.inert_pickle import loads_harmless
    from fuzz.pickles import made_pickle

    def is_sound(number: int) -> bool:
        try:
            loads_harmless(made_pickle(random.Random(number)))
        except CachescopeError:
            return False
        return True

    began = time.process_time()
    sound = sum(map(is_sound, range(2_000)))
    assert 100 < sound < 1_900, f"{sound} of 2,000 in {time.process_time() - began:.1f} s"
