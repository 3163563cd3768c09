"""A server that answers as no Redis does: one line says so, in bounded time and memory."""

import contextlib
import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import BinaryIO

import pytest

import cachescope
from cachescope.readers.remote_cache import stored

pytest.importorskip("redis")

KEY = b"pt2:fx-graph-v1::f" + b"a" * 51 + b":c1"
NUMBERS = itertools.count(1)


def text(value: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(value), value)


def page(cursor: bytes, *keys: bytes) -> bytes:
    return b"*2\r\n" + text(cursor) + b"*%d\r\n" % len(keys) + b"".join(map(text, keys))


GOOD = {b"SCAN": page(b"0", KEY), b"STRLEN": b":10\r\n", b"GET": text(b'{"data":1}')}
NO_REDIS = "does not answer as a Redis does"
NO_ANSWER = "no answer within 0.5 seconds"
TOO_MUCH = "sends more than it was asked for"
NESTED = b"*1\r\n" * 100_000
WRONG: dict[str, tuple[bytes, bytes | Callable[[], bytes], str]] = {
    "a number": (b"SCAN", b":5\r\n", NO_REDIS),
    "a text": (b"SCAN", text(b"x"), NO_REDIS),
    "nothing": (b"SCAN", b"$-1\r\n", NO_REDIS),
    "no list": (b"SCAN", b"*-1\r\n", NO_REDIS),
    "one value": (b"SCAN", b"*1\r\n" + text(b"0"), NO_REDIS),
    "three values": (b"SCAN", b"*3\r\n" + text(b"0") * 3, NO_REDIS),
    "a text as cursor": (b"SCAN", page(b"abc", KEY), NO_REDIS),
    "a list as cursor": (b"SCAN", b"*2\r\n*0\r\n*0\r\n", NO_REDIS),
    "keys of too many bytes": (b"SCAN", page(b"0", b"pt2:" + b"x" * 6_000), "bytes of them: not read"),
    "no cursor": (b"SCAN", b"*2\r\n$-1\r\n*0\r\n", NO_REDIS),
    "keys that are a number": (b"SCAN", b"*2\r\n" + text(b"0") + b":5\r\n", NO_REDIS),
    "keys that are numbers": (b"SCAN", b"*2\r\n" + text(b"0") + b"*1\r\n:5\r\n", NO_REDIS),
    "keys that are a text": (b"SCAN", b"*2\r\n" + text(b"0") + text(KEY), NO_REDIS),
    "keys that are lists": (b"SCAN", b"*2\r\n" + text(b"0") + b"*1\r\n*1\r\n" + text(KEY), NO_REDIS),
    "keys that are nothing": (b"SCAN", b"*2\r\n" + text(b"0") + b"*1\r\n$-1\r\n", NO_REDIS),
    "a size that is none": (b"SCAN", b"$abc\r\n", NO_REDIS),
    "a number that is none": (b"SCAN", b":x\r\n", NO_REDIS),
    "nested lists": (b"SCAN", NESTED, NO_REDIS),
    "nested lists as a value": (b"GET", NESTED, NO_REDIS),
    "an unknown type": (b"SCAN", b"@what\r\n", "answers with an error"),
    "another protocol": (b"SCAN", b"HTTP/1.1 400 Bad Request\r\n\r\n", "answers with an error"),
    "an error of other bytes": (b"SCAN", b"-\xff\xfe\r\n", "answers with an error"),
    "silence": (b"SCAN", b"", NO_ANSWER),
    "a list that is not sent": (b"SCAN", b"*1000000000\r\n", NO_ANSWER),
    "a value that is not sent": (b"GET", b"$-7\r\n", NO_ANSWER),
    "a line without end": (b"SCAN", b"+" + b"x" * (2 << 20), TOO_MUCH),
    "a long key": (b"SCAN", page(b"0", b"pt2:" + b"k" * (2 << 20)), TOO_MUCH),
    "more than the size it gave": (b"GET", b"$3000000000\r\n" + b"x" * (2 << 20), TOO_MUCH),
    "a cursor without end": (b"SCAN", lambda: page(b"%d" % next(NUMBERS)), "its keys do not end"),
    "the same cursor": (b"SCAN", page(b"7", KEY), "its keys do not end"),
    "a negative cursor": (b"SCAN", page(b"-5"), "its keys do not end"),
    "byte by byte": (b"SCAN", page(b"0", *[KEY] * 50), "no whole answer within 0.5 seconds"),
}  # fmt: skip
UNREADABLE = {
    "a size that is a text": (b"STRLEN", text(b"abc")),
    "no size": (b"STRLEN", b"$-1\r\n"),
    "a negative size": (b"STRLEN", b":-5\r\n"),
    "a size beyond all": (b"STRLEN", b":99999999999999999999999\r\n"),
    "another type": (b"STRLEN", b"-WRONGTYPE another type\r\n"),
    "a list as value": (b"GET", b"*1\r\n" + text(b"x")),
    "a number as value": (b"GET", b":5\r\n"),
}


def commands(stream: BinaryIO) -> Iterator[bytes]:
    while count := stream.readline():
        words = [stream.read(int(stream.readline()[1:]) + 2)[:-2] for _ in range(int(count[1:]))]
        yield words[0].upper()


@contextlib.contextmanager
def server(command: bytes, wrong: bytes | Callable[[], bytes], *, is_slow: bool = False) -> Iterator[str]:
    """Gives the address of one that answers this command so, and others as it should."""

    def answer(connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection, connection.makefile("rb") as stream:
            for asked in commands(stream):
                said = wrong if asked == command else GOOD.get(asked, b"+OK\r\n")
                data = said() if callable(said) else said
                step = 1 if is_slow and asked == command else len(data) or 1
                for at in range(0, len(data), step):
                    connection.sendall(data[at : at + step])
                    time.sleep(0.01 if step < len(data) else 0)

    def listen() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=answer, args=(listening.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=listen, daemon=True).start()
        yield f"redis://127.0.0.1:{listening.getsockname()[1]}/0"


@pytest.mark.parametrize("case", WRONG)
def test_one_line_says_what_is_wrong(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command, wrong, said = WRONG[case]
    limits = {
        # What ends by another limit has the whole time, also on a busy machine.
        "_TIMEOUT_S": 0.5 if "0.5 seconds" in said else 60,
        "_MOST_SCANS": 50,
        "_MOST_BYTES_BESIDE": 1 << 20,
        "_MOST_BYTES_OF_KEYS": 5_000,
    }
    for name, value in limits.items():
        monkeypatch.setattr(stored, name, value)
    with (
        server(command, wrong, is_slow=case == "byte by byte") as address,
        pytest.raises(cachescope.SourceError) as error,
    ):
        cachescope.read(address)
    assert said in error.value.message
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_value_that_is_no_text_is_marked(case: str) -> None:
    with server(*UNREADABLE[case]) as address:
        scope = cachescope.read(address)
    assert scope.entries["status"].tolist() == ["unreadable"]
    assert len(scope.problems) == 1
