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
    """One way in which recordings are damaged.

    Attributes
    ----------
    name : str
    harm : callable
        Damages the folder of an unpacked recording, in place and the same way for equal seeds.
    touches : frozenset of str
        The kinds of source that are changed at all: ``trace``, ``text``, ``caches``.
    spoils : frozenset of str
        The kinds that say less afterwards. What the other kinds of a reading say without them has to stay.
    casts_doubt : bool
        Whether what is left of a spoiled cache directory can speak against what the logs say.
    keeps_entries : bool
        Whether torch could still load every entry that it could load before.
    copies : int
        How many processes a text log tells of afterwards, for each of those before.
    reading : callable
        Under what the damaged recording is read.
    """

    name: str
    harm: Callable[[Path, Random], None]
    touches: frozenset[str]
    spoils: frozenset[str] = frozenset()
    casts_doubt: bool = False
    keeps_entries: bool = True
    copies: int = 1
    reading: Callable[[], AbstractContextManager[None]] = nullcontext

    @property
    def loses_lines(self) -> bool:
        """Whether bytes of logs are gone, so that lookups may be."""
        return bool(self.spoils & {TRACE, TEXT})


@contextlib.contextmanager
def in_zone(name: str) -> Iterator[None]:
    """This process in another time zone."""
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
    for name, new in times.items():
        yield Damage(f"times: {name}", files.with_times(new), _ALL, _CACHES)
    for seconds in (180, -180, 8 * _HOUR, -8 * _HOUR):
        name = f"times: the cache's {seconds:+d} s"
        yield Damage(name, files.with_times(files.shifted(seconds), only_caches=True), _CACHES, _CACHES)
    yield Damage("times: the cache's now", files.with_times(files.now, only_caches=True), _CACHES, _CACHES)
    yield Damage("copy: tar", files.through_tar, _ALL, _CACHES)
    yield Damage("copy: zip", files.through_zip, _ALL, _CACHES)
    yield Damage("copy: cp -r", files.copied, _ALL, _CACHES)
    for zone in ("America/Los_Angeles", "Asia/Tokyo", "Asia/Kolkata"):
        yield Damage(f"read in {zone}", unharmed, _TEXT, _CACHES, reading=partial(in_zone, zone))


def _lost_lines() -> Iterator[Damage]:
    for kind, what in ((TEXT, _TEXT), (TRACE, _TRACE)):
        for name, change in (("tail", logs.without_tail), ("head", logs.without_head)):
            yield Damage(f"{kind}: {name} of one cut", logs.one_log(kind, change), what, what)
            yield Damage(f"{kind}: {name} of each cut", logs.each_log(kind, change), what, what)
    both = [logs.each_log(kind, logs.without_tail) for kind in (TEXT, TRACE)]
    yield Damage("logs: tail of each cut", _one_after_the_other(both), _TEXT | _TRACE, _TEXT | _TRACE)
    thinned = {
        "a line lost": logs.without_lines(1),
        "five lines lost": logs.without_lines(5),
        "stretches lost": logs.without_stretches,
        "1 % of lines lost": logs.without_a_share(0.01),
        "10 % of lines lost": logs.without_a_share(0.1),
        "half of lines lost": logs.without_a_share(0.5),
        "telling lines lost": logs.without_telling_lines,
    }
    for name, change in thinned.items():
        yield Damage(f"text: {name}", logs.each_log(TEXT, change), _TEXT, _TEXT)


def _one_after_the_other(harms: list[logs.Harm]) -> logs.Harm:
    def harm(folder: Path, rng: Random) -> None:
        for one in harms:
            one(folder, rng)

    return harm


def _dresses() -> Iterator[Damage]:
    for launcher in logs.PREFIXES:
        yield Damage(f"prefix: {launcher}", logs.prefixed(launcher), _TEXT)
    for launcher in ("compose", "kubectl", "srun"):
        yield Damage(f"interleaved: {launcher}", logs.interleaved(launcher), _TEXT, copies=2)
    dresses = {
        "colours": logs.coloured,
        "ends of colours": logs.reset_at_ends,
        "CRLF": logs.with_crlf,
        "docker json-file": logs.docker_json,
        "UTF-16": logs.in_utf16,
    }
    for name, change in dresses.items():
        yield Damage(f"text: {name}", logs.each_log(TEXT, change), _TEXT)
    heads = {
        "a byte order mark": b"\xef\xbb\xbf",
        "a blank line": b"\n",
        "a foreign line": b"Loading weights\n",
    }
    for kind, what in ((TEXT, _TEXT), (TRACE, _TRACE)):
        for name, head in heads.items():
            yield Damage(f"{kind}: behind {name}", logs.each_log(kind, logs.behind(head)), what)
        for suffix in (".gz", ".xz", ".bz2"):
            yield Damage(f"{kind}: {suffix}", logs.packed(kind, suffix), what)


def _entries() -> Iterator[Damage]:
    keys = ("fxgraph/*/*", "aotautograd/*")
    single = ("fxgraph/*/*/*", "aotautograd/*/*")
    yield Damage("linked: caches", files.linked(("fxgraph", "aotautograd")), _CACHES)
    yield Damage("linked: keys", files.linked(keys), _CACHES)
    yield Damage("linked: entries", files.linked(single), _CACHES)
    yield Damage("linked: the directory", files.roots_linked, _CACHES)
    yield Damage("linked: in circles", files.in_circles, _CACHES)
    closed = {
        "entries": files.entries,
        "keys": lambda folder: _found(folder, keys),
        "caches": lambda folder: _found(folder, ("fxgraph", "aotautograd")),
        "the directory": files.caches,
    }
    for name, what in closed.items():
        yield _closed(f"unreadable: {name}", files.closed(what), _CACHES)
    # Names can be listed, and nothing of them can be asked.
    yield _closed("unreadable: listed keys", files.closed(closed["keys"], mode=0o444), _CACHES)
    for kind, what in ((TEXT, _TEXT), (TRACE, _TRACE)):
        yield _closed(f"unreadable: a {kind} log", files.closed(partial(_one_log, kind), some=False), what)
    gone = partial(Damage, touches=_CACHES, spoils=_CACHES, keeps_entries=False)
    yield gone("deleted: entries", files.deleted)
    yield gone("deleted: caches", files.folders_deleted)
    yield gone("cut short: entries", files.cut_short, casts_doubt=True)
    yield gone("cut short unseen: entries", files.cut_short_unseen, casts_doubt=True)


def _closed(name: str, harm: Callable[[Path, Random], None], what: frozenset[str]) -> Damage:
    return Damage(name, harm, what, what, casts_doubt=True, reading=files.as_somebody_else)


def _found(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    return sorted(
        path for cache in files.caches(folder) for pattern in patterns for path in cache.glob(pattern)
    )


def _one_log(kind: str, folder: Path) -> list[Path]:
    return logs.logs(folder, kind)[:1]


DAMAGES: tuple[Damage, ...] = (*_times(), *_lost_lines(), *_dresses(), *_entries())
