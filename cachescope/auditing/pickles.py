"""Audits every pickle in the bytes of a file, wherever torch unpickles one."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Never

from cachescope.auditing.findings import Finding, shown
from cachescope.auditing.known import TORCH_SAVE, is_dangerous, is_known, is_of_graphs
from cachescope.auditing.pickle_effects import Act, Program, follow
from cachescope.auditing.torch_side_effects import audit_object
from cachescope.readers.directory.caching_package import HEADER
from cachescope.readers.pickles.inert_pickle import InertUnpickler, UnreadablePickle, loads_inert
from cachescope.terms import VLLM_AOT

_DEEPEST: Final = 12
_ZIP: Final = b"PK\x03\x04"
_MOST_MEMBERS: Final = 10_000
_MOST_OF_A_MEMBER: Final = 64 << 20
_MOST_IN_A_ROW: Final = 64


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
    """Whether any bytes are a complete pickle that names a global: protocols 0 and 1 have no magic number."""
    program = follow(data)
    return program.damage is None and bool(program.acts)


@dataclass(frozen=True, slots=True)
class Audited:
    """The audit of a pickle: its findings, why torch could not load it, and the object in it."""

    findings: list[Finding]
    damage: str | None = None
    value: object = None


def audit_pickle(data: bytes, place: Place) -> Audited:
    """Audit what loading bytes as a pickle would do, including nested pickles."""
    start = len(HEADER) if data.startswith(HEADER) else 0
    program = follow(data, start)
    found = list(_findings(data, program, place))
    if place.kind == TORCH_SAVE:
        # The older form is several pickles in a row, then the bytes of the tensors.
        for _ in range(_MOST_IN_A_ROW):
            if program.damage is not None or not _binary(data[program.end :]):
                break
            program = follow(data, program.end)
            if program.damage is None or program.acts:
                found += _findings(data, program, place)
        return Audited(_each_once(found))
    if program.damage is not None:
        return Audited(_each_once(found), program.damage)
    try:
        value = loads_inert(data[start:], unpickler=_WithMembers)
    except UnreadablePickle as error:
        if place.kind == VLLM_AOT and error.what == "persistent id":
            return Audited(_each_once([*found, _graph(place)]))
        message = f"what is in it could not be looked at: {error.what}"
        found.append(place.finding("entry-not-read", message, place.at(start + (error.offset or 0))))
        return Audited(_each_once(found))
    for rule, message, text in audit_object(value):
        found.append(place.finding(rule, message, _place_of(text, data, place)))
    return Audited(_each_once(found), None, value)


class _Members:
    """The stand-in for ``getattr``, which pickles call to name a member of a class. Nothing can be set on it."""

    __slots__ = ("_find_class",)

    def __init__(self, find_class: Callable[[str, str], object]) -> None:
        self._find_class = find_class

    def __call__(self, owner: object, name: object, /) -> object:
        attributes = vars(owner) if isinstance(owner, type) else {}
        module, whole = attributes.get("module"), attributes.get("name")
        if not (isinstance(module, str) and isinstance(whole, str) and isinstance(name, str)):
            raise UnreadablePickle("getattr of a computed value")
        return self._find_class(module, f"{whole}.{name}")

    def __setstate__(self, state: object) -> Never:
        raise UnreadablePickle("sets attributes of getattr")


class _WithMembers(InertUnpickler):
    def stands_for(self, module: str, name: str) -> object:
        if (module, name) == ("builtins", "getattr"):
            return _Members(self.find_class)
        return super().stands_for(module, name)


def _place_of(text: object, data: bytes, place: Place) -> int | None:
    """The offset of a text; the start of the pickle if the text is written in another form."""
    if not isinstance(text, str) or not text:
        return place.at(0)
    return place.at(max(data.find(text.encode("utf-8", "surrogatepass")), 0))


def _each_once(found: list[Finding]) -> list[Finding]:
    return list(dict.fromkeys(found))


def _findings(data: bytes, program: Program, place: Place) -> Iterator[Finding]:
    for act in program.acts:
        yield from _judged(act, place)
    if program.is_cut:
        message = "a pickle of more steps than are followed"
        yield place.finding("entry-not-read", message, place.at(program.end))
    for inside in program.bytes_inside:
        yield from audit_bytes(data[inside.start : inside.end], place.inside(place.at(inside.start)))
    for encoded in program.texts_inside:
        yield from audit_bytes(encoded, place.inside(None))


def _judged(act: Act, place: Place) -> Iterator[Finding]:
    offset, target = place.at(act.offset), act.target
    named = None if target is None else shown(str(target))
    if act.what == "name":
        assert target is not None
        if is_known(place.kind, target):
            return
        if is_of_graphs(place.kind, target):
            yield _graph(place)
        elif is_dangerous(place.kind, target):
            message = f"loading it imports {named}, which no entry of torch's needs"
            yield place.finding("pickle-dangerous-global", message, offset, named)
        else:
            message = f"loading it imports {named}, which is not known to be safe"
            yield place.finding("pickle-unknown-global", message, offset, named)
    elif act.what == "computed":
        yield place.finding("pickle-computed-call", shown(act.text), offset, named)
    elif act.text == "a persistent id" and place.kind in (TORCH_SAVE, VLLM_AOT):
        if place.kind == VLLM_AOT:
            yield _graph(place)
    else:
        yield place.finding("pickle-odd-program", f"holds {act.text}", offset)


def _graph(place: Place) -> Finding:
    """The finding of a compiled model of vLLM, once for the file."""
    message = "loading it rebuilds graphs of vLLM's; what these call is not looked at"
    return place.finding("pickle-unknown-global", message)


def audit_bytes(data: bytes, place: Place) -> list[Finding]:
    """The findings in bytes that may be a pickle; none in other bytes, such as kernels and byte code."""
    if place.depth > _DEEPEST:
        return [place.finding("entry-not-read", "pickles nested too deep", place.start)]
    if data.startswith(_ZIP):
        return audit_zip(data, place)
    is_save = _is_torch_save(data)
    audited = audit_pickle(data, replace(place, kind=TORCH_SAVE) if is_save else place)
    if looks_like_pickle(data) or is_save or audited.damage is None:
        return audited.findings
    return []


def _is_torch_save(data: bytes) -> bool:
    # torch/serialization.py, `_legacy_save`: MAGIC_NUMBER, pickled by itself with protocol 2.
    return data.startswith(b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.")


def audit_zip(data: bytes, place: Place) -> list[Finding]:
    """The findings in the pickles of a ``torch.save`` file, or of a package: both are zip files."""
    found: list[Finding] = []
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as members:
            names = members.infolist()
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
