"""AOTInductor packages (``.pt2``): what ``torch._inductor.aoti_compile_and_package`` writes, torch 2.6 to 2.15.

They are archives, often with all weights: names, sizes and the small JSON files in them are read.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import IO, Final

from cachescope.frames.directory_rows import EntryRow
from cachescope.readers.cache_file import DamagedContent
from cachescope.readers.json_record import well_formed
from cachescope.readers.pickles.inert_pickle import Limits, NotRead
from cachescope.readers.reading import Reading
from cachescope.terms import CODE_KEY
from cachescope.wording import plural

# Some forty thousand members; each becomes an object of half a kilobyte.
_MOST_BYTES: Final = 4 << 20
_END: Final = b"PK\x05\x06"
_END_BYTES: Final = 22
_LONGEST_COMMENT: Final = 1 << 16
_LOCATOR: Final = b"PK\x06\x07"
_LOCATOR_BYTES: Final = 20
_END_64: Final = struct.Struct("<4sQHHIIQQQQ")

# torch/csrc/export/pt2_archive_constants.h, `AOTINDUCTOR_DIR`; the archive's own name comes before it.
_MEMBER: Final = re.compile(r"(?:[^/]+/)?data/aotinductor/([^/]+)/(?:.*/)?([^/]+)")
_METADATA_BYTES: Final = 1 << 16
_MOST_METADATA: Final = 1_000
# `get_device_information` of torch/_inductor/codecache.py (2.10 and later); before, only the device.
_DEVICE: Final = "AOTI_DEVICE_KEY"
_METADATA_KEYS: Final = ("AOTI_PLATFORM", "AOTI_MACHINE", "AOTI_CPU_ISA", "AOTI_COMPUTE_CAPABILITY")
_WHAT: Final = {
    "so": "library", "o": "object file", "cpp": "source", "cubin": "kernel", "hsaco": "kernel",
    "spv": "kernel",
}  # fmt: skip


# What the runtime in it calls to run kernels: torch/csrc/inductor/aoti_runtime/utils_cuda.h and the code of its wrapper.
_DRIVERS: Final = {b"cuLaunchKernel": "cuda", b"hipModuleLaunchKernel": "hip"}


@contextlib.contextmanager
def _opened(path: str) -> Iterator[zipfile.ZipFile]:
    """An archive whose directory is there and not too large."""
    with open(path, "rb") as file:
        check_directory(file)
        with zipfile.ZipFile(file) as archive:
            yield archive


def check_directory(file: IO[bytes]) -> None:
    """Check that the directory of an archive is there and not too large; its size is where `zipfile` reads it."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _END_BYTES - _LONGEST_COMMENT - _LOCATOR_BYTES - _END_64.size))
    tail = file.read()
    at = tail.rfind(_END)
    if at < 0 or len(tail) - at < _END_BYTES:
        raise zipfile.BadZipFile("it has no directory: it was cut")
    length = int.from_bytes(tail[at + 12 : at + 16], "little")
    locator = at - _LOCATOR_BYTES
    if locator >= _END_64.size and tail.startswith(_LOCATOR, locator):
        length = max(length, _END_64.unpack_from(tail, locator - _END_64.size)[8])
    if length > _MOST_BYTES:
        raise NotRead(f"its directory has {length} bytes: not read")


def symbols_in(path: str) -> bytes:
    """The beginning of a library that AOTInductor compiled, with its symbols; empty if it is another library.

    torch/csrc/inductor/aoti_runtime/interface.h, 2.2 to 2.15. Linkers put symbols before code and constants.
    """
    with contextlib.suppress(OSError), open(path, "rb") as file:
        data = file.read(_MOST_BYTES)
        return data if data.startswith(b"\x7fELF") and b"AOTInductorModelContainerCreate" in data else b""
    return b""


def metadata_in(path: str) -> Iterator[dict[str, object]]:
    """What AOTInductor noted of the machine for each file in a package."""
    unread = (OSError, NotRead, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, ValueError)
    with contextlib.suppress(*unread), _opened(path) as archive:
        yield from _metadata(archive)


def _metadata(archive: zipfile.ZipFile) -> Iterator[dict[str, object]]:
    names = (item for item in archive.infolist() if item.filename.endswith("_metadata.json"))
    of_models = (item for item in names if _MEMBER.fullmatch(item.filename) is not None)
    return (_object(archive, item) for item in islice(of_models, _MOST_METADATA))


def holds_aotinductor(path: str, head: bytes) -> bool:
    """Whether a file that begins as an archive does is one with a model that AOTInductor compiled."""
    try:
        with _opened(path) as archive:
            return any(_MEMBER.fullmatch(name) for name in archive.namelist())
    except (OSError, NotRead, zipfile.BadZipFile, NotImplementedError, ValueError):
        # A cut archive has no directory: its first name decides.
        return b"data/aotinductor/" in head


def read_aotinductor(entry: EntryRow, path: str, name: str, reading: Reading) -> None:
    """Say which models are in an archive, and for which device."""
    if symbols := symbols_in(path):
        entry.device_types = tuple(what for call, what in _DRIVERS.items() if call in symbols)
        entry.detail = "a library by itself, which runs without its package"
        return
    try:
        with _opened(path) as archive:
            _fill(entry, archive)
            _check_sums(archive)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise DamagedContent(f"no whole archive: {str(error)[:200]}") from error


def _fill(entry: EntryRow, archive: zipfile.ZipFile) -> None:
    matches = map(_MEMBER.fullmatch, archive.namelist())
    members = [match.groups() for match in matches if match is not None]
    files = [name for _, name in members]
    counts = Counter(what for name in files if (what := _WHAT.get(name.rpartition(".")[2])) is not None)
    wrappers = (name.partition(".")[0] for name in files if name.endswith(".wrapper.cpp"))
    entry.code_key = next(filter(CODE_KEY.fullmatch, wrappers), None)
    metadata = list(_metadata(archive))
    entry.name = ", ".join(dict.fromkeys(well_formed(model) for model, _ in members))[:1000]
    entry.device_types = tuple(dict.fromkeys(text for one in metadata for text in _texts(one, [_DEVICE])))
    parts = [plural(number, what) for what, number in counts.items()]
    told = dict.fromkeys(text for one in metadata for text in _texts(one, _METADATA_KEYS))
    entry.detail = "; ".join(text for text in (", ".join(parts), ", ".join(told)) if text)


def _object(archive: zipfile.ZipFile, item: zipfile.ZipInfo) -> dict[str, object]:
    with archive.open(item) as file:
        data = file.read(_METADATA_BYTES + 1)
    if len(data) > _METADATA_BYTES:
        raise NotRead("its metadata are too long")
    try:
        found = json.loads(data)
    except RecursionError as error:
        raise ValueError("its metadata are nested too deep") from error
    if not isinstance(found, dict):
        raise ValueError("its metadata are no object")
    return found


def _texts(metadata: dict[str, object], names: list[str] | tuple[str, ...]) -> list[str]:
    values = [metadata.get(name) for name in names]
    return [well_formed(value)[:200] for value in values if isinstance(value, str) and value]


def _check_sums(archive: zipfile.ZipFile) -> None:
    """Check the members' checksums; larger archives are not read for it."""
    is_small = sum(item.file_size for item in archive.infolist()) <= Limits().size_bytes
    if is_small and (wrong := archive.testzip()) is not None:
        raise DamagedContent(f"{well_formed(wrong)[:200]}: checksum differs from the content")
