"""The values of a process in which two printed values differ: its rank, host, port, paths, times, addresses of objects, random numbers.

The texts are laid side by side, and each differing token is judged. A kind is named only on positive evidence: what the logs say
about both processes, the form of the text (a path, a date, the address of an object), or the name in front of the value. A name
alone makes it apparent, not certain: a matrix has a rank too. The work is bounded: texts that are long, or differ in many tokens,
are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from os.path import commonprefix
from typing import Final, Literal, NamedTuple

from cachescope.frames.recorded_rows import RunRow

Kind = Literal["rank", "host", "path", "port", "time", "address", "pid", "random number", "bundle index"]

_DAY_NS: Final = 86_400 * 10**9
_INTEGER: Final = re.compile(r"\d{1,20}")
_RANK_NAME: Final = re.compile(
    r"(?:(?:global|world|local|node|group|d?[dtpesc]p|(?:data|tensor|pipeline|expert|context|sequence)_parallel)_)?rank(?:_id)?"
    r"|(?:ompi_comm_world|pmi|pmix)_rank|slurm_procid|process_index"
)
# Each process of a job has its own.
_GLOBAL_RANKS: Final = frozenset({"rank", "rank_id", "global_rank", "world_rank"})
# The rank is -1 outside of a group.
_RANK: Final = re.compile(r"-1|\d{1,6}")
_PID_NAME: Final = re.compile(r"(?:.*_)?p?pid|process_id")
_PORT_NAME: Final = re.compile(r"(?:.*_)?port")
_HOST_NAME: Final = re.compile(
    r"(?:.*_)?(?:host_?name|node_?name|pod_?name|machine_name)|master_addr(?:ess)?"
)
_HOST: Final = re.compile(r"(?=.*[A-Za-z])[A-Za-z\d][A-Za-z\d.-]{0,252}|\d{1,3}(?:\.\d{1,3}){3}")
# The bare word may stand before a device: a CPU is the host of a GPU.
_HOST_ALONE: Final = re.compile(rf"(?=.*[\d.-])(?:{_HOST.pattern})")
_TIME_NAME: Final = re.compile(
    r"(?:.*_)?(?:time|timestamp|ts|date|datetime|now|clock|stamp|[cma]time|at|created|built|started|start)"
)
_RANDOM_NAME: Final = re.compile(r"(?:.*_)?(?:seed|nonce|salt|random|rand|uuid|guid|token|run_id|session_id)")
_RANDOM: Final = re.compile(r"\d{6,40}|(?=.*\d)[0-9a-f]{16,128}|0\.\d{10,20}")
_RANDOM_UUID: Final = r"[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}"
_UUID4: Final = re.compile(_RANDOM_UUID)
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
_DAY_AND_TIME: Final = (
    rf"{_YEAR}-{_MONTH}-{_OF_MONTH}[T_ ]{_HOUR}[:-]?{_SIXTY}(?:[:-]?{_SIXTY}(?:[.,]\d{{1,9}})?)?(?:Z|[+-]\d\d:?\d\d)?"
    rf"|{_YEAR}{_MONTH}{_OF_MONTH}[T_-]?{_HOUR}{_SIXTY}{_SIXTY}(?!\d)"
    rf"|{_NAMED_MONTH} {{1,2}}\d{{1,2}} {_HOUR}:{_SIXTY}:{_SIXTY} {_YEAR}"
    rf"|{_NAMED_MONTH}{_OF_MONTH}_{_HOUR}-{_SIXTY}-{_SIXTY}"
    r"|datetime\.datetime\(\d{4}(?:, \d{1,6}){4,6}\)"
)
_DATE: Final = re.compile(_DAY_AND_TIME)
# Seconds, milliseconds, microseconds and nanoseconds, from 2014 to 2039.
_EPOCH: Final = re.compile(r"(?P<whole>1[4-9]\d{8}|20\d{8}|21\d{8})(?P<more>(?:\d{3}){0,3})(?:\.\d{1,9})?")
# A smaller number may equal one of a process by chance.
_LOWEST_PID: Final = 300


Sides = tuple[RunRow | None, RunRow | None]
"""The processes of the stored and of the new value, so far as they are known."""


class Differing(NamedTuple):
    """Two tokens at the same position of two printed values."""

    name: str  # the name in front of them, in lower case; empty if there is none
    before: str
    after: str
    sides: Sides = (None, None)  # the processes
    # Whether they are printed like addresses of objects: ``<object object at 0x7f…>``.
    is_behind_at: bool = False

    @property
    def texts(self) -> tuple[str, str]:
        """Both texts."""
        return self.before, self.after

    def are(self, pattern: re.Pattern[str]) -> bool:
        """Whether both texts have a form."""
        return all(pattern.fullmatch(text) is not None for text in self.texts)


class RecognizedKind(NamedTuple):
    """A kind, and whether it is certain. If not, the texts only look like it."""

    kind: Kind
    is_certain: bool


def _kind_of(pair: Differing) -> RecognizedKind | None:
    """The kind of two whole texts; None if there is no evidence for one."""
    found = ((kind, speaks_for(pair)) for kind, speaks_for in _KINDS.items())
    return next((RecognizedKind(kind, certain) for kind, certain in found if certain is not None), None)


def _endpoint_kinds(pair: Differing) -> Sequence[RecognizedKind]:
    """The kinds of values in which two endpoints, ``tcp://HOST:PORT``, differ; none if they are no endpoints or differ otherwise."""
    old, new = map(_ENDPOINT.fullmatch, pair.texts)
    if old is None or new is None or (old["scheme"], old["rest"]) != (new["scheme"], new["rest"]):
        return ()
    parts: tuple[Kind, ...] = ("host", "port")
    return [RecognizedKind(part, True) for part in parts if old[part] != new[part]]


def _equal_to_ranks(pair: Differing) -> RecognizedKind | None:
    """A rank, apparently: each number is the rank of its process, whatever name stands in front of it."""
    ranks = [None if side is None else side.rank for side in pair.sides]
    is_equal = pair.are(_INTEGER) and [int(text) for text in pair.texts] == ranks
    return RecognizedKind("rank", False) if is_equal else None


# Whether a kind is certain; None if there is no evidence for it.


def _rank(pair: Differing) -> bool | None:
    if not pair.are(_RANK) or not _RANK_NAME.fullmatch(pair.name):
        return None
    known = [(side.rank, int(text)) for side, text in _known(pair) if side.rank is not None]
    if pair.name in _GLOBAL_RANKS and any(rank != value for rank, value in known):
        return None
    return len(known) == 2 and all(rank == value for rank, value in known)


def _pid(pair: Differing) -> bool | None:
    if not pair.are(_INTEGER):
        return None
    values = [int(text) for text in pair.texts]
    pids = [None if side is None else side.pid for side in pair.sides]
    is_named = _PID_NAME.fullmatch(pair.name) is not None
    if values == pids and (is_named or min(values) >= _LOWEST_PID):
        return True
    return False if is_named else None


def _address(pair: Differing) -> bool | None:
    if pair.is_behind_at and pair.are(_ADDRESS):
        return True
    # Results of `id` on 64-bit systems, where Python aligns objects to 16 bytes.
    return False if pair.are(_ID) and all(int(text) in _IDS for text in pair.texts) else None


def _time(pair: Differing) -> bool | None:
    if pair.are(_DATE):
        return True
    if not pair.are(_EPOCH):
        return None
    known = _known(pair)
    if len(known) == 2 and all(_is_of(side, _epoch_ns(text)) for side, text in known):
        return True
    return False if _TIME_NAME.fullmatch(pair.name) or all("." in text for text in pair.texts) else None


def _port(pair: Differing) -> bool | None:
    is_named = _PORT_NAME.fullmatch(pair.name) and pair.are(_INTEGER)
    return False if is_named and all(10 <= int(text) < 1 << 16 for text in pair.texts) else None


def _host(pair: Differing) -> bool | None:
    is_named = _HOST_NAME.fullmatch(pair.name) and pair.are(_HOST)
    return False if is_named or (pair.name == "host" and pair.are(_HOST_ALONE)) else None


def _random(pair: Differing) -> bool | None:
    is_named = _RANDOM_NAME.fullmatch(pair.name) and pair.are(_RANDOM)
    return False if is_named or pair.are(_UUID4) else None


def _path(pair: Differing) -> bool | None:
    return pair.are(_PATH) or None


def _known(pair: Differing) -> Sequence[tuple[RunRow, str]]:
    return [(side, text) for side, text in zip(pair.sides, pair.texts, strict=True) if side is not None]


def _epoch_ns(text: str) -> int:
    match = _EPOCH.fullmatch(text)
    assert match is not None
    return int((match["whole"] + match["more"]).ljust(19, "0"))


def _is_of(run: RunRow, time: int) -> bool:
    """Whether a time lies within a day of when a process ran."""
    if run.start_time is None:
        return False
    return run.start_time - _DAY_NS <= time <= (run.end_time or run.start_time) + _DAY_NS


# The first kind with evidence counts.
_KINDS: Final[Mapping[Kind, Callable[[Differing], bool | None]]] = {
    "rank": _rank, "pid": _pid, "address": _address, "time": _time, "port": _port, "host": _host, "random number": _random, "path": _path,
}  # fmt: skip


# Descriptions of the machine and of torch: numbers in them are versions and sizes.
_OF_THE_MACHINE: Final = ("system_info", "torch_version", "example_inputs", "inputs_to_check")
_LONGEST: Final = 20_000
_MOST_PLACES: Final = 32
_LONGEST_PLACE: Final = 1_000
_NAME_WITHIN: Final = 80
# A date with its time, or everything between blanks, quotes, brackets and punctuation.
_TOKEN: Final = re.compile(rf"(?:{_DAY_AND_TIME})|[^\s'\"(){{}}\[\],;=<>]+")
_PIECE: Final = re.compile(rf"(?:{_DAY_AND_TIME})|{_RANDOM_UUID}|[A-Za-z]+|\d+|[^A-Za-z\d]")
# `'rank': 3`, `rank=3`, `--rank 3`, and the first of a pair: `('rank', 3)`.
_NAME_BEFORE: Final = re.compile(
    r"(?:\((?P<quote>['\"])(?P<first>[A-Za-z_][\w.-]*)(?P=quote), *"
    r"|(?:^|[^\w.-])(?P<name>[A-Za-z_][\w.-]*)['\"]?\]? *[:=] *|--(?P<option>[A-Za-z][\w-]*) +)['\"]?$"
)
_LAST_NAME: Final = re.compile(r"[A-Za-z_]\w*(?=\W*$)")
# Devices that differ between ranks are reported with devices.
_DEVICE: Final = re.compile(r"(?:cpu|cuda|hip|hpu|meta|mps|mtia|npu|privateuseone|xla|xpu):\d+")
_WORD_BEFORE: Final = re.compile(r"(?P<name>[A-Za-z](?:[A-Za-z_-]*[A-Za-z])?)[_:=./-]?$")
# These are ranks of matrices.
_OF_MATRICES: Final = re.compile(
    r"(?:.*_)?(?:adapter|approx|effective|full|kv|lora|low|matrix|max|min|network|proj|projection|reduced|svd|target|tensor)_rank"
)


class DiffersBy(NamedTuple):
    """The values of a process in which two printed values differ."""

    kinds: tuple[Kind, ...]
    # Whether the logs say so for both processes, or nothing else has this form. If not, the texts only look like it.
    is_certain: bool
    is_all: bool  # whether nothing else differs

    @property
    def words(self) -> str:
        """The same in words: ``apparently differs by rank``."""
        certainly = "" if self.is_certain else "apparently "
        *others, last = self.kinds
        kinds = f"{', '.join(others)} and {last}" if others else last
        return f"{certainly}differs by {kinds}{'' if self.is_all else ', and otherwise'}"


def differs_by(field: str, before: str, after: str, sides: Sides = (None, None)) -> DiffersBy | None:
    """The process-specific values in which two printed values of a field differ; None if none is recognised.

    Examples
    --------
    >>> differs_by("inductor_config[aot_inductor.metadata]", "{'rank': '3'}", "{'rank': '1'}").words
    'apparently differs by rank'
    >>> differs_by("inductor_config[max_fusion_size]", "64", "32")
    """
    if max(len(before), len(after)) > _LONGEST or field.startswith(_OF_THE_MACHINE):
        return None
    each = list(islice(_by_place(field, before, after, sides), _MOST_PLACES + 1))
    if len(each) > _MOST_PLACES:
        return None
    found = [one for kinds in each for one in kinds]
    if not found:
        return None
    names = tuple(dict.fromkeys(one.kind for one in found))
    return DiffersBy(names, all(one.is_certain for one in found), all(each))


def _by_place(field: str, before: str, after: str, sides: Sides) -> Iterator[Sequence[RecognizedKind]]:
    """The kinds of each differing token; nothing if the texts do not have the same form."""
    old, new = (list(_TOKEN.finditer(text)) for text in (before, after))
    if len(old) != len(new) or _TOKEN.sub("", before) != _TOKEN.sub("", after):
        return
    # The same tokens in another order, as in a set: then only a token with a name is known to match its counterpart.
    is_reordered = sorted(one[0] for one in old) == sorted(one[0] for one in new)
    for a, b in zip(old, new, strict=True):
        if a[0] != b[0]:
            pair = _differing(field, a, b, sides)
            is_judged = max(map(len, pair.texts)) <= _LONGEST_PLACE and (pair.name or not is_reordered)
            yield _kinds(pair) if is_judged else ()


def _differing(field: str, old: re.Match[str], new: re.Match[str], sides: Sides) -> Differing:
    lead = _before_both(old, new)
    named = _NAME_BEFORE.search(lead)
    name = ""
    if named is not None:
        name = named["first"] or named["name"] or named["option"]
    elif old[0] == old.string.strip() and new[0] == new.string.strip():
        last = _LAST_NAME.search(field[-_NAME_WITHIN:])
        name = last[0] if last is not None else ""
    is_behind_at = lead.endswith(" at ") and all(
        one.string[one.end() : one.end() + 1] == ">" for one in (old, new)
    )
    return Differing(_plain(name), old[0].strip(":"), new[0].strip(":"), sides, is_behind_at)


def _before_both(old: re.Match[str], new: re.Match[str]) -> str:
    """The last characters in front of both texts. A cut beginning is marked by a digit, so that half a name is not taken for a name."""
    one, other = (match.string[max(match.start() - _NAME_WITHIN, 0) : match.start()] for match in (old, new))
    end = len(commonprefix([one[::-1], other[::-1]]))  # noqa: RUF071
    is_whole = end == old.start() == new.start()
    return ("" if is_whole else "0") + one[len(one) - end :]


def _kinds(pair: Differing) -> Sequence[RecognizedKind]:
    """The kinds of a pair of tokens: of the whole, or of each piece that differs."""
    if found := _endpoint_kinds(pair):
        return found
    whole = _kind_of(pair)
    if whole is not None and whole.kind != "path":
        return (whole,)
    pieces = list(_of_pieces(pair))
    known = [piece for piece in pieces if piece is not None]
    if known and len(known) == len(pieces):
        return known
    return () if whole is None else (whole,)


def _of_pieces(pair: Differing) -> Iterator[RecognizedKind | None]:
    """The kind of each differing piece, such as the number in ``rank_3``."""
    old, new = map(_PIECE.findall, pair.texts)
    if len(old) != len(new) or pair.are(_DEVICE):
        return
    at = 0
    for one, other in zip(old, new, strict=True):
        if one != other:
            lead = _WORD_BEFORE.search(pair.before[max(at - _NAME_WITHIN, 0) : at])
            name = "" if lead is None else _plain(lead["name"])
            yield _of_piece(Differing(name, one, other, pair.sides))
        at += len(one)


def _of_piece(piece: Differing) -> RecognizedKind | None:
    """The kind of a number at the end of a word: the word names it, or it is the rank of each process."""
    words = piece.name.split("_")
    if not _OF_MATRICES.fullmatch(piece.name):
        for first in range(len(words)):
            if (found := _kind_of(piece._replace(name="_".join(words[first:])))) is not None:
                return found
    return _equal_to_ranks(piece) if piece.name else None


def _plain(name: str) -> str:
    return name.rpartition(".")[2].replace("-", "_").strip("_").lower()
