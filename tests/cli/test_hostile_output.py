"""No text of a source acts where it is printed: not on a terminal, not in the log of a CI system, not in a parser.

Texts are planted into real recordings, and into every column that holds texts, and go through every command and format.
"""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

import cachescope
from tests import planted
from tests.cli.conftest import Outcome, Run, command, environment, on_screen
from tests.conftest import Recording
from tests.hostile_texts import TEXTS
from tests.output_gates import acting_in, strict_json

# What Python warns of goes to standard error as it is.
pytestmark = [
    pytest.mark.slow,
    *(pytest.mark.filterwarnings(f"error::{kind}") for kind in ("SyntaxWarning", "DeprecationWarning")),
]

BAR = ["check", "--min-hit-rate", "0.9"]
COMMANDS = (
    ["explain"], ["explain", "--json"], ["explain", "--lookup", "2"], ["explain", "--lookup", "2", "--json"],
    ["time"], ["time", "--json"], ["compiles"], ["compiles", "--json"], ["what-if"], ["what-if", "--json"],
    ["what-if", "--without", "gm", "--sensitivity"], ["entries"], ["entries", "--locks"], ["entries", "--json"],
    ["entries", "--prune-list"], ["contexts"], ["contexts", "--json"], ["devices"], ["devices", "--json"], BAR,
    [*BAR, "--json"], [*BAR, "--format", "github"], [*BAR, "--format", "junit"],
)  # fmt: skip
AUDITS = (["audit"], ["audit", "--json"], ["audit", "--format", "sarif"])
SIDES = (["diff", "run:0", "run:1"], ["diff", "run:0", "run:1", "--json"])
# The only commands that cachescope means: with one property, in which nothing ends it.
MEANT = re.compile(r"::(?:error|warning) title=[^:,]*::")


def assert_harmless(done: Outcome, arguments: list[str]) -> None:
    """Nothing in what was printed acts, and the parser that it is for reads it."""
    assert done.status in (0, 1, 2, 3)
    assert acting_in(done.out, meant=MEANT if "github" in arguments else None) == [], arguments
    assert acting_in(done.err) == [], arguments
    if done.out and {"--json", "sarif"} & set(arguments):
        strict_json(done.out)
    if done.out and "junit" in arguments:
        ElementTree.fromstring(done.out)


def as_argument(text: str) -> str:
    """As the system would hand it over: bytes that are no UTF-8 are halves of surrogate pairs, and there is no NUL."""
    return os.fsdecode(text.replace("\0", "").encode("utf-8", "surrogatepass"))


def all_of(run: Run, source: Path, commands: tuple[list[str], ...] = COMMANDS + SIDES) -> Iterator[Outcome]:
    for arguments in commands:
        done = run(*arguments, source)
        assert_harmless(done, arguments)
        yield done


@pytest.fixture
def copied(recording: Recording, tmp_path: Path) -> Path:
    return Path(shutil.copytree(recording("2.13.0", "config_flip"), tmp_path / "copied"))


@pytest.mark.sweep
@pytest.mark.usefixtures("commands_read_once")
@pytest.mark.parametrize(
    ("name", "turn"), [("config_flip", 0), ("bypass_custom_pass", 5), ("four_ranks", 11)]
)
def test_texts_of_every_kind_of_source_act_on_nothing(
    name: str, turn: int, run: Run, recording: Recording, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(recording("2.13.0", name), tmp_path / "copied"))
    choose = planted.taking_turns(turn)
    for path in planted.files_of(folder, "trace/*"):
        planted.plant_in_trace(path, choose)
    for path in planted.files_of(folder, "text/*"):
        planted.plant_in_text_log(path, choose)
    planted.plant_in_cache(folder / "cache", turn)
    # Half of the commands on this one, half on that.
    assert [*all_of(run, folder / "trace", COMMANDS[::2] + SIDES)]
    assert [*all_of(run, folder / "text", COMMANDS[1::2] + SIDES)]
    scope = cachescope.read(folder / "cache")
    assert set(scope.entries["status"]) >= {"ok", "foreign"} and "damaged" not in set(scope.entries["status"])
    for key in scope.entries["cache_key"].dropna().unique():
        for form in ([], ["--json"]):
            assert_harmless(run("entries", key, folder / "cache", *form), ["entries", *form])
    assert [*all_of(run, folder / "cache", AUDITS + COMMANDS[:2] + COMMANDS[4:14])]


@pytest.fixture(scope="module")
def whole(recording: Recording) -> cachescope.Scope:
    return cachescope.read(recording("2.13.0", "config_flip"))


@pytest.mark.sweep
@pytest.mark.usefixtures("commands_read_once")
@pytest.mark.parametrize("turn", range(0, len(planted.SHORT), 3))
def test_a_text_in_a_column_is_inert(turn: int, run: Run, whole: cachescope.Scope, tmp_path: Path) -> None:
    planted.plant_in_columns(whole, turn).save(tmp_path / "saved")
    explained, *others = all_of(run, tmp_path / "saved")
    assert "2 hit, 4 missed" in explained.out
    assert any("\\x" in done.out for done in others)


@pytest.mark.sweep
@pytest.mark.usefixtures("commands_read_once")
@pytest.mark.parametrize("place", sorted(planted.STRUCTURAL_COLUMNS), ids=".".join)
def test_a_text_where_a_name_or_a_kind_belongs_acts_on_nothing(
    place: tuple[str, str], run: Run, whole: cachescope.Scope, tmp_path: Path
) -> None:
    planted.plant_in_columns(whole, len(place[1]), only=place).save(tmp_path / "saved")
    assert [*all_of(run, tmp_path / "saved", COMMANDS[::2])]


@pytest.mark.parametrize("name", TEXTS)
def test_a_message_that_quotes_it_is_one_harmless_line(name: str, run: Run, tmp_path: Path) -> None:
    text = as_argument(TEXTS[name])
    given = [["explain", f"{tmp_path}/{text}"], ["demo", text], ["entries", text[:3000], str(tmp_path)]]
    given += [["explain", "--key", text, f"{tmp_path}/x"], [*BAR, text], ["explain", f"--x{text}"], [text]]
    for arguments in given:
        done = run(*arguments)
        assert done.status in (1, 2), arguments
        assert_harmless(done, [])
        # What argparse says stands below the usage.
        assert done.err.startswith("usage: ") or done.err.count("\n") == 1


def test_a_name_of_a_file_acts_on_nothing(run: Run, copied: Path) -> None:
    for text in planted.SHORT:
        shutil.copytree(copied / "trace", copied / as_argument(text.replace("/", "|")))
    shutil.rmtree(copied / "trace")
    for arguments in (["explain"], ["explain", "--json"], ["contexts"], BAR, [*BAR, "--format", "github"]):
        done = run(*arguments, copied)
        assert done.status in (0, 3)
        assert_harmless(done, arguments)


def test_github_reads_back_what_was_meant(run: Run, copied: Path) -> None:
    for path in planted.files_of(copied, "trace/*"):
        planted.plant_in_trace(path, lambda old: TEXTS["percent"])
    done = run(*BAR, "--format", "github", copied / "trace")
    (error,) = (line for line in done.out.splitlines() if line.startswith("::"))
    title, data = re.fullmatch(r"::error title=([^:,]*)::(.*)", error).groups()  # type: ignore[union-attr]
    # actions/runner, ActionCommand.cs: properties and data are unescaped each in its way, which here are the same.
    assert unquote(title) == "cachescope: hit rate"
    assert any("100% %0A::error::x%0D%25,:;" in cause for cause in unquote(data).split("\n"))


def test_a_list_of_paths_holds_what_can_be_printed(run: Run, recording: Recording, tmp_path: Path) -> None:
    for name in ("plain", "a\u202eb", "c\n::error::d", "##vso[task.complete]", "é"):
        shutil.copytree(recording("2.13.0", "entry_truncated") / "cache", tmp_path / name / "cache")
    scope = cachescope.read(tmp_path)
    done = run("entries", tmp_path, "--prune-list")
    shown = {path.split("/cache/")[0] for path in done.out.splitlines()}
    assert shown == {str(tmp_path / name) for name in ("plain", "é")}
    assert len(done.out.splitlines()) < len(scope.removable)
    left = len(scope.removable) - len(done.out.splitlines())
    assert done.err.startswith(f"cachescope: {left} paths are left out")
    assert acting_in(done.out + done.err) == []


def test_on_a_terminal_only_cachescope_colours(copied: Path) -> None:
    for path in planted.files_of(copied, "trace/*"):
        planted.plant_in_trace(path, planted.taking_turns(0))
    planted.plant_in_cache(copied / "cache", 0)
    key = next((copied / "cache" / "fxgraph").glob("??/f*")).name
    for arguments in (["explain", copied / "trace"], ["entries", key, copied / "cache"]):
        shown = on_screen(command(*arguments, "--no-index"))
        # What follows the progress bar, which shows the cursor again and is taken back.
        answer = shown.sent.replace("\r\n", "\n").split("\x1b[?25h")[-1]
        answer = re.sub(r"\A(?:\r|\x1b\[1A|\x1b\[2K)*", "", answer)
        assert acting_in(answer, coloured=True) == []
        assert "\x1b[" in shown.sent


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_terminal_that_lacks_characters_shows_their_escapes(encoding: str, copied: Path) -> None:
    odd = Path(shutil.copytree(copied / "trace", copied / "é✓"))
    key = next((copied / "cache" / "fxgraph").glob("??/f*")).name
    for arguments in (["explain", odd], ["contexts", odd], ["entries", key, copied / "cache"]):
        shown = on_screen(command(*arguments, "--no-index"), env=environment(PYTHONIOENCODING=encoding))
        assert (shown.status, [row for row in shown.rows if "Error" in row]) == (0, [])
        if arguments[0] == "explain":
            # The ellipsis of a key that is cut is in cp1252.
            assert ("\\u2026" in shown.sent) == (encoding != "cp1252")
