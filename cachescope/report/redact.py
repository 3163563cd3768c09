"""Makes values safe to share: everything that is not known to be harmless is hidden.

Known to be harmless are cachescope's own words, torch's (the names of its options, operators and functions), numbers,
versions, times, models of devices, and the keys and hashes that torch makes. The rest becomes a stand-in, whatever it
looks like; equal texts get equal ones.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from cachescope.report.redaction.forms import is_torch_hash, may_be_torch_hash
from cachescope.report.redaction.texts import Texts
from cachescope.report.redaction.vocabulary import KEYS, NUMBERS_HIDDEN, WHOLE, vocabulary


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
        if column in KEYS:
            return self._texts.hidden_whole("key", text)
        return self._texts.hidden(text)
