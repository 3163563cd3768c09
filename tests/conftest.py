"""Fixtures that every part of the tests shares: real recordings, and torch with a cache directory of its own."""

import gc
import importlib.util
import os
import re
import signal
import sys
import tarfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from jupyter_lab import chromium, missing

from cachescope.locking import machine, verifying
from tests import suites
from tests.readings import changed_readings, commands_read_once, tour  # noqa: F401 - two are fixtures
from tests.sampling import drawn
from tests.vllm_recordings import VERSIONS, Recorded, recorded

# The same examples in every run, however slow the machine is just now.
settings.register_profile(
    "steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")
# For `make unit`.
settings.register_profile("few", settings.get_profile("steady"), max_examples=20)

if sys.platform == "win32":
    # What drives the signals, terminals and limits of Unix.
    collect_ignore_glob = [
        "capture/*", "fuzz/*", "readers/index/test_kept_logs.py", "readers/logs/test_run_notes.py",
        "test_patterns.py",
    ]  # fmt: skip
HAS_TORCH = importlib.util.find_spec("torch") is not None

VERSION = re.compile(r"(?<![\d.])2\.\d+\.\d+(?![\d.])")
READ_BY_QUICK_TESTS = "2.13.0"

DATA = Path(__file__).parent / "data"
RECORDINGS = DATA / "recordings"
DIRECTORIES = DATA / "directories"
Archive = Callable[..., Path]
Recording = Callable[[str, str], Path]
Directory = Callable[[str], Path]


ALL_ARE_SLOW = re.compile(r"^pytestmark = [^\n]*\bpytest\.mark\.(slow|sweep|torch)\b", re.MULTILINE)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where no slow test is wanted, a module of nothing else is not imported."""
    if config.getoption("markexpr") != "not slow":
        return None
    is_module = collection_path.match("test_*.py")
    is_slow = is_module and ALL_ARE_SLOW.search(collection_path.read_text(encoding="utf-8"))
    return True if is_slow or collection_path.name == "benchmarks" else None


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Iterator[Any]:
    """Only the package has doctests: who looks for some here imports every module, programs and torch among them."""
    collected = yield
    return [one for one in collected if type(one) is pytest.Module]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What imports torch is slow, and so are pages, sweeps, benchmarks, and what reads recordings of another torch than one."""
    # Set by `make test`; who asks for tests by name gets them.
    is_by_change = os.environ.get("CACHESCOPE_SUITES") == "changed"
    left_out = suites.left_out() if is_by_change else {}
    changed = suites.changed_tests() if is_by_change else set()
    no_torch = "" if HAS_TORCH else "torch is not installed"
    lacks = {"program": no_torch, "torch": no_torch, "browser": missing()}
    for item in items:
        kinds = _kinds(item)
        if "benchmarks" in item.path.parts:
            item.add_marker("sweep")
        if kinds or item.get_closest_marker("sweep") or _reads_another_version(item):
            item.add_marker("slow")
        reasons = [lacks[kind] for kind in kinds if lacks[kind]]
        if item.path not in changed:
            reasons += [left_out[suite] for suite in suites.suites_of(item.path, kinds) if suite in left_out]
        if reasons:
            item.add_marker(pytest.mark.skip(reason=reasons[0]))
    if seed := os.environ.get("CACHESCOPE_SHARE"):
        _leave_a_share(items, seed)


def _leave_a_share(items: list[pytest.Item], seed: str) -> None:
    """Skip three of four sweeps, and fifteen of sixteen files of programs and pages; none in files of the last commit.

    Programs and pages are drawn by whole files: what the tests of a file share takes longer than the tests.
    """
    changed = suites.changed_tests(since="HEAD~1")
    asked = [item for item in items if item.path not in changed]
    sweeps = {item: item.nodeid for item in asked if item.get_closest_marker("sweep")}
    files = {item: str(item.path) for item in asked if item not in sweeps and _kinds(item)}
    by_version = (((item.path.name, *sorted(_versions(item))), name) for item, name in sweeps.items())
    by_folder = ((item.path.parent, name) for item, name in files.items())
    chosen = drawn(by_version, seed, one_in=4) | drawn(by_folder, seed, one_in=16)
    reason = f"not of the share that {seed} draws of the slowest tests"
    for item, name in {**sweeps, **files}.items():
        if name not in chosen:
            item.add_marker(pytest.mark.skip(reason=reason))


def _kinds(item: pytest.Item) -> list[str]:
    """What a test needs that takes long: a program of torch, torch in this process, a browser."""
    fixtures = getattr(item, "fixturenames", ())
    needs = {
        "program": item.get_closest_marker("torch"),
        "torch": item.get_closest_marker("gpu") or "cache_root" in fixtures,
        "browser": "browser" in fixtures,
    }
    return [kind for kind, is_needed in needs.items() if is_needed]


def _reads_another_version(item: pytest.Item) -> bool:
    if not {"recording", "directory"}.intersection(getattr(item, "fixturenames", ())):
        return False
    versions = _versions(item)
    return bool(versions) and READ_BY_QUICK_TESTS not in versions


def _versions(item: pytest.Item) -> set[str]:
    """The versions of torch among its parameters."""
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return {version for value in parameters for version in VERSION.findall(str(value))}


def unpacked(archive: Path, folder: Path) -> Path:
    """Unpack what `tests/data/packing.py` packed; returns its one folder, which is named by the version of torch."""
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    (made,) = folder.iterdir()
    return made


_installed_torch_once = cache(machine.installed_torch)


@pytest.fixture
def torch_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sources of the installed torch are hashed once, and not for every lock."""
    for module in (machine, verifying):
        monkeypatch.setattr(module, "installed_torch", _installed_torch_once)


def pytest_collection_finish() -> None:
    """The collector of garbage need not look through thousands of tests again and again: a sixth of the time."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests counted, as ``record_property("counted: <what>", {row: {column: count}})``, in one table each."""
    tables: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            for name, rows in report.user_properties:
                if name.startswith("counted: "):
                    for row, counts in rows.items():
                        tables[name][row].update(counts)
    for name, rows in sorted(tables.items()):
        terminalreporter.section(name)
        total = sum(rows.values(), Counter())
        for row, counts in [*sorted(rows.items()), ("together", total)]:
            words = ", ".join(f"{count} {column}" for column, count in sorted(counts.items()) if count)
            terminalreporter.write_line(f"{row:<36}{words}")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """Say in the last line how many tests were left out, and why."""
    yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.getreports("skipped") if reporter else ()
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    if reasons:
        groups = (f"{count} ({reason})" for reason, count in reasons.most_common())
        reporter.write_line(f"Left out: {', '.join(groups)}")


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_ends_programs() -> Iterator[None]:
    """Also where the tests are started from a shell that ignores Ctrl-C, which whatever they start would inherit."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session", autouse=True)
def no_index() -> Iterator[None]:
    """No test keeps logs in the cache folder of whoever runs it; those of the index have a folder of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CACHESCOPE_NO_INDEX", "1")
        yield


@pytest.fixture(scope="session", autouse=True)
def readings_stay_as_they_were() -> Iterator[None]:
    """No test changes what another one reads."""
    yield
    assert not list(changed_readings())


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """``archive("preflights/2.13.0")`` unpacks what `tests/data` has of that name once, and returns the folder."""

    @cache
    def unpack(name: str, how: str = "data") -> Path:
        folder = tmp_path_factory.mktemp(name.replace("/", "-"))
        with tarfile.open(DATA / f"{name}.tar.xz") as packed:
            packed.extractall(folder, filter=how)
        return folder

    return unpack


@pytest.fixture(scope="session")
def recording(archive: Archive) -> Recording:
    """``recording(torch_version, scenario)`` unpacks a recording once and returns its folder."""
    return lambda version, scenario: archive(f"recordings/{version}/{scenario}")


@pytest.fixture(scope="session")
def directory(archive: Archive) -> Directory:
    """``directory(name)`` unpacks the whole directories one recorder left behind, once, and returns their folder."""
    # Ours, with links to where torch was installed: counted, not followed.
    return lambda name: archive(f"directories/{name}", "tar")


@pytest.fixture(scope="module", params=VERSIONS)
def vllm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """What was recorded of a release of vLLM, of each."""
    return recorded(request.param, tmp_path_factory.mktemp("vllm"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A chromium; playwright has one at a time, and while it runs nothing else in the process may run an event loop."""
    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def cache_root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give torch a cache directory of its own for the whole session."""
    root = tmp_path_factory.mktemp("torchinductor")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCHINDUCTOR_CACHE_DIR", str(root))
        yield root


@pytest.fixture(scope="session")
def codecache(cache_root: Path) -> ModuleType:
    """Import torch's codecache after the cache directory is set."""
    return importlib.import_module("torch._inductor.codecache")


@pytest.fixture(scope="session")
def caching_context(cache_root: Path) -> ModuleType:
    """Import the module that makes torch's isolation keys."""
    return importlib.import_module("torch._inductor.runtime.caching.context")
