"""``cachescope lock`` and ``cachescope verify``: their texts, JSON, statuses, what they load and what they hide."""

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import cachescope
from cachescope.locking.lock import KeyField, lock_text, read_lock
from tests.cli.conftest import Run, in_pipe
from tests.conftest import Recording
from tests.hostile_texts import TEXTS
from tests.output_gates import acting_in

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("torch_read_once")]


@pytest.fixture
def cache(recording: Recording, tmp_path: Path) -> Path:
    copy = tmp_path / "cache"
    shutil.copytree(recording("2.13.0", "training") / "cache", copy)
    return copy


@pytest.fixture
def made(run: Run, cache: Path, recording: Recording, tmp_path: Path) -> Path:
    path = tmp_path / "made" / "cache.lock"
    path.parent.mkdir()
    done = run("lock", cache, "-o", path, "--expect", recording("2.13.0", "training") / "trace")
    assert (done.status, done.err) == (0, "")
    assert "8 files (677.5 kB), 6 entries" in done.flat
    return path


def test_as_locked(run: Run, made: Path, cache: Path) -> None:
    done = run("verify", made, cache)
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith("as locked: 8 files, 677.5 kB, 6 entries; not known: ")


def test_not_as_locked(run: Run, made: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = next((cache / "fxgraph").rglob("*/f*/*"))
    path.write_bytes(path.read_bytes() + b"x")
    monkeypatch.setenv("TORCHINDUCTOR_SHAPE_PADDING", "0")
    done = run("verify", made, cache)
    assert (done.status, done.err) == (3, "")
    text = done.flat
    padding = "TORCHINDUCTOR_SHAPE_PADDING"
    assert text.startswith(f"not as locked: 1 file of 8 files, 677.5 kB; {padding} of this machine;")
    assert f"{padding} not set -> '0' differs" in text
    assert "costs 6 entries, which took 12.9 s to compile" in text
    assert "expected, and without an entry" in text


def test_json_has_all_of_it(run: Run, made: Path, cache: Path) -> None:
    (cache / "more").write_bytes(b"")
    found = run("verify", made, cache, "--json").json
    assert found["passed"] is False
    assert found["findings"] == [
        {"kind": "extra", "path": "more", "cache": None, "key": None, "message": "the lock does not have it"}
    ]
    assert [fact["name"] for fact in found["facts"]] == [
        "torch", "Triton", "device", "Python", "CPU", "variables", "threads",
    ]  # fmt: skip
    assert (found["files"], found["entries"], found["missing_keys"], found["unexpected"]) == (8, 6, [], [])


def test_what_nothing_expects_can_go(run: Run, cache: Path, recording: Recording, tmp_path: Path) -> None:
    """Only the first process: what the others compiled is not looked up again."""
    trace = sorted((recording("2.13.0", "training") / "trace").iterdir())
    scope = cachescope.read(recording("2.13.0", "training") / "trace")
    first = scope.runs["source"].iloc[0]
    path = tmp_path / "one.lock"
    assert str(trace[0].parent) in first
    assert run("lock", cache, "-o", path, "--expect", first).status == 0
    done = run("verify", path, cache, "--json")
    found = done.json
    assert done.status == 0
    lookups = scope.lookups
    mine = set(lookups.loc[lookups["run"] == 0, "cache_key"])
    assert {one["cache_key"] for one in found["unexpected"]} == set(lookups["cache_key"]) - mine


def test_without_a_directory_it_looks_where_torch_would(
    run: Run, made: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(cache))
    assert run("verify", made).status == 0
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(cache / "none"))
    done = run("verify", made)
    assert (done.status, done.err) == (1, f"cachescope: {cache / 'none'}: is not there\n")


def test_a_lock_is_not_written_into_what_it_locks(run: Run, cache: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(cache)
    for output in (cache / "x.lock", tmp_path / "link" / "x.lock", cache / "zb" / ".." / "x.lock"):
        done = run("lock", cache, "-o", output)
        assert done.status == 2
        assert done.err.endswith("the lock would be in the directory that it locks: write it elsewhere\n")
    assert not (cache / "x.lock").exists()


def test_a_file_that_is_no_lock_is_left_as_it_is(run: Run, made: Path, cache: Path, tmp_path: Path) -> None:
    other = tmp_path / "notes.txt"
    other.write_text("mine")
    done = run("lock", cache, "-o", other)
    assert (done.status, done.err) == (
        1, f"cachescope: {other}: is no lock, and left as it is; --force replaces it\n",
    )  # fmt: skip
    assert other.read_text() == "mine"
    assert run("lock", cache, "-o", other, "--force").status == 0
    # A lock is replaced, and so is what holds nothing.
    (tmp_path / "empty").touch()
    for path in (other, made, tmp_path / "empty"):
        assert run("lock", cache, "-o", path).status == 0
        assert run("verify", path, cache).status == 0


def test_a_lock_that_an_editor_marked_is_read(run: Run, made: Path, cache: Path) -> None:
    made.write_bytes(b"\xef\xbb\xbf" + made.read_bytes())
    assert run("verify", made, cache).status == 0
    assert run("lock", cache, "-o", made).status == 0


def test_a_lock_without_files_says_so(run: Run, made: Path, cache: Path, tmp_path: Path) -> None:
    made.write_text(json.dumps(json.loads(made.read_text()) | {"files": [], "expected": None}))
    (tmp_path / "nothing").mkdir()
    done = run("verify", made, tmp_path / "nothing")
    assert done.out.startswith("as locked: the lock has no file, 0 entries")
    done = run("verify", made, cache)
    assert done.status == 3
    assert done.out.startswith("not as locked: 8 files that the lock does not have\n")


@pytest.mark.parametrize(
    ("made_with", "here", "differs"),
    [(None, "default", True), ("avx2", None, True), ("avx2", "avx2", False), (None, "avx512", False)],
)
def test_code_for_other_vector_instructions_is_told(
    made_with: str | None, here: str | None, differs: bool, run: Run, made: Path, cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """torch finds the entries all the same, and what it loads does not compile (tests/capture/hard_programs.py, `capability`)."""
    lock = json.loads(made.read_text())
    lock["machine"]["cpu_features"] = ["avx2", "avx512f"]
    lock["variables"]["ATEN_CPU_CAPABILITY"] = {"value": made_with, "fields": {}}
    made.write_text(json.dumps(lock))
    if here is not None:
        monkeypatch.setenv("ATEN_CPU_CAPABILITY", here)
    told = run("verify", made, cache, "--json").json
    found = [one["state"] for one in told["facts"] if one["name"] == "ATEN_CPU_CAPABILITY"]
    assert found == (["differs"] if differs else [])


def test_a_lock_that_was_copied_into_the_cache_is_not_extra(run: Run, made: Path, cache: Path) -> None:
    shutil.copy(made, cache / "cache.lock")
    assert run("verify", cache / "cache.lock", cache).status == 0
    assert run("verify", made, cache).status == 3


def test_verifying_loads_neither_torch_nor_what_makes_frames(made: Path, cache: Path) -> None:
    """An init container runs it before every start; the torch that is installed is asked all the same."""
    program = (
        "import sys; from cachescope.cli import main; status = main(sys.argv[1:])\n"
        "print(status, sorted({'torch', 'triton', 'pandas', 'numpy', 'pyarrow', 'orjson', 'rich'} & {*sys.modules}),"
        " file=sys.stderr)"
    )
    for options in ([], ["--json"]):
        done = in_pipe([sys.executable, "-c", program, "verify", str(made), str(cache), *options])
        assert done.stderr == "0 []\n"


def test_only_the_cache_is_read(made: Path, cache: Path, tmp_path: Path) -> None:
    """Whatever a lock says, nothing else is opened; what torch and the system say of themselves aside."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("secret")
    (cache / "out").symlink_to(elsewhere)
    program = (
        "import os, sys\n"
        "opened = []\n"
        "sys.addaudithook(lambda event, args: event == 'open' and opened.append(str(args[0])))\n"
        "from cachescope.cli import main; main(sys.argv[1:])\n"
        "print('\\n'.join(opened), file=sys.stderr)"
    )
    done = in_pipe([sys.executable, "-c", program, "verify", str(made), str(cache)])
    assert done.returncode == 0
    opened = {path for path in done.stderr.splitlines() if path.startswith(str(tmp_path))}
    assert {path for path in opened if not path.startswith(str(cache))} == {str(made)}
    assert str(cache / "out") not in opened


@pytest.mark.parametrize("name", TEXTS)
def test_no_text_of_a_lock_acts_where_it_is_shown(name: str, run: Run, made: Path, cache: Path) -> None:
    text = TEXTS[name].encode("utf-8", "replace").decode()[:19_000]
    lock = read_lock(made)
    odd = {text.replace("\0", "").replace("/", "|")[:200] or "x": next(iter(lock.files.values()))}
    files = {**lock.files, **{path: replace(file, path=path, kind=text[:100]) for path, file in odd.items()}}
    context = {**lock.contexts[0], text[:100]: KeyField("a" * 51, text)}
    hostile = replace(
        lock,
        files=files,
        contexts=(context, *lock.contexts[1:]),
        links={"l": "m"},
        machine=replace(lock.machine, architecture=text, devices=(text,), torch_version=text),
        variables={text[:4000]: next(iter(lock.variables.values()))},
        expected=((text[:4000], text[:4000]), *(lock.expected or ())),
    )
    made.write_text(lock_text(hostile))
    for options in ([], ["--json"], ["--redact"]):
        done = run("verify", made, cache, *options)
        assert done.status == 3, done.err
        assert acting_in(done.out) == []


def test_identities_are_hidden(run: Run, made: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (cache / "private-thing").write_bytes(b"")
    monkeypatch.setenv("TORCHINDUCTOR_PROFILE", "/home/alice/private-thing")
    for options in (["--redact"], ["--redact", "--json"]):
        done = run("verify", made, cache, *options)
        assert done.status == 3 and "private" not in done.out
        assert "alice" not in done.out and str(cache) not in done.out
    done = run("verify", cache / "private-thing", cache, "--redact")
    assert done.status == 1 and "private" not in done.err
    done = run("lock", cache, "-o", made.parent / "private.lock", "--redact")
    assert done.status == 0 and "private" not in done.out


def test_python_gives_what_the_command_says(made: Path, cache: Path, tmp_path: Path) -> None:
    lock = cachescope.lock(cache, tmp_path / "other.lock")
    assert read_lock(tmp_path / "other.lock") == lock
    found = cachescope.verify(tmp_path / "other.lock", cache)
    assert found.passed and repr(found).startswith("as locked: 8 files")
    assert repr(lock) == "<8 files, 6 entries, 2 contexts>"
    (cache / "more").write_bytes(b"")
    assert [one.path for one in cachescope.verify(lock, cache).findings] == ["more"]


NO_COMMAND = "cachescope verify: error: give the command to run after --preflight --"


@pytest.mark.parametrize(("words", "status", "said"), [
    (("DIR", "--preflight"), 2, NO_COMMAND),
    (("DIR", "--preflight", "--"), 2, NO_COMMAND),
    (("--preflight",), 2, NO_COMMAND),
    (("DIR", "--preflight", "--", "no-such-command", "--json"), 127, "command not found"),
    (("--json", "DIR", "--preflight", "no-such-command"), 127, "command not found"),
])  # fmt: skip
def test_all_that_follows_preflight_is_the_command(
    words: tuple[str, ...], status: int, said: str, run: Run, made: Path, cache: Path
) -> None:
    done = run("verify", made, *(cache if word == "DIR" else word for word in words))
    assert (done.status, done.out) == (status, "") and done.err.splitlines()[-1].endswith(said)


def test_a_command_without_torch_is_no_verified_one(run: Run, made: Path, cache: Path) -> None:
    done = run("verify", made, cache, "--preflight", "--", sys.executable, "-c", "raise SystemExit(5)")
    assert done.status == 1 and "the command failed (exit status 5)" in done.err
