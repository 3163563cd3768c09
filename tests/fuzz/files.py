"""Files of cache directories, and whole directories, with names and contents changed; and files that are shipped."""

import json
import os
import random
import struct
import zipfile
import zlib
from io import BytesIO
from pathlib import Path

import cachescope
from cachescope.auditing.pickles import Place, audit_pickle
from cachescope.errors import CachescopeError
from cachescope.frames.directory_rows import EntryRow
from cachescope.readers.directory.cache_dir import read_cache_dir, read_shipped_file
from cachescope.readers.directory.entry_file import value_text
from cachescope.readers.directory.graph_entries import check_aotautograd, check_fxgraph
from cachescope.readers.pickles.inert_pickle import NotRead, loads_harmless
from cachescope.readers.reading import Reading
from fuzz.followed import wrongs_of
from fuzz.pickles import made_pickle
from fuzz.remote import Remote
from fuzz.seeds import Seeds
from fuzz.use import emptied, scope_at, scope_of, use
from fuzz.values import bad_value, changed_bytes, changed_json

_KEY = "f" + "a" * 51
_NAMES = (
    "x\udcff", "x\n::error::y", "é" * 60, ".x.tmp", "entry", "a" * 52, "\u202e.py", "of zquill vanterra.py",
    "<zqtag zqattr=1>", "kestrel.best_config",
)  # fmt: skip


def put_as(root: Path, seed: Path, data: bytes) -> None:
    """Write it where a seed was, below its own folders, which say what it is."""
    path = root / Path(*seed.parts[seed.parts.index("directories") + 2 :])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


# Kinds of files that are pickles of anything, and those that hold objects of torch's.
_PICKLED = ("versioned", "versioned", "pgo", "fxgraph", "aotautograd", "torch_save", "precompile", "vllm_aot")


def proves(data: bytes, kind: str) -> None:
    """What an audit calls proven does nothing that torch's own pickles do not, followed by another."""
    if not {one.level for one in audit_pickle(data, Place("x", kind)).findings} - {"note"}:
        assert not (wrong := wrongs_of(data)), f"proven as {kind}, and {wrong[:3]}"


class Pickles:
    """Pickles by the grammar, read as every kind of file that is one."""

    name = "pickles"

    def make(self, chance: random.Random) -> bytes:
        return made_pickle(chance)

    def check(self, data: bytes, folder: Path) -> None:
        proves(data, _PICKLED[len(data) % len(_PICKLED)])
        try:
            value = loads_harmless(data)
        except CachescopeError:
            return
        assert len(value_text(value)) <= 2_000


class StoredEntries:
    """Real entries with bytes or whole opcodes changed."""

    name = "entries"

    def __init__(self, seeds: Seeds) -> None:
        self._entries = seeds.entries

    def make(self, chance: random.Random) -> bytes:
        _, data = chance.choice(self._entries)
        if chance.random() < 0.3:
            at = chance.randrange(len(data))
            data = data[:at] + made_pickle(chance, most=8)[2:-1] + data[at:]
        return changed_bytes(chance, data, chance.choice((0, 1, 1, 2, 5, 20)))

    def check(self, data: bytes, folder: Path) -> None:
        proves(data, "fxgraph")
        proves(data, "aotautograd")
        for cache, check in (("fxgraph", check_fxgraph), ("aotautograd", check_aotautograd)):
            reading = Reading()
            entry = EntryRow(cache=cache, path="x", root="x", cache_key=_KEY)
            try:
                check(entry, "", data, reading)
            except NotRead:
                continue
            except CachescopeError as error:
                entry.status, entry.damage = "damaged", str(error)
            reading.entries.append(entry)
            if len(data) % 101 == 0:
                use(scope_of(reading))


class JsonFiles:
    """The JSON files of a cache directory, and those beside logs."""

    name = "JSON files"

    def __init__(self, seeds: Seeds) -> None:
        self._files = seeds.json_files
        began = "2026-01-01T00:00:00+00:00"
        note = {"cachescope_run": 1, "command": ["python", "x.py"], "exit_status": 0, "start_time": began}
        context = {"runtime_context": {"inductor_configs": {"a": 1}}, "compile_context": {"runtime": "CUDA"}}
        snapshot = {"cachescope_snapshot": 1, "context": context, "pid": 7, "time": began, "host": "h"}
        snapshot |= {"settings": {"a": "1"}, "environment": {"A": "b"}, "key_fields": {"a": "b" * 51}}
        snapshot |= {"python_version": "3.11.7", "torch_version": "2.13.0"}
        self._others = [("run.json", note), ("context.json", snapshot), ("context.json", snapshot)]
        self._trace = b"\n".join(piece.data for piece in seeds.traces[0][:4]) + b"\n"
        self._name = ""
        self._at: Path | None = None

    def make(self, chance: random.Random) -> bytes:
        self._at, value = None, None
        if chance.random() < 0.5:
            self._name, value = chance.choice(self._others)
        else:
            self._at, value = chance.choice(self._files)
        if chance.random() < 0.2:
            return changed_bytes(chance, json.dumps(value).encode(), 2)
        return changed_json(chance, value, chance.choice((1, 1, 2, 4)))

    def check(self, data: bytes, folder: Path) -> None:
        root = emptied(folder / "json")
        if self._at is None:
            (root / self._name).write_bytes(data)
            if self._name == "run.json":
                (root / "trace.log").write_bytes(self._trace)
        else:
            put_as(root, self._at, data)
        if (scope := scope_at(root)) is None:
            return
        if len(data) % 53 == 0:
            use(scope, folder / "saved", root, len(data) // 53)


class Blobs:
    """Any file of a directory with bytes changed, under its own name, or that of another."""

    name = "files of a directory"

    def __init__(self, seeds: Seeds) -> None:
        self._files = seeds.files
        self._at = Path()

    def make(self, chance: random.Random) -> bytes:
        path = chance.choice(self._files)
        self._at = path if chance.random() < 0.8 else chance.choice(self._files)
        kind = chance.random()
        if kind < 0.05:
            packed = BytesIO()
            with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("../data.pkl", made_pickle(chance))
            return changed_bytes(chance, packed.getvalue(), chance.choice((0, 1)))
        if kind < 0.15:
            return bytes.fromhex("5feceb66") * (chance.random() < 0.5) + made_pickle(chance)
        return changed_bytes(chance, path.read_bytes(), chance.choice((1, 1, 4, 20)))

    def check(self, data: bytes, folder: Path) -> None:
        root = emptied(folder / "blobs")
        put_as(root, self._at, data)
        reading = Reading()
        read_cache_dir(str(root), reading)
        if len(data) % 101 == 0:
            use(scope_of(reading), None, root, len(data) // 101)


class MegaCaches:
    """Mega-caches of changed artifacts, and changed mega-caches."""

    name = "mega-caches"

    def __init__(self, seeds: Seeds) -> None:
        self._entries = [(cache, data) for cache, data in seeds.entries if len(data) < 100_000]

    def make(self, chance: random.Random) -> bytes:
        import base64
        import zlib

        def counted(data: bytes) -> bytes:
            return len(data).to_bytes(8, "big") + data

        body = (1).to_bytes(8, "big")
        for kind in chance.sample(("inductor", "aot_autograd", "autotune", "pgo"), chance.choice((1, 2))):
            count = chance.choice((0, 1, 2))
            body += counted(base64.b64encode(kind.encode())) + count.to_bytes(8, "big")
            for _ in range(count):
                content = made_pickle(chance) if chance.random() < 0.6 else chance.choice(self._entries)[1]
                body += counted(base64.b64encode(_KEY.encode())) + counted(content)
        data = zlib.crc32(body).to_bytes(4, "big") + body if chance.random() < 0.5 else body
        return changed_bytes(chance, data, chance.choice((0, 0, 1, 2)))

    def check(self, data: bytes, folder: Path) -> None:
        path = folder / "mega"
        path.write_bytes(data)
        reading = Reading()
        read_shipped_file(str(path), reading)


class Directories:
    """Whole directories: files changed, renamed, gone, empty, linked, or folders in their place."""

    name = "directories"

    def __init__(self, seeds: Seeds) -> None:
        self._directories = seeds.directories
        self._seeds = seeds
        self._chance = random.Random()

    def make(self, chance: random.Random) -> bytes:
        self._chance = chance
        return b""

    def check(self, data: bytes, folder: Path) -> None:
        chance, root = self._chance, emptied(folder / "directory")
        source = chance.choice(self._directories)
        files = [path for path in sorted(source.rglob("*")) if path.is_file() and not path.is_symlink()]
        for path in chance.sample(files, min(len(files), chance.choice((1, 4, 12)))):
            self._put(chance, path, root / path.relative_to(source))
        for _ in range(chance.choice((0, 1))):
            pieces = chance.choice(self._seeds.traces)
            (root / "trace.log").write_bytes(b"\n".join(piece.data for piece in pieces))
        if (scope := scope_at(root)) is None:
            return
        use(scope, folder / "saved" if chance.random() < 0.3 else None, root, chance.randrange(60))

    def _put(self, chance: random.Random, source: Path, path: Path) -> None:
        if chance.random() < 0.2:
            name = chance.choice((*_NAMES, path.name + ".lock"))
            path = path.with_name(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() or path.is_symlink():
            return
        match chance.randrange(10):
            case 0:
                path.mkdir()
            case 1:
                path.symlink_to(chance.choice(("/nowhere", "..", path.name, str(source), "/etc/passwd")))
            case 2:
                path.write_bytes(b"")
            case 3:
                os.mkfifo(path)
            case 4:
                path.write_bytes(bad_value(chance).encode("utf-8", "surrogatepass"))
            case 5 | 6:
                path.write_bytes(changed_bytes(chance, source.read_bytes()[: 1 << 18], 3))
            case _:
                path.write_bytes(source.read_bytes()[: 1 << 18])
        if not path.is_symlink() and chance.random() < 0.2:
            seconds = chance.choice((0, -(10**9), 10**10, 1, 4 * 10**9))
            os.utime(path, (seconds, seconds))


def file_kinds(seeds: Seeds) -> list[object]:
    kinds = (StoredEntries, JsonFiles, Blobs, MegaCaches, Shipped, Remote, Directories)
    return [Pickles(), *(kind(seeds) for kind in kinds)]


# Python that a reader of a literal must not run, and what is deep, long or nothing.
_LITERALS = (
    "__import__('os').system('true')", "{(1, 2, __import__('os')): 3}", "{(None, 0, 'inductor'): exec('1')}", "{((1, 8), 0, 'x'): open('/etc/passwd')}",
    "[" * 100_000, "{" * 3_000, "(" * 3_000 + ")" * 3_000, "{(1, 2, 3): " * 500 + "0" + "}" * 500, "-" * 100_000 + "1", "1" * 100_000,
    "{(1, 2, 3): 'a' 'b'}", "{(1, 2, 3): 10 ** 10 ** 10}", "{(1, 2, 3): 'x' * 10 ** 10}", "{*()}", "{**{}}", "lambda: 0", "{(1, 2): 3}", "[]", "", "\x00",
    "{(1, 2, '\ud800'): 3}", "{(1e999, 2, '\\ud800'): 3}", "{((1, 2, 3), 0, 'x'): 1, " + "((1, 2), 0, 'x'): 1, " * 5_000 + "}",
)  # fmt: skip
_CHECKED = ("standalone.bin", "standalone_aot.bin")


class Shipped:
    """Each file at its place, as far as the place says what it is; every damage is a row in ``problems``."""

    name = "shipped files"

    def __init__(self, seeds: Seeds) -> None:
        self._files = seeds.shipped
        # What an audit loads when it is first made is loaded before anyone looks on.
        cachescope.audit(seeds.folder / "shipped" / "shipped" / "2.13.0")
        self._at = Path()
        self._is_whole = False

    def make(self, chance: random.Random) -> bytes:
        self._at, whole = chance.choice(self._files)
        data = self._made(chance, whole)
        self._is_whole = data == whole
        return data

    def _made(self, chance: random.Random, whole: bytes) -> bytes:
        kind = chance.random()
        name = self._at.name
        if name.endswith(".py") and kind < 0.5:
            return chance.choice(_LITERALS).encode("utf-8", "surrogatepass")
        if name.endswith(".json") and kind < 0.7:
            return changed_json(chance, json.loads(whole), chance.choice((1, 1, 3)))
        if kind < 0.05:
            return bad_value(chance).encode("utf-8", "surrogatepass")
        if kind < 0.2:
            return b"PT2AOT\x01" * (chance.random() < 0.3) + made_pickle(chance)
        if kind < 0.35 and (name in _CHECKED or name.startswith("artifact")):
            return artifact(chance)
        return changed_bytes(chance, whole, chance.choice((1, 1, 1, 4, 20)))

    def check(self, data: bytes, folder: Path) -> None:
        root = emptied(folder / "shipped")
        path = root / self._at
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if (scope := scope_at(path if len(self._at.parts) == 1 else root)) is None:
            return
        broken = scope.entries["status"].isin(("damaged", "unreadable"))
        assert int(broken.sum()) <= len(scope.problems), "damage that no problem tells of"
        is_checked = self._at.name in _CHECKED or self._at.name.startswith("artifact")
        if is_checked and not self._is_whole and len(data) > 300 and not _has_checksum(data):
            sound = set(scope.entries.loc[~broken, "cache"]) & {"standalone", "vllm_artifact"}
            assert not sound, "a changed artifact that nothing is said against"
        if len(data) % 53 == 0:
            use(scope, folder / "saved", root, len(data) // 53)
            cachescope.audit(path)


def artifact(chance: random.Random) -> bytes:
    """A standalone artifact whose checksum holds, of anything."""
    header = chance.choice((b"CacheCompiledArtifact", b"AOTCompiledArtifact", b""))
    parts = [header, b"k" * 32, chance.choice((b"YQ==", b"a" * 52, b"\xff")), made_pickle(chance)]
    body = b"".join(
        struct.pack(">Q", len(part) if chance.random() < 0.97 else chance.choice((0, 1 << 63, 1 << 31)))
        + part
        for part in parts
        if part
    )
    return struct.pack(">I", zlib.crc32(body)) + body


def _has_checksum(data: bytes) -> bool:
    return zlib.crc32(data[4:]).to_bytes(4, "big") == data[:4]
