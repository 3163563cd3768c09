"""``cachescope entries``: what is in a directory, what is damaged, one entry with its source; and where something is in the way: an interrupt, missing rights, odd names."""

import contextlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import cachescope
from cachescope.cli import main
from tests.cli.conftest import ROOT, Run, command, environment, in_pipe, on_screen
from tests.conftest import Recording
from tests.nobody import as_nobody

pytestmark = pytest.mark.slow


def test_json_is_the_frame(run: Run, recording: Recording) -> None:
    printed = run("entries", recording("2.13.0", "config_flip") / "cache", "--json").json
    lists = {"entries", "guards", "duplicates", "orphans", "removable", "problems"}
    assert printed.keys() == lists | {"cachescope"}
    assert printed["cachescope"] == cachescope.__version__
    assert [entry["cache"] for entry in printed["entries"]].count("fxgraph") == 2
    named = {"entry", "cache_key", "path", "size_bytes", "modified_time", "status"}
    assert named <= printed["entries"][0].keys()


def test_the_prune_list_names_what_can_go_and_nothing_else(run: Run, recording: Recording) -> None:
    cache = recording("2.13.0", "entry_truncated") / "cache"
    entries = cachescope.read(cache).entries
    (damaged,) = entries.loc[entries["status"] == "damaged", "path"]
    assert run("entries", cache, "--prune-list").out == f"{damaged}\n" and Path(damaged).is_file()
    assert run("entries", recording("2.13.0", "training") / "cache", "--prune-list").out == ""


def test_without_a_directory_it_is_the_one_that_torch_would_use(
    run: Run, recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = recording("2.13.0", "entry_truncated") / "cache"
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(cache))
    assert run("entries").out == run("entries", cache).out
    key = next((cache / "fxgraph").glob("*/*")).name
    assert run("entries", key[:10]).out.startswith(f"fxgraph {key}\n")
    done = run("entries", "zz")
    assert (done.status, done.out) == (2, "")
    assert done.err == f"cachescope: 'zz' is no path; in {cache}: no key 'zz' in what was read\n"
    # What is printed for rm is of a directory that was named.
    done = run("entries", "--prune-list")
    assert done.status == 2 and not done.out


def test_what_lies_in_an_archive_is_told_by_the_path_of_the_archive(
    run: Run, recording: Recording, tmp_path: Path
) -> None:
    packed = shutil.make_archive(str(tmp_path / "baked"), "tar", recording("2.13.0", "training"), "cache")
    out = run("entries", packed).flat
    assert f" in {packed}/cache Files by kind" in out


@pytest.mark.parametrize("order", ["KEY --json DIR", "DIR --json KEY", "--json DIR KEY", "KEY DIR --json"])
def test_options_may_stand_between_the_paths(order: str, run: Run, recording: Recording) -> None:
    cache = recording("2.13.0", "cold_warm") / "cache"
    key = next(path.name for path in (cache / "fxgraph").glob("*/*"))
    words = {"KEY": key, "DIR": str(cache)}
    arguments = [words.get(word, word) for word in order.split()]
    assert {file["cache_key"] for file in run("entries", *arguments).json["entries"]} == {key}


SEQUENCE = re.compile(r"\x1b\[[0-9;]*m")


def graph_of(cache: Path) -> tuple[str, str]:
    """The key of one FX entry, and the source that torch wrote for it."""
    row = next(cachescope.read(cache).entries.query("cache == 'fxgraph'").itertuples())
    (code,) = cache.glob(f"*/{row.code_key}.py")
    return row.cache_key, code.read_text()


def test_a_pipe_gets_the_source_whole_and_plain(recording: Recording) -> None:
    cache = recording("2.13.0", "config_flip") / "cache"
    key, source = graph_of(cache)
    done = in_pipe(command("entries", key[:12], cache))
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith(f"fxgraph {key}\n")
    assert "1 candidate under the key" in done.stdout
    assert done.stdout.rstrip("\n").endswith(source.rstrip("\n")) and "\x1b" not in done.stdout


def test_a_terminal_gets_it_highlighted(recording: Recording) -> None:
    cache = recording("2.13.0", "config_flip") / "cache"
    key, source = graph_of(cache)
    shown = on_screen(command("entries", key, cache), columns=100)
    assert shown.status == 0
    _, below = shown.sent.split("source (")
    assert len(set(SEQUENCE.findall(below))) > 5
    # Nothing is lost, wrapped or padded.
    text = SEQUENCE.sub("", below).replace("\r\n", "\n").split("\n", 1)[1]
    assert text.rstrip("\n") == source.rstrip("\n")
    plain = on_screen(command("entries", key, cache), env=environment(NO_COLOR="1"))
    assert "\x1b[" not in plain.sent.split("source (")[1]


def test_json_has_the_source_as_text(run: Run, recording: Recording) -> None:
    cache = recording("2.13.0", "dynamic_guards") / "cache"
    key = cachescope.read(cache).entries.query("cache == 'fxgraph'")["cache_key"].iloc[0]
    printed = run("entries", key, cache, "--json").json
    entry = printed["entries"][0]
    assert printed["entry"] == entry["entry"]
    assert len(printed["entries"]) == len(printed["guards"]) == 2
    assert printed["guards"][0]["beside"] == ["other_code", "other_guards"]
    (code,) = cache.glob(f"*/{entry['code_key']}.py")
    assert printed["source_code"] == code.read_text()
    assert (printed["source_language"], printed["source_missing"]) == ("python", None)
    assert {link["child_key"] for link in printed["links"]} >= {entry["code_key"]}
    assert printed["past_misses"][0]["verdict"] == "guard_failed"


def test_a_missing_directory_is_not_made(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "absent"))
    done = run("entries", "fabc")
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert "'fabc' is no path; for a key name the directory it is in" in done.err
    assert not list(tmp_path.iterdir())


COPIES = 1_500
# Says when the reading is well under way, and changes nothing about it.
WATCHED = """
import sys
opened = []
def watch(event, arguments):
    if event == "open" and "/fxgraph/" in str(arguments[0]):
        opened.append(arguments[0])
        if len(opened) == 50:
            print("ready", file=sys.stderr, flush=True)
sys.addaudithook(watch)
from cachescope.cli import main
sys.exit(main(sys.argv[1:]))
"""


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.lstat().st_size, path.lstat().st_mtime_ns) for path in sorted(folder.rglob("*"))}


@pytest.fixture
def big(recording: Recording, tmp_path: Path) -> Path:
    """A cache of so many copies of one real entry that reading them takes seconds."""
    (entry,) = (recording("2.13.0", "cold_warm") / "cache").glob("fxgraph/*/*/*")
    for number in range(COPIES):
        letters = "".join("abcdefghij"[int(digit)] for digit in f"{number:05}")
        key = f"f{letters}{'a' * 46}"
        folder = tmp_path / "work" / "cache" / "fxgraph" / key[1:3] / key
        folder.mkdir(parents=True)
        os.link(entry, folder / entry.name)
    for name in ("home", "tmp"):
        (tmp_path / name).mkdir()
    return tmp_path / "work" / "cache"


def watched(big: Path) -> tuple[list[str], dict[str, str]]:
    base = big.parents[1]
    folders = {"HOME": "home", "TMPDIR": "tmp", "XDG_CACHE_HOME": "home"}
    named = {name: str(base / folder) for name, folder in folders.items()}
    env = environment(PYTHONDONTWRITEBYTECODE="1", **named)
    return [sys.executable, "-c", WATCHED, "entries", str(big)], env


def test_ctrl_c_while_entries_are_read_leaves_nothing_behind(big: Path) -> None:
    before = tree(big.parents[1])
    arguments, env = watched(big)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(arguments, env=env, cwd=big.parent, **pipes)
    assert process.stderr is not None and process.stderr.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out, err) == (130, "", "")
    assert tree(big.parents[1]) == before


def test_ctrl_c_on_a_terminal_takes_the_progress_bar_away(big: Path) -> None:
    before = tree(big.parents[1])
    arguments, env = watched(big)
    shown = on_screen(arguments, keys=b"\x03", env=env)
    assert shown.status == 130 and "Traceback" not in shown.sent
    assert "entries of" not in shown.sent
    # The bar hid the cursor, and gives it back.
    assert shown.sent.rfind("\x1b[?25h") > shown.sent.rfind("\x1b[?25l") >= 0
    assert tree(big.parents[1]) == before


def test_without_rights_the_directory_is_one_line_and_what_is_in_it_a_problem(
    recording: Recording, tmp_path: Path
) -> None:
    cache = Path(shutil.copytree(recording("2.13.0", "cold_warm") / "cache", tmp_path / "cache"))
    for path in (tmp_path, *cache.rglob("*")):
        path.chmod(0o755)
    shut = next(cache.glob("aotautograd/*"))
    shut.chmod(0)
    (unreadable,) = cache.glob("fxgraph/*/*/*")
    unreadable.chmod(0)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    status, printed = printed_to_nobody("entries", cache, "--json", below=tmp_path)
    assert status == 0
    found = json.loads(printed)
    assert [problem["message"] for problem in found["problems"]] == ["Permission denied"] * 2
    assert {problem["source"] for problem in found["problems"]} == {str(shut), str(unreadable)}
    # Not damaged, and not empty: nothing is known, and nothing that it may need is alone.
    unread = {entry["path"]: entry for entry in found["entries"] if entry["status"] == "unreadable"}
    assert set(unread) == {str(shut), str(unreadable)}
    assert unread[str(unreadable)]["size_bytes"] == unreadable.stat().st_size
    assert "damaged" not in {entry["status"] for entry in found["entries"]}
    assert (found["orphans"], found["removable"]) == ([], [])
    status, printed = printed_to_nobody("entries", closed, below=tmp_path)
    assert (status, printed) == (1, f"cachescope: {closed}: cannot be read: Permission denied\n")


def printed_to_nobody(*arguments: object, below: Path) -> tuple[int, str]:
    """The status of a command, and what it prints, where somebody runs it who may not read everything."""
    # What is imported later is imported before the user changes.
    cachescope.read(ROOT / "cachescope" / "samples" / "entry_truncated" / "cache")._repr_html_()

    def work() -> tuple[int, str]:
        with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(said):
            return main([*map(str, arguments)]), said.getvalue()

    status, printed = as_nobody(work, below=below)
    return status, printed


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps names that are not UTF-8")
def test_loops_and_names_that_are_not_utf_8_or_steer_a_terminal_are_listed(
    run: Run, recording: Recording, tmp_path: Path
) -> None:
    cache = Path(os.fsdecode(os.fsencode(tmp_path) + b"/c\xff\n\x1b[31m"))
    shutil.copytree(recording("2.13.0", "config_flip") / "cache", cache)
    count = sum(path.is_file() for path in cache.rglob("*"))
    (cache / "loop").symlink_to(".")
    (cache / "fxgraph" / "loop").symlink_to("..")
    for arguments in ((cache,), ("ft4g52pb", cache)):
        done = run("entries", *arguments)
        assert (done.status, done.err) == (0, "") and "\x1b" not in done.out
        assert "/c\\xff" in done.out
        # The newline starts no line of its own.
        assert not any(line.startswith("\\x1b") for line in done.out.splitlines())
    assert len(run("entries", cache, "--json").json["entries"]) == count + 2
    # A path with a newline would be two in a list.
    assert run("entries", cache, "--prune-list").out == ""


def test_locks_are_told_only_when_asked(run: Run, recording: Recording, tmp_path: Path) -> None:
    cache = Path(shutil.copytree(recording("2.13.0", "config_flip") / "cache", tmp_path / "cache"))
    (cache / "locks").mkdir(exist_ok=True)
    key = next(cache.glob("??/c*.py")).stem
    (cache / "locks" / f"{key}.lock").touch()
    locks = len(list(cache.rglob("*.lock")))
    assert "held" not in run("entries", cache).out
    assert f"{locks} lock{'s' * (locks > 1)}: 0 held, {locks} free" in run("entries", cache, "--locks").out
    assert not any("lock_held" in row for row in run("entries", cache, "--json").json["entries"])
    rows = run("entries", cache, "--json", "--locks").json["entries"]
    assert {row["lock_held"] for row in rows if row["cache"] == "lock"} == {False}
    assert {row["lock_held"] for row in rows if row["cache"] != "lock"} == {None}


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_it_fits_a_terminal(columns: int, recording: Recording) -> None:
    shown = on_screen(command("entries", recording("2.13.0", "four_processes") / "cache"), columns=columns)
    assert shown.status == 0
    assert all(len(row) <= columns for row in shown.rows[1:])
    kind = re.compile(r" \w+ +(?:Status: )?(?:ok|damaged|temporary)(?:; Files:)? +\d+")
    kinds = [row for row in shown.rows if kind.match(row)]
    assert len(kinds) > 2
    assert columns < 80 or not any(row.endswith("…") for row in kinds)
