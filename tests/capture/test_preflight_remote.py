"""Pre-flights held against a Redis that torch filled, and what torch then really did with it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from redis_server import missing, missing_cli, redis_server, remote_settings, write_dump

from cachescope.errors import SourceError
from cachescope.scope.preflight import check_against, read_preflight
from tests.capture.preflights import (
    Lookup,
    assert_came_true,
    environment,
    predicted,
    preflown,
    program,
    really,
    told_by,
    traces_in,
)

pytestmark = [pytest.mark.torch, pytest.mark.sweep, pytest.mark.skipif(bool(missing()), reason=missing())]
needs_cli = pytest.mark.skipif(bool(missing_cli()), reason=missing_cli())
# Without the profile of sizes, which decides what the next run compiles.
PROFILE = ("TORCH_DYNAMO_AUTOMATIC_DYNAMIC_REMOTE_PGO", "TORCH_COMPILE_JOB_ID")


def settings(port: int, **more: str) -> dict[str, str]:
    """The variables under which torch asks its remote caches at a port."""
    return {name: value for name, value in remote_settings(port).items() if name not in PROFILE} | more


def client_of(port: int) -> Any:
    import redis

    return redis.Redis(port=port)


def training_came_true(told: list[Lookup], folder: Path, **variables: str) -> None:
    """Run it for real, on an empty directory."""
    assert_came_true(told, really(program("training"), folder / "c", folder / "r", **variables))


def address(port: int) -> str:
    return f"redis://127.0.0.1:{port}/0"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    """A server that a run of `training` filled, and the traces of a pre-flight that would use it."""
    folder = tmp_path_factory.mktemp("filled")
    with redis_server() as port:
        went = really(program("training"), folder / "cache", folder / "cold", **settings(port))
        assert went.counted["fxgraph miss"] and not went.counted["fxgraph hit"]
        preflown(program("training"), folder / "none", folder / "preflight", **settings(port))
        yield port, folder


def test_a_preflight_writes_nothing_there(tmp_path: Path) -> None:
    """Not even the profile of sizes, which torch reads there and writes."""
    with redis_server() as port:
        preflown(program("training"), tmp_path / "none", tmp_path / "preflight", **remote_settings(port))
        asked = client_of(port).info("commandstats")
        assert "cmdstat_get" in asked and "cmdstat_set" not in asked


@pytest.fixture
def port(filled: tuple[int, Path]) -> Iterator[int]:
    """The same server with values of its own, which a test may change."""
    values = {key: client_of(filled[0]).get(key) for key in client_of(filled[0]).scan_iter()}
    with redis_server() as port:
        for key, value in values.items():
            client_of(port).set(key, value)
        yield port


def test_what_a_server_has_would_hit(filled: tuple[int, Path], port: int, tmp_path: Path) -> None:
    told = predicted(traces_in(filled[1]), address(port))
    assert {way for *_, way in told} == {"hit"}
    training_came_true(told, tmp_path, **settings(port))
    scope = read_preflight(str(traces_in(filled[1])), [address(port)])
    assert all(f"in {address(port)}" in why for why in scope.lookups["prediction"])
    assert scope.lookups["time_saved_ns"].notna().any()


@needs_cli
def test_a_dump_says_the_same(filled: tuple[int, Path], tmp_path: Path) -> None:
    write_dump(filled[0], str(tmp_path))
    traces = traces_in(filled[1])
    assert predicted(traces, tmp_path / "remote.jsonl") == predicted(traces, address(filled[0]))


@needs_cli
def test_a_dump_that_was_cut_leaves_misses_open(filled: tuple[int, Path], tmp_path: Path) -> None:
    write_dump(filled[0], str(tmp_path))
    path = tmp_path / "remote.jsonl"
    path.write_bytes(path.read_bytes()[:-100])
    assert {way for *_, way in predicted(traces_in(filled[1]), path)} <= {"hit", "not_known"}
    scope = read_preflight(str(traces_in(filled[1])), [str(path)])
    why = scope.lookups.loc[scope.lookups["outcome"] == "not_known", "prediction"]
    assert any("could not be read" in one for one in why)


def test_an_empty_server_has_nothing(filled: tuple[int, Path], tmp_path: Path) -> None:
    with redis_server() as empty:
        told = predicted(traces_in(filled[1]), address(empty))
        assert {way for *_, way in told} == {"miss"}
        training_came_true(told, tmp_path, **settings(empty))


@pytest.mark.parametrize("gone", ["pt2:fx-graph-v1::*", "pt2:autograd-experimental::*"])
def test_what_expired_would_miss(filled: tuple[int, Path], port: int, tmp_path: Path, gone: str) -> None:
    client_of(port).delete(next(client_of(port).scan_iter(match=gone)))
    told = predicted(traces_in(filled[1]), address(port))
    assert {way for *_, way in told} == {"hit", "miss"}
    training_came_true(told, tmp_path, **settings(port))


def test_a_value_torch_cannot_load_would_miss(filled: tuple[int, Path], port: int, tmp_path: Path) -> None:
    for key in client_of(port).scan_iter(match="pt2:autograd-experimental::*"):
        client_of(port).set(key, '{"data": "gASV"}')
    told = predicted(traces_in(filled[1]), address(port))
    assert {way for cache, _, way in told if cache == "aotautograd"} == {"miss"}
    training_came_true(told, tmp_path, **settings(port))


def test_a_changed_config_is_in_no_stored_key(filled: tuple[int, Path], port: int, tmp_path: Path) -> None:
    changed = settings(port, PREFLIGHT_PROGRAM_CONFIG="epilogue_fusion")
    traces = preflown(program("training"), tmp_path / "none", tmp_path / "preflight", **changed)
    told = predicted(traces, address(port))
    assert {way for *_, way in told} == {"miss"}
    misses = read_preflight(str(traces), [address(port)]).misses
    assert set(misses["changed"]) == {("inductor_config[epilogue_fusion]",)}
    training_came_true(told, tmp_path, **changed)


@pytest.mark.parametrize(
    "switch", ["TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE", "TORCHINDUCTOR_AUTOGRAD_REMOTE_CACHE"]
)
def test_a_remote_cache_that_is_not_asked_is_of_no_use(port: int, tmp_path: Path, switch: str) -> None:
    off = settings(port, **{switch: "0"})
    traces = preflown(program("training"), tmp_path / "none", tmp_path / "preflight", **off)
    told = predicted(traces, address(port))
    assert "miss" in {way for *_, way in told}
    training_came_true(told, tmp_path, **off)
    if "FX" in switch:  # AOTAutograd has its own switch in its key
        scope = read_preflight(str(traces), [address(port)])
        assert any("asks no remote cache" in why for why in scope.lookups["prediction"])


def test_only_remote_caches(port: int, tmp_path: Path) -> None:
    """What the run stores itself is found again, in the server alone."""
    alone = settings(port, TORCHINDUCTOR_FX_GRAPH_CACHE="0", TORCHINDUCTOR_AUTOGRAD_CACHE="0")
    twice = program("training,training")
    with redis_server() as empty:
        alone |= {"TORCHINDUCTOR_REDIS_URL": address(empty)}
        traces = preflown(twice, tmp_path / "none", tmp_path / "preflight", **alone)
        told = predicted(traces, address(empty))
        assert {way for *_, way in told} == {"hit", "miss"}
        assert_came_true(told, really(twice, tmp_path / "c", tmp_path / "r", **alone))


def test_a_directory_beside_it_comes_first(filled: tuple[int, Path], port: int, tmp_path: Path) -> None:
    for key in client_of(port).scan_iter(match="pt2:fx-graph-v1::*"):
        client_of(port).delete(key)
    told = predicted(traces_in(filled[1]), filled[1] / "cache", address(port))
    assert {way for *_, way in told} == {"hit"}


def test_without_it_nothing_is_predicted(filled: tuple[int, Path], tmp_path: Path) -> None:
    assert {way for *_, way in predicted(traces_in(filled[1]), tmp_path / "empty")} == {"not_known"}


def test_a_server_has_one_value_for_each_key(tmp_path: Path) -> None:
    """The one with other guards replaces the first: what is predicted comes true, or is left open."""
    with redis_server() as port:
        sized, asked = program("guarded_size"), settings(port)
        really(sized, tmp_path / "first", tmp_path / "r1", **asked)
        told = predicted(preflown(sized, tmp_path / "none", tmp_path / "preflight", **asked), address(port))
        assert_came_true(told, really(sized, tmp_path / "c", tmp_path / "r2", **asked))


def test_the_command_takes_an_address(filled: tuple[int, Path], tmp_path: Path) -> None:
    with_password = address(filled[0]).replace("//", "//:pa55@")
    words = ["preflight", "--min-hit-rate", "1", "--against", with_password, "--", *program("training")]
    done = told_by(words, environment(tmp_path / "none", **settings(filled[0])), status=1)
    assert "refuses the user or the password" in done.stderr and "pa55" not in done.stdout + done.stderr


def test_a_server_out_of_reach_is_told_before_the_program_runs() -> None:
    with redis_server() as port:
        check_against([address(port)])
    with pytest.raises(SourceError, match="cannot be reached"):
        check_against([address(port)])
