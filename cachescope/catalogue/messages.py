"""What vLLM and torch say of their caches in their logs, in the words of every release; the file is read on first use.

Made by tests/data/make_messages.py from their sources. A message of these files that is not in it is of a release that is not known, or was changed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

_FILE: Final = Path(__file__).parent / "messages.json"
_HOLE: Final = re.compile(r"%\.?\d*[srdif]")
# Of all values but these anything is a value.
_VALUES: Final = {"seconds": r"\d{1,9}\.\d{1,9}"} | dict.fromkeys(
    ("env", "cfg", "comp", "code"), r"\w{1,128}"
)


@dataclass(frozen=True, slots=True)
class KnownMessage:
    """One message: what it means, and the names of the values in it."""

    text: str
    means: str
    names: tuple[str, ...]
    pattern: re.Pattern[str]

    @property
    def is_open_ended(self) -> bool:
        """Whether nothing after its last value shows that a line of it is complete."""
        return _HOLE.match(self.text[-2:]) is not None


@cache
def messages(of: str) -> tuple[KnownMessage, ...]:
    """The messages of ``vllm`` or ``torch``."""
    rows = json.loads(_FILE.read_bytes())[of]["messages"]
    return tuple(_message(row["text"].rstrip(), *row["means"].split()) for row in rows)


@cache
def files(of: str) -> frozenset[str]:
    """The names of the files whose loggers write them, without folders."""
    rows = json.loads(_FILE.read_bytes())[of]["messages"]
    return frozenset(name.rpartition("/")[2] for row in rows for name in row["files"])


def _message(text: str, means: str = "", *names: str) -> KnownMessage:
    line, _, others = text.partition("\n")
    first, *rest = map(re.escape, _HOLE.split(line))
    pattern = first
    for name, after in zip(names or ["-"] * len(rest), rest, strict=True):
        value = _VALUES.get(name)
        named = "" if name == "-" else f"?P<{name}>"
        # What ends at the first of the words that follow cannot be tried anew.
        ended = f"(?>({named}.*?){after})" if after else f"({named}.*)"
        pattern += f"({named}{value}){after}" if value else ended
    # Each of the others may be a line of the log.
    if others:
        pattern += r"(?:\n.*)?"
    return KnownMessage(text, means, names, re.compile(pattern, re.DOTALL))
