"""Runs a command as a pre-flight: every Python process in it that imports torch does, and none of them stores anything.

The processes get the hook through ``PYTHONPATH``, and a cache directory of their own that is removed afterwards.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from cachescope.capture.fresh_caches import INDUCTOR_DIR, TRITON_DIR
from cachescope.capture.preflight.cache_folder import MEANT_FOLDER, OWN_FOLDER
from cachescope.capture.preflight.settings import SETTINGS
from cachescope.capture.recording import Recorded, record

_SITE: Final = Path(__file__).parent / "preflight" / "site"
# torch/_dynamo/pgo.py, `code_state_path`: which sizes varied decides what is compiled.
_PROFILES: Final = "dynamo"
_PROFILE_NAMES: Final = "code_state_*.pkl"


def preflight(
    command: Sequence[str],
    folder: str | os.PathLike[str],
    profiles_of: Iterable[str],
    *,
    variables: Mapping[str, str | None] | None = None,
    settings: Sequence[tuple[str, str, str]] = (),
    output: int | None = None,
) -> Recorded:
    """Run a command as a pre-flight."""
    # `profiles_of`: cache directories whose profiles of sizes torch would read; they are copied. `variables`: what the command gets
    # besides, and, as None, what it does not get. `settings`: what is set before each graph is compiled (preflight/settings.py).
    with own_cache(profiles_of) as own:
        changed = variables or {}
        base = {name: value for name, value in {**os.environ, **changed}.items() if value is not None}
        more = {**changed, **preflight_environment(base, own)}
        if settings:
            more[SETTINGS] = json.dumps(settings)
        return record(command, folder, more, {"preflight": True}, output)


@contextmanager
def own_cache(profiles_of: Iterable[str]) -> Iterator[Path]:
    """An empty cache directory, but for profiles of sizes; it is removed with all that came into it."""
    own = Path(tempfile.mkdtemp(prefix="cachescope-preflight-"))
    try:
        copy_profiles(profiles_of, own)
        yield own
    finally:
        shutil.rmtree(own, ignore_errors=True)


def copy_profiles(roots: Iterable[str], own: Path) -> None:
    """Copy what torch stored of the sizes that varied: it decides what is compiled."""
    for root in roots:
        for profile in Path(root, _PROFILES).glob(_PROFILE_NAMES):
            (own / _PROFILES).mkdir(exist_ok=True)
            with suppress(OSError):
                shutil.copyfile(profile, own / _PROFILES / profile.name)


def preflight_environment(base: Mapping[str, str], own: Path) -> dict[str, str]:
    """The variables that make each Python process a pre-flight, with `own` as its cache directory."""
    paths = [str(_SITE), *([base["PYTHONPATH"]] if base.get("PYTHONPATH") else [])]
    meant = {MEANT_FOLDER: base[INDUCTOR_DIR]} if INDUCTOR_DIR in base else {}
    return {
        "PYTHONPATH": os.pathsep.join(paths),
        OWN_FOLDER: str(own),
        INDUCTOR_DIR: str(own),
        TRITON_DIR: str(own / "triton"),
        **meant,
    }
