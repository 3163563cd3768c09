"""What of a scope, and of this machine, tells who and where: what `redact` is told beside what it tells by form."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Iterable
from typing import TYPE_CHECKING

from cachescope.report.redact import Identities

if TYPE_CHECKING:
    from cachescope.scope import Scope


def identities(scope: Scope, paths: Iterable[str] = ()) -> Identities:
    """The sources of a scope, its hosts, and this machine, its user and the folder we are in.

    Parameters
    ----------
    scope : Scope
    paths : iterable of str
        Paths as they were given, besides.
    """
    sources = [
        *scope.runs["source"],
        *(source for sources in scope.runs["sources"] for source in sources),
        *scope.runs["cache_dir"].dropna(),
        *scope.entries["root"].unique(),
        *scope.problems["source"].unique(),
        *scope.tables.contexts["source"].unique(),
    ]
    home = os.path.expanduser("~")
    return Identities(
        paths={*paths, *sources, os.getcwd(), *([home] if home.count("/") > 1 else [])},
        hosts={socket.gethostname(), *scope.tables.contexts["host"].dropna()},
        users={_user(), os.path.basename(home)},
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container's user id without an account
        return ""
