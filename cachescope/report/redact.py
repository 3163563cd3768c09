"""Stand-ins for what tells who and where: paths, host names, user names, board uuids and bus ids.

A pure function over plain values. Equal things get equal stand-ins within one call, so that what was the
same place stays the same place. When in doubt it hides: a redacted answer is made to be shown to others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

# What follows the place in a path and says nothing of it: torch's own files, and a cache's own folders.
_TELLS_NOTHING: Final = re.compile(
    r"/(?:torch|triton|torchvision|torchaudio|functorch)/[\w./-]*\.\w+|"
    r"/(?:fxgraph|aotautograd|triton)(?:/[\w.-]*)*|/\w\w/[a-z2-7]{52}(?:\.\w+)?"
)
_PATHS: Final = re.compile(
    r"(?<=['\"])(?:/|[A-Za-z]:\\)[^'\"\n]+(?=['\"])"  # in quotes a path may hold spaces
    r"|(?<![\w.)\]/<>-])~?/(?=[\w.~])[^\s'\"`,;:()\[\]{}<>|/]+(?:/[^\s'\"`,;:()\[\]{}<>|]*)+"
    r"|(?<!\w)[A-Za-z]:\\[^\s'\"]+"
)
_USER_OF_PATH: Final = re.compile(r"(?:/(?:home|Users)/|\\Users\\+|torchinductor_)([\w.-]+)")
# Public pages that cachescope itself names, of torch and of the vendors' datasheets, tell nothing.
_URL: Final = re.compile(
    r"\b[a-z][a-z0-9+.-]*://(?!(?:docs\.)?pytorch\.org|github\.com/pytorch"
    r"|(?:www|images|resources)\.nvidia\.com/|www\.(?:amd|intel)\.com/)[^\s'\"]+"
)
_MAIL: Final = re.compile(r"\b[\w.+-]+@[\w-]+(?:\.[\w-]+)+\b")
_HOST: Final = re.compile(
    r"\b(?!threading\.local\b)(?:[a-z0-9-]+\.)+(?:local|internal|lan|corp|intranet|localdomain)\b"
    r"|\bip-\d+-\d+-\d+-\d+\b"
    r"|\b(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}\b"
    r"|\b(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}\b"
)
_UUID: Final = re.compile(r"\b(?:GPU-|MIG-)?[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
_BUS: Final = re.compile(
    r"\b[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?(?![0-9a-fA-F:])"
    r"|(?<=pci_bus_id=)\w+|(?<=pci_device_id=)\w+|(?<=pci_domain_id=)\w+"
)
# Names of accounts that name nobody, and that are words of the output besides.
_NOBODY: Final = frozenset(
    {
        "root",
        "user",
        "users",
        "ubuntu",
        "admin",
        "runner",
        "torch",
        "python",
        "test",
        "docker",
        "home",
        "data",
    }
    | {"work", "jovyan", "default", "main"}
)
# Values under these keys are torch's own names and keys of a cache.
_KEPT: Final = frozenset(
    {"changed", "fields", "field", "cache", "cache_key", "code_key", "fx_keys", "verdict", "outcome"}
    | {"cachescope", "torch_version"}
)


@dataclass(frozen=True, slots=True)
class Identities:
    """What is known to tell who and where, beside what can be told by its form."""

    paths: Collection[str] = ()
    hosts: Collection[str] = ()
    users: Collection[str] = ()


def redact(value: Any, known: Identities = Identities()) -> Any:
    """The same value with a stand-in for every path, host, user, uuid and bus id in its texts.

    Parameters
    ----------
    value : dict, list, tuple, str or other plain value
        Keys of dictionaries, and values that are fields or cache keys, stay as they are.
    known : Identities
        Texts to hide wherever they stand, such as relative paths and the name of this machine.

    Returns
    -------
    Any
        A new value of the same shape.

    Examples
    --------
    >>> redact(["/home/ann/run.log", "by ann", "/home/ann/run.log", "torch/_inductor/codecache.py"])
    ['<path-1>', 'by <user-1>', '<path-1>', 'torch/_inductor/codecache.py']
    """
    users = {*known.users, *(user for text in _texts(value) for user in _USER_OF_PATH.findall(text))}
    replacer = _Replacer.of(Identities(known.paths, known.hosts, users))
    return _walk(value, replacer.replace)


@dataclass(slots=True)
class _Replacer:
    known_paths: re.Pattern[str] | None
    known_hosts: re.Pattern[str] | None
    known_users: re.Pattern[str] | None
    stand_ins: dict[str, dict[str, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, known: Identities) -> _Replacer:
        hosts = {
            h for host in known.hosts for h in (host, host.split(".")[0]) if len(h) > 2 and h != "localhost"
        }
        users = {u for u in known.users if len(u) > 2 and u.lower() not in _NOBODY}
        paths = {p.rstrip("/") for p in known.paths if p.strip("./")}
        return cls(
            _any_of(
                paths, before=r"(?<![\w./-])", after=r"(?P<tail>(?:/[^\s'\"`,;:()\[\]{}<>|]*)?)(?![\w-])"
            ),
            _any_of(hosts, before=r"(?<![\w-])", after=r"(?![\w-])"),
            _any_of(users, before=r"(?<![A-Za-z0-9])", after=r"(?![A-Za-z0-9])"),
        )

    def replace(self, text: str) -> str:
        text = _URL.sub(lambda match: self._stand_in("url", match[0]), text)
        text = _MAIL.sub(lambda match: self._stand_in("user", match[0]), text)
        if self.known_paths:
            text = self.known_paths.sub(lambda match: self._path(match[0]), text)
        text = _PATHS.sub(lambda match: self._path(match[0]), text)
        text = _UUID.sub(lambda match: self._stand_in("uuid", match[0]), text)
        text = _BUS.sub(lambda match: self._stand_in("bus", match[0]), text)
        text = _HOST.sub(lambda match: self._stand_in("host", match[0]), text)
        for kind, known in (("host", self.known_hosts), ("user", self.known_users)):
            if known:
                text = known.sub(lambda match, kind=kind: self._stand_in(kind, match[0]), text)  # type: ignore[misc]
        return text

    def _path(self, path: str) -> str:
        ending = path[len(path.rstrip("./")) :]
        path = path.rstrip("./") if path.strip("./") else path
        kept = _TELLS_NOTHING.search(path)
        tail = path[kept.start() :] if kept and kept.end() == len(path) else ""
        return self._stand_in("path", path[: len(path) - len(tail)]) + tail + ending

    def _stand_in(self, kind: str, text: str) -> str:
        known = self.stand_ins.setdefault(kind, {})
        return known.setdefault(text, f"<{kind}-{len(known) + 1}>")


def _any_of(texts: Iterable[str], before: str, after: str) -> re.Pattern[str] | None:
    longest_first = sorted(texts, key=len, reverse=True)
    if not longest_first:
        return None
    return re.compile(before + "(?:" + "|".join(map(re.escape, longest_first)) + ")" + after)


def _walk(value: Any, replace: Callable[[str], str], key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _walk(item, replace, str(name)) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_walk(item, replace, key) for item in value)
    return replace(value) if isinstance(value, str) and key not in _KEPT else value


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, str):
        yield value
