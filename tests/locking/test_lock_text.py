"""The JSON of a lock: what is written is what is read, the schema says the same, and no bytes at all do harm."""

import copy
import json
import os
import random
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cachescope
from cachescope.errors import SourceError
from cachescope.locking.lock import (
    SCHEMA,
    CacheLock,
    Key,
    KeyField,
    LockedFile,
    LockFormatError,
    Machine,
    Process,
    Rule,
    Variable,
    lock_text,
    parse,
    read_lock,
    write_lock,
)
from tests.conftest import Recording
from tests.locking.conftest import EACH

pytestmark = pytest.mark.usefixtures("torch_read_once")

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
HEX = st.text("0123456789abcdef", min_size=64, max_size=64)
TORCH_HASH = st.text("abcdefghijklmnopqrstuvwxyz234567", min_size=51, max_size=51)
COUNT = st.integers(0, 2**63 - 1)
NAME = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=9).filter(
    lambda name: name not in (".", "..")
)
PATH = st.lists(NAME, min_size=1, max_size=3).map("/".join)
OPTIONAL = st.none() | TEXT
_CONTEXT = st.dictionaries(TEXT, st.builds(KeyField, TORCH_HASH, OPTIONAL), max_size=4)
CONTEXTS = st.lists(_CONTEXT, max_size=3).map(tuple)
KEYS: st.SearchStrategy[Key] = st.tuples(TEXT, TEXT)


@st.composite
def locks(draw: st.DrawFn) -> CacheLock:
    contexts = draw(CONTEXTS)
    numbers = st.none() | st.integers(0, len(contexts) - 1) if contexts else st.none()
    paths = draw(st.lists(PATH, max_size=4, unique=True))
    texts = st.lists(TEXT, max_size=2).map(tuple)
    files = {
        path: draw(
            st.builds(LockedFile, st.just(path), TEXT, COUNT, HEX, OPTIONAL, numbers, texts, st.none() | COUNT, texts)
        )
        for path in paths
    }  # fmt: skip
    targets = PATH.filter(lambda path: path not in files)
    links = draw(st.dictionaries(targets, PATH | st.just("."), max_size=2))
    rules = st.builds(Rule, st.sampled_from(["switch", "int", "text", "other"]), OPTIONAL)
    variables = st.dictionaries(
        TEXT, st.builds(Variable, OPTIONAL, st.dictionaries(TEXT, rules, max_size=2)), max_size=2
    )
    machine = st.builds(Machine, TEXT, TEXT, *[OPTIONAL] * 6, st.none() | texts, st.none() | texts)
    processes = st.lists(st.builds(Process, OPTIONAL, OPTIONAL, st.none() | COUNT), max_size=2).map(tuple)
    return CacheLock(
        draw(machine),
        draw(variables),
        contexts,
        draw(processes),
        files,
        links,
        draw(st.none() | st.lists(KEYS, max_size=3).map(tuple)),
    )


@pytest.mark.slow
@given(locks())
def test_what_is_written_is_what_is_read(lock: CacheLock) -> None:
    text = lock_text(lock)
    assert text.isascii()
    assert parse(text.encode()) == lock
    assert lock_text(parse(text.encode())) == text


@given(st.binary(max_size=200))
def test_no_bytes_are_more_than_refused(data: bytes) -> None:
    for head in (b"", b'{"cachescope_lock": 1, '):
        with pytest.raises(LockFormatError):
            parse(head + data)


@pytest.fixture(scope="session")
def real(recording: Recording) -> dict[str, Any]:
    """A lock of a cache that torch made, as JSON."""
    folder = recording("2.15.0", "upgrade")
    found: dict[str, Any] = json.loads(lock_text(cachescope.lock(folder / "cache", expect=folder / "trace")))
    return found


@pytest.fixture(scope="session")
def short(real: dict[str, Any]) -> dict[str, Any]:
    """The same with few fields and variables: hundreds of them are alike."""
    contexts = [{**one, "fields": dict(list(one["fields"].items())[:3])} for one in real["contexts"]]
    return {**real, "contexts": contexts, "variables": dict(list(real["variables"].items())[:3])}


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container in a value of JSON, with each of its keys."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(items):
        yield value, key
        if isinstance(item, dict | list):
            yield from places(item)


ODD: list[Any] = [
    None, True, False, 0, -1, 1, 2**63, 10**30, 1.5, "", "x", "..", "../../etc/passwd", "/etc/passwd", "a/../b", "a//b", "a\0b",
    "./a", ".", [], [None], [[]], {}, {"x": 1}, "0" * 64, "a" * 51, "\x1b[2J", "\u202e", "::error::x", ["switch", "1"],
]  # fmt: skip


@pytest.mark.slow
def test_one_odd_value_anywhere_is_refused_or_harmless(short: dict[str, Any]) -> None:
    """And what is read is what the declared schema allows."""
    validator = _validator()
    chosen = random.Random(1)
    tried = 0
    for _ in range(400):
        changed = copy.deepcopy(short)
        container, key = chosen.choice(list(places(changed)))
        if isinstance(container, dict) and chosen.random() < 0.2:
            if chosen.random() < 0.5:
                del container[key]
            else:
                container["odd"] = container.pop(key)
        else:
            container[key] = chosen.choice(ODD)
        data = json.dumps(changed).encode()
        read = _read(data)
        if read is None:
            continue
        tried += 1
        assert validator(json.loads(data)), data[:300]
        paths = {**read.files, **read.links}
        assert all(".." not in path.split("/") and not path.startswith("/") for path in paths)
    assert tried > 20


def _read(data: bytes) -> CacheLock | None:
    """The lock; None if it is refused."""
    try:
        return parse(data)
    except LockFormatError:
        return None


def _validator() -> Callable[[Any], bool]:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema).is_valid  # type: ignore[no-any-return]


@pytest.mark.slow
@pytest.mark.parametrize("version", EACH)
def test_real_locks_are_as_declared(version: str, recording: Recording) -> None:
    folder = recording(version, "training")
    for expect in ((), folder / "trace"):
        text = lock_text(cachescope.lock(folder / "cache", expect=expect))
        assert _validator()(json.loads(text))


@pytest.mark.sweep
@given(locks())
def test_every_lock_is_as_declared(lock: CacheLock) -> None:
    assert _validator()(json.loads(lock_text(lock)))


@pytest.mark.slow
def test_equal_caches_have_equal_locks_a_line_for_each_file(recording: Recording) -> None:
    cache = recording("2.13.0", "four_graphs") / "cache"
    one, other = (lock_text(cachescope.lock(cache)) for _ in range(2))
    assert one == other
    lock = parse(one.encode())
    for path in lock.files:
        assert sum(f'"path": {json.dumps(path)}' in line for line in one.splitlines()) == 1


def refusal(data: bytes, folder: Path) -> str:
    """What is said of such a file: one line."""
    path = folder / "x.lock"
    path.write_bytes(data)
    with pytest.raises(SourceError) as caught:
        read_lock(path)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


@pytest.mark.parametrize("version", [0, 2, 999, -1, 10**40, "1", 1.0, True, None, [1], "\x1b[2J"])
def test_another_version_is_refused_in_one_line(version: object, tmp_path: Path) -> None:
    said = refusal(json.dumps({"cachescope_lock": version, "later": ["unknown"]}).encode(), tmp_path)
    assert "this cachescope reads version 1: upgrade cachescope, or lock again" in said
    assert said.isprintable()


HOSTILE = {
    "nothing": b"",
    "no JSON": b"\x80\x04\x95cos\nsystem",
    "not UTF-8": b'{"cachescope_lock": "\xff"}',
    "deep": b'{"cachescope_lock": 1, "files": ' + b"[" * 200_000,
    "deep and whole": b'{"cachescope_lock": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a number of many digits": b'{"cachescope_lock": ' + b"9" * 100_000 + b"}",
    "not a number": b'{"cachescope_lock": NaN}',
    "twice": b'{"cachescope_lock": 1, "cachescope_lock": 1}',
    "half of a character": b'{"cachescope_lock": 1, "x": "\\ud800"}',
    "a list": b"[1]",
    "nothing of it": b"{}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_garbage_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    assert refusal(HOSTILE[name], tmp_path)


def test_a_name_that_stands_twice_is_refused_wherever_it_is(recording: Recording) -> None:
    text = lock_text(cachescope.lock(recording("2.13.0", "training") / "cache"))
    for name in ('"sha256": ', '"value": ', '"like": ', '"python_version": '):
        with pytest.raises(LockFormatError, match="twice"):
            parse(text.replace(name, f"{name}null, {name}", 1).encode())


def test_a_file_that_stands_twice_is_refused(real: dict[str, Any]) -> None:
    """The second would hide what the first says."""
    changed = {**real, "files": [*real["files"], real["files"][0]]}
    with pytest.raises(LockFormatError, match="listed twice"):
        parse(json.dumps(changed).encode())


@pytest.mark.sweep
def test_a_short_text_does_not_fill_the_memory(real: dict[str, Any]) -> None:
    """A hundred thousand contexts like the first, which has hundreds of fields."""
    like = {"like": 0, "without": ["gone"], "fields": {}}
    changed = {**real, "contexts": [real["contexts"][0], *[like] * 100_000]}
    data = json.dumps(changed).encode()
    tracemalloc.start()
    read = parse(data)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert read.contexts[0] == read.contexts[-1]
    assert most < 30 * len(data)


def test_a_file_that_is_never_finished_is_not_seen(tmp_path: Path, recording: Recording) -> None:
    lock = cachescope.lock(recording("2.13.0", "training") / "cache")
    path = tmp_path / "x.lock"
    write_lock(lock, path)
    before = path.read_bytes()
    assert os.listdir(tmp_path) == ["x.lock"]
    with pytest.raises(cachescope.CachescopeError, match="cannot write the lock"):
        write_lock(lock, tmp_path / "not there" / "x.lock")
    with pytest.raises(cachescope.CachescopeError, match="cannot write the lock"):
        write_lock(lock, tmp_path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["x.lock"]
