"""``cachescope entries --all``: every compile cache of a serving start that this environment names."""

import json
import os
from pathlib import Path

import pytest

from tests.cli.conftest import Run

KERNEL = json.dumps({"target": {"backend": "cuda", "arch": 90, "warp_size": 32}})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with one cache of Triton, and none of torch."""
    for name in ("TRITON_CACHE_DIR", "TRITON_HOME", "TORCHINDUCTOR_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "ann-lee"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    folder = tmp_path / "ann-lee" / ".triton" / "cache" / ("A" * 52)
    folder.mkdir(parents=True)
    (folder / "add_kernel.json").write_text(KERNEL)
    return tmp_path / "ann-lee"


def test_it_names_each_in_text_and_json(run: Run, home: Path) -> None:
    text = run("entries", "--all").out
    assert text.startswith("1 compile cache of 11 that are known: 60 B\n") and "made for: cuda 90\n" in text
    rows = run("entries", "--all", "--json").json["caches"]
    assert [row["name"] for row in rows if row["status"] == "cache"] == ["Triton"]
    assert rows[1]["path"] == f"{home}/.triton/cache"
    # Whoever tests may have a file system of its own for temporary files.
    is_mounted = any(os.path.ismount(above) for above in home.parents if above != Path("/"))
    kept = "mount the same at the next start" if is_mounted else "TRITON_CACHE_DIR=/a/mounted/folder"
    assert rows[1]["keep"].endswith(kept)


def test_redact_hides_where(run: Run, home: Path) -> None:
    for form in ((), ("--json",)):
        printed = run("entries", "--all", "--redact", *form).out
        assert "Triton" in printed and "cuda 90" in printed
        assert "ann-lee" not in printed and str(home.parent) not in printed


@pytest.mark.parametrize("arguments", [("--all", "."), ("--all", "--locks"), ("--all", "--prune-list")])
def test_it_is_one_or_the_other(run: Run, arguments: tuple[str, ...]) -> None:
    ended = run("entries", *arguments)
    assert ended.status == 2 and "--all stands alone" in ended.err
