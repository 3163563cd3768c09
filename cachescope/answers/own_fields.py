"""What keys hold beside graph and inputs: the fields of the processes that made them, each distinct set once."""

from __future__ import annotations

from typing import Final

from cachescope.components import parse_component
from cachescope.details import HashDetails
from cachescope.keys.key_fields import is_of_the_program
from cachescope.locking.lock import KeyField

_LONGEST: Final = 200
# Their text is compared by its parts.
_WHOLE: Final = "system_info["
_LONGEST_WHOLE: Final = 100_000


class OwnFields:
    """Contexts of processes, numbered in the order in which they were first asked for."""

    def __init__(self) -> None:
        self.found: list[dict[str, KeyField]] = []
        self._numbers: dict[frozenset[tuple[str, str]], int] = {}
        # The same set, or the same fields of one store, are asked for again and again.
        self._of_set: dict[tuple[int, int], int | None] = {}
        self._of_codes: dict[tuple[int, tuple[int, ...]], int | None] = {}

    def number(self, details: HashDetails, detail_set: int) -> int | None:
        """The number of the context in the hash details of a key; None if these hold nothing of a process."""
        memo_key = id(details), detail_set
        if memo_key not in self._of_set:
            fields = details.field_codes
            own = tuple(
                code
                for code in details.sets[detail_set]
                if not is_of_the_program(details.fields[fields[code]])
            )
            known = id(details), own
            if known not in self._of_codes:
                self._of_codes[known] = self._number([details.components[code] for code in own])
            self._of_set[memo_key] = self._of_codes[known]
        return self._of_set[memo_key]

    def _number(self, components: list[str]) -> int | None:
        parsed = [detail for text in components if (detail := parse_component(text)) is not None]
        hashes = frozenset((detail.field, detail.detail_hash) for detail in parsed)
        if not hashes:
            return None
        if hashes not in self._numbers:
            self._numbers[hashes] = len(self.found)
            self.found.append(
                {one.field: KeyField(one.detail_hash, _text(one.field, one.value_text)) for one in parsed}
            )
        return self._numbers[hashes]


def _text(field: str, text: str) -> str | None:
    """The beginning of a value's text; None of bytes, such as torch's own key."""
    if not text.isprintable() or "\ufffd" in text:
        return None
    if field.startswith(_WHOLE):
        return text if len(text) <= _LONGEST_WHOLE else None
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
