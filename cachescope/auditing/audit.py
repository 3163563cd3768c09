"""Audits a cache before it is loaded: every file, folder and link in it, and the folders above."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from cachescope.auditing.contents import LEFT, audit_content, audit_value, is_code, is_remote_cache
from cachescope.auditing.findings import File, Finding, shown
from cachescope.auditing.permissions import audit_above, audit_rights, is_stranger, user_name
from cachescope.auditing.tree import MOST_BYTES, Archive, Disk, Item, Tree
from cachescope.errors import SourceError
from cachescope.frames.audit_rules import AUDIT_RULES
from cachescope.frames.checks import AuditRow
from cachescope.locking.lock import read_lock
from cachescope.readers.archives import is_archive
from cachescope.readers.directory.place_of import place_of, place_of_file
from cachescope.readers.directory.places import FX_PREFIX, UNKNOWN, Place
from cachescope.readers.kinds import HEAD_BYTES, check_is_stored, shipped_kind
from cachescope.readers.reading import Reading
from cachescope.readers.remote_cache.address import is_redis, without_password
from cachescope.readers.remote_cache.stored import stored_in, stored_in_dump
from cachescope.rows import like
from cachescope.terms import AOTAUTOGRAD, AUDIT_LEVELS, CODE, FX_KEY, FXGRAPH, HASH, LOCK, OTHER, UNPROVEN
from cachescope.wording import readable

if TYPE_CHECKING:
    import pandas as pd

_DEEPEST: Final = 100
_MOST_OF_A_RULE: Final = 10_000
_CAN_WRITE: Final = frozenset({"anyone-can-write", "group-can-write"})
# What torch leaves next to the code of a kernel: a mark that a library was tried, a folder of g++.
_BESIDE_CODE: Final = re.compile(rf"c{HASH}.*(?:\.load_ok|_CxxBuild)", re.DOTALL)
# CUTLASS's packages, and the stand-ins for their imports, which torch links into the cache (maybe_fetch_ops and
# try_import_cutlass, torch/_inductor/codegen/cuda/cutlass_utils.py).
_OF_CUTLASS: Final = frozenset(
    {"cuda", "cutlass", "cutlass_cppgen", "cutlass_library", "pycute", "pydot", "scipy"}
)


@dataclass(slots=True)
class Audit:
    """What was found in some sources, and how much was looked at."""

    rows: list[AuditRow] = field(default_factory=list)  # the findings, the worst first
    sources: list[str] = field(default_factory=list)  # what was audited
    files: int = 0  # regular files, or values of remote caches, that were audited
    vouched: int = 0  # files with code for which a lock vouches
    unread: int = 0  # sources that could not be read

    @property
    def counts(self) -> dict[str, int]:
        """The number of findings, by level."""
        counted = Counter(row.level for row in self.rows)
        return {level: counted[level] for level in AUDIT_LEVELS}

    def add(self, path: str, lock: str | os.PathLike[str] | None) -> None:
        """Audit one more source."""
        held = () if lock is None else read_lock(lock).files.values()
        path = without_password(path)
        run = _Run(path, frozenset(file.sha256 for file in held))
        check_is_stored(path)
        if is_remote_cache(path):
            run.remote(path)
        else:
            run.all()
        self.files += run.files
        self.vouched += run.vouched
        self.rows += (
            like(AuditRow, one, path=readable(one.path), cache=one.kind, advice=AUDIT_RULES[one.rule].advice)
            for one in run.limited()
        )
        self.rows.sort(key=lambda row: AUDIT_LEVELS.index(row.level))


def audit(*paths: str | os.PathLike[str], lock: str | os.PathLike[str] | None = None) -> pd.DataFrame:
    """Report what loading a cache would execute, and who can change it: the frame ``audit``, the worst first.

    Nothing is unpickled, imported or run, no link is followed, and no pipe or device is opened. Without a row above the level
    ``note``, everything that torch would run is proven to be what torch itself writes.

    Parameters
    ----------
    *paths : path
        Cache directories, single files from one, mega-cache files, or tar or zip files of any of them; dumps of a remote cache,
        or the address of a Redis.
    lock : path, optional
        A lock file of the cache, from somebody whom you trust: code in a file whose digest it holds is not reported.

    Raises
    ------
    SourceError
        If a path does not exist, or may not be read.

    Examples
    --------
    >>> import cachescope
    >>> found = cachescope.audit(cachescope.sample("whole_directory"))
    >>> bool(found["level"].isin(["danger", "warning"]).any())
    False
    """
    from cachescope.columns import frame_of

    whole = Audit()
    for path in paths:
        whole.add(os.fspath(path), lock)
    return frame_of(whole.rows, AuditRow)


class _Run:
    """The audit of one source."""

    def __init__(self, path: str, vouched: frozenset[str]) -> None:
        self.path = path.rstrip("/") or path
        self.digests = vouched
        self.files = self.vouched = 0
        self.tree: Tree = Disk()
        self._found: dict[Finding, None] = {}
        self._counts: Counter[str] = Counter()
        self._names_of: dict[tuple[int, int], list[Item]] = {}
        self._entries: dict[object, list[Finding]] = {}
        # Of each folder, who can replace what is in it.
        self._writable: dict[str, frozenset[tuple[str, int]]] = {}
        self._is_of_a_cache = False

    def all(self) -> None:
        """Audit everything."""
        item = Disk().item(self.path)
        if item is None:
            raise SourceError(self.path, "is not there", "missing")
        self._keep(audit_above(self.path))
        if item.target is not None:
            item = Disk().item(os.path.realpath(self.path))
            if item is None:
                raise SourceError(self.path, "a link that leads nowhere", "missing")
        self._rights(item)
        if item.is_dir():
            if not os.access(item.path, os.R_OK | os.X_OK):
                raise SourceError(self.path, "cannot be read: no permission")
            name = os.path.basename(os.path.abspath(item.path))
            self._folder(item, self._place_of(item), name if FX_KEY.fullmatch(name) else None, 0)
        elif stat.S_ISREG(item.found.st_mode):
            self._single(item)
        else:
            self._thing(item)
        self._keep(self._hard_links())
        if self.files and not self._is_of_a_cache and not self._found:
            # A wrong path must not look like a clean cache.
            what = (
                "holds nothing that torch or Triton writes into a cache; archives in it are not looked into"
            )
            raise SourceError(self.path, what, "unknown_source")

    def remote(self, source: str) -> None:
        """Audit the values of a remote cache."""
        lines = Reading()
        for one in stored_in(source) if is_redis(source) else stored_in_dump(source, lines):
            self.files += 1
            self._keep(audit_value(self.path, one))
        self._keep(
            Finding("entry-damaged", self.path, f"{one.where}: {one.message}") for one in lines.problems
        )

    def limited(self) -> Iterator[Finding]:
        """The findings, each once, and with a limit per rule."""
        yield from self._found
        for rule, count in self._counts.items():
            if count > _MOST_OF_A_RULE:
                yield Finding(rule, self.path, f"{count - _MOST_OF_A_RULE:,} more of these")

    def _vouch(self, found: list[Finding], data: bytes) -> None:
        """Keep the findings in a file: its code that nothing proves with its digest, unless a lock vouches for it."""
        if any(one.level == UNPROVEN for one in found):
            digest = hashlib.sha256(data).hexdigest()
            is_vouched = digest in self.digests
            self.vouched += is_vouched
            found = [
                one if one.level != UNPROVEN else replace(one, sha256=digest)
                for one in found
                if one.level != UNPROVEN or not is_vouched
            ]
        self._keep(found)

    def _keep(self, found: Iterable[Finding]) -> None:
        for one in found:
            if one in self._found:
                continue
            self._counts[one.rule] += 1
            if self._counts[one.rule] <= _MOST_OF_A_RULE:
                self._found[one] = None

    def _rights(self, item: Item) -> None:
        """Keep who can write here; not that they can write below a folder in which they can replace everything anyway."""
        above, group = os.path.dirname(item.path), item.found.st_gid
        found = list(audit_rights(item.path, item.found))
        writable = {(one.rule, group) for one in found if one.rule in _CAN_WRITE}
        told = self._writable.get(above, frozenset())
        self._keep(one for one in found if (one.rule, group) not in told)
        if item.is_dir() and not item.found.st_mode & stat.S_ISVTX:
            self._writable[item.path] = frozenset(writable)

    def _single(self, item: Item) -> None:
        if not os.access(item.path, os.R_OK):
            raise SourceError(self.path, "cannot be read: no permission")
        if is_archive(item.path):
            archive = Archive(item.path)
            self.tree = archive
            for name in archive.outside:
                self._add("path-escapes", item, f"the archive holds a file called {shown(name)}")
            for name in archive.twice:
                self._add("pickle-odd-program", item, f"the archive holds several files called {shown(name)}")
            top = Item(item.path, "", os.stat_result((stat.S_IFDIR | 0o755, 0, 0, 1, 0, 0, 0, 0, 0, 0)))
            self._folder(top, self._place_of(top), None, 0)
            return
        placed = place_of_file(item.path)
        kind = OTHER if placed is None else placed[1].kind
        parent = os.path.basename(os.path.dirname(os.path.abspath(item.path)))
        self._file(item, kind, parent if kind in ("fxgraph", "aotautograd") else None)

    def _folder(self, folder: Item, place: Place, key: str | None, depth: int) -> None:
        if depth > _DEEPEST:
            self._add("limit-reached", folder, f"folders more than {_DEEPEST} deep")
            return
        try:
            items = self.tree.items(folder.path)
        except OSError as error:
            self._add("entry-not-read", folder, f"a folder that cannot be listed: {error.strerror or error}")
            return
        for item in items:
            if item.is_symlink() or not (item.is_dir() or stat.S_ISREG(item.found.st_mode)):
                self._thing(item)
                continue
            self._rights(item)
            if item.is_dir():
                self._inner(item, place, key, depth)
            else:
                rule = place.file_rule(item.name)
                kind = OTHER if rule is None else rule.kind
                self._file(item, kind, key, is_odd=rule is None and place is not UNKNOWN)

    def _place_of(self, folder: Item) -> Place:
        return place_of(folder.path, self.tree.items) or UNKNOWN

    def _inner(self, item: Item, around: Place, key: str | None, depth: int) -> None:
        _, rule = around.folder_rule(item.name)
        if rule is not None:
            place = rule.place
            if around is FX_PREFIX and os.path.basename(os.path.dirname(item.path)) != item.name[1:3]:
                message = "the folder of a key that torch looks for in another folder"
                self._add("entry-misnamed", item, message)
        elif around.is_deep or (around.kind == CODE and _BESIDE_CODE.fullmatch(item.name)):
            place = around
        else:
            place = self._place_of(item)
            if place is UNKNOWN and around is not UNKNOWN and not LEFT.fullmatch(item.name):
                message = f"a folder called {shown(item.name)}, which torch does not make"
                self._add("unknown-file", item, message)
        is_key = FX_KEY.fullmatch(item.name) or place.loads_all
        self._folder(item, place, item.name if is_key else key, depth + 1)

    def _file(self, item: Item, kind: str, key: str | None, *, is_odd: bool = False) -> None:
        self.files += 1
        self._is_of_a_cache |= kind != OTHER or is_code(item.name)
        if item.found.st_nlink > 1:
            self._names_of.setdefault((item.found.st_dev, item.found.st_ino), []).append(item)
        if kind == LOCK and item.found.st_size == 0:
            return
        if item.found.st_size > MOST_BYTES:
            self._add("entry-not-read", item, "bigger than is looked at")
            return
        try:
            data = self.tree.read(item)
        except FileNotFoundError:
            return  # no longer there, or no longer a file
        except OSError as error:
            self._add("entry-not-read", item, f"a file that cannot be read: {error.strerror or error}")
            return
        if len(data) > MOST_BYTES:
            self._add("entry-not-read", item, "bigger than is looked at")
            return
        shipped = shipped_kind(item.path, data[:HEAD_BYTES])
        self._is_of_a_cache |= shipped is not None
        if is_odd and shipped is None and not LEFT.fullmatch(item.name):
            self._add("unknown-file", item, f"a file called {shown(item.name)}, which torch does not write")
        self._vouch(self._content(File(item.path, item.name, kind, key, data)), data)

    def _content(self, file: File) -> list[Finding]:
        """The findings in a file; copies, which vLLM has in each of its folders, are looked at once."""
        if file.kind not in (FXGRAPH, AOTAUTOGRAD, CODE):
            return list(audit_content(file))
        same = (file.name, file.kind, file.key, hashlib.sha256(file.data).digest())
        if same not in self._entries:
            self._entries[same] = list(audit_content(file))
        return [replace(one, path=file.path) for one in self._entries[same]]

    def _thing(self, item: Item) -> None:
        """Audit a link, or a special file."""
        if item.target is None:
            what = _WHAT.get(stat.S_IFMT(item.found.st_mode), "something that is no file")
            self._add("special-file", item, what)
            return
        if is_stranger(item.found.st_uid):
            self._add("other-owner", item, f"a link that belongs to {user_name(item.found.st_uid)}")
        self._keep([self._link(item, item.target)])

    def _link(self, item: Item, target: str) -> Finding:
        where = f"a link to {shown(target)}"
        if isinstance(self.tree, Archive):
            root = self.path
            leads = os.path.normpath(os.path.join(os.path.dirname(item.path), target))
            is_there = True
        else:
            root, leads = os.path.realpath(self.path), os.path.realpath(item.path)
            is_there = os.path.exists(leads)
        if not (leads == root or leads.startswith(root + os.sep)):
            is_cutlass = os.path.basename(os.path.dirname(item.path)) == "torch_cutlass"
            if is_cutlass and item.name in _OF_CUTLASS and os.path.basename(target) == item.name:
                return Finding("link-inside", item.path, f"{where}, as torch makes it for CUTLASS")
            return Finding("link-out", item.path, where)
        return Finding("link-inside" if is_there else "link-broken", item.path, where)

    def _hard_links(self) -> Iterator[Finding]:
        for items in self._names_of.values():
            beyond = items[0].found.st_nlink - len(items)
            message = f"has {beyond} other names outside of what was audited"
            yield from (Finding("hard-link", item.path, message) for item in items if beyond > 0)

    def _add(self, rule: str, item: Item, message: str) -> None:
        self._keep([Finding(rule, item.path, message)])


_WHAT: Final = {
    stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
}  # fmt: skip
