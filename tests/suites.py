"""The slow suites of `make test` and what each covers: one runs when that changed, and always before a release (`make test ALL=1`).

Changed is what differs from where this branch left `origin/main`; on `main` itself, from the commit that `.ci/released` names, at which
everything ran. Where git does not know, everything did.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Suite:
    """Tests of one kind, and the paths that they cover."""

    name: str
    kind: str
    covers: tuple[str, ...]


SUITES = (
    Suite(
        "programs of real torch",
        "program",
        (
            "cachescope/analysis",
            "cachescope/capture",
            "cachescope/catalogue",
            "cachescope/cli",
            "cachescope/keys",
            "cachescope/locking",
            "cachescope/notebook_cells.py",
            "cachescope/readers",
            "cachescope/scope",
            "tests/analysis",
            "tests/capture",
            "tests/catalogue",
            "tests/cli",
            "tests/locking",
            "tests/readers",
        ),
    ),
    Suite(
        "pages in chromium",
        "browser",
        (
            "cachescope/analysis/what_if",
            "cachescope/figures",
            "cachescope/report",
            "cachescope/samples",
            "cachescope/views",
            "docs",
            "notebooks",
            "tests/figures",
            "tests/jupyter_lab.py",
            "tests/report",
            "tests/views",
        ),
    ),
)
# A change of these may change the outcome of any test.
ALL_COVER = ("Makefile", "pyproject.toml", "tests/conftest.py", "tests/suites.py")


def left_out(root: Path = ROOT) -> dict[Suite, str]:
    """The suites of which nothing changed, each with why it is left out."""
    base = _base(root)
    if base is None:
        return {}
    changed = _changed(root, base)
    return {
        suite: f"{suite.name}: nothing that they cover changed since {base[:9]}; make test ALL=1 runs them"
        for suite in SUITES
        if not any(_is_under(path, covered) for path in changed for covered in (*suite.covers, *ALL_COVER))
    }


def _base(root: Path) -> str | None:
    fork = _git(root, "merge-base", "HEAD", "origin/main")
    if fork and fork != _git(root, "rev-parse", "HEAD"):
        return fork
    try:
        released = (root / ".ci" / "released").read_text().strip()
    except FileNotFoundError:
        return None
    return _git(root, "rev-parse", "--verify", "--quiet", f"{released}^{{commit}}")


def _changed(root: Path, base: str) -> list[str]:
    """Also what is not committed, and new files."""
    listed = (
        _git(root, "diff", "--name-only", "--no-renames", "-z", base),
        _git(root, "ls-files", "--others", "--exclude-standard", "-z"),
    )
    return [path for paths in listed for path in (paths or "").split("\0") if path]


def _is_under(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _git(root: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, encoding="utf-8", check=False
        )
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
