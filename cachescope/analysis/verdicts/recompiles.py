"""Earlier compiles of the same function in the same process, which torch numbers 0/0, 0/1, 0/2 and so on."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from itertools import islice
from os.path import basename
from typing import Final, NamedTuple

from cachescope.analysis.history.history import History
from cachescope.frames.recorded_rows import LookupRow
from cachescope.grouping import by_key
from cachescope.keys.key_fields import is_of_the_call
from cachescope.notebook_cells import code_file
from cachescope.readers.logs.trace_compiles import first_attempt
from cachescope.verdict_kinds import RECOMPILE
from cachescope.wording import listed, place_text

# torch/_guards.py, `CompileId.__str__`: frame / compile of that frame, and the attempt of `TraceId.__str__`.
_COMPILE_ID: Final = re.compile(r"(?P<frame>.*)/(?P<compile>\d{1,18})(?:_\d+)?")

# torch recompiles one function 8 times by default: torch/_dynamo/config.py, `recompile_limit`.
_MOST_TRIED: Final = 32

# torch/_dynamo/guards.py, `get_guard_fail_reason_helper` (2.10 and later): no guard failed; the options of torch.compile may differ.
_OTHER_BACKEND: Final = "BACKEND_MATCH failure"
_FIELDS_NAMED: Final = 3

# torch/_dynamo/guards.py, `get_and_maybe_log_recompilation_reasons`: the compile whose guard failed, the guard, and its line of code.
_REASON: Final = re.compile(
    r"(?:(?P<compile>!?\d+(?:/\d+)*): )?(?P<guard>.*?)(?: # .*| \(HINT: .*)?", re.DOTALL
)
# The compile that the sentence begins with.
OF_COMPILE: Final = re.compile(r"a guard of compile (\S+) failed: ")
OF_ANOTHER_CALL: Final = "; that compile was of another call, in "
# The values in it, which differ each time, but not the names that it compares, or the id of an object.
_VALUE: Final = re.compile(
    r"(?<= )(?:(==|!=|<=?|>=?) (?![A-Za-z_]\w*[.[(])[^,]+|(expected|actual) [^,]+)|(, )\d{6,}(?=\))"
)

_Frame = tuple[int, str, str]


class Recompiles:
    """The lookups of each frame of each process; lookups are named by their index in time order."""

    def __init__(self, history: History) -> None:
        self._history = history

    def before(self, at: int) -> int | None:
        """The nearest lookup of an earlier compile of the same function, the latest among equals; None for the first compile."""
        row = self._history.lookups[at]
        latest = compile_number(row), row.run, row.segment
        before = []
        for one in islice(self._earlier(at), _MOST_TRIED):
            other = self._history.lookups[one]
            # Compile ids begin again after torch._dynamo.reset(), and then stand for other functions.
            this = compile_number(other), other.run, other.segment
            if this != latest and this[0] >= latest[0]:
                break
            latest = this
            # A forward and a backward graph are never forms of each other.
            may_be_form = (other.direction == "backward") == (row.direction == "backward")
            if may_be_form and other.detail_set is not None and self.is_recompiled(other, row):
                before.append(one)
        return min(before, key=lambda one: self._history.distance(one, at), default=None)

    def latest(self, at: int) -> LookupRow | None:
        """The latest lookup of an earlier compile of the same function."""
        row = self._history.lookups[at]
        before = map(self._history.lookups.__getitem__, self._earlier(at))
        return next((one for one in before if self.is_recompiled(one, row)), None)

    def _earlier(self, at: int) -> Iterator[int]:
        """The earlier lookups of the frame of a lookup, the latest first."""
        of_frame = self._of_frame.get(self._frame_of(self._history.lookups[at]), ())
        return (of_frame[one] for one in reversed(range(bisect_left(of_frame, at))))

    def are_described(self, at: int) -> bool:
        """Whether hash details of an earlier compile of the same function are recorded."""
        row = self._history.lookups[at]
        of_frame = self._of_frame.get(self._frame_of(row), ())
        others = (self._history.lookups[one] for one in of_frame)
        return any(self.is_recompiled(one, row) for one in others if one.detail_set is not None)

    def _frame_of(self, row: LookupRow) -> _Frame | None:
        frame, _ = _parts(row.compile_id)
        return None if frame is None else (self._history.process_of(row.run), row.cache, frame)

    def is_recompiled(self, other: LookupRow, row: LookupRow) -> bool:
        """Whether one lookup comes from an earlier compile of the same frame in the same process."""
        is_one_frame = self._frame_of(other) == self._frame_of(row) is not None
        return is_one_frame and compile_number(other) < compile_number(row)

    @cached_property
    def _of_frame(self) -> dict[_Frame | None, list[int]]:
        """The lookups of each frame."""
        lookups = enumerate(self._history.lookups)
        return by_key((frame, at) for at, row in lookups if (frame := self._frame_of(row)) is not None)


class Recompile(NamedTuple):
    """Why a lookup missed after its function had been compiled before in its process."""

    kind: str
    reason: str | None  # torch's sentence on the guard that failed; None if no guard is recorded


def recompile_of(
    row: LookupRow, changed: Sequence[str] = (), before: LookupRow | None = None
) -> Recompile | None:
    """Why a lookup missed as a recompile; None if the log of its process shows none.

    Each earlier compile failed by a guard of its own. The one that counts is that of the compile which the lookup is compared with. If
    no guard is recorded, it is a recompile if only what follows from the program changed, and what torch guards otherwise.
    """
    start = f"{RECOMPILE}{place_of(row)}: "
    if row.recompile_reasons is None:
        if changed and all(map(is_of_the_call, changed)):
            return Recompile(start + listed(tuple(changed), _FIELDS_NAMED), None)
        return None
    reasons = row.recompile_reasons.split("\n")
    own = "" if before is None else f"{first_attempt(before.compile_id or '')}: "
    reason = next((one for one in reasons if one.startswith(own)), reasons[0])
    if _OTHER_BACKEND in reason:
        return None
    match = _REASON.match(reason)
    # torch 2.4 does not say of which compile.
    of = f" of compile {match['compile']}" if match and match["compile"] else ""
    guard = reason.partition(": ")[2] if of else reason
    kind = start + failed_guard(reason).partition(". expected ")[0]
    # torch's hint is not always right.
    sentence = f"a guard{of} failed: {guard.partition(' (HINT: ')[0]}"
    places = [place_of(one) for one in (row, before) if one is not None and one.file is not None]
    # A function has one place; the wrapper of torch/_dynamo/external_utils.py, `wrap_inline`, those of its calls.
    return Recompile(kind, sentence + (f"{OF_ANOTHER_CALL}{places[1]}" if len({*places}) > 1 else ""))


def failed_guard(reason: str) -> str:
    """The guard in the reason of a recompile, without values, which differ each time.

    Examples
    --------
    >>> failed_guard("0/0: tensor 'x' size mismatch at index 0. expected 4, actual 5")
    "tensor 'x' size mismatch at index 0. expected …, actual …"
    """
    match = _REASON.fullmatch(reason)
    guard = reason if match is None else match["guard"]
    return _VALUE.sub(lambda found: f"{found[1] or found[2] or ','} …", guard)


def place_of(row: LookupRow) -> str:
    """The function of a lookup and where it is defined, if recorded; else its frame."""
    file, (frame, _) = code_file(row.file), _parts(row.compile_id)
    place = place_text(row.function, file and basename(file), row.line)
    return place or ("a graph" if frame is None else f"frame {frame}")


def compile_number(row: LookupRow) -> int:
    """How many compiles of the same function the process had begun before."""
    return _parts(row.compile_id)[1]


# All processes of a fleet share the same compile ids.
@cache
def _parts(compile_id: str | None) -> tuple[str | None, int]:
    match = _COMPILE_ID.fullmatch(compile_id or "")
    return (None, 0) if match is None else (match["frame"], int(match["compile"]))
