"""Addresses of a Redis, without what must not be shown: the user, the password and the options."""

from __future__ import annotations

import re
from typing import Final

_REDIS: Final = re.compile(r"(?:rediss?|unix)://")
# The first is meant without it.
_DATABASE: Final = re.compile(r"(?:^|&)db=(0*[1-9]\d*)(?=&|$)")
_ANYWHERE: Final = re.compile(rf"{_REDIS.pattern}\S*")


class RedisAddress(str):
    """The address of a Redis as it may be shown. Whatever is made of this text lacks the password as well."""

    __slots__ = ("url",)
    url: str  # the whole address, for connecting alone

    @classmethod
    def of(cls, url: str) -> RedisAddress:
        """Take what may be shown out of a whole address; one that is shown already stays."""
        if isinstance(url, RedisAddress):
            return url
        scheme, _, rest = url.partition("://")
        place, _, options = rest.partition("?")
        # A "?" within a password may have cut it.
        is_unclear = "@" in options and "@" not in place
        shown = "…" if is_unclear else place.rpartition("@")[2].partition("#")[0].rstrip("/")
        database = _DATABASE.search(options)
        address = cls(f"{scheme}://{shown}" + (f"?db={database[1]}" if database else ""))
        address.url = url
        return address

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        # What is saved lacks the password, too.
        return str, (str(self),)


def is_redis(source: str) -> bool:
    """Whether a source is the address of a Redis.

    >>> is_redis("redis://cache-host:6379/0"), is_redis("s3://bucket/rank_*.log")
    (True, False)
    """
    return _REDIS.match(source) is not None


def without_password(source: str) -> str:
    """A source as it is passed on: the address of a Redis as `RedisAddress`, anything else as it is.

    >>> without_password("redis://:secret@cache-host:6379/0")
    'redis://cache-host:6379/0'
    """
    return RedisAddress.of(source) if is_redis(source) else source


def text_without_passwords(text: str) -> str:
    """A text in which no address of a Redis has a password."""
    return _ANYWHERE.sub(lambda match: RedisAddress.of(match[0]), text)
