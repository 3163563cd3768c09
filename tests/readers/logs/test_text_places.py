"""Text logs with Dynamo's logger on say where the code of a lookup stands; held against what Python says."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import cachescope
from cachescope.columns import records
from tests.conftest import DATA, Archive
from tests.readers.logs.growing import goes_on

VERSIONS = sorted(path.name.removesuffix(".tar.xz") for path in (DATA / "places").glob("*.tar.xz"))
# What Dynamo makes of code behind a graph break has no place of its own in Python.
RESUMED = "torch_dynamo_resume_in_"
PREFIX = "I1123 06:12:46.{:06} 77 torch/{}.py:12] "


def said(log: Path) -> list[list[Any]]:
    """The place of each lookup, each once, in the order of the lookups."""
    rows = records(cachescope.read(log).lookups, ["compile_id", "cache", "function", "file", "line"])
    assert "fxgraph" in {row["cache"] for row in rows}
    places = [[row["function"], row["file"], row["line"]] for row in rows]
    return [place for place in dict.fromkeys(map(tuple, places)) if not place[0].startswith(RESUMED)]


@pytest.mark.parametrize("version", VERSIONS)
def test_places_are_those_of_python(version: str, archive: Archive) -> None:
    """After the reset at the end of the program other code has compile id 0/0."""
    folder = archive(f"places/{version}") / version
    places = json.loads((folder / "places.json").read_text())
    assert said(folder / "torch.log") == [tuple(place) for place in places]
    assert len(places) == 5


@pytest.mark.slow
def test_a_log_that_grows_keeps_the_places(archive: Archive, tmp_path: Path) -> None:
    """Read up to any message, and on from there."""
    data = (archive(f"places/{VERSIONS[-1]}") / VERSIONS[-1] / "torch.log").read_bytes()
    ends = [at + 1 for at, byte in enumerate(data) if byte == 0x0A]
    assert sum(goes_on(tmp_path / "a.log", data[:end], data)[1] for end in ends) > 10


@pytest.mark.torch
@pytest.mark.models
def test_places_of_the_installed_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(DATA)
    from record_kind import places as record_into

    folder = record_into(tmp_path, sys.executable)
    places = json.loads((folder / "places.json").read_text())
    assert said(folder / "torch.log") == [tuple(place) for place in places]


def test_what_is_not_said_is_missing(tmp_path: Path) -> None:
    """Made by hand: a lookup of another compile id, and a line that was cut."""
    key = "f" + "a" * 51
    lines = [
        PREFIX.format(1, "_dynamo/symbolic_convert") + "[0/0] Step 1: torchdynamo start tracing f /a/b.py:3",
        PREFIX.format(2, "_dynamo/symbolic_convert") + "[2/0] Step 1: torchdynamo start tracing g /a/b.p",
        *(PREFIX.format(3 + n, "_inductor/codecache") + f"[{n}/0] fx graph cache miss for key {key}" for n in range(3)),
    ]  # fmt: skip
    log = tmp_path / "torch.log"
    log.write_text("\n".join(lines) + "\n")
    rows = records(cachescope.read(log).lookups, ["compile_id", "function", "file", "line"])
    (first, *others) = [tuple(row.values()) for row in rows]
    assert first == ("0/0", "f", "/a/b.py", 3)
    assert others == [("1/0", None, None, None), ("2/0", None, None, None)]
