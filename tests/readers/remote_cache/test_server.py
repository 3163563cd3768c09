"""A live Redis, filled with what torch put into one: what is read of it, and how little it is asked."""

import json
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from redis_server import DUMP, missing, missing_cli, redis_server, remote_settings, write_dump
from remote_recordings import keys_of_trace, unpacked

import cachescope
from cachescope.readers.remote_cache import stored
from tests.programs import ran

PROGRAM = Path(__file__).parents[2] / "data" / "remote_program.py"

needs_server = pytest.mark.skipif(bool(missing()), reason=missing())
COLUMNS = ["cache", "cache_key", "size_bytes", "status", "guards_expr", "hash_details", "detail"]
# What redis-py says to begin with, and what a look costs.
ALLOWED = {"scan", "strlen", "get", "select", "auth", "hello", "client|setinfo", "info", "config|resetstat"}
FX_KEY = "pt2:fx-graph-v1::f" + "a" * 51 + ":c1"


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked("2.13.0", tmp_path_factory.mktemp("remote")) / "remote.jsonl"


def fill(port: int, dump: Path, **options: Any) -> Any:
    """A client of a server that has what the dump has, as torch wrote it."""
    import redis

    client = redis.Redis(port=port, retry=redis.retry.Retry(redis.backoff.NoBackoff(), 0), **options)
    for line in dump.read_text().splitlines():
        record = json.loads(line)
        client.set(record["key"], json.dumps(record["value"]))
    return client


@pytest.fixture(scope="module")
def port(dump: Path) -> Iterator[int]:
    with redis_server() as port:
        fill(port, dump)
        yield port


def rows(*sources: object) -> Any:
    """The entries in one order. The number of a set of details depends on the order of reading, which a server chooses."""
    scope = cachescope.read(*map(str, sources))
    details = scope.tables.hash_details
    sets = scope.entries["detail_set"]
    told = [None if pd.isna(one) else sorted(map(str, details.details(int(one)))) for one in sets]
    entries = scope.entries.assign(hash_details=told)
    return entries[COLUMNS].sort_values(["cache", "cache_key"], ignore_index=True)


@needs_server
def test_a_server_is_read_like_its_dump(port: int, dump: Path) -> None:
    assert rows(f"redis://127.0.0.1:{port}/0").equals(rows(dump))


@needs_server
@pytest.mark.skipif(bool(missing_cli()), reason=missing_cli())
def test_a_dump_is_written_as_the_how_to_says(port: int, dump: Path, tmp_path: Path) -> None:
    assert DUMP in (Path(__file__).parents[3] / "docs" / "how-to" / "remote.md").read_text()
    write_dump(port, str(tmp_path))
    assert rows(tmp_path / "remote.jsonl").equals(rows(dump))


@needs_server
def test_a_socket_is_read_too(dump: Path, tmp_path: Path) -> None:
    with redis_server("--unixsocket", str(tmp_path / "redis.sock")) as port:
        fill(port, dump, db=1)
        assert rows(f"unix://{tmp_path}/redis.sock?db=1").equals(rows(dump))


@needs_server
def test_the_server_is_asked_for_little(port: int) -> None:
    """By its own statistics: nothing is written, and no command looks at all keys at once."""
    import redis

    client = redis.Redis(port=port)
    client.config_resetstat()
    cachescope.read(f"redis://127.0.0.1:{port}/0")
    asked = {name.removeprefix("cmdstat_"): row["calls"] for name, row in client.info("commandstats").items()}
    assert {"scan", "strlen", "get"} <= set(asked) <= ALLOWED
    assert asked["get"] == 9


@needs_server
def test_other_keys_are_left_alone(dump: Path) -> None:
    with redis_server() as port:
        client = fill(port, dump)
        client.set("session:1", "secret")
        client.set("pt2:other::key:c1", "not torch's")
        client.config_resetstat()
        scope = cachescope.read(f"redis://127.0.0.1:{port}")
        assert client.info("commandstats")["cmdstat_get"]["calls"] == 9
    assert not scope.entries["path"].str.contains("session").any()
    (other,) = scope.entries[scope.entries["cache"] == "other"].to_dict("records")
    assert (other["status"], other["size_bytes"]) == ("foreign", 11)


@needs_server
def test_what_is_no_text_or_too_big_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "MOST_BYTES", 1000)
    with redis_server() as port:
        import redis

        client = redis.Redis(port=port)
        client.hset(FX_KEY, "field", "value")
        client.set("pt2:fx-graph-v1::big:c1", "x" * 1001)
        client.set("pt2:fx-graph-v1::\udcff:c1".encode("utf-8", "surrogateescape"), "{}")
        client.config_resetstat()
        scope = cachescope.read(f"redis://127.0.0.1:{port}/0")
        assert client.info("commandstats")["cmdstat_get"]["calls"] == 1
    assert sorted(scope.entries["status"]) == ["damaged", "unreadable", "unreadable"]
    assert len(scope.problems) == 3


@needs_server
def test_more_values_than_one_batch(monkeypatch: pytest.MonkeyPatch, dump: Path, port: int) -> None:
    for name, most in (("_VALUES_AT_ONCE", 4), ("_BYTES_AT_ONCE", 1), ("_KEYS_AT_ONCE", 2)):
        monkeypatch.setattr(stored, name, most)
        assert rows(f"redis://127.0.0.1:{port}/0").equals(rows(dump))


@pytest.mark.slow
@needs_server
def test_a_password_is_never_shown(dump: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from cachescope.cli import main

    with redis_server("--requirepass", "hunter2") as port:
        fill(port, dump, password="hunter2")
        url = f"redis://:hunter2@127.0.0.1:{port}/0"
        scope = cachescope.read(url)
        assert len(scope.read_again().entries) == 9
        shown = [frame.to_csv() for frame in (scope.entries, scope.problems, scope.orphans, scope.links)]
        shown += [str(scope), scope._repr_html_(), repr(cachescope.compare(dump, url))]
        scope.save(tmp_path / "saved")
        page = str(tmp_path / "report.html")
        trace = str(dump.parent / "trace")
        for command in (
            ["entries", url], ["entries", "--json", url], ["explain", trace, url], ["diff", url, trace],
            ["diff", "--json", str(dump), url], ["audit", url], ["audit", "--format", "sarif", url],
            ["check", trace, url, "--min-hit-rate", "1"], ["entries", url, "no-such-key"],
            ["report", trace, url, "-o", page], ["lock", url, "-o", str(tmp_path / "lock")],
            ["explain", url.replace("hunter2", "hunter22")], ["diff", url, url, url, "--no-such-option"],
        ):  # fmt: skip
            main(command)
            shown += capsys.readouterr()
        for word in ("hunter", "hunter2"):
            assert word not in "".join(shown)
        for path in tmp_path.rglob("*"):
            assert path.is_dir() or b"hunter2" not in path.read_bytes()
    assert Path(page).stat().st_size


@needs_server
def test_whether_a_server_can_be_read_is_said_even_if_it_holds_nothing(port: int) -> None:
    stored.check_redis(f"redis://127.0.0.1:{port}/0")
    stored.check_redis(f"redis://127.0.0.1:{port}/5")
    with pytest.raises(cachescope.SourceError, match="answers with an error"):
        stored.check_redis(f"redis://127.0.0.1:{port}/99")
    with pytest.raises(cachescope.SourceError, match="holds no key of torch"):
        list(stored.stored_in(f"redis://127.0.0.1:{port}/5"))


def refused(url: str) -> str:
    with pytest.raises(cachescope.SourceError) as error:
        cachescope.read(url)
    assert "pa55" not in str(error.value)
    return error.value.message


@needs_server
def test_what_is_wrong_is_said(dump: Path) -> None:
    with redis_server("--requirepass", "other") as port:
        for user in ("", ":pa55@", "me:pa55@"):
            assert "refuses the user or the password" in refused(f"redis://{user}127.0.0.1:{port}/0")
    assert "Connection refused" in refused(f"redis://:pa55@127.0.0.1:{port}/0")
    assert "no address of a Redis" in refused("redis://:pa55@127.0.0.1:port/0")
    with redis_server() as port:
        assert "holds no key of torch" in refused(f"redis://127.0.0.1:{port}/0")
        assert "answers with an error" in refused(f"redis://127.0.0.1:{port}/99")


@needs_server
def test_a_user_who_may_not_read_is_told() -> None:
    with redis_server() as port:
        import redis

        redis.Redis(port=port).execute_command("ACL", "SETUSER", "me", "on", ">pa55", "+get", "~*")
        assert "does not allow SCAN" in refused(f"redis://me:pa55@127.0.0.1:{port}/0")


@needs_server
def test_a_server_that_goes_away_leaves_what_was_read(dump: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "_VALUES_AT_ONCE", 4)
    ask = stored._ask
    with redis_server() as port:
        other = fill(port, dump)

        def until_it_goes(client: Any, meter: Any, command: str, *about: Any) -> list[Any]:
            answers = ask(client, meter, command, *about)
            if command == "get":
                other.shutdown(nosave=True)
            return answers

        monkeypatch.setattr(stored, "_ask", until_it_goes)
        scope = cachescope.read(dump, f"redis://127.0.0.1:{port}/0")
    assert len(scope.entries) == 9 + 4
    (problem,) = scope.problems.to_dict("records")
    assert "cannot be reached" in problem["message"]


@needs_server
def test_a_server_that_says_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "_TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert "no answer within 0.2 seconds" in refused(f"redis://:pa55@127.0.0.1:{port}/0")


@pytest.mark.torch
@needs_server
def test_a_server_that_torch_fills(tmp_path: Path) -> None:
    """What one process stores is there, and a process with an empty directory finds it."""
    with redis_server() as port:
        for name in ("cold", "warm"):
            folder = tmp_path / name
            settings = remote_settings(port) | {
                "TORCH_TRACE": str(folder / "trace"),
                "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"),
            }
            ran([sys.executable, PROGRAM], os.environ | settings)
        remote = cachescope.read(f"redis://127.0.0.1:{port}/0").entries
    graphs = remote[remote["cache"].isin(["fxgraph", "aotautograd"])]
    assert set(graphs["cache_key"]) == keys_of_trace(tmp_path / "cold")
    assert set(graphs["status"]) == {"ok"}
    assert set(cachescope.read(tmp_path / "cold" / "trace").lookups["outcome"]) == {"full_miss"}
    assert set(cachescope.read(tmp_path / "warm" / "trace").lookups["outcome"]) == {"hit"}


def test_without_the_package_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    assert "cachescope[redis]" in refused("redis://:pa55@127.0.0.1:1/0")
