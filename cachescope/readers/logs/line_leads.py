"""What precedes torch's prefix in a line: colours, stamps, and the names that launchers give to processes.

Two processes in one file may share a pid, so the part that all lines of a process have in common names its stream: docker
compose writes ``web-1  | ``, kubectl ``[pod/a/b] ``, srun ``0: ``, mpirun ``[1,0]<stderr>:``, torchrun ``[default0]:``, Ray
``(worker pid=7) `` and journald ``Nov 22 12:00:00 host python[1]: ``. Text that a program printed is no name.
"""

from __future__ import annotations

import re
from typing import Final

from cachescope.readers.logs.log_prefix import PREFIX

# The beginning of a prefix, up to its pid.
_MOMENT: Final = re.compile(rb"[VIWEC]\d{4} \d\d:\d\d:\d\d\.\d{6} \d+ ")
_TORCH: Final = re.compile(rb"[VIWEC]\d{4} \d\d:\d\d:\d\d\.\d{6} \d+ (?P<place>torch/)?")
# torch/_logging/_internal.py, `DEFAULT_FORMATTER`: logging's own format, without a time or a process.
_SHORT: Final = re.compile(rb"(?P<level>DEBUG|INFO|WARNING|ERROR):(?P<place>torch[\w.]*):")
_NO_RANK: Final = re.compile(rb"\[rank\d{10,}\]:")
_RANK: Final = re.compile(rb"\[rank(\d{1,9})\]:")
_COLOUR: Final = rb"\x1b\[[0-9;]*[A-Za-z]"
_STAMP: Final = (
    rb"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?"
    rb"|(?:[A-Z][a-z]{2} )?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?(?: \d{4})?"
    rb"|\d\d:\d\d:\d\d(?:[.,]\d+)?|(?<!\d)\d++\.\d++"
)
# Parts of a lead that do not belong to a name.
_VARIES: Final = re.compile(
    rb"\xef\xbb\xbf|" + _COLOUR + rb"|" + _STAMP + rb"|std(?:out|err) [FP] |\[rank\d+\]:|\[ *\]|\( *\)"
)
# Leads that only a launcher writes; any other text may be a program's output.
_LAUNCHERS: Final = re.compile(
    rb"(?:" + _COLOUR + rb"|" + _STAMP + rb"|\xef\xbb\xbf|\s++|std(?:out|err) [FP] "
    rb"|\[[\w./:,@-]*+\](?:<std(?:out|err)>)?:?"
    rb"|\(\w++ pid=\d++(?:, ip=[\d.:a-f]+)?\)"
    rb"|[\w.-]++ ++\||\d++:"
    rb"|[\w.-]++ [\w./@-]++\[\d++\]:"
    rb")*"
)
_ONE_COLOUR: Final = re.compile(_COLOUR)
_MOST_REMEMBERED: Final = 4096
# Names are shorter; a progress bar that redraws its line is longer.
_LONGEST_NAME: Final = 1_000

Name = tuple[bytes, int | None]
"""The name of a stream of lines, and the rank if torch printed one."""


def without_tail(text: bytes) -> bytes:
    """The text without trailing colour codes."""
    if not text.endswith((b"m", b"K")):
        return text
    end = len(text)
    while (at := text.rfind(b"\x1b[", 0, end)) >= 0 and _ONE_COLOUR.fullmatch(text, at, end):
        end = at
    return text[:end]


def tells_no_rank(lead: bytes) -> bool:
    """Whether the text before torch's prefix contains a rank that no process can have."""
    return _NO_RANK.search(lead) is not None


class Leads:
    """Finds torch's prefix in the lines of one log, and the stream that the bytes before it name.

    Parameters
    ----------
    head : bytes
        The first bytes of the log. If most of torch's lines there have a text before the prefix, any such text names
        a stream.
    is_named : bool, optional
        Whether any text before the prefix names a stream, if that is known already.
    """

    def __init__(self, head: bytes = b"", *, is_named: bool | None = None) -> None:
        self.is_named = _are_named(head) if is_named is None else is_named
        self._known: dict[bytes, Name] = {}

    def prefix_of(self, line: bytes) -> re.Match[bytes] | None:
        """Torch's prefix in a line; None if it has none."""
        prefix = self._first_prefix_of(line)
        if prefix is None or not (inner := list(_MOMENT.finditer(line, *prefix.span("place")))):
            return prefix
        # Another process wrote before this line was complete. The message is that process's; only its lead could name its stream.
        return None if self.is_named or prefix.start() else PREFIX.match(line, inner[-1].start())

    def _first_prefix_of(self, line: bytes) -> re.Match[bytes] | None:
        if match := PREFIX.match(line):
            return match
        found = _TORCH.search(line)
        if found is None or not (
            self.is_named or found["place"] or _LAUNCHERS.fullmatch(line, 0, found.start())
        ):
            return None
        return PREFIX.match(line, found.start())

    def short_of(self, line: bytes) -> re.Match[bytes] | None:
        """The prefix of TORCH_LOGS_FORMAT=short in a line; only a launcher's text may precede it."""
        found = _SHORT.search(line)
        if found is None or not _LAUNCHERS.fullmatch(line, 0, found.start()):
            return None
        return found

    def name(self, lead: bytes) -> Name:
        """The name and rank that the bytes before a prefix give."""
        if not lead:
            return b"", None
        known = self._known.get(lead)
        if known is None:
            rank = _RANK.search(lead)
            is_name = self.is_named or _LAUNCHERS.fullmatch(lead)
            known = (_name(lead) if is_name else b"", int(rank[1]) if rank else None)
            # Leads that contain a time are all different.
            if len(self._known) < _MOST_REMEMBERED and len(lead) <= _LONGEST_NAME:
                self._known[lead] = known
        return known


def _name(lead: bytes) -> bytes:
    # A progress bar that redraws its line comes after the name.
    return b" ".join(_VARIES.sub(b"", lead.partition(b"\r")[0][:_LONGEST_NAME]).split())


def _are_named(head: bytes) -> bool:
    leads = [
        head[head.rfind(b"\n", 0, at) + 1 : at] for at in (found.start() for found in _TORCH.finditer(head))
    ]
    named = [name for lead in leads if (name := _name(lead))]
    # A text that differs from line to line is no name.
    return 2 * len(named) > len(leads) and 2 * len(set(named)) <= len(named) + 1
