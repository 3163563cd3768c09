"""Runs a command with torch's cache logs switched on, each run in a folder of its own.

The command keeps its standard streams; its Python begins with `preflight/site/sitecustomize.py`, which keeps torch's records of its
caches off them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, Final

from cachescope.capture.preflight.children import with_site
from cachescope.capture.preflight.notes import LOG_NAME, logging_to
from cachescope.errors import CachescopeError, telling
from cachescope.json_types import JsonObject
from cachescope.readers.directory.default_root import default_root, unnamed_root
from cachescope.terms import CACHES, RUN_NOTE

# torch/_logging/_internal.py, `LazyTraceHandler`.
TRACE_PREFIX: Final = "dedicated_log_torch_trace_"
_SECRET: Final = re.compile(r"(token|secret|passw|credential|api[-_]?key)", re.IGNORECASE)
# Variables that set what is compiled and where it is kept.
_NOTED: Final = ("TORCH", "PYTORCH", "VLLM", "TRITON", "OMP_")  # OMPI_… are of each rank
_OURS: Final = ("TORCH_TRACE", "TORCH_LOGS", "TORCH_LOGS_OUT")
_GIT_SECONDS: Final = 5


class CommandNotFoundError(CachescopeError):
    """A command that cannot be started, with the status of a shell: 127 if it does not exist, 126 if it may not be run."""

    def __init__(self, command: str, status: int) -> None:
        why = "command not found" if status == 127 else "cannot be run: permission denied"
        super().__init__(f"{command}: {why}")
        self.status = status


Listing = Mapping[str, set[tuple[str, str]] | None]
"""By cache directory the key and the file of every entry in it, of both caches; None of one that cannot be listed."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One recorded run: a folder with its trace, its log and ``run.json``."""

    folder: Path
    # That of the command; 128 + n if signal n ended it.
    exit_status: int
    # What lay in the cache directories before and after, whoever stored it.
    before: Listing = field(default_factory=dict)
    after: Listing = field(default_factory=dict)
    # The first signal, such as that of Ctrl-C, that asked us to stop while the command ran. The command may have ended with any
    # status: a program that catches KeyboardInterrupt, as torch does while it compiles, often ends with 1.
    stopped_by: signal.Signals | None = None

    @property
    def has_torch_log(self) -> bool:
        """Whether a process with our variables imported torch, which creates the log file at once, even if empty.

        torch/_logging/_internal.py, `_init_logs`, 2.5 to 2.15.
        """
        return (self.folder / LOG_NAME).exists()

    @property
    def has_trace(self) -> bool:
        """Whether torch wrote a trace, which begins with the first record."""
        return any(self.folder.glob(f"{TRACE_PREFIX}*"))

    @property
    def ended_by(self) -> str | None:
        """The signal that ended the command."""
        with suppress(ValueError):
            return signal.Signals(self.exit_status - 128).name if self.exit_status > 128 else None
        return None


def record(
    command: Sequence[str],
    folder: str | os.PathLike[str],
    environment_of: Callable[[Path], Mapping[str, str]] | None = None,
    more_about: JsonObject | None = None,
    output: int | None = None,
) -> Recorded:
    """Run a command and record, in a new folder in `folder`, what torch's caches do in it."""
    # Sets TORCH_TRACE, TORCH_LOGS and TORCH_LOGS_OUT (torch/_logging/_internal.py, `_init_logs`, 2.5 to 2.15). Several processes append
    # whole records to the one log file. `environment_of`: another environment than that, of the folder; `output` is as
    # `subprocess.Popen` takes it.
    program = command[0]
    if shutil.which(program) is None:
        raise CommandNotFoundError(program, 126 if os.path.isfile(program) else 127)
    run_folder = _new_folder(Path(folder))
    about: JsonObject = {"cachescope_run": 1, "command": _without_secrets(command)}
    about |= {"environment": _noted_variables(), "commit": _commit()}
    about |= {"start_time": datetime.now(UTC).isoformat(), **(more_about or {})}
    before = entries_here()
    if before[default_root()]:
        about["filled_dir"] = os.path.realpath(default_root())
    _write_manifest(run_folder, about)
    place = run_folder.absolute()
    environment = environment_of(place) if environment_of else child_environment(os.environ, place)
    status, stopped_by = _run(command, environment, output)
    _write_manifest(run_folder, about | {"end_time": datetime.now(UTC).isoformat(), "exit_status": status})
    return Recorded(run_folder, status, before, entries_here(), stopped_by)


def child_environment(base: Mapping[str, str], run_folder: Path) -> dict[str, str]:
    """The environment of the command: `base`, plus the variables that make torch write everything into `run_folder`, and our `sitecustomize`."""
    changed = {**with_site(base), **logging_to(str(run_folder), base)}
    return {name: value for name, value in changed.items() if value is not None}


def _new_folder(folder: Path) -> Path:
    name = f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%S}"
    failed = f"{folder}: cannot make a folder for the run"
    with telling(failed):
        folder.mkdir(parents=True, exist_ok=True)
        for attempt in range(1, 1000):
            path = folder / (name if attempt == 1 else f"{name}-{attempt}")
            with suppress(FileExistsError):
                path.mkdir()
                return path
    raise CachescopeError(f"{failed}: a thousand began this second")


def _write_manifest(run_folder: Path, about: Mapping[str, Any]) -> None:
    (run_folder / RUN_NOTE).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def _without_secrets(command: Sequence[str]) -> list[str]:
    """The command with the values of options such as ``--hf-token`` left out."""
    kept, hide_next = [], False
    for argument in command:
        name, equals, _ = argument.partition("=")
        is_secret = _SECRET.search(name) is not None
        kept.append("…" if hide_next else f"{name}=…" if is_secret and equals else argument)
        hide_next = is_secret and not equals and argument.startswith("-")
    return kept


def _noted_variables() -> dict[str, str]:
    """The variables of ours that set what torch compiles and where, without secrets."""
    return {
        name: "…" if _SECRET.search(name) else value
        for name, value in sorted(os.environ.items())
        if name.startswith(_NOTED) and name not in _OURS
    }


def _commit() -> str | None:
    """The commit of the working directory, ``-dirty`` if tracked files were changed since; None outside of a repository."""
    # Writes nothing to the repository, and starts no monitor of its files.
    git = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "describe", "--always", "--dirty"]
    asked = [*git, "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(asked, capture_output=True, text=True, timeout=_GIT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def _run(
    command: Sequence[str], environment: Mapping[str, str], output: int | None
) -> tuple[int, signal.Signals | None]:
    """The exit status of a command, and the first signal that asked us to stop meanwhile."""
    with telling(f"{command[0]}: cannot be started"):
        child = subprocess.Popen(list(command), env=environment, stdout=output)
    with _signals_to(child) as received:
        status = child.wait()
    return 128 - status if status < 0 else status, received[0] if received else None


@contextmanager
def _signals_to(child: subprocess.Popen[bytes]) -> Iterator[list[signal.Signals]]:
    """While the command runs, it handles signals: it decides whether Ctrl-C ends it. Yields those that came."""
    received: list[signal.Signals] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        received.append(signal.Signals(number))
        # Ctrl-C on the terminal reaches the command directly, and must not reach it twice.
        if number in (signal.SIGINT, signal.SIGQUIT) and _is_in_foreground():
            return
        with suppress(ProcessLookupError):
            child.send_signal(number)

    before = {}
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP):
        # Under nohup a signal is ignored, and stays ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, pass_on)
    try:
        yield received
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _is_in_foreground() -> bool:
    """Whether a terminal would send Ctrl-C to this process and its command alike."""
    with suppress(OSError), open("/dev/tty", "rb", buffering=0) as terminal:
        return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    return False


def entries_here() -> Listing:
    """The entries that exist now, whoever stored them: what appears while a command runs is evidence where no log reaches us."""
    # In the directory that the environment names, and in torch's own, where a child stores that lost the environment.
    return {root: _names(root) for root in sorted({default_root(), unnamed_root()})}


def _names(root: str) -> set[tuple[str, str]] | None:
    """Key and file of every entry, ``aotautograd/<key>/<file>`` and ``fxgraph/<two letters>/<key>/<file>``; None if a folder cannot be listed."""
    names: set[tuple[str, str]] = set()
    try:
        for cache in CACHES:
            for folder, _, files in os.walk(os.path.join(root, cache), onerror=_unless_gone):
                # Temporary files begin with a dot.
                names.update((os.path.basename(folder), file) for file in files if not file.startswith("."))
    except OSError:
        return None
    return names


def _unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error
