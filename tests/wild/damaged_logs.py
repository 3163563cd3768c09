"""What becomes of logs on their way: cut, thinned, prefixed, interleaved, coloured, packed. One function each.

Each takes the folder of an unpacked recording and a generator of random numbers, and changes the files in place.
"""

import bz2
import csv
import gzip
import io
import itertools
import json
import lzma
import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

Change = Callable[[bytes, Random], bytes]
Line = bytes

# torch/_logging/_internal.py, `TorchLogsFormatter.format`: level and date, time, process.
_PID = re.compile(rb"[VIWEC]\d{4} \d\d:\d\d:\d\d\.\d{6} (\d+) ")
_STAMP = re.compile(rb"[VIWEC](\d{4} \d\d:\d\d:\d\d\.\d{6}) \d+ ")
_TELLING = re.compile(
    rb"cache (?:hit|miss) for key|hash details for key|Bypassing |Writing AOTAutograd|unable to load"
)
_DOCKER_BYTES = 16 * 1024
_STEPS = [b"step\n"] * 999
COMPRESSED = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def logs(folder: Path, kind: str) -> list[Path]:
    """The trace files or the text logs of a recording that hold anything."""
    found = sorted((folder / kind).iterdir()) if (folder / kind).is_dir() else []
    return [path for path in found if path.is_file() and path.stat().st_size]


def rewritten(path: Path, data: bytes) -> None:
    """Other content under the same time of modification, as the log would have that was always so."""
    times = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def lines_of(data: bytes) -> list[Line]:
    """Lines with their ends; torch's messages hold every other character that might end one."""
    lines = data.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def each_log(kind: str, change: Change, folder: Path, rng: Random) -> None:
    for path in logs(folder, kind):
        rewritten(path, change(path.read_bytes(), rng))


def one_log(kind: str, change: Change, folder: Path, rng: Random) -> None:
    """Change one log of a kind; the others stay whole."""
    path = rng.choice(logs(folder, kind))
    rewritten(path, change(path.read_bytes(), rng))


# Bytes are gone.


def without_tail(data: bytes, rng: Random) -> bytes:
    """The process was killed, the disk was full, or the log is still being written."""
    return data[: rng.randrange(len(data))]


def without_head(data: bytes, rng: Random) -> bytes:
    """The log was rotated."""
    return data[rng.randrange(len(data)) :]


def without_lines(count: int, data: bytes, rng: Random) -> bytes:
    lines = lines_of(data)
    lost = set(rng.sample(range(len(lines)), min(count, len(lines))))
    return b"".join(line for at, line in enumerate(lines) if at not in lost)


def without_stretches(data: bytes, rng: Random) -> bytes:
    """What a limit on messages per second does: stretches are lost."""
    lines = lines_of(data)
    for _ in range(rng.randrange(1, 4)):
        first = rng.randrange(len(lines) + 1)
        del lines[first : first + rng.choice((3, 20, 100, 400))]
    return b"".join(lines)


def without_a_share(share: float, data: bytes, rng: Random) -> bytes:
    return b"".join(line for line in lines_of(data) if rng.random() >= share)


def without_telling_lines(data: bytes, rng: Random) -> bytes:
    """Half of the lines that are no hash detail are lost: of hundreds, those that matter most."""
    return b"".join(line for line in lines_of(data) if not (_TELLING.search(line) and rng.random() < 0.5))


# The same lines in another dress.

_SECONDS = itertools.count()


def time_of_day() -> bytes:
    """Of each line a second later."""
    return time.strftime("%H:%M:%S", time.gmtime(next(_SECONDS))).encode()


PREFIXES: dict[str, Callable[[int, bytes], bytes]] = {
    "compose": lambda number, _: b"trainer-%d  | " % number,
    "kubectl": lambda number, _: b"[pod/%d/main] 2026-11-22T%s.123Z " % (number, time_of_day()),
    "journald": lambda number, pid: b"Nov 20 %s host%d python[%b]: " % (time_of_day(), number, pid),
    "srun": lambda number, _: b"%d: " % number,
    "mpirun": lambda number, _: b"[1,%d]<stderr>:" % number,
    "torchrun": lambda number, _: b"[default%d]:" % number,
    "ray": lambda number, pid: b"\x1b[36m(web pid=%b, ip=10.0.0.%d)\x1b[0m " % (pid, number),
}


def prefixed(launcher: str, folder: Path, rng: Random) -> None:
    numbers: dict[bytes, int] = {}
    for path in logs(folder, "text"):
        name = path.name.encode()
        lines = []
        for line in lines_of(path.read_bytes()):
            if match := _PID.search(line):
                name = match[1]
            number = numbers.setdefault(name, len(numbers))
            lines.append(PREFIXES[launcher](number, name if match else b"1") + line)
        rewritten(path, b"".join(lines))


def interleaved(launcher: str, folder: Path, rng: Random) -> None:
    """Every log beside a copy of itself, in one stream under two prefixes: the same pids in two containers."""
    prefix = PREFIXES[launcher]
    for path in logs(folder, "text"):
        lines = lines_of(path.read_bytes())
        streams = [[prefix(copy, b"1") + line for line in lines] for copy in (0, 1)]
        rewritten(path, mixed(streams, rng))


def mixed(streams: list[list[Line]], rng: Random) -> bytes:
    """Some lines of the one, some of the other."""
    found: list[Line] = []
    while streams := [lines for lines in streams if lines]:
        lines, count = rng.choice(streams), rng.randrange(1, 40)
        found += lines[:count]
        del lines[:count]
    return b"".join(found)


def coloured(data: bytes, rng: Random) -> bytes:
    return b"".join(
        b"\x1b[32m" + line.removesuffix(b"\n") + b"\x1b[0m" + (b"\n" if line.endswith(b"\n") else b"")
        for line in lines_of(data)
    )


def reset_at_ends(data: bytes, rng: Random) -> bytes:
    return data.replace(b"\n", b"\x1b[0m\n")


def with_crlf(data: bytes, rng: Random) -> bytes:
    return data.replace(b"\n", b"\r\n")


def docker_json(data: bytes, rng: Random) -> bytes:
    """Docker's json-file driver, which splits long lines."""
    records = []
    for line in lines_of(data):
        for at in range(0, len(line), _DOCKER_BYTES):
            text = line[at : at + _DOCKER_BYTES].decode("utf-8", "replace")
            records.append({"log": text, "stream": "stderr", "time": "2026-11-20T15:39:18.308000000Z"})
    return b"".join(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records)


def newest_first(data: bytes, rng: Random) -> bytes:
    """As a console of cloud logging shows it; the program printed much before it compiled, and after."""
    if len(set(_STAMP.findall(data))) == 1:
        return data  # Nothing tells the order of lines of one moment.
    lines = _STEPS + lines_of(data) + _STEPS
    return b"".join(line.removesuffix(b"\n") + b"\n" for line in reversed(lines))


def exported(data: bytes, rng: Random) -> bytes:
    """The same as JSON."""
    texts = newest_first(data, rng).decode("utf-8", "replace").removesuffix("\n").split("\n")
    records = [{"textPayload": text, "timestamp": "2026-11-20T15:39:18Z"} for text in texts]
    return json.dumps(records, indent=1).encode()


def as_table(data: bytes, rng: Random) -> bytes:
    """The same as rows of CSV."""
    table = io.StringIO()
    rows = csv.writer(table)
    rows.writerow(["@timestamp", "kubernetes.pod_name", "message"])
    texts = (line.decode("utf-8", "replace").removesuffix("\n") for line in lines_of(data))
    rows.writerows(["2026-11-20T15:39:18Z", "trainer-0", text] for text in texts)
    return table.getvalue().encode()


def in_utf16(data: bytes, rng: Random) -> bytes:
    """What PowerShell's redirection writes."""
    return with_crlf(data, rng).decode("utf-8", "replace").encode("utf-16")


def behind(head: bytes, data: bytes, rng: Random) -> bytes:
    """Something else stands before the first line."""
    return head + data


def packed(kind: str, suffix: str, folder: Path, rng: Random) -> None:
    """Every log compressed, as rotation and archives leave it."""
    for path in logs(folder, kind):
        rewritten(path, COMPRESSED[suffix](path.read_bytes()))
        path.rename(path.with_name(path.name + suffix))
