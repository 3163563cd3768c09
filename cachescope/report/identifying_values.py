"""What in a scope, and on this machine, identifies people and places: a redaction hides it besides what it detects by form."""

from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from cachescope.analysis.contexts.keys import isolation_keys
from cachescope.answers.read import Read
from cachescope.report.redact import Identities

if TYPE_CHECKING:
    import pandas as pd


_USER_OF_PATH: Final = re.compile(r"(?:[/\\](?:home|Users)[/\\]+|torchinductor_)([\w.-]+)")


def identities(scope: Read, paths: Iterable[str] = ()) -> Identities:
    """The sources of a scope, its hosts, functions and keys, and this machine, its user and the working directory."""
    runs, lookups, entries, contexts = scope.runs, scope.lookups, scope.entries, scope.tables.contexts.frame
    machine = of_this_machine()
    found = {
        *machine.paths,
        *paths,
        *_values(runs, "source", "sources", "cache_dir"),
        *_values(lookups, "file", "entry_path"),
        *_values(entries, "root", "path", "link"),
        *_values(scope.problems, "source"),
        *_values(contexts, "source"),
    }
    # A damaged file may be anyone's, whatever its name.
    sound = entries[entries["status"] == "ok"]
    keys = {
        *_values(lookups, "cache_key"),
        *_values(sound, "cache_key", "code_key", "fx_keys", "kernel_keys", "triton_hashes"),
        *_values(isolation_keys(scope.contexts), "isolation_key"),
    }
    return Identities(
        paths=found,
        hosts={*machine.hosts, *_values(contexts, "host")},
        users={*machine.users, *(user for path in found for user in _USER_OF_PATH.findall(path))},
        functions={*_values(lookups, "function")},
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


def _values(frame: pd.DataFrame, *columns: str) -> Iterator[str]:
    """The texts of some columns, each once; items of lists one by one."""
    for column in columns:
        values: Iterable[Any] = (
            frame[column].dropna().drop_duplicates() if column != "sources" else frame[column]
        )
        for value in values:
            yield from (value,) if isinstance(value, str) else value


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # the user id of a container without an account
        return ""
