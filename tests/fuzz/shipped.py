"""Files that vLLM, SGLang and people ship: factors, handles, artifacts, models, packages, each with its content changed."""

import json
import random
import struct
import zlib
from pathlib import Path

import cachescope
from fuzz.pickles import made_pickle
from fuzz.seeds import Seeds
from fuzz.use import emptied, scope_at, use
from fuzz.values import bad_value, changed_bytes, changed_json

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
