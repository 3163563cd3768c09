"""Records the cache lookups of this process with a temporary handler on torch's trace logger.

Everything is restored afterwards; nothing logged meanwhile reaches a user who did not ask for it.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import itertools
import json
import logging
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from cachescope.capture.contexts import write_snapshot
from cachescope.capture.torch_modules import torch_module
from cachescope.errors import CachescopeError

TRACE_LOGGER: Final = "torch.__trace"
# From 2.12 AOTAutograd makes the hash details of its keys only if this logger is at DEBUG:
# torch/_functorch/_aot_autograd/autograd_cache.py, `_get_debug_lines_for_cache_key`.
DETAILS_LOGGER: Final = "torch._functorch._aot_autograd.autograd_cache"
_one_at_a_time = threading.Lock()
_numbers: Final = itertools.count(1)


class RecordingUnderWayError(CachescopeError):
    """A second recording in a process that is already being recorded."""


@dataclass(slots=True)
class Block:
    """The trace of one recorded block. Its file stays until this process ends, so that it can be read again, and later blocks be compared with it."""

    path: str
    failure: str | None = None  # the error of the first write that failed
    has_lookups: bool = False
    context: str | None = None  # the snapshot that `keep_context` took, beside the trace


@contextlib.contextmanager
def traced() -> Iterator[Block]:
    """Record this process meanwhile; raises `CachescopeError` if torch is not installed, or any thread is already recording this process."""
    # Torch writes its trace through the logger `torch.__trace`, if that has a handler (torch/_logging/_internal.py, `trace_structured`,
    # 2.5 to 2.15). The handler here is not torch's `LazyTraceHandler`, which would write its first record, the version, to the user's
    # `TORCH_TRACE` too.
    logs = torch_module("torch._logging._internal")
    torch_module("torch._inductor.codecache")
    if not _one_at_a_time.acquire(blocking=False):
        message = "this process is being recorded already, and its trace is one: end that recording first, or take everything in one block"
        raise RecordingUnderWayError(message)
    try:
        folder = _folder(pid := os.getpid())
        # It may have been cleared away in the meantime.
        os.makedirs(folder, mode=0o700, exist_ok=True)
        block = Block(os.path.join(folder, f"block {next(_numbers)} of process {pid}.log"))
        with contextlib.closing(_TraceHandler(block, logs)) as handler, _handled_by(handler), _details_made():
            yield block
    finally:
        _one_at_a_time.release()


def keep_context(block: Block) -> None:
    """Keep the context of this process as it is where a block ends, if it looked anything up. A block never fails because of it."""
    path = f"{block.path}-context-{os.getpid()}.json"
    with contextlib.suppress(Exception):
        if block.has_lookups:
            write_snapshot(path)
            block.context = path


@cache
def _folder(pid: int) -> str:
    """A folder for the traces of this process. A forked child has one of its own, and leaves that of its parent alone."""
    folder = tempfile.mkdtemp(prefix="cachescope-live-")

    @atexit.register
    def remove() -> None:
        if os.getpid() == pid:
            shutil.rmtree(folder, ignore_errors=True)

    return folder


class _TraceHandler(logging.FileHandler):
    """Writes the records of this process only: a forked child shares the open file."""

    def __init__(self, block: Block, logs: Any) -> None:
        super().__init__(block.path, mode="w", encoding="utf-8", errors="backslashreplace")
        self._block = block
        self._pid = os.getpid()
        self.setFormatter(logs.TorchLogsFormatter(trace=True))
        # First identify the process: before 2.11 no trace does, and a block may look nothing up.
        self.handle(_version_record(logs.__file__))

    def emit(self, record: logging.LogRecord) -> None:
        metadata = getattr(record, "metadata", None)
        if os.getpid() == self._pid and isinstance(metadata, dict):
            super().emit(record)
            self._block.has_lookups |= "_cache_" in str(metadata.get("artifact"))

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 (logging's own name)
        # A full disk is no reason to print into the user's output, or to stop the block.
        self._block.failure = self._block.failure or str(sys.exception())

    def close(self) -> None:
        try:
            super().close()
        except OSError as error:
            # What could not be written is written once more.
            self._block.failure = self._block.failure or str(error)


def _version_record(pathname: str) -> logging.LogRecord:
    """A record like that of torch's ``_log_torch_version`` (torch/_logging/_internal.py, 2.13)."""
    payload = json.dumps({"pytorch_version": str(torch_module("torch").__version__)}, indent=0)
    record = logging.LogRecord(TRACE_LOGGER, logging.DEBUG, pathname, 0, "", (), None)
    digest = hashlib.md5(payload.encode(), usedforsecurity=False).hexdigest()
    record.metadata = {"artifact": {"name": "torch_version", "encoding": "json"}, "has_payload": digest}
    record.payload = payload
    return record


@contextlib.contextmanager
def _handled_by(handler: logging.Handler) -> Iterator[None]:
    """Put the handler first: torch's own removes itself at its first record, and logging then skips the next one.

    torch/_logging/_internal.py, `LazyTraceHandler.emit`; logging iterates over the list that it is removed from. A logger that
    logging.config.dictConfig has disabled writes only to our handler.
    """
    logger = logging.getLogger(TRACE_LOGGER)
    others, disabled = logger.handlers, logger.disabled
    logger.handlers = [handler] if disabled else [handler, *others]
    logger.disabled = False
    try:
        yield
    finally:
        if disabled:
            logger.handlers, logger.disabled = others, True
        else:
            logger.removeHandler(handler)


@contextlib.contextmanager
def _details_made() -> Iterator[None]:
    """Set the details logger to DEBUG, with a filter that keeps its other output unchanged."""
    logger = logging.getLogger(DETAILS_LOGGER)
    level, disabled = logger.level, logger.disabled

    def would_pass(record: logging.LogRecord) -> bool:
        if disabled:
            return False
        parent = logger.parent
        least = level or (parent.getEffectiveLevel() if parent is not None else logging.WARNING)
        return record.levelno >= least

    if logger.isEnabledFor(logging.DEBUG):
        yield
        return
    logger.addFilter(would_pass)
    logger.setLevel(logging.DEBUG)
    logger.disabled = False
    try:
        yield
    finally:
        logger.disabled = disabled
        # set_logs() in the block may have chosen another level: keep it.
        if logger.level == logging.DEBUG:
            logger.setLevel(level)
        logger.removeFilter(would_pass)
