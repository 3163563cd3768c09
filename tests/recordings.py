"""The recordings of torch, and checks that hold of every one of them.

A check is a plain function beside the tests of its subject; `test_every_recording.py` lists them. Each recording is unpacked
once, and read once each way (`readings.read_once`), for all of them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.conftest import RECORDINGS

# By version and name.
RECORDED = sorted(
    (one.parent.name, one.name.removesuffix(".tar.xz")) for one in RECORDINGS.glob("*/*.tar.xz")
)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording that is unpacked, a folder to write to, and pytest's `record_property` for what is counted."""

    version: str
    name: str
    folder: Path
    room: Path
    count: Callable[[str, object], None]


def hold(checks: Iterable[Callable[..., None]], recorded: Recorded, *more: Any) -> None:
    """Run every check, each with a room of its own, and then raise together what failed."""
    failed: dict[str, Exception] = {}
    for check in checks:
        room = recorded.room / check.__name__
        room.mkdir()
        try:
            check(replace(recorded, room=room), *more)
        except Exception as failure:
            failed[check.__name__] = failure
    if failed:
        raise ExceptionGroup(f"{recorded.version} {recorded.name}: {', '.join(failed)}", [*failed.values()])
