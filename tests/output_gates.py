"""What no output may hold, told by rules of its own: those of the runners' sources and of Unicode, not cachescope's."""

import json
import re
import unicodedata
from typing import Any

import orjson

_CSI = re.compile(r"\x1b\[[0-9;]*m")
# Printable by Python's account and seen by nobody: Unicode's DerivedCoreProperties.txt, Default_Ignorable_Code_Point.
_IGNORABLE = {0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x3164, 0xFFA0}
_IGNORABLE |= {*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}
_COMMANDS = {
    # actions/runner, ActionCommand.cs: `TryParseV2` after TrimStart, `TryParse` anywhere in the line.
    "GitHub": re.compile(r"^\s*::.*?::"),
    "GitHub, first version": re.compile(r"##\[[^\]]*\]"),
    # microsoft/azure-pipelines-agent, Command.cs, `TryParse`: anywhere; and the formats of its log view.
    "Azure": re.compile(r"##vso\[", re.IGNORECASE),
    "Azure, formats": re.compile(r"^\s*##\[", re.IGNORECASE),
    # gitlab lib/gitlab/ci/ansi2json: followed by \r\e[0K, which is left out here, to be sure.
    "GitLab": re.compile(r"section_(?:start|end):"),
    "TeamCity": re.compile(r"##teamcity\["),
    "Buildkite": re.compile(r"^\s*(?:---|\+\+\+|~~~)(?:\s|$)|^\s*\^\^\^\s+\+\+\+"),
    "Travis": re.compile(r"travis_(?:fold|time):"),
}


def commands_in(text: str, meant: re.Pattern[str] | None = None) -> list[str]:
    """What some runner would obey in a log, but for what is meant to be."""
    return [
        f"{system}: {line[:120]!r}"
        # Whatever any runner may take for the end of a line: \r, form feeds, NEL, U+2028 among them.
        for line in text.splitlines()
        for system, command in _COMMANDS.items()
        if command.search(line) and not (meant and meant.match(line))
    ]


def unseen_in(text: str, *, coloured: bool = False) -> list[str]:
    """The characters that steer a terminal or are not seen on one; colours apart, where they are asked for."""
    shown = _CSI.sub("", text) if coloured else text
    return sorted({hex(ord(c)) for c in set(shown) if c not in "\n\t" and _is_unseen(c)})


def _is_unseen(character: str) -> bool:
    is_acting = unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
    return is_acting or ord(character) in _IGNORABLE


def strict_json(text: str) -> Any:
    """The value, of a text that two parsers read, one of them strict in Unicode and in numbers."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    value = json.loads(text, parse_constant=refuse)
    orjson.loads(text.encode("utf-8"))
    return value


def acting_in(text: str, *, coloured: bool = False, meant: re.Pattern[str] | None = None) -> list[str]:
    """Everything in an output that acts; empty where nothing does."""
    too_long = [f"a line of {len(line)}" for line in text.split("\n") if len(line) > 25_000]
    return [*unseen_in(text, coloured=coloured), *commands_in(text, meant), *too_long]
