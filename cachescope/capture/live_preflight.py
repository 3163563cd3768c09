"""A pre-flight of a block of code in this very process."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec

from cachescope.capture.fresh_caches import clear_memory, fresh_caches
from cachescope.capture.live_trace import TRACE_LOGGER, Block, traced
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


@contextmanager
def live_preflight(against: Iterable[str | os.PathLike[str]]) -> Iterator[Block]:
    """Pre-fly meanwhile; raises `CachescopeError` if torch is not installed, or this process is being recorded already."""
    before = {name: os.environ[name] for name in (INDUCTOR_DIR,) if name in os.environ}
    roots = [os.fspath(one) for one in against] or [default_root()]
    patches, users = Patches(), [*logging.getLogger(TRACE_LOGGER).handlers]
    with ExitStack() as restore:
        block = restore.enter_context(traced())
        for handler in users:
            handler.addFilter(_is_of_the_process)
            restore.callback(handler.removeFilter, _is_of_the_process)
        for name in filter(find_spec, PATCHES):
            torch_module(name)
        folder = restore.enter_context(fresh_caches())
        restore.callback(shutil.rmtree, folder, ignore_errors=True)
        copy_profiles(roots, str(folder / PROFILES))
        for names, values in ((ours, {OWN_FOLDER: str(folder)}), (meant, before)):
            names.update(values)
            restore.callback(names.clear)
        patches.start()
        restore.callback(_forget)
        restore.callback(patches.stop)
        yield block


def _is_of_the_process(record: logging.LogRecord) -> bool:
    """Whether the user's own trace needs a record of a pre-flight: torch writes a text once, and later records refer to it."""
    return "str" in getattr(record, "metadata", {})


def _forget() -> None:
    """What was compiled in the block is no code."""
    torch_module("torch._dynamo").reset()
    clear_memory()
    # Whether instructions can be compiled for was not tried out.
    known = vars(torch_module("torch._inductor.cpu_vec_isa")).values()
    for one in [*known, *(vars(kind).get("__bool__") for kind in known if isinstance(kind, type))]:
        if hasattr(one, "cache_clear"):
            one.cache_clear()
