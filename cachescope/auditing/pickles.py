"""Audits every pickle in the bytes of a file, wherever torch unpickles one."""

from __future__ import annotations

import io
import re
import struct
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from cachescope.auditing.findings import Finding, shown
from cachescope.auditing.known import TORCH_SAVE, is_known, is_known_call, is_own
from cachescope.auditing.torch_side_effects import audit_object
from cachescope.readers.directory.caching_package import HEADER
from cachescope.readers.pickles.inert_pickle import Stub
from cachescope.readers.pickles.pickle_calls import Global, Program, computed, encoded, everything, follow
from cachescope.terms import AOT_COMPILE, AOTAUTOGRAD, FXGRAPH, PRECOMPILE, VLLM_AOT

_DEEPEST: Final = 12
_ZIP: Final = b"PK\x03\x04"
_MOST_MEMBERS: Final = 10_000
_MOST_OF_A_MEMBER: Final = 64 << 20
_MOST_IN_A_ROW: Final = 64
_GRAPHS: Final = b"torch.fx._graph_pickler"
_NAMED: Final = re.compile(r"\w+(?:\.\w+)+")
# torch/serialization.py, `_legacy_save`: MAGIC_NUMBER, pickled by itself with protocol 2.
_LEGACY: Final = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
# torch/serialization.py, `_save`; with others, such as ``constants.pkl``, it is TorchScript, which `torch.load` runs.
_MEMBER: Final = re.compile(
    r"[^/]+/(?:data\.pkl|version|byteorder|\.format_version|\.storage_alignment|\.data/serialization_id|data/\d+)",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a pickle: the file, its offset there, and the kind of the entry around it."""

    path: str
    kind: str
    start: int | None = 0
    depth: int = 0

    def at(self, offset: int) -> int | None:
        """Convert an offset in the pickle into one in the file."""
        return None if self.start is None else self.start + offset

    def inside(self, start: int | None, kind: str | None = None) -> Place:
        """The place of a pickle inside this one."""
        return replace(self, start=start, depth=self.depth + 1, kind=kind or self.kind)

    def finding(
        self, rule: str, message: str, offset: int | None = None, named: str | None = None
    ) -> Finding:
        """A finding there, by the offset in the file."""
        return Finding(rule, self.path, message, offset, self.kind, named)


def looks_like_pickle(data: bytes) -> bool:
    """Whether bytes begin like a pickle of protocol 2 or later, also after torch's header, or like a ``torch.save`` file."""
    return _binary(data) or (data.startswith(HEADER) and _binary(data[4:])) or data.startswith(_ZIP)


def _binary(data: bytes) -> bool:
    return data[:1] == b"\x80" and data[1:2] in (b"\2", b"\3", b"\4", b"\5")


def acts_as_pickle(data: bytes) -> bool:
    """Whether any bytes name a global as a pickle, also before they break: protocols 0 and 1 have no magic number."""
    return any(_NAMED.fullmatch(str(found)) for found in follow(data).named)


@dataclass(frozen=True, slots=True)
class Audited:
    """The audit of a pickle: its findings, why torch could not load it, and the object in it."""

    findings: list[Finding]
    damage: str | None = None
    value: object = None


def audit_pickle(data: bytes, place: Place) -> Audited:
    """Audit what loading bytes as a pickle would do, including nested pickles, and what stands behind it."""
    start = len(HEADER) if data.startswith(HEADER) else 0
    persistent = place.kind in (TORCH_SAVE, VLLM_AOT)
    program = follow(data, start, persistent_ids=persistent)
    found = list(_findings(data, program, place))
    if place.kind == TORCH_SAVE and data.startswith(_LEGACY):
        return Audited([*found, *_legacy(data, program, place)])
    if program.damage is not None or program.odd or program.refused or program.not_read:
        return Audited(found, program.damage)
    if program.end < len(data):
        found += _behind(data, program.end, place)
    return Audited(found, None, program.value)


def _behind(data: bytes, at: int, place: Place) -> Iterator[Finding]:
    """What stands behind a pickle: torch writes nothing there, and some of its readers go on."""
    message = f"{len(data) - at} bytes behind the pickle, where torch writes none"
    yield place.finding("pickle-odd-program", message, place.at(at))
    for _ in range(_MOST_IN_A_ROW):
        program = follow(data, at, persistent_ids=place.kind == TORCH_SAVE)
        if program.damage is None or program.named:
            yield from _findings(data, program, place)
        if program.damage is not None or program.end in (at, len(data)):
            return
        at = program.end
    yield place.finding("entry-not-read", "more pickles in a row than are followed", place.at(at))


def _legacy(data: bytes, program: Program, place: Place) -> Iterator[Finding]:
    """The pickles of the older form: five in a row, then the bytes of the tensors (``_legacy_load``)."""
    for _ in range(4):
        if program.damage is not None:
            message = f"no torch.save: {program.damage}"
            yield place.finding("pickle-odd-program", message, place.at(program.end))
            return
        program = follow(data, program.end, persistent_ids=True)
        yield from _findings(data, program, place)


def _findings(data: bytes, program: Program, place: Place) -> Iterator[Finding]:
    if place.kind in (PRECOMPILE, AOT_COMPILE, VLLM_AOT) and place.depth == 0:
        yield place.finding("native-code", "byte code of Python, and what it imports by name")
    for target in program.named:
        yield from _judged(data, target, place)
    for call in program.calls():
        if is_known(place.kind, call.target) and not is_known_call(place.kind, call):
            named = shown(str(call.target))
            message = f"uses {named} in a way that no entry of torch's does ({call.how} {call.letters})"
            at = _place_of(call.target.name, data, place)
            yield place.finding("pickle-computed-call", message, at, named)
    end = place.at(program.end)
    yield from (place.finding("pickle-computed-call", shown(message), end) for message in computed(program))
    for message in program.odd:
        yield place.finding("pickle-odd-program", shown(f"holds {message}"), end)
    if program.not_read is not None:
        yield place.finding("entry-not-read", f"not followed to its end: {program.not_read}", end)
    is_graph = any(isinstance(one, Stub) and not one.module for one in everything([program.value]))
    if place.kind == VLLM_AOT and (is_graph or _GRAPHS in data):
        yield place.finding("not-followed", "loading it rebuilds graphs; what these call is not looked at")
    for inside in everything([program.value, *program.made]):
        content = encoded(inside) if isinstance(inside, Stub) else inside
        if isinstance(content, bytes) and len(content) > 3:
            at = data.find(content) if content is inside else -1
            yield from audit_bytes(content, place.inside(place.at(at) if at >= 0 else None))
    for rule, message, text in audit_object([program.value, *program.made]):
        yield place.finding(rule, message, _place_of(text, data, place))


def _place_of(text: object, data: bytes, place: Place) -> int | None:
    """The offset of a text; the start of the pickle if the text is written in another form."""
    if not isinstance(text, str) or not text:
        return place.at(0)
    return place.at(max(data.find(text.encode("utf-8", "surrogatepass")), 0))


def _judged(data: bytes, target: Global, place: Place) -> Iterator[Finding]:
    if is_known(place.kind, target):
        return
    named, offset = shown(str(target)), _place_of(target.name, data, place)
    if is_own(target):
        message = (
            f"loading it imports the module {shown(target.module)}, which is neither torch's nor Python's"
        )
        yield place.finding("user-module", message, offset, named)
    else:
        message = f"loading it imports {named}, which no entry of torch's names"
        yield place.finding("pickle-dangerous-global", message, offset, named)


def audit_bytes(data: bytes, place: Place) -> list[Finding]:
    """The findings in bytes that may be a pickle; none in other bytes, such as kernels and byte code."""
    if place.depth > _DEEPEST:
        return [place.finding("entry-not-read", f"pickles nested more than {_DEEPEST} deep", place.start)]
    if data.startswith(_ZIP):
        return audit_zip(data, place)
    is_save = data.startswith(_LEGACY)
    # The pickled graph of an entry (``_serialized_original_gm``), which vLLM's models have too.
    is_graph = place.depth > 0 and place.kind in (FXGRAPH, AOTAUTOGRAD) and _GRAPHS in data
    kind = TORCH_SAVE if is_save else VLLM_AOT if is_graph else place.kind
    audited = audit_pickle(data, replace(place, kind=kind))
    if looks_like_pickle(data) or is_save or audited.damage is None or acts_as_pickle(data):
        return audited.findings
    return []


def audit_zip(data: bytes, place: Place, *, is_package: bool = False) -> list[Finding]:
    """The findings in the pickles of a ``torch.save`` file, or of a package: both are zip files."""
    found: list[Finding] = []
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as members:
            names = members.infolist()
            odd = _not_as_torch_writes(data, members)
            if odd is not None and not is_package:
                message = f"an archive that is not as torch writes it: {odd}"
                found.append(place.finding("pickle-odd-program", message))
            for member in names[:_MOST_MEMBERS]:
                if member.filename.startswith(("/", "\\")) or ".." in member.filename.split("/"):
                    message = f"holds a file called {shown(member.filename)}"
                    found.append(place.finding("path-escapes", message))
                with members.open(member) as stream:
                    content = stream.read(_MOST_OF_A_MEMBER + 1)
                if len(content) > _MOST_OF_A_MEMBER or len(names) > _MOST_MEMBERS:
                    found.append(place.finding("entry-not-read", "a zip file of more than is looked at"))
                    break
                found += audit_bytes(content, place.inside(None, TORCH_SAVE))
    except Exception as error:  # a damaged file can make zipfile raise anything
        message = f"a zip file that cannot be read: {type(error).__name__}"
        found.append(place.finding("entry-not-read", message))
    return found


def _not_as_torch_writes(data: bytes, members: zipfile.ZipFile) -> str | None:
    """Why another reader than Python's may see another archive, or other files; None if every byte has one meaning.

    ``PyTorchStreamWriter`` (caffe2/serialize/inline_container.cc) stores its files one behind the other from the first byte, and ends
    with an index, which it gives twice.
    """
    end = len(data) - 22
    signature, disk, first, here, count, size, start, comment = struct.unpack("<4s4H2LH", data[end:])
    if (signature, disk, first, comment) != (b"PK\5\6", 0, 0, 0) or here != count:
        return "it does not end with its index"
    if data[end - 20 : end - 16] == b"PK\6\7":
        at = end - 76
        again = struct.unpack("<4sQ2H2L4Q", data[at : at + 56])
        if struct.unpack("<LQL", data[end - 16 : end]) != (0, at, 1) or again[0] != b"PK\6\6":
            return "its second index is elsewhere"
        if again[6:] != (count, count, size, start) or again[4:6] != (0, 0):
            return "its two indexes disagree"
        end = at
    if start + size != end or members.start_dir != start or len(members.infolist()) != count:
        return "its index is elsewhere"
    names, at = set(), 0
    for member in members.infolist():
        header = data[member.header_offset : member.header_offset + 30]
        name_length, extra_length = struct.unpack("<2H", header[26:30])
        name = data[member.header_offset + 30 : member.header_offset + 30 + name_length]
        is_here = member.header_offset == at and header[:4] == _ZIP
        if not is_here or name.decode("utf-8", "replace") != member.orig_filename:
            return "its files are not where its index says"
        if member.compress_type or member.file_size != member.compress_size or member.flag_bits & ~0x808:
            return "it is compressed"
        if name.lower() in names or _MEMBER.fullmatch(member.filename) is None:
            return f"it holds {shown(member.filename)}"
        names.add(name.lower())
        at += 30 + name_length + extra_length + member.file_size
        if member.flag_bits & 8:
            at += 16 if data[at + 16 : at + 18] == b"PK" else 24
    return None if at == start else "something stands between its files and its index"
