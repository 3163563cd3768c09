r"""Logs of any size made from a real recording, a trace and a text log of the same lookups.

The recording `tour` (torch 2.13.0, six processes, 48 lookups; a text log per process beside its trace) is
written over and over into one log, with every record torch wrote, in torch's order and proportions. Each pass
over the six processes is a *round*. What varies, so that no two rounds are trivially equal:

- the pid (one for the whole file) and the time of every record (each round begins where the last one ended),
  the times since the epoch inside events, and the compile ids, which go on counting;
- every cache key and every name of generated code, by round; the same key twice in a round stays the same
  key, so that a hit stays the hit of its miss and a changed field stays the one that changed;
- the hashes and texts of what differs from graph to graph (`gm`, `example_inputs`, `aot_config`, `constants`)
  by round, and of 32 of the 603 settings as well: another process with other settings;
- the names of kernels in the generated code, by round;
- the checksums of payloads, which hold (torch's `has_payload`).

What does not vary: the order and the sizes of records, the other 571 settings, and the flow of the program.
Equal arguments give equal bytes. Nothing is kept in memory but the recording.
"""

import hashlib
import re
from base64 import b32encode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, pairwise
from pathlib import Path
from typing import BinaryIO

FIRST_PID = 40_000
_ROUND_S = 120
_GRAPHS_A_ROUND = 100
_GRAPHS_A_PART = 10
_VARIED_SETTINGS = 32
_VARIED_FIELDS = (b"gm", b"example_inputs", b"aot_config", b"constants")

_SLOT = re.compile(
    rb"(?:(?<=\n)|^)(?P<level>[VIWEC])(?P<day>\d{4}) (?P<clock>\d\d:\d\d:\d\d\.\d{6}) (?P<pid>\d+) "
    rb"|\[(?P<hash>[a-z2-7]{51})\] (?P<field>[A-Za-z_]\w*)(?P<key>(?:\[.*?\])?): "
    rb"|(?P<name>\b[afc][a-z2-7]{51}\b)"
    rb'|"frame_id": (?P<frame>\d+)'
    rb'|(?P<id_lead>"compile_id": "|\] \[)(?P<id_frame>\d+)(?=/\d)'
    rb'|(?P<time_lead>"ts": |"cache_event_time": |"start_time_us": |"end_time_us": |"start_time": )(?P<epoch>\d{10,19})'
    rb"|(?P<kernel>\bcpp_fused)(?=_)"
)
_RECORD_END = re.compile(rb"\n(?![\t\n]|\Z)")
_CHECKSUM = b'"has_payload": "'


@dataclass(frozen=True, slots=True)
class _Round:
    """What one pass over the recording puts in the slots."""

    seed: bytes
    number: int
    pid: int
    first_graph: int

    def base32(self, what: bytes, length: int) -> bytes:
        digest = hashlib.sha256(b"%s/%d/%s" % (self.seed, self.number, what)).digest()
        return b32encode(digest)[:length].lower()


class MadeLog:
    """Writes one kind of log of the recording, as often as it takes to reach a size."""

    def __init__(self, sources: Iterable[Path], seed: int = 0) -> None:
        self._seed = b"%d" % seed
        # By time: the files of a trace have names of chance, those of text logs do not.
        self._parts = sorted((_Part(path.read_bytes()) for path in sources), key=lambda part: part.began)

    def pieces(self, pid: int = FIRST_PID) -> Iterator[bytes]:
        """The log without an end: one piece is one recorded process of one round."""
        number = 0
        while True:
            for order, part in enumerate(self._parts):
                first_graph = _GRAPHS_A_ROUND * number + _GRAPHS_A_PART * order
                yield part.filled(_Round(self._seed, number, pid, first_graph))
            number += 1

    def write(self, out: BinaryIO, least_bytes: int, pid: int = FIRST_PID) -> int:
        """Write whole recorded processes until the log has this size; how many they are."""
        written = 0
        for count, piece in enumerate(self.pieces(pid)):
            if written >= least_bytes:
                return count
            written += out.write(piece)
        raise AssertionError("unreachable")

    def write_processes(self, out: BinaryIO, count: int, pid: int = FIRST_PID) -> None:
        """Write this many recorded processes: the same number in a trace and a text log is the same run."""
        for piece in islice(self.pieces(pid), count):
            out.write(piece)


@dataclass(frozen=True, slots=True)
class _Record:
    """The bytes of a record, every second piece of them a place to fill, and what fills it."""

    pieces: list[bytes]
    slots: list[int]
    has_checksum: bool

    def filled(self, texts: list[bytes]) -> bytes:
        self.pieces[1::2] = map(texts.__getitem__, self.slots)
        record = b"".join(self.pieces)
        if not self.has_checksum:
            return record
        line_end = record.index(b"\n")
        payload = record[line_end + 2 : -1].replace(b"\n\t", b"\n")
        digest = hashlib.md5(payload, usedforsecurity=False).hexdigest().encode()
        at = record.rindex(_CHECKSUM, 0, line_end) + len(_CHECKSUM)
        return record[:at] + digest + record[at + len(digest) :]


class _Part:
    """One recorded process, cut into what stays and what varies."""

    def __init__(self, data: bytes) -> None:
        if not data.endswith(b"\n"):
            data += b"\n"
        settings = sorted(set(re.findall(rb"\] inductor_config(\[.*?\]): ", data)))
        self._varied = set(settings[:: max(len(settings) // _VARIED_SETTINGS, 1)][:_VARIED_SETTINGS])
        self._slots: dict[bytes, re.Match[bytes]] = {}
        self._numbers: dict[bytes, int] = {}
        cuts = [0, *(match.end() for match in _RECORD_END.finditer(data)), len(data)]
        self._records = [self._cut(data[begin:end]) for begin, end in pairwise(cuts)]
        self.began = _moment(next(iter(self._slots.values())))

    def _cut(self, record: bytes) -> _Record:
        pieces: list[bytes] = []
        slots: list[int] = []
        at = 0
        for slot in _SLOT.finditer(record):
            if slot["field"] and slot["field"] not in _VARIED_FIELDS and slot["key"] not in self._varied:
                continue
            self._slots.setdefault(slot[0], slot)
            pieces += [record[at : slot.start()], b""]
            slots.append(self._numbers.setdefault(slot[0], len(self._numbers)))
            at = slot.end()
        pieces.append(record[at:])
        return _Record(pieces, slots, _CHECKSUM in record[: record.find(b"\n")])

    def filled(self, round_: _Round) -> bytes:
        texts = [self._filled_slot(slot, round_) for slot in self._slots.values()]
        return b"".join([record.filled(texts) for record in self._records])

    def _filled_slot(self, slot: re.Match[bytes], round_: _Round) -> bytes:
        if slot["clock"]:
            moment = _moment(slot) + timedelta(seconds=_ROUND_S * round_.number)
            return b"%s%s %d " % (slot["level"], moment.strftime("%m%d %H:%M:%S.%f").encode(), round_.pid)
        if slot["field"]:
            digest = round_.base32(slot["hash"], 51)
            mark = b"" if slot["field"] in _VARIED_FIELDS[1:2] else b"r%d " % round_.number
            return b"[%s] %s%s: %s" % (digest, slot["field"], slot["key"], mark)
        if name := slot["name"]:
            return name[:1] + round_.base32(name, 51)
        if slot["frame"]:
            return b'"frame_id": %d' % (int(slot["frame"]) + round_.first_graph)
        if slot["id_frame"]:
            return slot["id_lead"] + b"%d" % (int(slot["id_frame"]) + round_.first_graph)
        if epoch := slot["epoch"]:
            # Seconds, microseconds or nanoseconds, which the number of digits tells.
            later = _ROUND_S * round_.number * 10 ** (len(epoch) - 10)
            return slot["time_lead"] + b"%d" % (int(epoch) + later)
        return b"%s_r%d" % (slot["kernel"], round_.number)


def _moment(slot: re.Match[bytes]) -> datetime:
    # The prefix has no year; one that has a 29 February knows all days.
    return datetime.strptime(f"2024{slot['day'].decode()} {slot['clock'].decode()}", "%Y%m%d %H:%M:%S.%f")
