"""The components of text logs, one or more lines each: nearly all lines of a message equal the message before.

A line that is known as a whole component is looked up, not parsed. Unknown lines are joined in the same way as
`cachescope.details.join_components` does it.
"""

from __future__ import annotations

import re
from array import array
from typing import Final

from cachescope.details import HashDetails
from cachescope.terms import HASH

_START: Final = re.compile(rf"\[{HASH}\] ".encode())
_MOST_KNOWN: Final = 1 << 16


def begins_component(line: bytes) -> bool:
    """Whether a line begins with the hash of a component."""
    return _START.match(line) is not None


class ComponentLines:
    """Reads the lines of one key after another into a store of hash details.

    Parameters
    ----------
    store : HashDetails
    known : dict
        Codes of components by their bytes, whether they span one line or several. Earlier logs share it.
    """

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
