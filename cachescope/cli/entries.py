"""List what a cache directory contains (sizes, age, damage, duplicates, what can go), or show one entry of it.

    cachescope entries [DIR]       files by kind and status, anything unusual, the newest entries
    cachescope entries KEY [DIR]   one entry, by a key of any kind or enough of its beginning: guards, links, kernels,
                                   past misses and its source
    cachescope entries --all       every compile cache of a serving start: torch's, Triton's, CUDA's, FlashInfer's, vLLM's …

Without DIR, the directory that torch would use here is read. An existing path is a DIR, and so is redis://HOST:PORT/DB.
DIRs are opened read-only; entries are parsed, never unpickled. Nothing is removed. --prune-list only prints paths of files that were read completely and are proven to be useless to any
lookup. Files that cannot be read, and everything that they may need, are never listed.
"""

from __future__ import annotations

import argparse
import contextlib
import glob
import os
from pathlib import Path
from typing import TYPE_CHECKING

from cachescope.cli.arguments import add_source_arguments, how_many
from cachescope.cli.output import redaction_of, say, write_answer, write_plain, write_source
from cachescope.errors import NotFoundError, SourceError
from cachescope.wording import harmless_line, plural

if TYPE_CHECKING:
    from cachescope.scope import Scope


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="DIR|KEY", help="cache directories; or a key in them")
    told = "show the compile caches that this environment's variables and defaults name: size, age, what they are made for, whether they outlast a container, what to mount or set"
    parser.add_argument("--all", action="store_true", help=told)
    parser.add_argument(
        "--most", type=how_many, default=20, metavar="N", help="entries to list (20, the newest)"
    )
    told = (
        "show for each lock file whether it is held: the lock is tried without waiting, and released at once"
    )
    parser.add_argument("--locks", action="store_true", help=told)
    told = "print only the paths that can go, one per line, for: xargs -d '\\n' rm --"
    parser.add_argument("--prune-list", action="store_true", help=told)
    add_source_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from cachescope.cli.sources import read_given
    from cachescope.readers.directory.default_root import default_root

    if args.all and (args.names or args.locks or args.prune_list):
        args.usage_error("--all stands alone")
    if args.prune_list and not args.names:
        args.usage_error("--prune-list is for directories that are named")
    if args.all:
        return _print_other_caches(args)
    # What is there as a path, or can be nothing else, is a source.
    paths = [name for name in args.names if os.path.lexists(name) or os.sep in name or glob.has_magic(name)]
    keys = [name for name in args.names if name not in paths]
    roots = paths or [default_root()]
    if not keys:
        return _print_all(args, read_given(args, roots))
    if len(keys) > 1:
        raise NotFoundError(f"{keys[0]!r} and {keys[1]!r} are no paths, and only one key can be shown")
    if args.prune_list or args.locks:
        raise NotFoundError(f"{keys[0]!r} is no path; --prune-list and --locks are for whole directories")
    try:
        scope = read_given(args, roots)
    except SourceError as error:
        if paths:
            raise
        message = f"{keys[0]!r} is no path; for a key name the directory it is in ({error})"
        raise NotFoundError(message) from error
    return _print_one(args, scope, roots, keys[0])


def _print_other_caches(args: argparse.Namespace) -> int:
    from cachescope.readers.other_caches import found_caches
    from cachescope.report.other_caches import other_cache_lines, other_caches_object

    mounts = ""
    with contextlib.suppress(OSError):
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    found = found_caches(os.environ, os.path.expanduser("~"), mounts)
    return write_answer(args, lambda: other_caches_object(found), lambda: other_cache_lines(found))


def _print_all(args: argparse.Namespace, scope: Scope) -> int:
    from cachescope.readers.directory.file_contents import locks_of
    from cachescope.report.as_json import entries_object
    from cachescope.report.entries import entries_blocks

    if args.prune_list:
        if args.redact:
            message = "--prune-list is for rm, and --redact hides what it would remove: leave one out"
            raise NotFoundError(message)
        _print_paths([row.path for row in scope.removed_unnoticed.rows])
        return 0
    locks = list(locks_of(scope.tables.entries.rows)) if args.locks else None
    return write_answer(
        args, lambda: entries_object(scope, locks), lambda: entries_blocks(scope, args.most, locks)
    )


def _print_paths(paths: list[str]) -> None:
    """The paths that can be printed as they are: one that had to be escaped would name another file, or none."""
    printed = [path for path in paths if harmless_line(path) == path and os.path.lexists(path)]
    write_plain(printed)
    if left := len(paths) - len(printed):
        names = plural(left, "path is", "paths are")
        say(f"{names} left out: the names cannot be printed as they are (--json has them escaped)")


def _print_one(args: argparse.Namespace, scope: Scope, paths: list[str], key: str) -> int:
    from cachescope.report.entries import one_entry_lines, one_entry_object, source_title

    try:
        one = scope.entry(key)
    except NotFoundError as error:
        raise NotFoundError(f"{key!r} is no path; in {', '.join(paths)}: {error}") from error
    source = one.source
    write_answer(args, lambda: one_entry_object(one), lambda: [*one_entry_lines(one), *source_title(source)])
    if source.text is not None and not args.json:
        write_source(source.text, source.language, redaction_of(args))
    return 0
