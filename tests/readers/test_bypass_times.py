"""How long the compiles of bypassed lookups took, against the events of recorded traces."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import cachescope
from tests.conftest import Recording

RECORDED = [
    (version, name)
    for version in ("2.6.0", "2.10.0", "2.13.0", "2.15.0")
    for name in ("bypass_custom_pass", "bypass_custom_pass_fx", "bypass_freezing")
    if (Path(__file__).parents[1] / "data" / "recordings" / version / f"{name}.tar.xz").exists()
]


def events(trace: Path) -> Iterator[dict[str, object]]:
    """The payload of every chromium event, read as plainly as can be."""
    for log in trace.iterdir():
        lines = log.read_text(errors="replace").split("\n")
        for at, line in enumerate(lines):
            if '] {"chromium_event"' in line:
                end = next(n for n in range(at + 1, len(lines)) if not lines[n].startswith("\t"))
                yield json.loads("\n".join(text[1:] for text in lines[at + 1 : end]))


@pytest.mark.parametrize(("version", "name"), RECORDED)
def test_a_bypassed_compile_took_as_long_as_its_event_says(
    version: str, name: str, recording: Recording
) -> None:
    trace = recording(version, name) / "trace"
    said = []
    for one in events(trace):
        args = one.get("args") or {}
        assert isinstance(args, dict)
        if (one["name"], one["ph"], args.get("cache_state")) == ("inductor_compile", "E", "bypass"):
            said.append(round(float(str(one["ts"])) * 1000) - args["cache_event_time"])
    lookups = cachescope.read(trace).lookups
    found = lookups[(lookups["cache"] == "fxgraph") & (lookups["outcome"] == "bypass")]
    assert sorted(found["time_taken_ns"].tolist()) == pytest.approx(sorted(said), abs=1000)
    assert len(said) == len(found) > 0
