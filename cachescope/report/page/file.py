"""Writes the report to its place, which has to be outside what was read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from cachescope.answers.read import Read
from cachescope.errors import CachescopeError
from cachescope.report.identifying_values import identities
from cachescope.report.page.document import document
from cachescope.report.page.hiding import hidden
from cachescope.report.page.page import page_of
from cachescope.report.redact import Redaction
from cachescope.whole_file import write_whole


def report(scope: Read, target: Path, *, redact: bool) -> Path:
    """Write the report of a scope; see `Scope.report`."""
    sources = [source for sources in scope.runs["sources"] for source in sources]
    refuse(target, [*sources, *scope.entries["root"].unique()])
    page = page_of(scope)
    if redact:
        page = hidden(page, Redaction(identities(scope)))
    return write_report(document(page), target)


def refuse(target: Path, read: Iterable[str]) -> None:
    """Check that a report can be written there before the work is done.

    Parameters
    ----------
    target : Path
        The file.
    read : iterable of str
        Files and directories that were read: nothing is written over or into these.

    Raises
    ------
    CachescopeError
        If the target is a directory, its directory does not exist, or it belongs to what was read.
    """
    if target.is_dir():
        raise CachescopeError(
            f"{target} is a directory: name a file for the report, such as {target / 'report.html'}"
        )
    if not target.parent.is_dir():
        raise CachescopeError(f"{target}: there is no directory {target.parent}; make it, or name another")
    place = Path(os.path.realpath(target))
    for source in map(os.path.realpath, read):
        if place == Path(source) or (os.path.isdir(source) and place.is_relative_to(source)):
            raise CachescopeError(f"{target} belongs to what was read: write the report to another place")


def write_report(text: str, target: Path) -> Path:
    """Write a report; an existing file is replaced.

    Raises
    ------
    CachescopeError
        If it cannot be written.
    """
    try:
        # A browser cannot show a file name that is not UTF-8: its bytes become question marks.
        write_whole(target, text.encode("utf-8", "replace"))
    except OSError as error:
        raise CachescopeError(f"{target}: the report cannot be written: {error.strerror or error}") from error
    return target
