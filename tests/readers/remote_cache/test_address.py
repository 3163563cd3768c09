"""The address of a Redis is shown without its password, wherever and however it is written."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cachescope.readers.remote_cache.address import (
    RedisAddress,
    is_redis,
    text_without_passwords,
    without_password,
)

SHOWN = {
    "redis://cache-host": "redis://cache-host",
    "redis://cache-host:6379/2": "redis://cache-host:6379/2",
    "rediss://me:secret@cache-host:6379/2": "rediss://cache-host:6379/2",
    "redis://:secret@cache-host/": "redis://cache-host",
    "redis://cache-host/?password=secret&db=3": "redis://cache-host?db=3",
    "redis://cache-host/?password=sec@ret": "redis://…",
    "redis://:sec/ret@cache-host:6379/2": "redis://cache-host:6379/2",
    "redis://:sec@ret@cache-host:6379/2": "redis://cache-host:6379/2",
    "redis://:sec#ret@cache-host:6379/2": "redis://cache-host:6379/2",
    "redis://:sec?ret@cache-host:6379/2": "redis://…",
    "redis://cache-host#secret": "redis://cache-host",
    "unix:///run/redis.sock?db=1": "unix:///run/redis.sock?db=1",
    "unix://me@/run/redis.sock?password=secret": "unix:///run/redis.sock",
}


@pytest.mark.parametrize(("given_", "shown"), SHOWN.items(), ids=range(len(SHOWN)))
def test_what_is_shown(given_: str, shown: str) -> None:
    address = RedisAddress.of(given_)
    assert (address, address.url) == (shown, given_)


@given(st.text(st.characters(codec="ascii", categories=("L", "N", "P", "S")), min_size=1).map("~{}~".format))
def test_no_password_is_ever_shown(password: str) -> None:
    for url in (
        f"redis://:{password}@cache-host:6379/0",
        f"rediss://me:{password}@cache-host",
        f"redis://cache-host/0?password={password}",
        f"redis://cache-host/0?db=1&password={password}&db=2",
        f"unix:///redis.sock?password={password}",
    ):
        assert "~" not in RedisAddress.of(url)
        assert "~" not in text_without_passwords(f"unrecognized arguments: {url} --other")


def test_what_is_saved_lacks_it() -> None:
    address = RedisAddress.of("redis://:secret@cache-host")
    assert pickle.loads(pickle.dumps(address)) == "redis://cache-host"
    assert b"secret" not in pickle.dumps(address)


def test_other_sources_stay_as_they_are() -> None:
    for source in ("s3://bucket/a@b", "/logs/redis://a", "C:/logs", "rediss", ""):
        assert not is_redis(source)
        assert without_password(source) is source
