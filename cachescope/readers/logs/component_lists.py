"""The components of traces and of text logs, read by comparing bytes: nearly all of a list equals the list before.

A list is kept as *stretches*: the bytes of up to 32 components together with their codes. The next list is
compared with them. A stretch found again costs one comparison of memory; only the bytes between stretches
are split at ``", "``, looked up and, if new, decoded. If the bytes between two such cuts form a JSON string in
quotes, they are one element of the list. If any do not, the reader declines and the JSON parser decides.

A line that is known as a whole component is looked up, not parsed. Unknown lines are joined in the same way as
`cachescope.details.join_components` does it.
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass
from typing import Final

from cachescope.details import HashDetails
from cachescope.json_types import JsonObject
from cachescope.readers.json_record import strict_json
from cachescope.terms import HASH

_LIST_START: Final = b'"components": ["'
_BETWEEN: Final = b'", "'
_END: Final = b'"]'
_STRETCH: Final = 32
# How many stretches may be new before the rest of a list counts as new.
_LOOK_AHEAD: Final = 4
_MOST_KNOWN: Final = 1 << 16
# Replaces the list while the rest of an artifact is parsed. If it comes back, the list was the artifact's own.
_ELSEWHERE: Final = "read apart"

_LINE_START: Final = re.compile(rf"\[{HASH}\] ".encode())


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Consecutive components: their bytes with the end mark of the last one, the first component, and their codes."""

    text: bytes
    first: bytes
    codes: bytes


class ComponentLists:
    """Reads the components of one artifact after another into a store of hash details."""

    def __init__(self, store: HashDetails, known: dict[bytes, int]) -> None:
        self._store = store
        self._known = known
        self._stretches: dict[str, list[_Stretch]] = {}

    def read(self, cache: str, payload: bytes) -> tuple[JsonObject, int] | None:
        """The payload without its components, and the code of their set; None if it needs the JSON parser."""
        start = payload.find(_LIST_START) + len(_LIST_START)
        if start < len(_LIST_START):
            return None
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        cut = self._cut(payload, start, self._stretches.get(cache, []))
        if cut is None:
            return None
        parts, end = cut
        try:
            loaded = strict_json(payload[:start] + _ELSEWHERE.encode() + payload[end - len(_END) :])
            texts = self._decoded(parts)
        except ValueError:
            return None
        if (
            not isinstance(loaded, dict)
            or loaded.pop("components", None) != [_ELSEWHERE]
            or not self._learn(texts)
        ):
            return None
        stretches: list[_Stretch] = []
        for part in parts:
            stretches += (
                [part] if isinstance(part, _Stretch) else self._new_stretches(part, part is parts[-1])
            )
        self._stretches[cache] = stretches
        return loaded, self._store.add_codes(b"".join([stretch.codes for stretch in stretches]))

    def _cut(
        self, payload: bytes, at: int, stretches: list[_Stretch]
    ) -> tuple[list[_Stretch | list[bytes]], int] | None:
        """The stretches found again with the components between them, and the offset where the list ends."""
        parts: list[_Stretch | list[bytes]] = []
        number = 0
        while True:
            while number < len(stretches) and payload.startswith(stretches[number].text, at):
                parts.append(stretches[number])
                at += len(stretches[number].text)
                number += 1
            if parts and payload.startswith(_END, at - len(_END)):
                return parts, at
            for ahead in range(number + 1, min(number + 1 + _LOOK_AHEAD, len(stretches))):
                found = payload.find(_BETWEEN + stretches[ahead].first, at)
                if found >= 0:
                    parts.append(payload[at:found].split(_BETWEEN))
                    at, number = found + len(_BETWEEN), ahead
                    break
            else:
                end = payload.find(_END, at)
                parts.append(payload[at:end].split(_BETWEEN))
                return None if end < 0 else (parts, end + len(_END))

    def _decoded(self, parts: list[_Stretch | list[bytes]]) -> dict[bytes, str]:
        known = self._known
        return {
            piece: strict_json(b'"%b"' % piece)
            for part in parts
            if isinstance(part, list)
            for piece in part
            if piece not in known
        }

    def _learn(self, texts: dict[bytes, str]) -> bool:
        """Store new components; return False if one is no hash detail."""
        for piece, text in texts.items():
            code = self._store.add_component(text)
            if code is None:
                return False
            self._known[piece] = code
        return True

    def _new_stretches(self, pieces: list[bytes], is_last: bool) -> list[_Stretch]:
        stretches = []
        for at in range(0, len(pieces), _STRETCH):
            some = pieces[at : at + _STRETCH]
            ends = _END if is_last and at + _STRETCH >= len(pieces) else _BETWEEN
            codes = array("i", [self._known[piece] for piece in some]).tobytes()
            stretches.append(_Stretch(_BETWEEN.join(some) + ends, some[0] + _BETWEEN, codes))
        return stretches


def begins_component(line: bytes) -> bool:
    """Whether a line begins with the hash of a component."""
    return _LINE_START.match(line) is not None


class ComponentLines:
    """Reads the lines of one key after another into a store of hash details."""

    def __init__(self, store: HashDetails, known: dict[bytes, int]) -> None:
        self._store = store
        self.known = known

    def read(self, lines: list[bytes]) -> int | None:
        """The code of the set of components; None if a line belongs to no component, or if there are no lines."""
        if len(self.known) > _MOST_KNOWN:
            self.known.clear()
        codes = list(map(self.known.get, lines))
        new = [at for at, code in enumerate(codes) if code is None]
        done = 0
        found: list[int | None] = []
        number = 0
        while number < len(new):
            # A line that begins no component continues the line before, which was only the start of a component.
            first = new[number] if begins_component(lines[new[number]]) else new[number] - 1
            end = new[number] + 1
            number += 1
            while number < len(new) and new[number] == end and not begins_component(lines[end]):
                end += 1
                number += 1
            if first < done:
                return None
            code = self._code(lines[first:end])
            if code is None:
                return None
            found += codes[done:first]
            found.append(code)
            done = end
        found += codes[done:]
        return (
            self._store.add_codes(array("i", [code for code in found if code is not None]).tobytes())
            if found
            else None
        )

    def _code(self, lines: list[bytes]) -> int | None:
        text = b"\n".join(lines)
        code = self.known.get(text)
        if code is None:
            code = self._store.add_component("\n".join([line.decode("utf-8", "replace") for line in lines]))
            if code is not None:
                self.known[text] = code
        return code
