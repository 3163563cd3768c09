"""What a trace has of one compile in full: its graphs, guards, generated code. In a pass of its own.

torch/_logging/_internal.py, `trace_structured`: a record names what follows it, and the compile that it is of. torch 2.4 to 2.15.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from cachescope.errors import NotFoundError
from cachescope.frames.compile_rows import RecordedText
from cachescope.frames.recorded_rows import ProblemRow, RunRow
from cachescope.readers.file_fingerprints import Stamps
from cachescope.readers.json_record import Record, load_json, well_formed
from cachescope.readers.logs.second_pass import read_traces
from cachescope.readers.logs.trace_compiles import compile_id_of, first_attempt
from cachescope.readers.logs.trace_records import TracePass, payload_hash

_HAS_TEXT: Final = b'"has_payload": "'
# There are hundreds, and `time` tells what they say.
_EVENT: Final = b'] {"chromium_event"'


class _RecordedTexts(TracePass):
    """The texts of one compile, in the order in which torch wrote them; and what could not be read."""

    def __init__(self, path: str, size: int | None, compile_id: str) -> None:
        super().__init__(path, size)
        self.rows = list(self._find(compile_id))

    def _find(self, compile_id: str) -> Iterator[RecordedText]:
        for offset, records in self._blocks():
            for start, line_end, end in records.lines():
                line = bytes(memoryview(records.buffer)[start:line_end])
                begins = line.find(b"] {") + 2
                if _HAS_TEXT not in line or begins < 2 or line.startswith(_EVENT, begins - 2):
                    continue
                try:
                    envelope = Record(load_json(line[begins:]))
                except ValueError as error:
                    self._problem(offset + start, "not_json", str(error))
                    continue
                own = compile_id_of(envelope)
                if own is None or first_attempt(own) != compile_id:
                    continue
                if not self._is_repeated(memoryview(records.buffer)[start:end]):
                    yield _text_of(envelope, own, records.payload(line_end, end))


def _text_of(envelope: Record, compile_id: str, payload: bytes) -> RecordedText:
    kind = next(iter(envelope.values))
    about = envelope.record(kind) if isinstance(envelope.values[kind], dict) else None
    name = about.text("name") if about is not None and kind in ("artifact", "graph_dump") else None
    file = None if about is None else about.text("filename")
    is_whole = payload_hash(payload) == envelope.text("has_payload")
    text = payload.decode("utf-8", "replace")
    return RecordedText(0, compile_id, name or well_formed(kind), file, text, is_whole)


def recorded_texts(
    runs: Iterable[RunRow], stamped: Stamps, compile_id: str
) -> tuple[list[RecordedText], list[ProblemRow]]:
    """What the traces of runs have of the compiles with an id, and what could not be read; raises `NotFoundError` if they have nothing."""

    def read(path: str, size: int | None) -> tuple[list[RecordedText], Sequence[ProblemRow]]:
        found = _RecordedTexts(path, size, compile_id)
        return found.rows, found.problems

    found, problems = read_traces(runs, stamped, "its texts", read)
    texts = [replace(one, run=run) for run, own in found for one in own]
    if not texts:
        why = f" ({problems[0].source}: {problems[0].message})" if problems else ""
        raise NotFoundError(f"no trace that was read has a text of a compile {compile_id!r}{why}")
    return texts, problems
