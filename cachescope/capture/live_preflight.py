"""A pre-flight of a block of code in this very process."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterable
from contextlib import ExitStack
from importlib.util import find_spec

from cachescope.capture.fresh_caches import FreshCaches, clear_memory
from cachescope.capture.live_trace import LiveTrace
from cachescope.capture.preflight.cache_folder import (
    INDUCTOR_DIR,
    OWN_FOLDER,
    PROFILES,
    copy_profiles,
    meant,
    ours,
)
from cachescope.capture.preflight.patches import PATCHES, Patches
from cachescope.capture.torch_modules import torch_module
from cachescope.readers.directory.default_root import default_root


class LivePreflight:
    """The pre-flight of this process between `start` and `stop`; `failure` says why its trace is incomplete."""

    def __init__(self) -> None:
        self.failure: str | None = None
        self._trace = LiveTrace()
        self._caches = FreshCaches()
        self._patches = Patches()
        self._restore = ExitStack()

    def start(self, against: Iterable[str | os.PathLike[str]]) -> None:
        """Begin; raises `CachescopeError` if torch is not installed, or this process is being recorded already."""
        before = {name: os.environ[name] for name in (INDUCTOR_DIR,) if name in os.environ}
        roots = [os.fspath(one) for one in against] or [default_root()]
        self._trace.start()
        self._restore.callback(self._stop_trace)
        try:
            for name in filter(find_spec, PATCHES):
                torch_module(name)
            self._caches.start()
            self._restore.callback(self._caches.remove)
            self._restore.callback(self._caches.stop)
            copy_profiles(roots, str(self._caches.folder / PROFILES))
            for names, values in ((ours, {OWN_FOLDER: str(self._caches.folder)}), (meant, before)):
                names.update(values)
                self._restore.callback(names.clear)
            self._patches.start()
            self._restore.callback(_forget)
            self._restore.callback(self._patches.stop)
        except BaseException:
            self._restore.close()
            raise

    def stop(self) -> bytes:
        """Put everything back, and return the trace, packed."""
        self._restore.close()
        return self._packed

    def _stop_trace(self) -> None:
        self._packed = gzip.compress(self._trace.stop(), compresslevel=1)
        self.failure = self._trace.failure


def _forget() -> None:
    """What was compiled in the block is no code."""
    torch_module("torch._dynamo").reset()
    clear_memory()
    # Whether instructions can be compiled for was not tried out.
    known = vars(torch_module("torch._inductor.cpu_vec_isa")).values()
    for one in [*known, *(vars(kind).get("__bool__") for kind in known if isinstance(kind, type))]:
        if hasattr(one, "cache_clear"):
            one.cache_clear()
