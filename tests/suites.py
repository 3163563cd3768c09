"""The slow suites of `make test` and what each covers: one runs when that changed, and always before a release (`make test ALL=1`).

Changed is what differs from where this branch left `origin/main`; on `main` itself, from the commit that `.ci/released` names, at which
everything ran. Where git does not know, everything did.
"""

import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Suite:
    """Tests of one kind in some folders, and the paths that they cover besides themselves."""

    name: str
    kind: str
    tests: tuple[str, ...]
    covers: tuple[str, ...]


# A test is of the first suite of its kind whose folders it is in.
SUITES = (
    Suite(
        "programs that are recorded, foretold and mended",
        "program",
        ("tests/capture", "tests/cli"),
        (
            "cachescope/analysis/fixes.py", "cachescope/analysis/preflight",
            "cachescope/answers/preflight.py", "cachescope/capture", "cachescope/cli/capture.py",
            "cachescope/cli/fix.py", "cachescope/cli/needed.py", "cachescope/cli/preflight.py",
            "cachescope/cli/record.py", "cachescope/keys", "cachescope/notebook_cells.py",
            "cachescope/readers", "cachescope/report/preflight.py",
            "cachescope/scope", "tests/capture",
        ),
    ),
    Suite("catalogues and locks beside torch", "program", ("tests/catalogue", "tests/locking"),
        ("cachescope/catalogue", "cachescope/locking", "tests/catalogue", "tests/data")),
    # What other versions of torch recorded is read by tests that always run; here the installed one records it again.
    Suite("recordings made anew", "program", ("tests",),
        ("cachescope/capture", "cachescope/readers", "tests/data")),
    Suite("the explorer in chromium", "browser", ("tests/views", "tests/test_notebooks.py"),
        ("cachescope/figures", "cachescope/views", "notebooks", "tests/jupyter_lab.py", "tests/views")),
    Suite(
        "reports in chromium",
        "browser",
        ("tests",),
        (
            "cachescope/analysis/what_if", "cachescope/figures", "cachescope/report", "cachescope/samples",
            "docs", "tests/jupyter_lab.py", "tests/report",
        ),
    ),
)  # fmt: skip
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


def suites_of(test: Path, kinds: Iterable[str]) -> Iterator[Suite]:
    """The suites that a test is of: one for each of its kinds that has some."""
    path = test.relative_to(ROOT).as_posix()
    for kind in kinds:
        having = (one for one in SUITES if one.kind == kind)
        yield from islice((one for one in having if any(_is_under(path, folder) for folder in one.tests)), 1)


def changed_tests(root: Path = ROOT, since: str | None = None) -> set[Path]:
    """The files that changed since a commit, or since everything ran: a test that did is run, whatever its suite."""
    base = since or _base(root)
    return {root / path for path in _changed(root, base)} if base else set()


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
