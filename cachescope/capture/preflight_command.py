"""Runs a command as a pre-flight: every Python process in it that imports torch does, and none of them stores anything.

The processes get the hook through ``PYTHONPATH``, and cache directories of their own that are removed afterwards.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cachescope.capture.preflight.cache_folder import (
    BEFORE,
    INDUCTOR_DIR,
    OWN_FOLDER,
    PROFILES,
    TRITON_DIR,
    copy_profiles,
    files_below,
    note_before,
)
from cachescope.capture.preflight.children import contained
from cachescope.capture.preflight.notes import TRACE_DIR
from cachescope.capture.preflight.refusals import REFUSED, UNREACHED
from cachescope.capture.preflight.settings import SETTINGS
from cachescope.capture.preflight.without_weights import FAKE
from cachescope.capture.recording import Recorded, record
from cachescope.readers.directory.default_root import default_root, unnamed_root
from cachescope.wording import listed, plural


@dataclass(frozen=True, slots=True)
class Preflown:
    """A command that ran as a pre-flight."""

    recorded: Recorded
    refused: str | None  # why it ended before its end: it does what cannot be pre-flown
    remarks: tuple[str, ...]  # what was not contained


def preflight(
    command: Sequence[str],
    folder: str | os.PathLike[str],
    profiles_of: Iterable[str] | None,
    *,
    variables: Mapping[str, str | None] | None = None,
    settings: Sequence[tuple[str, str, str]] = (),
    fake: bool = False,
    output: int | None = None,
) -> Preflown:
    """Run a command as a pre-flight."""
    # `profiles_of`: cache directories whose profiles of sizes torch would read; None: each one its own. `variables`: what the command gets
    # besides, and, as None, what it does not get. `settings`: what is set before each graph is compiled (preflight/settings.py).
    changed = {**os.environ, **(variables or {})}
    seen = {name: value for name, value in changed.items() if value is not None}
    with tempfile.TemporaryDirectory(prefix="cachescope-preflight-", ignore_cleanup_errors=True) as own:
        if profiles_of is not None:
            copy_profiles(profiles_of, os.path.join(own, PROFILES))
        for root in (default_root(), unnamed_root()):
            note_before(root, own)
        chosen = {SETTINGS: json.dumps(settings)} | ({FAKE: "1"} if fake else {})
        places = {OWN_FOLDER: own, INDUCTOR_DIR: own, TRITON_DIR: os.path.join(own, "triton")}

        def environment_of(run_folder: Path) -> dict[str, str]:
            return contained(seen, {**places, **chosen, TRACE_DIR: str(run_folder)})

        recorded = record(command, folder, environment_of, {"preflight": True}, output)
        refused = _lines(Path(own, REFUSED))
        return Preflown(recorded, refused[0] if refused else None, tuple(_remarks(Path(own))))


def _remarks(own: Path) -> Iterable[str]:
    for listing in (own / BEFORE).iterdir():
        root, before = json.loads(listing.read_text())
        if new := files_below(root).difference(before):
            yield f"meanwhile {plural(len(new), 'file')} appeared in {root}: another program, or a process that the pre-flight does not reach, compiled for real"
    if unreached := dict.fromkeys(_lines(own / UNREACHED)):
        yield f"what {listed(list(unreached), 3)} started is not part of it"


def _lines(file: Path) -> list[str]:
    with suppress(FileNotFoundError):
        return file.read_text(encoding="utf-8", errors="replace").splitlines()
    return []
