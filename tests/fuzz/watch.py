"""What an input may do: raise `CachescopeError`, and nothing else that a process can do to the world.

Audit events cannot be taken back, so one hook looks on for as long as the process lives, and only while it is asked to.
"""

import contextlib
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

SECONDS = 5
BYTES = 1 << 29
# Modules that readers and pandas load when they are first needed: never one that an input names.
_LOADED_LATE = (
    "cachescope", "pandas", "pyarrow", "numpy", "encodings", "orjson", "dateutil", "zoneinfo", "unicodedata",
)  # fmt: skip
_FORBIDDEN = (
    "pickle.find_class", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.kill",
    "os.putenv", "os.chmod", "os.chown", "os.truncate", "subprocess.", "socket.", "ctypes.", "code.__new__",
    "marshal.", "builtins.input", "webbrowser.", "pty.", "smtplib.", "ftplib.", "urllib.",
)  # fmt: skip
_MADE = ("os.link", "os.symlink")
_ON_PATHS = ("os.remove", "os.rename", "os.rmdir", "os.mkdir", "shutil.")


class NotAllowedError(Exception):
    """An input made cachescope do what no input may."""


class Watch:
    """Looks on while one input is read, which may write to one folder alone."""

    def __init__(self, folder: Path) -> None:
        self._folder = os.path.realpath(folder)
        # An archive is unpacked there.
        tempfile.tempdir = self._folder
        self._is_on = False
        self._seen: list[str] = []
        sys.addaudithook(self._hook)
        signal.signal(signal.SIGPROF, self._too_long)

    @contextlib.contextmanager
    def over(self) -> Iterator[None]:
        """Look on; an event that is not allowed, seconds of work or memory beyond the limits raise at the end."""
        before, began = _memory(), time.process_time()
        highest = _peak()
        self._seen.clear()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        self._is_on = True
        try:
            yield
        finally:
            self._is_on = False
            signal.setitimer(signal.ITIMER_PROF, 0)
        took = time.process_time() - began
        after = _peak()
        if self._seen:
            raise NotAllowedError("; ".join(self._seen[:5]))
        if took > SECONDS:
            raise NotAllowedError(f"took {took:.1f} s")
        if after > highest and after - before > BYTES:
            raise NotAllowedError(f"took {(after - before) >> 20} MB")

    def _too_long(self, _: int, frame: FrameType | None) -> None:
        raise NotAllowedError(f"goes on after {SECONDS} s of work, in {frame and frame.f_code.co_qualname}")

    def _hook(self, event: str, given: tuple[object, ...]) -> None:
        if self._is_on and not self._is_allowed(event, given):
            self._is_on = False  # what is made of the message may do such things itself
            self._seen.append(f"{event} {repr(given)[:200]}")
            self._is_on = True

    def _is_allowed(self, event: str, given: tuple[object, ...]) -> bool:
        if event == "open":
            path, mode, flags = given
            written = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
            writes = isinstance(flags, int) and bool(flags & written)
            return not (writes or set(str(mode or "")) & set("wax+")) or self._is_inside(path)
        if event == "import":
            return str(given[0]).partition(".")[0] in _LOADED_LATE
        if event == "exec":
            # The body of a module that is loaded late.
            return os.path.isfile(getattr(given[0], "co_filename", "")) and not self._is_inside(
                given[0].co_filename
            )
        if event == "compile":
            # Guards, literals and code are parsed; a module's source would have its file's name.
            return given[1] in ("<unknown>", b"<unknown>") or not self._is_inside(given[1])
        if event in _MADE:
            return self._is_inside(given[1])
        if event == "marshal.loads" and _is_importing():
            return True
        if event.startswith(_ON_PATHS):
            # Beside an open folder lies what removes a whole tree: the folder was looked at when it was opened.
            return (event in ("os.remove", "os.rmdir") and given[-1] != -1) or self._is_inside(given[0])
        # What --redact hides begins with the name of this machine.
        return event == "socket.gethostname" or not event.startswith(_FORBIDDEN)

    def _is_inside(self, path: object) -> bool:
        if isinstance(path, int):
            return True  # opened before, by what was looked at then
        return os.path.realpath(os.fsdecode(path)).startswith(self._folder)  # type: ignore[arg-type]


def _is_importing() -> bool:
    """Whether a module that is loaded late comes from its compiled file."""
    frame = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None


def _peak() -> int:
    # What getrusage tells begins with the peak of whoever started this process.
    with open("/proc/self/status", "rb") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(b"VmHWM"))


def _memory() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
