"""``cachescope report``: one file, and one line that says where it is."""

import json
from pathlib import Path

import pytest

import cachescope
from tests.cli.conftest import Run


@pytest.fixture
def flip() -> Path:
    return Path(cachescope.sample("config_flip"))


@pytest.mark.slow
def test_it_writes_the_file_and_says_so(run: Run, flip: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.html"
    done = run("report", flip, "-o", target)
    assert (done.status, done.err) == (0, "")
    assert (
        done.out.startswith("1.6 s of the 15.4 s compiled after misses were avoidable")
        and str(target) in done.out
    )
    assert "epilogue_fusion" in target.read_text()


@pytest.mark.slow
def test_as_json_it_names_the_file_and_its_bytes(run: Run, flip: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.html"
    done = run("report", flip, "-o", target, "--json", "--redact")
    assert json.loads(done.out) == {"report": str(target), "bytes": target.stat().st_size}
    assert str(flip) not in target.read_text()
