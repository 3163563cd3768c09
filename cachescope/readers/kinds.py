"""Tells the kind of a source by its first bytes, before any reader is loaded: names prove nothing.

Only what cachescope itself wrote (saved scopes, the logs of a fleet in columns) has its own names.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import re
import stat
from functools import cache
from typing import Final, Literal

from cachescope.errors import SourceError
from cachescope.readers.logs.log_prefix import PREFIX, LauncherPrefixes, uncoloured
from cachescope.terms import AOT_COMPILE, AOT_KEY, AOTINDUCTOR, MEGA_CACHE, STANDALONE

HEAD_BYTES: Final = 256
"""How many bytes tell what is shipped by itself."""
PROBE_BYTES: Final = 1 << 14
"""How many bytes nearly always tell what a log is."""
LOG_HEAD_BYTES: Final = 4 << 20
"""A job's log may begin with pages of other output before torch's first line."""

_FIRST_LINE: Final = re.compile(rb"(?m)^(?:\xef\xbb\xbf)?" + PREFIX.pattern)
JSON_HEAD: Final = re.compile(
    rb'\{"asctime": "\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^"]{0,8}", "levelname": "[A-Z]{1,10}", "name": "vllm[\w.]{0,200}"'
)
# Where text was copied, the escape character may be lost.
_LOST: Final = re.compile(rb"\[\d[\d;]{0,19}m")
_VLLM_LEVELS: Final = b"DEBUG", b"INFO", b"WARNING", b"ERROR"
_VLLM_HEAD: Final = re.compile(
    rb"(?:" + b"|".join(_VLLM_LEVELS) + rb") \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./]{1,200}\.py:\d{1,6}\] "
)
# ``sglang/srt/utils/common.py``, `configure_logger`. It names no file: what follows tells these lines from those of others.
SGLANG_HEAD: Final = re.compile(
    rb"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{3})?(?: [\w ]{1,60})?\] "
    rb"(?=(?:Compiling a|Cache the|(?:Directly load|Store) the \S{1,20}) graph )"
)
_SNAPSHOT: Final = re.compile(
    rb'(?:\xef\xbb\xbf)?\s*\{\s*"(?:cachescope_snapshot|runtime_context|compile_context)"\s*:'
)
_DUMP: Final = re.compile(rb'\s*\{\s*"key"\s*:\s*"pt2:')

CHECKSUM_BYTES: Final = 4
_LENGTH_BYTES: Final = 8
MEGA_VERSION: Final = (1).to_bytes(_LENGTH_BYTES, "big")
# `CacheArtifact.type` of the subclasses (torch/compiler/_cache.py names none of them itself).
MEGA_TYPES: Final = frozenset(
    {"inductor", "aot_autograd", "autotune", "pgo", "precompile", "precompile_dynamo"}
)
# 2.7.0 and 2.7.1 wrote `CacheArtifactType` as a number before each artifact, and keys as they are.
TYPES_OF_2_7: Final = ("inductor", "autotune", "aot_autograd", "pgo")
_OF_2_7: Final = re.compile(
    rb"\0{7}\x01\0{7}(?:[\0\x02]\0{7}4[fa][a-z2-7]{51}|\x01\0{7}[LO][a-z2-7/]{0,3}[0-9a-f]{64}\.|\x03\0{6}[\0\x01].[ -~])",
    re.DOTALL,
)
# As they stand in it, behind their lengths.
_ENCODED: Final = [base64.b64encode(name.encode()) for name in sorted(MEGA_TYPES)]
_TYPE_NAMES: Final = tuple(len(name).to_bytes(_LENGTH_BYTES, "big") + name for name in _ENCODED)

# torch/_inductor/standalone_compile.py, `CacheCompiledArtifact.CACHE_HEADER` and `AOTCompiledArtifact.AOT_HEADER` (2.10 and
# later); before, torch's key came first.
CACHE_HEADER: Final = b"CacheCompiledArtifact"
AOT_HEADER: Final = b"AOTCompiledArtifact"
TORCH_KEY_BYTES: Final = 32

# torch/_dynamo/aot_compile.py, `_AOT_COMPILE_MAGIC` and `_AOT_COMPILE_FORMAT_VERSION` (2.15).
AOT_MAGIC: Final = b"PT2AOT"
# A dict whose first key is the first field of `CompileArtifacts`; of a model, in a list of such pickles.
_PICKLE: Final = rb"\x80.{1,12}?"
_FUNCTION: Final = rb"(?:PT2AOT.|" + _PICKLE + rb"\}\x94\(\x8c\x09signature\x94)"
_COMPILED: Final = re.compile(
    _FUNCTION + rb"|" + _PICKLE + rb"\]\x94\(?[BC\x8e].{1,8}?" + _FUNCTION, re.DOTALL
)

_ZIP: Final = b"PK\x03\x04"


def kind_of_log(path: str, head: bytes) -> Literal["trace", "text"] | None:
    """Which log of torch a file with these first bytes is; None if it is none. Raises `SourceError` if several are packed in it."""
    # A log may begin with foreign text, or with the rest of a long record: nearly all are known by less.
    for begins in (head[:PROBE_BYTES], head):
        is_trace = looks_like_trace_log(begins)
        if is_trace or looks_like_text_log(begins):
            if is_tar(head):
                # Its logs follow each other in the file, and would be taken for one.
                raise in_an_archive(path)
            return "trace" if is_trace else "text"
    return None


def kinds_of_log(path: str, part: bytes) -> list[Literal["trace", "text", "vLLM log"]]:
    """Which logs a file with such a part is: one of torch may be one of vLLM, too."""
    of_torch = kind_of_log(path, part)
    found: list[Literal["trace", "text", "vLLM log"]] = [] if of_torch is None else [of_torch]
    return [*found, "vLLM log"] if looks_like_vllm_log(part) else found


def is_tar(head: bytes) -> bool:
    """Whether a file is a tar archive, packed or not: the header of its first member says so."""
    return head[257:262] == b"ustar"


def is_zip(head: bytes) -> bool:
    """Whether a file is a zip archive, which torch's packages are too."""
    return head.startswith(_ZIP)


def in_an_archive(path: str) -> SourceError:
    """What is said of an archive that cannot be read as the folder that it was made of."""
    return SourceError(path, "this is an archive: unpack it, and give its folder", "unknown_source")


def looks_like_trace_log(head: bytes) -> bool:
    """Whether torch's first line in these bytes is a trace record, whatever precedes it.

    A file may have lost its beginning or have gained a foreign one: a rotated log begins within a record.
    """
    match = first_record(head)
    return match is not None and head[match.end() : match.end() + 2] == b'{"'


def first_record(head: bytes) -> re.Match[bytes] | None:
    """The prefix of torch's first line in these bytes."""
    return _FIRST_LINE.search(head)


def looks_like_text_log(head: bytes) -> bool:
    """Whether a line of the first bytes of a file begins with torch's log prefix."""
    head = uncoloured(head)
    leads = LauncherPrefixes(head)
    return any(leads.prefix_of(line) or leads.short_of(line) for line in head.split(b"\n"))


def looks_like_vllm_log(head: bytes) -> bool:
    """Whether a line of the first bytes of a file begins as those of vLLM do, or as those of SGLang on its graphs."""
    # The words alone are found four times as fast as the pattern that begins with one of them.
    has_level = any(level in head for level in _VLLM_LEVELS)
    found = has_level and _VLLM_HEAD.search(without_colours(head))
    return bool(found or JSON_HEAD.search(head) or SGLANG_HEAD.search(head))


def without_colours(text: bytes) -> bytes:
    """A text without the codes that colour it on a terminal."""
    # One pattern after the other: each begins with fixed bytes, and is found ten times as fast as either of both.
    return _LOST.sub(b"", uncoloured(text))


def looks_like_snapshot(head: bytes) -> bool:
    """Whether the first bytes of a file are those of a snapshot or a bare context.

    >>> looks_like_snapshot(b'{"cachescope_snapshot": 1, "context": {')
    True
    >>> looks_like_snapshot(b'{"system": {')
    False
    """
    return _SNAPSHOT.match(head) is not None


def looks_like_dump(head: bytes) -> bool:
    """Whether these are the first bytes of a dump of a remote cache."""
    return _DUMP.match(head) is not None


def mega_cache_start(head: bytes) -> int | None:
    """Where a mega-cache begins behind its optional checksum; None if these are not the first bytes of one.

    Mirrors ``AppendingByteSerializer`` (torch/utils/_appending_byte_serializer.py): the version, then a known type.
    """
    if is_of_2_7(head):
        return 0
    for start in (CHECKSUM_BYTES, 0):
        types = start + _LENGTH_BYTES
        if head[start:types] == MEGA_VERSION and head.startswith(_TYPE_NAMES, types):
            return start
    return None


def holds_mega_cache(data: bytes) -> bool:
    """Whether a mega-cache begins anywhere in these bytes."""
    return any(MEGA_VERSION + name in data for name in _TYPE_NAMES) or _OF_2_7.search(data) is not None


def is_of_2_7(head: bytes) -> bool:
    """Whether these are the first bytes of a mega-cache in the form that torch 2.7 alone writes and loads."""
    return _OF_2_7.match(head) is not None


def looks_like_standalone(head: bytes) -> bool:
    """Whether these are the first bytes of a standalone artifact."""
    header, rest = _sized(head[CHECKSUM_BYTES:])
    if header in (CACHE_HEADER, AOT_HEADER):
        return True
    try:
        key = base64.b64decode(_sized(rest)[0], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return False
    return len(header) == TORCH_KEY_BYTES and AOT_KEY.fullmatch(key) is not None


def _sized(data: bytes) -> tuple[bytes, bytes]:
    """The bytes behind their length (``BytesWriter.write_bytes``), and the rest."""
    end = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "big")
    return data[_LENGTH_BYTES:end], data[end:]


def looks_like_aot_compile(head: bytes) -> bool:
    """Whether these are the first bytes of a compiled function, or of a model's compiled functions."""
    return _COMPILED.match(head) is not None


def shipped_kind(path: str, head: bytes) -> str | None:
    """What a file is that begins so and is shipped by itself; None for any other file."""
    if mega_cache_start(head) is not None:
        return MEGA_CACHE
    if looks_like_standalone(head):
        return STANDALONE
    if looks_like_aot_compile(head):
        return AOT_COMPILE
    if is_zip(head) or head.startswith(b"\x7fELF"):
        from cachescope.readers.directory.aotinductor import holds_aotinductor, symbols_in

        if holds_aotinductor(path, head) if is_zip(head) else symbols_in(path):
            return AOTINDUCTOR
    return None


MANIFEST: Final = "cachescope.json"
LOGS_SUFFIX: Final = ".cachescope_logs"
_ZSTANDARD: Final = b"\x28\xb5\x2f\xfd"


def is_saved_scope(path: str) -> bool:
    """Whether a folder was written by `Scope.save`."""
    # Not pathlib: it raises if the folder may not be listed.
    return os.path.isfile(os.path.join(path, MANIFEST))


def is_log_file(path: str) -> bool:
    """Whether `write_logs` wrote a file."""
    if path.endswith(LOGS_SUFFIX):
        with contextlib.suppress(OSError), open(path, "rb") as file:
            return file.read(len(_ZSTANDARD)) == _ZSTANDARD
    return False


# Linux, proc(5): `ID PARENT MAJOR:MINOR ROOT MOUNT-POINT OPTIONS [TAGS…] - TYPE SOURCE OPTIONS`.
_MOUNTS: Final = "/proc/self/mountinfo"
_TYPES: Final = frozenset((
    "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "mqueue", "proc", "pstore", "securityfs",
    "sysfs", "tracefs",
))  # fmt: skip


def check_is_stored(path: str) -> None:
    """Refuse what waits for others, never ends or is not of a disk: pipes, devices, sockets, and what the kernel shows as files."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return  # whoever opens it says so
    if stat.S_ISFIFO(found.st_mode):
        raise SourceError(path, "cannot be read: a pipe; write it to a file first")
    if found.st_dev in _devices():
        # Links such as `/proc/1/root` lead out of them.
        message = "not looked into: the kernel shows its state there, and stores no cache or log"
        raise SourceError(path, message, "unknown_source")
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        raise SourceError(path, "not looked into: a device or a socket, and no file", "unknown_source")


@cache
def _devices() -> frozenset[int]:
    """The device numbers of the kernel's own file systems; none where there is no list of mounts."""
    devices = set()
    with contextlib.suppress(OSError), open(_MOUNTS, encoding="utf-8", errors="replace") as mounts:
        for mount in mounts:
            where, _, what = mount.partition(" - ")
            if what.split(" ", 1)[0] in _TYPES:
                major, _, minor = where.split(" ")[2].partition(":")
                devices.add(os.makedev(int(major), int(minor)))
    return frozenset(devices)


# By the folder of its files, the path of each archive that was unpacked.
UNPACKED: Final[dict[str, str]] = {}


def shown(place: str) -> str:
    """A place within an archive that was unpacked, below the path that was given; any other as it is."""
    for folder, path in UNPACKED.items():
        if place == folder or place.startswith(folder + os.sep):
            return path + place.removeprefix(folder)
    return place
