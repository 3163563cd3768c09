"""``cachescope entries``: what is in a directory, what is damaged, and one entry with its source."""

import json
import re
from pathlib import Path

import pytest

import cachescope
from tests.cli.conftest import Run, command, environment, in_pipe, on_screen
from tests.conftest import Recording

pytestmark = pytest.mark.slow


def test_json_is_the_frame(run: Run, recording: Recording) -> None:
    printed = json.loads(run("entries", recording("2.13.0", "config_flip") / "cache", "--json").out)
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
    # What is printed for rm is of a directory that was named.
    done = run("entries", "--prune-list")
    assert done.status == 2 and not done.out


@pytest.mark.parametrize("order", ["KEY --json DIR", "DIR --json KEY", "--json DIR KEY", "KEY DIR --json"])
def test_options_may_stand_between_the_paths(order: str, run: Run, recording: Recording) -> None:
    cache = recording("2.13.0", "cold_warm") / "cache"
    key = next(path.name for path in (cache / "fxgraph").glob("*/*"))
    words = {"KEY": key, "DIR": str(cache)}
    arguments = [words.get(word, word) for word in order.split()]
    assert {file["cache_key"] for file in json.loads(run("entries", *arguments).out)["entries"]} == {key}


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
    printed = json.loads(run("entries", key, cache, "--json").out)
    entry = printed["entries"][0]
    assert printed["entry"] == entry["entry"]
    assert len(printed["entries"]) == len(printed["guards"]) == 2
    assert printed["guards"][0]["beside"] == ["other_code", "other_guards"]
    (code,) = cache.glob(f"*/{entry['code_key']}.py")
    assert printed["source_code"] == code.read_text()
    assert (printed["source_language"], printed["source_missing"]) == ("python", None)
    assert {link["child_key"] for link in printed["links"]} >= {entry["code_key"]}
    assert printed["past_misses"][0]["verdict"] == "guard_failed"


def test_without_a_directory_it_is_the_one_torch_would_use(
    run: Run, recording: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = recording("2.13.0", "config_flip") / "cache"
    key, _ = graph_of(cache)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(cache))
    assert run("entries", key[:10]).out.startswith(f"fxgraph {key}\n")
    done = run("entries", "zz")
    assert (done.status, done.out) == (2, "")
    assert done.err == f"cachescope: 'zz' is no path; in {cache}: no key 'zz' in what was read\n"


def test_a_missing_directory_is_not_made(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "absent"))
    done = run("entries", "fabc")
    assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
    assert "'fabc' is no path; for a key name the directory it is in" in done.err
    assert not list(tmp_path.iterdir())
