"""Logs within JSON: what cells of a notebook printed, and messages as cloud logging exports them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import IO, Any, Final

from cachescope.readers.json_record import load_json

# torch/_logging/_internal.py, `TorchLogsFormatter`.
_PREFIX: Final = r"[VIWEC]\d{4} \d\d:\d\d:\d\d\.\d{6} \d+ "
_TORCH_LINE: Final = re.compile(_PREFIX)
DOCUMENT: Final = re.compile(
    rb'\s*(?:\{\s*"cells":|[\[{](?=.{0,4000}?"[^"\n]{0,99}' + _PREFIX.encode() + rb"))", re.DOTALL
)
_MOST_BYTES: Final = 64 << 20
_DEEPEST: Final = 8
"""In so many objects within each other a message stands at most."""

# nbformat splits what was printed by `str.splitlines`, which ends lines at these as well.
_LINE_ENDS: Final = tuple("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")

Text = tuple[tuple[str, ...], str]
"""A text, and the names of the objects that it is in."""


def lines_of_texts(stream: IO[bytes]) -> Iterator[bytes]:
    """The texts that stand where most of torch's lines do, in their order; everything as it is where none does."""
    data = stream.read(_MOST_BYTES)
    whole = None if len(data) == _MOST_BYTES else _value(data)
    # One value, or one in each line.
    values = map(_value, data.removesuffix(b"\n").split(b"\n")) if isinstance(whole, str) else [whole]
    texts = [one for value in values for one in _texts(value)]
    places = Counter(place for place, text in texts if _TORCH_LINE.search(text))
    logged = max(places, key=places.__getitem__, default=())
    if not logged:
        yield data
        while more := stream.read(_MOST_BYTES):
            yield more
        return
    for place, text in texts:
        if place in (logged, ()):
            yield (text if text.endswith(_LINE_ENDS) else f"{text}\n").encode("utf-8", "replace")


def _value(data: bytes) -> Any:
    """What stands there as JSON; what is none is a text."""
    try:
        return load_json(data)
    except ValueError:
        return data.decode("utf-8", "replace")


def _texts(value: Any) -> Iterator[Text]:
    """The texts in a value, in their order."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), value)]
    while waiting:
        place, one = waiting.pop()
        if isinstance(one, str):
            yield place, one
        elif isinstance(one, dict) and len(place) < _DEEPEST:
            waiting += [((*place, name), inner) for name, inner in reversed(one.items())]
        elif isinstance(one, list):
            waiting += [(place, inner) for inner in reversed(one)]
