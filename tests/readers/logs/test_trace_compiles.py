"""The compile id of metrics is found without reading them, and as the JSON parser and torch's words have it."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from cachescope.readers.logs.trace_compiles import id_of_metrics

_NUMBER = st.integers(0, 10**6)
_TEXT = st.text(max_size=20) | st.just('}, "frame_id": 7, "frame_compile_id": 7, "attempt": 0}')


@given(
    texts=st.dictionaries(_TEXT, _TEXT | st.none() | st.floats(allow_nan=False), max_size=4),
    rank=_NUMBER | st.none(),
    autograd=_NUMBER | st.none(),
    frame=st.tuples(_NUMBER, _NUMBER) | st.none(),
    attempt=st.integers(0, 3) | st.none(),
)
def test_the_compile_id_is_that_of_the_record(
    texts: dict[str, object],
    rank: int | None,
    autograd: int | None,
    frame: tuple[int, int] | None,
    attempt: int | None,
) -> None:
    # torch/_logging/_internal.py, `trace_structured`, writes them in this order.
    record: dict[str, object] = {"compilation_metrics": texts}
    if rank is not None:
        record["rank"] = rank
    if autograd is not None:
        record["compiled_autograd_id"] = autograd
    if frame is not None:
        record["frame_id"], record["frame_compile_id"] = frame
    if attempt is not None:
        record["attempt"] = attempt
    # torch/_guards.py: `CompileId.__str__`, and `TraceId.__str__` for later attempts.
    parts = ([] if autograd is None else [f"!{autograd}"]) + (
        [] if frame is None else [f"{frame[0]}/{frame[1]}"]
    )
    expected = "/".join(parts) or None
    if expected is not None and frame is not None and attempt:
        expected += f"_{attempt}"
    assert id_of_metrics(json.dumps(record).encode()) == expected
