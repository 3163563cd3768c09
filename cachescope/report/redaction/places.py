"""Paths and addresses: hidden as wholes, except for the part after the place that is torch's own."""

from __future__ import annotations

import re
from typing import Final

from cachescope.report.redaction.forms import is_arithmetic, is_harmless, is_torch_hash
from cachescope.report.redaction.stand_ins import StandIns
from cachescope.report.redaction.vocabulary import Vocabulary

# cachescope/readers/directory/places.py: the folders of a cache directory whose names torch gives.
_FOLDERS: Final = frozenset({"fxgraph", "aotautograd", "triton", "locks"})
_PREFIX: Final = re.compile(r"[a-z2-7]{2}")
_LINE: Final = re.compile(r"(?::\d{1,7}){1,2}$")
_OPTION: Final = re.compile(r"-[A-Za-z](?=[/\\~])|\w[\w.-]+:(?=[/\\~])")
_SEPARATOR: Final = re.compile(r"[/\\]")


def is_place(run: str) -> bool:
    """Whether a text has the form of a path or an address."""
    return _SEPARATOR.search(run) is not None


def hidden_place(text: str, known: Vocabulary, stand_ins: StandIns) -> str:
    """A path with a stand-in for every part that is not torch's.

    Parameters
    ----------
    text : str
        The path as it occurs in a text: a line number may follow it, an option or a name may precede it.
    known : Vocabulary
    stand_ins : StandIns
    """
    if is_arithmetic(text) or text in known.files:
        return text
    before = after = ""
    if (match := _OPTION.match(text)) and is_harmless(match[0].strip(":-"), known):
        before, text = match[0], text[match.end() :]
    if match := _LINE.search(text):
        text, after = text[: match.start()], match[0]
    if text in known.files:
        return before + text + after
    place, tail = _parted(text, known)
    if not place:
        return before + tail + after
    return before + stand_ins.of("path", place) + tail + after


def _parted(path: str, known: Vocabulary) -> tuple[str, str]:
    """Split a path into the place and the part below it that torch names."""
    at = path.rfind("/torch/")
    if at >= 0 and path[at + 1 :] in known.files:
        return path[:at], path[at:]
    stripped = path.rstrip("/")
    segments = stripped.split("/")
    first = len(segments)
    for at in range(len(segments) - 1, 0, -1):
        below = segments[at + 1] if at + 1 < len(segments) else ""
        if not _is_torchs(segments[at], below, known):
            break
        first = at
    tail = "".join(f"/{segment}" for segment in segments[first:])
    return "/".join(segments[:first]), tail + path[len(stripped) :]


def _is_torchs(segment: str, below: str, known: Vocabulary) -> bool:
    stem, _, ending = segment.partition(".")
    if segment in _FOLDERS or is_torch_hash(stem):
        return segment in _FOLDERS or not ending or is_harmless(segment, known)
    if segment.isdigit() and len(segment) <= 2 and below:
        return True
    if _PREFIX.fullmatch(segment):
        return is_torch_hash(below.partition(".")[0])
    return bool(ending) and "fused" in stem and is_harmless(segment, known)
