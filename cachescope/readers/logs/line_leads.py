"""What stands before torch's prefix in a line: colours, stamps, and the names that launchers give to processes.

What is the same in all lines of a process names its stream, for two processes of one file may have one pid: docker
compose writes ``web-1  | ``, kubectl ``[pod/a/b] ``, srun ``0: ``, mpirun ``[1,0]<stderr>:``, torchrun ``[default0]:``, Ray
``(worker pid=7) `` and journald ``Nov 22 12:00:00 host python[1]: ``. What a program printed before torch wrote is no name.
"""

from __future__ import annotations

import re
from typing import Final

from cachescope.readers.logs.log_prefix import PREFIX

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
# Parts of a lead that are no part of a name.
_VARIES: Final = re.compile(
    rb"\xef\xbb\xbf|" + _COLOUR + rb"|" + _STAMP + rb"|std(?:out|err) [FP] |\[rank\d+\]:|\[ *\]|\( *\)"
)
# Leads that nothing but a launcher writes; one of other words may be what a program printed.
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
# A name is shorter; a progress bar that begins its line again and again is longer.
_LONGEST_NAME: Final = 1_000

Name = tuple[bytes, int | None]
"""What names a stream of lines, and the rank where torch tells one."""


def without_tail(text: bytes) -> bytes:
    """A text without the colour codes that end it."""
    if not text.endswith((b"m", b"K")):
        return text
    end = len(text)
    while (at := text.rfind(b"\x1b[", 0, end)) >= 0 and _ONE_COLOUR.fullmatch(text, at, end):
        end = at
    return text[:end]


def tells_no_rank(lead: bytes) -> bool:
    """Whether what stands before torch's prefix tells a rank that no process can have."""
    return _NO_RANK.search(lead) is not None


class Leads:
    """Finds torch's prefix in the lines of one log, and what the bytes before it name.

    Parameters
    ----------
    head : bytes
        The first bytes of the log: where most of torch's lines have something before them, whatever it is names a
        stream.
    is_named : bool, optional
        Whether they have, where that is known.
    """

    def __init__(self, head: bytes = b"", *, is_named: bool | None = None) -> None:
        self.is_named = _are_named(head) if is_named is None else is_named
        self._known: dict[bytes, Name] = {}

    def prefix_of(self, line: bytes) -> re.Match[bytes] | None:
        """Torch's prefix in a line; None where it has none."""
        if match := PREFIX.match(line):
            return match
        found = _TORCH.search(line)
        if found is None or not (
            self.is_named or found["place"] or _LAUNCHERS.fullmatch(line, 0, found.start())
        ):
            return None
        return PREFIX.match(line, found.start())

    def short_of(self, line: bytes) -> re.Match[bytes] | None:
        """The prefix of TORCH_LOGS_FORMAT=short in a line, behind what a launcher wrote at most."""
        found = _SHORT.search(line)
        if found is None or not (found.start() == 0 or _LAUNCHERS.fullmatch(line, 0, found.start())):
            return None
        return found

    def name(self, lead: bytes) -> Name:
        """What the bytes before a prefix name."""
        if not lead:
            return b"", None
        known = self._known.get(lead)
        if known is None:
            rank = _RANK.search(lead)
            is_name = self.is_named or _LAUNCHERS.fullmatch(lead)
            known = (_name(lead) if is_name else b"", int(rank[1]) if rank else None)
            # Those with a time in them are all different.
            if len(self._known) < _MOST_REMEMBERED and len(lead) <= _LONGEST_NAME:
                self._known[lead] = known
        return known


def _name(lead: bytes) -> bytes:
    # A progress bar that begins its line again stands behind the name.
    return b" ".join(_VARIES.sub(b"", lead.partition(b"\r")[0][:_LONGEST_NAME]).split())


def _are_named(head: bytes) -> bool:
    leads = [
        head[head.rfind(b"\n", 0, at) + 1 : at] for at in (found.start() for found in _TORCH.finditer(head))
    ]
    named = [name for lead in leads if (name := _name(lead))]
    # What is different in every line names none of them.
    return 2 * len(named) > len(leads) and 2 * len(set(named)) <= len(named) + 1
