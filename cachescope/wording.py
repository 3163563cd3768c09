"""Formats values for people: times, sizes, counts, and text from a log made harmless."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from cachescope.notebook_cells import cell_names

A_MESH_MAY_DIFFER: Final = "whether a DeviceMesh in the keys differs as well is not known"
SHORT_KEY: Final = 8
_WHOLE_KEY: Final = 12
LONGEST_LINE: Final = 20_000
_SPANS: Final = 8
# Everything but printable ASCII, newline and tab; `is_shown` decides which of these characters stay.
_UNUSUAL: Final = re.compile("[^\\n\\t -~]")
# Spaces of other widths. Characters without any width are not included.
_SPACES: Final = frozenset("\xa0\u1680\u202f\u205f\u3000").union(map(chr, range(0x2000, 0x200B)))
# Printable according to Unicode, but invisible (Default_Ignorable_Code_Point, and the blank of Braille).
_UNSEEN: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0").union(
    map(chr, range(0xFE00, 0xFE10)), map(chr, range(0xE0100, 0xE01F0))
)
# Commands that a CI system would execute from its log. At the beginning of a line: GitHub's `::name::` (actions/runner,
# ActionCommand.cs, `TryParseV2`, after any blanks) and Buildkite's groups. Anywhere in it: the `##[name]` of GitHub (`TryParse`)
# and of Azure, Azure's `##vso[`, `##teamcity[`, and the sections of GitLab and Travis.
_COMMAND: Final = re.compile(
    r"(?m)(?P<before>^[^\S\n]*)(?P<first>:(?=:)|-(?=--)|\+(?=\+\+)|~(?=~~)|\^(?=\^\^))"
    r"|(?P<hash>#)(?=#\w*\[)|(?<=section)(?P<section>_)(?=(?:start|end):)|(?<=travis)(?P<travis>_)(?=(?:fold|time):)"
)


def short_key(key: str) -> str:
    """The beginning of a key; a name as short as those of vLLM's folders in full.

    >>> short_key("fuyebj4tqy2lbkbqd"), short_key("33b84bfb8f")
    ('fuyebj4t…', '33b84bfb8f')
    """
    return key if len(key) <= _WHOLE_KEY else f"{key[:SHORT_KEY]}…"


def readable(path: str) -> str:
    """A path that can be encoded: bytes that are not UTF-8 become escapes."""
    return path if path.isascii() else os.fsencode(path).decode("utf-8", "backslashreplace")


def harmless(text: str) -> str:
    r"""Text from a source, with every character that controls a terminal or is invisible replaced by an escape.

    These are control characters, half surrogates, direction marks, characters without width, tags, and unassigned code
    points. Newlines and tabs stay.

    >>> harmless("a\x1b[2Jb\u202ec")
    'a\\x1b[2Jb\\x202ec'
    """
    if text.isascii() and text.isprintable():
        return text
    return _UNUSUAL.sub(lambda found: found[0] if is_shown(found[0]) else _escape(found[0]), text)


def is_shown(character: str) -> bool:
    """Whether a character is visible as itself and has no other effect."""
    return (character.isprintable() and character not in _UNSEEN) or character in _SPACES


def without_commands(text: str, escape: Callable[[str], str] | None = None) -> str:
    r"""Text that contains no command to a CI system that logs it: one character of each command is escaped.

    >>> without_commands("  ::set-env name=PATH::/tmp")
    '  \\x3a:set-env name=PATH::/tmp'
    >>> without_commands("see ##vso[task.complete]")
    'see \\x23#vso[task.complete]'
    """

    def escaped(match: re.Match[str]) -> str:
        before = match["before"] or ""
        return before + (escape or _escape)(match[0][len(before) :])

    return _COMMAND.sub(escaped, text)


def harmless_line(text: str, most: int = LONGEST_LINE) -> str:
    r"""Text from a source as one line that is safe to print anywhere: it has no side effect, and its length is bounded.

    >>> harmless_line("a\n::error::b")
    'a\\n::error::b'
    >>> harmless_line("x" * 1_000_000, most=3)
    'xxx… (1.0 MB)'
    """
    return without_commands(harmless_cut(text, most).replace("\n", "\\n"))


def harmless_cut(text: str, most: int = LONGEST_LINE) -> str:
    """Text from a source made harmless; if it is too long, only its beginning, with its size."""
    # Cut first: a value may be a megabyte.
    shown = harmless(text[:most])
    return shown if len(text) <= most else f"{shown}… ({file_size(len(text.encode('utf-8', 'replace')))})"


def _escape(character: str) -> str:
    return f"\\x{ord(character):02x}"


def short(text: str, length: int = 200) -> str:
    """One line of at most `length` characters; a cut is marked."""
    flat = " ".join(text.split())
    return flat if len(flat) <= length else flat[: length - 1] + "…"


def shortened(text: str, most: int) -> str:
    """The beginning of a text; a cut is marked."""
    return text if len(text) <= most else f"{text[:most]}…"


def minor_version(version: str) -> str:
    """``2.13`` of ``2.13.0``."""
    return ".".join(version.split(".")[:2])


def duration(ns: int | None) -> str:
    """Format nanoseconds for people, from a minute on in whole seconds; a dash if not known.

    >>> duration(4_100_000_000), duration(230_000_000), duration(None)
    ('4.1 s', '230 ms', '-')
    >>> duration(113_500_000_000), duration(1_020_000_000_000), duration(7_500_000_000_000)
    ('1 min 54 s', '17 min', '2 h 5 min')
    """
    if ns is None:
        return "-"
    if ns < 999_500_000:
        return f"{ns / 1e6:.0f} ms"
    if ns < 59_950_000_000:
        return f"{ns / 1e9:.1f} s"
    minutes, seconds = divmod(round(ns / 1e9), 60)
    if minutes < 60:
        return _two_units(minutes, "min", seconds, "s")
    hours, minutes = divmod(round(ns / 60e9), 60)
    return _two_units(hours, "h", minutes, "min")


def _two_units(large: int, of_large: str, small: int, of_small: str) -> str:
    return f"{large} {of_large}" + (f" {small} {of_small}" if small else "")


def file_size(count: int) -> str:
    """Format a number of bytes for people.

    >>> file_size(512), file_size(152_100), file_size(3_000_000_000)
    ('512 B', '152.1 kB', '3.0 GB')
    """
    amount = float(count)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def file_time(ns: int) -> str:
    """Format a time of the frames for people, to the minute; UTC."""
    return f"{date(ns)} {clock(ns)[:-3]}"


def short_names(files: Iterable[str]) -> dict[str, str]:
    """The end of each path that no other one of them has; cells of notebooks have names of their own.

    >>> short_names(["/a/train.py", "/b/model.py", "/c/model.py"])
    {'/a/train.py': 'train.py', '/b/model.py': 'b/model.py', '/c/model.py': 'c/model.py'}
    """
    every = list(dict.fromkeys(files))
    names = cell_names(every)
    parts = {file: file.replace("\\", "/").split("/") for file in every if file not in names}
    for count in range(1, max(map(len, parts.values()), default=0) + 1):
        ends = {file: "/".join(parts[file][-count:]) for file in parts if file not in names}
        often = Counter("/".join(one[-count:]) for one in parts.values())
        names |= {file: end for file, end in ends.items() if often[end] == 1}
    return {file: names.get(file, file) for file in every}


def class_of(rows: Iterable[Any]) -> str | None:
    """The class of the `self` of lookups or compiles of one place, if one alone is known: subclasses may share a method."""
    names = {getattr(row, "class_name", None) for row in rows} - {None}
    return names.pop() if len(names) == 1 else None


def function_name(*rows: Any) -> str | None:
    """``Net.forward``: the function of lookups, compiles or a symbol of one place, with its class where that is known."""
    name, function = class_of(rows), rows[0].function
    return function if name is None or function is None else f"{name}.{function}"


def place_text(function: str | None, file: str | None, line: int | None) -> str | None:
    """``forward (model.py:88)``; None if neither function nor file is known.

    >>> place_text("forward", "model.py", 88), place_text(None, "model.py", None), place_text("forward", None, 1)
    ('forward (model.py:88)', '? (model.py)', 'forward')
    """
    return function if file is None else f"{function or '?'} ({file}{'' if line is None else f':{line}'})"


def plural(count: int, one: str, many: str = "") -> str:
    """``1 lookup``, ``2,000 lookups``, ``2 misses``, ``2 entries``; `many` where it is not formed so."""
    regular = f"{one[:-1]}ies" if one.endswith("ry") else f"{one}{'es' if one.endswith('s') else 's'}"
    return f"{count:,} {one if count == 1 else many or regular}"


def listed(values: Iterable[object], most: int, between: str = ", ", others: int = 0) -> str:
    """``a, b and 3 more``.

    >>> listed([1, 2, 3], 2)
    '1, 2 and 1 more'
    """
    every = [str(value) for value in values]
    more = len(every[most:]) + others
    return between.join(every[:most]) + (f" and {more:,} more" if more else "")


def and_more(count: int, what: str = "", where: str = "") -> str:
    """``… and 3 more causes: --json lists all``: the line below the first of many.

    >>> and_more(3), and_more(1, "cause", "--json lists all")
    ('… and 3 more', '… and 1 more cause: --json lists all')
    """
    more = plural(count, f"more {what}") if what else f"{count:,} more"
    return f"… and {more}" + (f": {where}" if where else "")


def percent(share: float | None, unknown: str = "-") -> str:
    """Format a share for people; none and all are said only of none and all.

    >>> percent(0.125), percent(None)
    ('12 %', '-')
    >>> percent(0.001), percent(0.999), percent(1.0)
    ('<1 %', '>99 %', '100 %')
    """
    if share is None:
        return unknown
    text = f"{100 * share:.0f} %"
    if text == "0 %" and share > 0:
        return "<1 %"
    return ">99 %" if text == "100 %" and share < 1 else text


def clock(ns: int) -> str:
    """The time of day, to the second; UTC."""
    return f"{datetime.fromtimestamp(ns // 10**9, UTC):%H:%M:%S}"


def date(ns: int) -> str:
    """The day; UTC."""
    return f"{datetime.fromtimestamp(ns // 10**9, UTC):%Y-%m-%d}"


def clock_of(times: Iterable[int | None]) -> Callable[[int], str]:
    """What shows each of some moments: the time of day, with the day where they are of several.

    >>> [clock_of((0, last))(0) for last in (1, 10**15)]
    ['00:00:00', '1970-01-01 00:00:00']
    """
    is_one_day = len({date(ns) for ns in times if ns is not None}) < 2
    return clock if is_one_day else lambda ns: f"{date(ns)} {clock(ns)}"


def numbered(what: str, numbers: Sequence[int]) -> str:
    """Ranks or runs by their numbers, in order: ``rank 3``, ``ranks 0-3, 7``."""
    return f"{what}{'s' * (len(numbers) > 1)} {rank_names(numbers)}"


def rank_names(ranks: Sequence[int]) -> str:
    """Ranks, or other numbers, in order; consecutive ones as spans.

    >>> rank_names((0, 1, 2, 3, 7, 9, 10))
    '0-3, 7, 9-10'
    """
    spans: list[list[int]] = []
    for rank in ranks:
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    named = [str(first) if first == last else f"{first}-{last}" for first, last in spans]
    return listed(named, _SPANS)
