"""Which slow suites `make test` leaves out: those of which nothing changed, by git; and collecting all is quick."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.programs import python, ran
from tests.suites import ALL_COVER, ROOT, SUITES, changed_tests, left_out, suites_of

pytestmark = pytest.mark.slow

PROGRAMS, CATALOGUES, RECORDINGS, EXPLORER, REPORTS = SUITES
ALL = set(SUITES)


def git(root: Path, *words: str) -> str:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
    return ran(["git", "-C", root, *identity, *words]).stdout.strip()


def commit(root: Path, *paths: str) -> str:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        with (root / path).open("a", encoding="utf-8") as file:
            file.write("changed\n")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "x")
    return git(root, "rev-parse", "HEAD")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository on `main`, at the commit at which everything ran and one that says so."""
    folder = tmp_path_factory.mktemp("repository")
    git(folder, "init", "--quiet", "--template", "", "--initial-branch", "main")
    released = commit(folder, "README.md", "cachescope/views/plot.py", "cachescope/capture/live.py")
    (folder / ".ci").mkdir()
    (folder / ".ci" / "released").write_text(f"{released}\n")
    commit(folder)
    return folder


@pytest.fixture
def root(repository: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(repository, tmp_path / "repository"))


def test_what_they_cover_is_there() -> None:
    for suite in SUITES:
        assert all((ROOT / path).exists() for path in (*suite.covers, *suite.tests, *ALL_COVER))
    assert (ROOT / ".ci" / "released").is_file()


CHANGES = pytest.mark.parametrize(("changed", "left"), [
    ("README.md", ALL),
    ("cachescope/capture/live.py", {CATALOGUES, EXPLORER, REPORTS}),
    ("cachescope/views/plot.py", ALL - {EXPLORER}),
    ("cachescope/views/new.py", ALL - {EXPLORER}),
    ("cachescope/views_of_old/plot.py", ALL),
    ("pyproject.toml", set()),
])  # fmt: skip


@CHANGES
def test_on_main_what_changed_since_all_ran_counts(root: Path, changed: str, left: set[object]) -> None:
    commit(root, changed)
    commit(root, "CHANGELOG.md")
    assert set(left_out(root)) == left
    # As in a clone of what landed.
    git(root, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert set(left_out(root)) == left


@CHANGES
def test_what_is_not_committed_counts(root: Path, changed: str, left: set[object]) -> None:
    (root / changed).parent.mkdir(exist_ok=True)
    (root / changed).write_text("changed otherwise")
    assert set(left_out(root)) == left


@CHANGES
def test_on_a_branch_only_what_it_changed_counts(root: Path, changed: str, left: set[object]) -> None:
    commit(root, *(suite.covers[0] + "/landed.py" for suite in SUITES))
    git(root, "update-ref", "refs/remotes/origin/main", "HEAD")
    commit(root, changed)
    assert set(left_out(root)) == left


def test_a_file_that_is_moved_away_counts(root: Path) -> None:
    git(root, "mv", "cachescope/views/plot.py", "plot.py")
    assert set(left_out(root)) == ALL - {EXPLORER}


def test_a_test_is_of_the_first_suite_of_its_kind_that_has_it() -> None:
    def of(path: str, *kinds: str) -> list[object]:
        return [*suites_of(ROOT / path, kinds)]

    assert of("tests/cli/test_fix.py", "program") == [PROGRAMS]
    assert of("tests/analysis/test_real_programs.py", "program") == [RECORDINGS]
    assert of("tests/docs/test_demo.py", "browser", "program") == [REPORTS, RECORDINGS]
    assert of("tests/keys/test_system.py", "torch") == of("tests/cli/test_main.py") == []


def test_a_test_that_changed_is_told(root: Path) -> None:
    assert root / "tests/test_new.py" not in changed_tests(root)
    (root / "tests").mkdir()
    (root / "tests" / "test_new.py").touch()
    assert root / "tests/test_new.py" in changed_tests(root)


@pytest.mark.parametrize("released", ["", "0" * 40, "no commit"])
def test_where_git_does_not_know_everything_changed(root: Path, released: str) -> None:
    assert left_out(root)
    (root / ".ci" / "released").write_text(released)
    assert not left_out(root)
    (root / ".ci" / "released").unlink()
    assert not left_out(root)


def test_without_a_repository_everything_changed(tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "released").write_text("HEAD")
    assert not left_out(tmp_path)


def test_the_last_line_says_what_was_left_out_and_why() -> None:
    """On a machine without a browser."""
    command = [sys.executable, "-m", "pytest", "-p", "no:nbval", "tests/views/test_voila.py"]
    done = ran(command, os.environ | {"PATH": ""}, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "Left out: 1 (chromium is missing: apt-get install chromium)"


@pytest.mark.sweep
def test_collecting_the_tests_does_not_import_torch() -> None:
    code = (
        "import sys, pytest\n"
        "options = ['--collect-only', '-q', '--benchmark-disable', '-p', 'no:nbval', '-p', 'no:cacheprovider']\n"
        "status = pytest.main([*options, 'tests'])\n"
        "sys.exit(int(status) or ('torch' in sys.modules and 'torch is imported'))"
    )
    assert python(code, cwd=ROOT).stderr == ""
