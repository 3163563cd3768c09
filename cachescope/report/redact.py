"""Makes values safe to share: everything that is not known to be harmless is hidden.

Known to be harmless are cachescope's own words, torch's (the names of its options, operators and functions), numbers,
versions, times, models of devices, and the keys and hashes that torch makes. The rest becomes a stand-in, whatever it
looks like; equal texts get equal ones. What in a scope, and on this machine, identifies people and places is hidden besides.
"""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from cachescope.analysis.contexts.keys import key_row
from cachescope.keys import IsolationSchema
from cachescope.report.redaction.texts import Texts
from cachescope.report.redaction.vocabulary import (
    KEYS,
    NUMBERS_HIDDEN,
    WHOLE,
    is_torch_hash,
    may_be_torch_hash,
    vocabulary,
)

if TYPE_CHECKING:
    # `record --redact` hides where nothing but Python may be installed.
    from cachescope.answers.recording import Recording

_USER_OF_PATH: Final = re.compile(r"(?:[/\\](?:home|Users)[/\\]+|torchinductor_)([\w.-]+)")


@dataclass(frozen=True, slots=True)
class Identities:
    """What is known of a source from its structure, and of this machine."""

    paths: Collection[str] = ()  # texts to hide wherever they occur, such as paths with blanks in them
    hosts: Collection[str] = ()
    users: Collection[str] = ()
    functions: Collection[str] = ()
    # Keys that stay, in full and shortened: keys of caches, in the form in which torch makes them.
    keys: Collection[str] = ()


class Redaction:
    """Hides, in one output, what is not known to be harmless: equal texts get equal stand-ins throughout.

    Examples
    --------
    >>> Redaction()(["/home/ann/run.log", "read by ann", "/home/ann/run.log", "torch/_inductor/codecache.py"])
    ['<path-1>', 'read by <name-1>', '<path-1>', 'torch/_inductor/codecache.py']
    """

    def __init__(self, known: Identities = Identities()) -> None:
        self._texts = Texts(vocabulary())
        self.learn(known)

    def learn(self, known: Identities) -> None:
        """Learn the identities in another source."""
        hosts = {name for host in known.hosts for name in (host, host.split(".")[0]) if name != "localhost"}
        kinds = {
            **dict.fromkeys(known.functions, "function"),
            **dict.fromkeys(known.users, "user"),
            **dict.fromkeys(hosts, "host"),
            **dict.fromkeys(known.paths, "path"),
        }
        named = {text: kind for text, kind in kinds.items() if text.strip("./ ")}
        self._texts.learn(named, {key for key in known.keys if may_be_torch_hash(key)})

    def __call__(self, value: Any, column: str = "") -> Any:
        """The value with stand-ins."""
        if isinstance(value, dict):
            return {self(name): self(item, str(name)) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(self(item, column) for item in value)
        if isinstance(value, str):
            return self._text(value, column)
        if column in NUMBERS_HIDDEN and value is not None:
            return self._texts.hidden_whole(WHOLE[column], str(value))
        return value

    def _text(self, text: str, column: str) -> str:
        if column in KEYS and (is_torch_hash(text) or self._texts.is_key(text)):
            return text
        if column in WHOLE:
            return self._texts.hidden_whole(WHOLE[column], text)
        return self._texts.hidden_whole("key", text) if column in KEYS else self._texts.hidden(text)


def identities(scope: Recording, paths: Iterable[str] = ()) -> Identities:
    """The sources of a scope, its hosts, functions and keys, and this machine, its user and the working directory."""
    tables = scope.tables
    runs, entries, contexts = tables.runs.rows, tables.entries.rows, tables.contexts.rows
    lookups = scope.shown.rows
    machine = of_this_machine()
    found = {
        *machine.paths,
        *paths,
        *_values(runs, "source", "sources", "cache_dir"),
        *_values(lookups, "file", "entry_path"),
        *_values(entries, "root", "path", "link"),
        *_values(tables.problems.rows, "source"),
        *_values(contexts, "source"),
    }
    # A damaged file may be anyone's, whatever its name.
    sound = [entry for entry in entries if entry.status == "ok"]
    everything = IsolationSchema.all()
    keys = {
        *_values(lookups, "cache_key"),
        *_values(sound, "cache_key", "code_key", "fx_keys", "kernel_keys", "triton_hashes"),
        *_values([key_row(one, everything) for one in scope.known_contexts], "isolation_key"),
    }
    return Identities(
        paths=found,
        hosts={*machine.hosts, *_values(contexts, "host")},
        users={*machine.users, *(user for path in found for user in _USER_OF_PATH.findall(path))},
        functions={*_values(lookups, "function", "class_name")},
        keys=keys,
    )


def of_this_machine() -> Identities:
    """The identity of this machine: its name, its user and the working directory."""
    home = os.path.expanduser("~")
    return Identities(
        paths={os.getcwd(), *([home] if home.count("/") > 1 else [])},
        hosts={socket.gethostname()},
        users={_user(), os.path.basename(home)},
    )


def _values(rows: Sequence[object], *columns: str) -> Iterator[str]:
    """The texts of some columns; items of lists one by one."""
    for column in columns:
        for value in map(attrgetter(column), rows):
            yield from (value,) if isinstance(value, str) else value or ()


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # the user id of a container without an account
        return ""
