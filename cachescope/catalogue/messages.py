"""What vLLM and torch say of their caches in their logs, in the words of every release; the file is read on first use.

Made by tests/data/make_messages.py from their sources. A message of these files that is not in it is of a release that is not known, or was changed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from cachescope.catalogue.facts import document

_HOLE: Final = re.compile(r"%\.?\d*[srdif]")
# What a value of these names looks like; one of any other name may be any text.
_HASH: Final = r"\w{1,128}"
_VALUES: Final = {"seconds": r"\d{1,9}\.\d{1,9}", "env": _HASH, "cfg": _HASH, "comp": _HASH, "code": _HASH}


@dataclass(frozen=True, slots=True)
class KnownMessage:
    """One message, and what it means."""

    text: str
    means: str
    pattern: re.Pattern[str]
    is_open_ended: bool  # whether nothing after its last value shows that a line of it is complete


@cache
def messages(of: str) -> tuple[KnownMessage, ...]:
    """The messages of ``vllm`` or ``torch``."""
    return tuple(_message(row["text"].rstrip(), *row["means"].split()) for row in _rows(of))


@cache
def files(of: str) -> frozenset[str]:
    """The files whose loggers write them."""
    return frozenset(name for row in _rows(of) for name in row["files"])


def _rows(of: str) -> Any:
    return document("messages.json")[of]["messages"]


def _message(text: str, means: str = "", *names: str) -> KnownMessage:
    line, _, others = text.partition("\n")
    pattern, *rest = map(re.escape, _HOLE.split(line))
    for name, after in zip(names or ["-"] * len(rest), rest, strict=True):
        value, named = _VALUES.get(name), "" if name == "-" else f"?P<{name}>"
        if name == "seconds":
            after = after.replace("\\ ", "\\ ?", 1)  # where it was pasted, the blank may be lost
        # Any text ends at the first place where the words after it stand: no other place is tried.
        ended = f"(?>({named}.*?){after})" if after else f"({named}.*)"
        pattern += f"({named}{value}){after}" if value else ended
    # The later lines of a message may stand in the log as lines of their own.
    pattern += r"(?:\n.*)?" if others else ""
    return KnownMessage(text, means, re.compile(pattern, re.DOTALL), pattern.endswith(".*)"))
