"""What in a scope, and on this machine, identifies people and places: a redaction hides it besides what it detects by form."""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Final

from cachescope.analysis.contexts.keys import key_row
from cachescope.answers.recording import Recording
from cachescope.keys import IsolationSchema
from cachescope.report.redact import Identities, Redaction

_USER_OF_PATH: Final = re.compile(r"(?:[/\\](?:home|Users)[/\\]+|torchinductor_)([\w.-]+)")


def redaction_of(scope: Recording) -> Redaction:
    """What hides all of this in one output."""
    return Redaction(identities(scope))


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
        *_values(scope.facts.problems, "source"),
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
