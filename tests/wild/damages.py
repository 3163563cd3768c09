"""Every way in which a recording is damaged, with what the damage takes away from whoever reads it."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

from tests.wild import damaged_files as files
from tests.wild import damaged_logs as logs

TRACE, TEXT, CACHES = "trace", "text", "caches"


@dataclass(frozen=True, slots=True)
class Damage:
    """One way in which recordings are damaged."""

    name: str
    # Damages the folder of an unpacked recording, in place and the same way for equal seeds.
    harm: Callable[[Path, Random], None]
    # The kinds of source that are changed at all: `trace`, `text`, `caches`.
    touches: frozenset[str]
    # The kinds that say less afterwards. What the other kinds of a reading say without them has to stay.
    spoils: frozenset[str] = frozenset()
    # Whether what is left of a spoiled cache directory can speak against what the logs say.
    casts_doubt: bool = False
    # Whether torch could still load every entry that it could load before.
    keeps_entries: bool = True
    # How many processes a text log tells of afterwards, for each of those before.
    copies: int = 1
    # Under what the damaged recording is read.
    reading: Callable[[], AbstractContextManager[None]] = nullcontext

    @property
    def loses_lines(self) -> bool:
        """Whether bytes of logs are gone, so that lookups may be."""
        return bool(self.spoils & {TRACE, TEXT})


@contextlib.contextmanager
def in_zone(name: str) -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = name
    time.tzset()
    try:
        yield
    finally:
        if before is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = before
        time.tzset()


def unharmed(folder: Path, rng: Random) -> None:
    """Nothing: the reader is what differs."""


_ALL = frozenset({TRACE, TEXT, CACHES})
_CACHES, _TEXT, _TRACE = frozenset({CACHES}), frozenset({TEXT}), frozenset({TRACE})
_HOUR = 3600


def _times() -> Iterator[Damage]:
    times: dict[str, Callable[[int], int]] = {
        "whole seconds": files.whole(1),
        "every other second": files.whole(2),
        "zero": files.fixed(0),
        "SOURCE_DATE_EPOCH": files.fixed(1_577_836_800),
        "now": files.now,
    }
    for seconds in (180, -180, 8 * _HOUR, -8 * _HOUR):
        times[f"the cache's {seconds:+d} s"] = files.shifted(seconds)
    times["the cache's now"] = files.now
    for name, new in times.items():
        only_caches = name.startswith("the cache's")
        touched = _CACHES if only_caches else _ALL
        yield Damage(f"times: {name}", partial(files.with_times, new, only_caches), touched, _CACHES)
    yield Damage("copy: tar", files.through_tar, _ALL, _CACHES)
    yield Damage("copy: zip", files.through_zip, _ALL, _CACHES)
    yield Damage("copy: cp -r", files.copied, _ALL, _CACHES)
    for zone in ("America/Los_Angeles", "Asia/Tokyo", "Asia/Kolkata"):
        yield Damage(f"read in {zone}", unharmed, _TEXT, _CACHES, reading=partial(in_zone, zone))


def _lost_lines() -> Iterator[Damage]:
    for kind, what in ((TEXT, _TEXT), (TRACE, _TRACE)):
        for name, change in (("tail", logs.without_tail), ("head", logs.without_head)):
            yield Damage(f"{kind}: {name} of one cut", partial(logs.one_log, kind, change), what, what)
            yield Damage(f"{kind}: {name} of each cut", partial(logs.each_log, kind, change), what, what)
    yield Damage("logs: tail of each cut", _without_tails, _TEXT | _TRACE, _TEXT | _TRACE)
    thinned = {
        "a line lost": partial(logs.without_lines, 1),
        "five lines lost": partial(logs.without_lines, 5),
        "stretches lost": logs.without_stretches,
        "1 % of lines lost": partial(logs.without_a_share, 0.01),
        "10 % of lines lost": partial(logs.without_a_share, 0.1),
        "half of lines lost": partial(logs.without_a_share, 0.5),
        "telling lines lost": logs.without_telling_lines,
    }
    for name, change in thinned.items():
        yield Damage(f"text: {name}", partial(logs.each_log, TEXT, change), _TEXT, _TEXT)


def _without_tails(folder: Path, rng: Random) -> None:
    for kind in (TEXT, TRACE):
        logs.each_log(kind, logs.without_tail, folder, rng)


def _dresses() -> Iterator[Damage]:
    for launcher in logs.PREFIXES:
        yield Damage(f"prefix: {launcher}", partial(logs.prefixed, launcher), _TEXT)
    for launcher in ("compose", "kubectl", "srun"):
        yield Damage(f"interleaved: {launcher}", partial(logs.interleaved, launcher), _TEXT, copies=2)
    dresses = {
        "colours": logs.coloured,
        "ends of colours": logs.reset_at_ends,
        "CRLF": logs.with_crlf,
        "docker json-file": logs.docker_json,
        "UTF-16": logs.in_utf16,
    }
    for name, change in dresses.items():
        yield Damage(f"text: {name}", partial(logs.each_log, TEXT, change), _TEXT)
    heads = {
        "a byte order mark": b"\xef\xbb\xbf",
        "a blank line": b"\n",
        "a foreign line": b"Loading weights\n",
    }
    for kind, what in ((TEXT, _TEXT), (TRACE, _TRACE)):
        for name, head in heads.items():
            behind = partial(logs.behind, head)
            yield Damage(f"{kind}: behind {name}", partial(logs.each_log, kind, behind), what)
        for suffix in (".gz", ".xz", ".bz2"):
            yield Damage(f"{kind}: {suffix}", partial(logs.packed, kind, suffix), what)


def _entries() -> Iterator[Damage]:
    keys = ("fxgraph/*/*", "aotautograd/*")
    linked = {
        "caches": ("fxgraph", "aotautograd"),
        "keys": keys,
        "entries": ("fxgraph/*/*/*", "aotautograd/*/*"),
    }
    for name, patterns in linked.items():
        yield Damage(f"linked: {name}", partial(files.linked, patterns), _CACHES)
    yield Damage("linked: the directory", files.roots_linked, _CACHES)
    yield Damage("linked: in circles", files.in_circles, _CACHES)
    closed = {
        "entries": files.entries,
        "keys": partial(files.found, keys),
        "caches": partial(files.found, linked["caches"]),
        "the directory": files.caches,
    }
    for name, what in closed.items():
        yield _closed(f"unreadable: {name}", partial(files.closed, what), _CACHES)
    # Names can be listed, and nothing of them can be asked.
    yield _closed("unreadable: listed keys", partial(files.closed, closed["keys"], mode=0o444), _CACHES)
    for kind, what in ((TEXT, _TEXT), (TRACE, _TRACE)):
        yield _closed(
            f"unreadable: a {kind} log", partial(files.closed, partial(_one_log, kind), some=False), what
        )
    gone = partial(Damage, touches=_CACHES, spoils=_CACHES, keeps_entries=False)
    yield gone("deleted: entries", files.deleted)
    yield gone("deleted: caches", files.folders_deleted)
    yield gone("cut short: entries", files.cut_short, casts_doubt=True)
    yield gone("cut short unseen: entries", files.cut_short_unseen, casts_doubt=True)


def _closed(name: str, harm: Callable[[Path, Random], None], what: frozenset[str]) -> Damage:
    return Damage(name, harm, what, what, casts_doubt=True, reading=files.as_somebody_else)


def _one_log(kind: str, folder: Path) -> list[Path]:
    return logs.logs(folder, kind)[:1]


_EXPORTS = {"newest first": logs.newest_first, "JSON, newest first": logs.exported, "CSV": logs.as_table}
EXPORTS = tuple(
    Damage(name, partial(logs.each_log, TEXT, change), _TEXT) for name, change in _EXPORTS.items()
)
"""What cloud logging makes of text logs."""

DAMAGES: tuple[Damage, ...] = (*_times(), *_lost_lines(), *_dresses(), *_entries())
