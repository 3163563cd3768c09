"""Which kind of process-specific value two texts are that are in the same place of two printed values.

A kind is named only on positive evidence: what the logs say about both processes, the form of the text (a path, a date, the
address of an object), or the name in front of the value. A name alone makes it apparent, not certain: a matrix has a rank too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from cachescope.frames.recorded_rows import RunRow

Kind = Literal["rank", "host", "path", "port", "time", "address", "pid", "random number", "bundle index"]

_DAY_NS: Final = 86_400 * 10**9
_INTEGER: Final = re.compile(r"\d{1,20}")
_RANK_NAME: Final = re.compile(
    r"(?:(?:global|world|local|node|group|d?[dtpesc]p|(?:data|tensor|pipeline|expert|context|sequence)_parallel)_)?rank(?:_id)?"
    r"|(?:ompi_comm_world|pmi|pmix)_rank|slurm_procid|process_index"
)
# Of these there is one for each process of a job.
_GLOBAL_RANKS: Final = frozenset({"rank", "rank_id", "global_rank", "world_rank"})
# Not of a group is -1.
_RANK: Final = re.compile(r"-1|\d{1,6}")
_PID_NAME: Final = re.compile(r"(?:.*_)?p?pid|process_id")
_PORT_NAME: Final = re.compile(r"(?:.*_)?port")
_HOST_NAME: Final = re.compile(
    r"(?:.*_)?(?:host_?name|node_?name|pod_?name|machine_name)|master_addr(?:ess)?"
)
_HOST: Final = re.compile(r"(?=.*[A-Za-z])[A-Za-z\d][A-Za-z\d.-]{0,252}|\d{1,3}(?:\.\d{1,3}){3}")
# A device may follow the bare word: a CPU is the host of a GPU.
_HOST_ALONE: Final = re.compile(rf"(?=.*[\d.-])(?:{_HOST.pattern})")
_TIME_NAME: Final = re.compile(
    r"(?:.*_)?(?:time|timestamp|ts|date|datetime|now|clock|stamp|[cma]time|at|created|built|started|start)"
)
_RANDOM_NAME: Final = re.compile(r"(?:.*_)?(?:seed|nonce|salt|random|rand|uuid|guid|token|run_id|session_id)")
_RANDOM: Final = re.compile(r"\d{6,40}|(?=.*\d)[0-9a-f]{16,128}|0\.\d{10,20}")
UUID4: Final = r"[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}"
_UUID4: Final = re.compile(UUID4)
_ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]{6,16}")
_ID: Final = re.compile(r"\d{14,15}")
_IDS: Final = range(0x5500_0000_0000, 0x8000_0000_0000, 16)
_PART: Final = r"[\\/][^\\/:*?<>|]+"
_PATH: Final = re.compile(
    rf"(?:file://)?(?:(?:~|[A-Za-z]:)(?:{_PART})+|(?:{_PART}){{2,}}|/[A-Za-z_.][\w.-]+)/?", re.DOTALL
)
_IPV4: Final = r"\d{1,3}(?:\.\d{1,3}){3}"
_ENDPOINT: Final = re.compile(
    rf"(?:(?P<scheme>[a-z]\w*://))?(?P<host>{_IPV4}|localhost|\[[0-9a-f:]+\]|(?(scheme)[A-Za-z][\w.-]*|(?!)))"
    r":(?P<port>\d{2,5})(?P<rest>/\S*)?"
)
_YEAR, _MONTH, _OF_MONTH = r"(?:19|20)\d\d", r"(?:0[1-9]|1[0-2])", r"(?:0[1-9]|[12]\d|3[01])"
_HOUR, _SIXTY = r"(?:[01]\d|2[0-3])", r"[0-5]\d"
_NAMED_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
DATE: Final = (
    rf"{_YEAR}-{_MONTH}-{_OF_MONTH}[T_ ]{_HOUR}[:-]?{_SIXTY}(?:[:-]?{_SIXTY}(?:[.,]\d{{1,9}})?)?(?:Z|[+-]\d\d:?\d\d)?"
    rf"|{_YEAR}{_MONTH}{_OF_MONTH}[T_-]?{_HOUR}{_SIXTY}{_SIXTY}(?!\d)"
    rf"|{_NAMED_MONTH} {{1,2}}\d{{1,2}} {_HOUR}:{_SIXTY}:{_SIXTY} {_YEAR}"
    rf"|{_NAMED_MONTH}{_OF_MONTH}_{_HOUR}-{_SIXTY}-{_SIXTY}"
    r"|datetime\.datetime\(\d{4}(?:, \d{1,6}){4,6}\)"
)
"""A day with its time."""
_DATE: Final = re.compile(DATE)
# Seconds, milliseconds, microseconds and nanoseconds, from 2014 to 2039.
_EPOCH: Final = re.compile(r"(?P<whole>1[4-9]\d{8}|20\d{8}|21\d{8})(?P<more>(?:\d{3}){0,3})(?:\.\d{1,9})?")
# Below it, a number is equal to that of a process by chance.
_LOWEST_PID: Final = 300


Sides = tuple[RunRow | None, RunRow | None]
"""The processes of the stored and of the new value, so far as they are known."""


@dataclass(frozen=True, slots=True)
class Differing:
    """Two texts in the same place of two printed values."""

    name: str  # the name in front of them, in lower case; empty if there is none
    before: str
    after: str
    sides: Sides = (None, None)  # the processes
    # Whether they are printed as addresses of objects are: ``<object object at 0x7f…>``.
    is_behind_at: bool = False

    @property
    def texts(self) -> tuple[str, str]:
        """Both of them."""
        return self.before, self.after

    def are(self, pattern: re.Pattern[str]) -> bool:
        """Whether both texts have a form."""
        return all(pattern.fullmatch(text) is not None for text in self.texts)


@dataclass(frozen=True, slots=True)
class RecognizedKind:
    """A kind, and whether it is certain; else it is what the texts look like."""

    kind: Kind
    is_certain: bool


def kind_of(pair: Differing) -> RecognizedKind | None:
    """The kind of two whole texts; None where nothing speaks for one."""
    for kind in _KINDS:
        if (found := kind(pair)) is not None:
            return found
    return None


def endpoint_kinds(pair: Differing) -> Sequence[RecognizedKind]:
    """The kinds by which two endpoints, ``tcp://HOST:PORT``, differ; none where they are no endpoints or differ otherwise."""
    old, new = map(_ENDPOINT.fullmatch, pair.texts)
    if old is None or new is None or (old["scheme"], old["rest"]) != (new["scheme"], new["rest"]):
        return ()
    named: tuple[tuple[str, Kind], ...] = (("host", "host"), ("port", "port"))
    return [RecognizedKind(kind, True) for part, kind in named if old[part] != new[part]]


def equal_to_ranks(pair: Differing) -> RecognizedKind | None:
    """A rank, apparently: each of two numbers is the rank of its process, whatever name is in front of it."""
    ranks = [None if side is None else side.rank for side in pair.sides]
    is_equal = pair.are(_INTEGER) and [int(text) for text in pair.texts] == ranks
    return RecognizedKind("rank", False) if is_equal else None


def _rank(pair: Differing) -> RecognizedKind | None:
    if not pair.are(_RANK) or not _RANK_NAME.fullmatch(pair.name):
        return None
    known = [(side.rank, int(text)) for side, text in _known(pair) if side.rank is not None]
    if pair.name in _GLOBAL_RANKS and any(rank != value for rank, value in known):
        return None
    return RecognizedKind("rank", len(known) == 2 and all(rank == value for rank, value in known))


def _pid(pair: Differing) -> RecognizedKind | None:
    if not pair.are(_INTEGER):
        return None
    values = [int(text) for text in pair.texts]
    pids = [None if side is None else side.pid for side in pair.sides]
    is_named = _PID_NAME.fullmatch(pair.name) is not None
    if values == pids and (is_named or min(values) >= _LOWEST_PID):
        return RecognizedKind("pid", True)
    return RecognizedKind("pid", False) if is_named else None


def _address(pair: Differing) -> RecognizedKind | None:
    if pair.is_behind_at and pair.are(_ADDRESS):
        return RecognizedKind("address", True)
    # What `id` returns, of 64-bit systems: Python aligns objects to 16 bytes.
    is_id = pair.are(_ID) and all(int(text) in _IDS for text in pair.texts)
    return RecognizedKind("address", False) if is_id else None


def _time(pair: Differing) -> RecognizedKind | None:
    if pair.are(_DATE):
        return RecognizedKind("time", True)
    if not pair.are(_EPOCH):
        return None
    times = [_epoch_ns(text) for text in pair.texts]
    sides = list(zip(times, pair.sides, strict=True))
    if all(side is not None and _is_of(side, time) for time, side in sides):
        return RecognizedKind("time", True)
    is_named = _TIME_NAME.fullmatch(pair.name) is not None
    return RecognizedKind("time", False) if is_named or all("." in text for text in pair.texts) else None


def _port(pair: Differing) -> RecognizedKind | None:
    if not _PORT_NAME.fullmatch(pair.name) or not pair.are(_INTEGER):
        return None
    return RecognizedKind("port", False) if all(10 <= int(text) < 1 << 16 for text in pair.texts) else None


def _host(pair: Differing) -> RecognizedKind | None:
    is_named = _HOST_NAME.fullmatch(pair.name) is not None and pair.are(_HOST)
    return (
        RecognizedKind("host", False) if is_named or (pair.name == "host" and pair.are(_HOST_ALONE)) else None
    )


def _random(pair: Differing) -> RecognizedKind | None:
    if pair.are(_UUID4) or (_RANDOM_NAME.fullmatch(pair.name) and pair.are(_RANDOM)):
        return RecognizedKind("random number", False)
    return None


def _path(pair: Differing) -> RecognizedKind | None:
    return RecognizedKind("path", True) if pair.are(_PATH) else None


def _known(pair: Differing) -> Sequence[tuple[RunRow, str]]:
    return [(side, text) for side, text in zip(pair.sides, pair.texts, strict=True) if side is not None]


def _epoch_ns(text: str) -> int:
    match = _EPOCH.fullmatch(text)
    assert match is not None
    return int((match["whole"] + match["more"]).ljust(19, "0"))


def _is_of(run: RunRow, time: int) -> bool:
    """Whether a time is one at which a process ran, or not long before."""
    if run.start_time is None:
        return False
    return run.start_time - _DAY_NS <= time <= (run.end_time or run.start_time) + _DAY_NS


_KINDS: Final = (_rank, _pid, _address, _time, _port, _host, _random, _path)
