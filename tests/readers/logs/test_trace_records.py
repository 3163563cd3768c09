"""Framing of trace logs against a plain reading line by line: any bytes, any size of blocks."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cachescope.readers.logs import trace_records
from cachescope.readers.logs.byte_source import Pieces
from cachescope.readers.logs.log_prefix import PREFIX
from cachescope.readers.logs.trace_records import COMPILE_EVENT, Stray, read_records

_PREFIX = b"V1120 15:24:13.250000 3327 torch/_dynamo/utils.py:2350] "
_LONG = b"V1120 15:24:13.250000 3327 torch/" + b"deep/" * 60 + b"{x}/utils.py:1] "
_ODD = [
    b"V1120 15:24:13.250000 3327 /home/" + name + b"/torch/x.py:1] "
    for name in (b"my] {x}", b"v2] {x}", b'my] {"x"}')
]
_ARTIFACT = b'{"artifact": {"name": "fx_graph_cache_hit", "encoding": "json"}, "has_payload": "0"}'
_OTHER_ARTIFACT = (
    b'{"artifact": {"name": "inductor_post_grad_graph", "encoding": "string"}, "has_payload": "0"}'
)
_EVENT = b'{"chromium_event": {}, "frame_id": 0}\n\t{\n\t"name": "%s",\n\t"ts": 1'
_LINES = st.sampled_from([
    _PREFIX + _ARTIFACT, _LONG + _ARTIFACT, *(prefix + _ARTIFACT for prefix in _ODD),
    _PREFIX + _OTHER_ARTIFACT, _LONG + _OTHER_ARTIFACT, b"W1 [x] " + _OTHER_ARTIFACT,
    _PREFIX + _EVENT % b"inductor_compile",
    _PREFIX + b'{"chromium_event": {}, "x": "' + b"y" * 300 + b'"}\n\t{\n\t"name": "inductor_compile"',
    _PREFIX + _EVENT % b"dynamo_compile__", _PREFIX + b'{"dynamo_start": {"stack": []}}',
    _PREFIX + b'{"aot_joint_graph": {}}', _PREFIX + b'{"compilation_metrics": {}}',
    _PREFIX + b'{"inductor_output_code": {"filename": "x"}}', _PREFIX + b'{"bwd_compilation_metrics": {}}',
    _PREFIX + b'x {"artifact": 1}', b"V1120 15:24:1" + _PREFIX[9:20] + b'] {"compilation_metrics": {}}',
    b"\t" + _PREFIX + _ARTIFACT, b"\t" + b"payload " * 40, b"\t", b"", b"Segmentation fault", b"V",
    b"W1 [x] " + _ARTIFACT,
])  # fmt: skip
_LOGS = st.builds(
    lambda lines, end: b"\n".join(lines) + end,
    st.lists(_LINES | st.binary(max_size=12), max_size=12),
    st.sampled_from([b"", b"\n"]),
)
_KINDS = (
    b"artifact", b"dynamo_start", b"compilation_metrics", b"bwd_compilation_metrics", b"inductor_output_code",
)  # fmt: skip

Told = list[tuple[str, int, int, bytes]]


def told(data: bytes) -> Told:
    """The records; and, as the lines are those of `told_by_lines`, the first of strays that follow each other with how many."""
    found: Told = []
    for offset, records in read_records(Pieces(io.BufferedReader(io.BytesIO(data)))):  # type: ignore[type-var]
        for span in records.spans():
            if isinstance(span, Stray):
                found.append(("stray", offset + span.start, offset + span.end, b"%d" % span.lines))
            else:
                payload = bytes(records.buffer[span.line_end : span.end])
                found.append((span.kind, offset + span.prefix.start(), offset + span.line_end, payload))
    return found


def is_other_artifact(record: bytes) -> bool:
    """Of an artifact, the eight letters of its name behind the seventh tell whether it may be one of a lookup."""
    name = record[len(b'artifact": {"name": "') + 7 :][:8]
    return record.startswith(b"artifact") and name not in (b"h_cache_", b"grad_cac", b"h_runnab", b'ersion",')


def told_by_lines(data: bytes) -> Told:
    records: list[tuple[int, list[bytes]]] = []
    at = 0
    for line in data.removesuffix(b"\n").split(b"\n") if data else []:
        if records and line.startswith(b"\t"):
            records[-1][1].append(line)
        else:
            records.append((at, [line]))
        at += len(line) + 1
    found: Told = []
    for start, (line, *payload) in records:
        end = start + len(line)
        prefix = PREFIX.match(line)
        rest = line[prefix.end() :] if prefix else b""
        text = b"".join(b"\n" + more for more in payload)
        # Without a prefix, a line that says of what kind it is is a damaged record.
        named = line[brace + 4 :] if prefix is None and (brace := line.find(b'] {"')) >= 0 else b""
        is_event = named[:8] == b"chromium" and text.startswith(b'\n\t{\n\t"name": "inductor_compile"')
        is_known = named[:8] in [kind[:8] for kind in _KINDS] and not is_other_artifact(named)
        is_damaged = line[:1] != b"\t" and (is_event or is_known)
        if line and (line[:1] not in b"\tVIWEC" or is_damaged):
            found.append(("stray", start, end, b""))
        for kind in _KINDS:
            # Eight letters after the brace and the quote are what a record is told by.
            if rest[2:10] == kind[:8] and not is_other_artifact(rest[2:]):
                name = rest.split(b'"')[5] if kind == b"artifact" else kind
                found.append((name.decode(), start, end, text))
        if rest[2:10] == b"chromium" and text.startswith(b'\n\t{\n\t"name": "inductor_compile"'):
            found.append((COMPILE_EVENT, start, end, text))
    return found


def check(data: bytes) -> None:
    found, wanted = told(data), told_by_lines(data)
    for kind_is in (str.__eq__, str.__ne__):
        first, of = ([one for one in ones if kind_is(one[0], "stray")] for ones in (found, wanted))
        if kind_is == str.__ne__:
            assert first == of
        else:
            # Each one that is told stands for those behind it.
            counts = [int(one[3]) for one in first]
            assert [of[sum(counts[:at])][:3] for at in range(len(counts))] == [one[:3] for one in first]
            assert sum(counts) == len(of)


@pytest.mark.slow
@settings(max_examples=150)
@given(data=_LOGS)
def test_records_are_found_where_their_lines_are(data: bytes) -> None:
    check(data)


@settings(max_examples=60)
@given(
    data=_LOGS, block_bytes=st.sampled_from([1, 7, 64, 1000]), first_bytes=st.sampled_from([1, 7, 64, 1000])
)
def test_the_size_of_blocks_does_not_matter(data: bytes, block_bytes: int, first_bytes: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trace_records, "BLOCK_BYTES", block_bytes)
        patch.setattr(trace_records, "_FIRST_BLOCK_BYTES", first_bytes)
        check(data)


@pytest.mark.parametrize("payload", [b"", b"\n\tV" * 9])
@pytest.mark.parametrize("size", range(120, 140))
def test_what_is_behind_a_record_too_long(size: int, payload: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever in a block it ends."""
    monkeypatch.setattr(trace_records, "BLOCK_BYTES", 16)
    monkeypatch.setattr(trace_records, "_FIRST_BLOCK_BYTES", 16)
    monkeypatch.setattr(trace_records, "_MOST_BYTES_OF_A_RECORD", 100)
    good = _PREFIX + b'{"dynamo_start": {}}\n'
    long = _PREFIX + b'{"dynamo_start": "' + payload + b"x" * size + b"\n"
    assert len(good) < 100 < len(long)
    one, other = ("dynamo_start", 0, len(good) - 1, b""), len(good) + len(long)
    assert told(good + long + good) == [one, ("dynamo_start", other, other + len(good) - 1, b"")]
    assert told(long + good)[-1][1] == len(long)
    for data, ends in ((good + long + good, [0, len(good), other]), (good + long, [0, len(good)])):
        found = [
            (offset, records.is_too_long)
            for offset, records in read_records(Pieces(io.BufferedReader(io.BytesIO(data))))  # type: ignore[type-var]
        ]
        assert [offset for offset, is_too_long in found if is_too_long] == [len(good)]
        assert {offset for offset, _ in found} == set(ends)
    assert told(good + long) == [one]


def test_a_record_of_the_most_bytes_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_records, "BLOCK_BYTES", 16)
    monkeypatch.setattr(trace_records, "_FIRST_BLOCK_BYTES", 16)
    good = _PREFIX + b'{"dynamo_start": {}}\n'
    for most, count in ((len(good), 2), (len(good) - 1, 0)):
        monkeypatch.setattr(trace_records, "_MOST_BYTES_OF_A_RECORD", most)
        assert len(told(good + good)) == count
