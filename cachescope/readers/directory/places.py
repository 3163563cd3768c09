"""The layout below a cache root: for each sort of folder, which names are files of which kind.

The walk follows this one table. Layouts of torch 2.5 to 2.15 (``cache_dir()`` and what is written
below it) and Triton 3.1 to 3.9; the first rule that matches a name wins.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Final, Protocol

from cachescope.terms import (
    AOTAUTOGRAD,
    AUTOTUNE,
    BEST_CONFIG,
    CACHING_PACKAGE,
    CODE,
    CUTLASS_CONFIGS,
    FXGRAPH,
    HASH,
    IMC,
    LOCK,
    MEMOIZER,
    MEMOIZER_DUMP,
    ON_DISK_CACHE,
    OTHER,
    PGO,
    PRECOMPILE,
    PRECOMPILED_HEADER,
    TRITON,
)

# triton/runtime/cache.py: hexadecimal in 3.1, `_base64` (URL-safe) in 3.2, `_base32` from 3.4; all without
# padding, and all of the same 32 bytes: the last character of a base64 has two unused bits.
TRITON_KEY: Final = r"[0-9a-f]{64}|[A-Z2-7]{52}|[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]"
_BASE32_LENGTH: Final = 52
_BASE64_LENGTH: Final = 43
_LOOK_AT: Final = 1_000


class Listed(Protocol):
    """Something in a folder: an `os.DirEntry`, or what stands for one in an archive."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def path(self) -> str:
        """Its path."""

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether it is a folder, or a link that may lead to one."""

    def is_symlink(self) -> bool:
        """Whether it is a link."""


List = Callable[[str], Sequence[Listed]]
"""Lists a folder; raises OSError if it may not be listed."""


def first_items(path: str) -> Sequence[Listed]:
    """What lies in a folder on the disk: the first thousand are enough to know it."""
    with os.scandir(path) as found:
        return list(islice(found, _LOOK_AT))


@dataclass(frozen=True, slots=True)
class Rule:
    """What is known of a file or folder by its whole name."""

    pattern: str

    def match(self, name: str) -> re.Match[str] | None:
        """How the rule fits this name; None if it does not."""
        return _compiled(self.pattern).fullmatch(name)


@dataclass(frozen=True, slots=True)
class FileRule(Rule):
    """A file whose whole name matches is of this kind; a group in the pattern is its key."""

    kind: str
    content: str | None = None
    """What is in it, by its name in `CONTENT_READERS`; None: the file is never opened."""
    status: str = "ok"


@dataclass(frozen=True, slots=True)
class FolderRule(Rule):
    """A folder whose whole name matches is this place."""

    place: Place
    is_named: bool = True
    """Whether the name alone identifies the place; a link with such a name is followed whatever its target."""


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of a rule; most are never asked for, where no cache directory is read."""
    return re.compile(pattern, re.DOTALL)


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """A sort of folder, equal only to itself."""

    kind: str
    """The kind of its temporary files."""
    files: tuple[FileRule, ...] = ()
    folders: tuple[FolderRule, ...] = ()
    key_of: Callable[[str], str] | None = None
    """Returns the key of the files in it, given the folder's name."""
    is_deep: bool = False
    """Whether folders without a rule are the same place; otherwise their contents decide."""
    loads_all: bool = False
    """Whether torch loads every file in it, whatever its name."""
    is_temporary: bool = False
    """Whether everything in it is a leftover of a process that died, or is still writing."""

    def file_rule(self, name: str) -> FileRule | None:
        """The rule of a file in it."""
        return next((rule for rule in self.files if rule.match(name)), None)

    def folder_rule(self, name: str) -> tuple[int, FolderRule | None]:
        """The rule of a folder in it, and its place in the table; behind all others without a rule."""
        for rank, rule in enumerate(self.folders):
            if rule.match(name):
                return rank, rule
        return len(self.folders), None


def triton_hash(key: str) -> str:
    """The hash in the name of a Triton folder, as 64 hexadecimal digits, whatever its spelling."""
    if len(key) == _BASE32_LENGTH:
        return base64.b32decode(key + "====").hex()
    return base64.urlsafe_b64decode(key + "=").hex() if len(key) == _BASE64_LENGTH else key


def _all_of(kind: str) -> Place:
    return Place(kind, (FileRule(r"(.+)\.lock", LOCK), FileRule(r".*", kind)), is_deep=True)


_HEX8, _HEX32, _HEX64 = "[0-9a-f]{8}", "[0-9a-f]{32}", "[0-9a-f]{64}"
_ANY_LOCK = FileRule(r"(.+)\.lock", LOCK)

LOCKS: Final = Place(LOCK, (_ANY_LOCK,))


def _key_folder(kind: str) -> Place:
    """A folder in which torch loads every file: `iterate_over_candidates`, and `_lookup_graph` in 2.6."""
    hidden = f"hidden {kind}"
    files = (
        FileRule(r"\..*\.tmp", kind, hidden, "temporary"),
        FileRule(r"\..*", kind, hidden, "foreign"),
        FileRule(r".*", kind, kind),
    )
    return Place(kind, files, key_of=str, loads_all=True)


FX_KEY_FOLDER: Final = _key_folder(FXGRAPH)
FX_PREFIX: Final = Place(FXGRAPH, folders=(FolderRule(f"f{HASH}", FX_KEY_FOLDER),))
FX_GRAPHS: Final = Place(
    FXGRAPH, folders=(FolderRule("[a-z2-7]{2}", FX_PREFIX), FolderRule(f"f{HASH}", FX_KEY_FOLDER))
)

AOT_KEY_FOLDER: Final = _key_folder(AOTAUTOGRAD)
# If precompile mode cannot compute a key: `str(random.random())` in 2.10, `uuid4().hex` in 2.15.
AOT_GRAPHS: Final = Place(
    AOTAUTOGRAD, folders=(FolderRule(rf"a{HASH}|0\.\d+(?:e-\d+)?|{_HEX32}", AOT_KEY_FOLDER),)
)


def _code(ending: str) -> str:
    # These rules differ in the ending, so it is matched before the 51 letters that they share.
    return rf"(?=.{{52}}{ending})(c{HASH}){ending}"


BEST_CONFIG_FILE: Final = FileRule(rf"({_HEX64})\.best_config", BEST_CONFIG, BEST_CONFIG)
CODE_FILES: Final = (
    FileRule(_code(r"\.py"), CODE, "python code"),
    # 2.5 named it after the kernel's file.
    FileRule(_code(r"\.best_config"), BEST_CONFIG, BEST_CONFIG),
    BEST_CONFIG_FILE,
    FileRule(_code(r"\.(?:main\.|optimized\.)?cpp"), CODE, "C++ code"),
    FileRule(_code(r"\.(?:main\.)?so"), CODE, "library"),
    FileRule(rf"(c{HASH})(?:\.[^.].*)?", CODE),
)
CODE_FOLDER: Final = Place(
    CODE,
    (
        *CODE_FILES,
        # `package_cpp_only` names them after their kernel.
        FileRule(r".+\.(?:py|cpp|h|so|o|a|cu|cubin|ptx|hsaco|spv|amdgcn|zebin|json|txt|pt2)", CODE),
    ),
    (
        FolderRule(
            "__pycache__",
            Place(CODE, (FileRule(rf"(c{HASH})\..*\.pyc", CODE), FileRule(r".*\.pyc.*", CODE))),
            False,
        ),
    ),
)

_TRITON_FILES: Final = (
    FileRule(r"lock|(.+)\.lock", LOCK),
    FileRule(r"__grp__.*\.json", TRITON, "group of Triton"),
    FileRule(r".*\.json", TRITON, "kernel of Triton"),
    FileRule(r".*\.ttir", TRITON, "intermediate of Triton"),
    FileRule(r".*", TRITON),
)
TRITON_TEMPORARY: Final = Place(TRITON, (FileRule(r".*", TRITON),), is_deep=True, is_temporary=True)
TRITON_FOLDER: Final = Place(
    TRITON, _TRITON_FILES, (FolderRule(r"tmp\..*", TRITON_TEMPORARY),), key_of=triton_hash, is_deep=True
)
TRITON_KEYS: Final = Place(
    TRITON, (_ANY_LOCK,), (FolderRule(TRITON_KEY, TRITON_FOLDER), FolderRule(r"tmp\..*", TRITON_TEMPORARY))
)
# torch adds one level per device, Triton none.
TRITON_DEVICES: Final = Place(
    TRITON, TRITON_KEYS.files, (FolderRule(r"\d+", TRITON_KEYS), *TRITON_KEYS.folders)
)

MEMOIZED: Final = Place(
    MEMOIZER, (FileRule(f"({_HEX32})", CACHING_PACKAGE, CACHING_PACKAGE), _ANY_LOCK), is_deep=True
)
SYSTEM_CACHE: Final = Place(
    AUTOTUNE,
    (
        FileRule(f"({_HEX64})", AUTOTUNE, AUTOTUNE),
        # A cached function of 2.10 without its own folder, and a memoizer without a sub_dir.
        FileRule(f"({_HEX32})", CACHING_PACKAGE, CACHING_PACKAGE),
        _ANY_LOCK,
    ),
    (
        FolderRule(
            "dcache_dump",
            Place(IMC, (FileRule(r"imc\.save", IMC, IMC), FileRule(r"imc\.lock|.*\.lock", LOCK))),
        ),
        FolderRule(
            "(?:inductor_)?on_disk_cache",
            Place(
                ON_DISK_CACHE,
                (FileRule(f"({_HEX32})", ON_DISK_CACHE, ON_DISK_CACHE), _ANY_LOCK),
                (FolderRule("locks", LOCKS),),
            ),
        ),
        FolderRule("locks", LOCKS),
        FolderRule(".+", MEMOIZED, False),
    ),
)

PRECOMPILE_FOLDER: Final = Place(
    PRECOMPILE, (FileRule("entry", PRECOMPILE, PRECOMPILE), _ANY_LOCK), key_of=str
)


def _job_id(name: str) -> str:
    return name.removeprefix("code_state_")


# torch 2.6 left the "/" of a job id in the name.
PGO_FOLDER: Final = Place(PGO, (FileRule(r".*\.pkl", PGO, PGO), _ANY_LOCK), key_of=_job_id, is_deep=True)
DYNAMO: Final = Place(
    PGO,
    (FileRule(r"code_state_(.*)\.pkl", PGO, PGO), _ANY_LOCK),
    (FolderRule("code_state_.*", PGO_FOLDER), FolderRule(".+", PRECOMPILE_FOLDER, False)),
)

# torch's own, but no key leads to them.
_OTHERS: Final = (
    r"aoti_eager|autoheuristic|gcc|halide-runtime-.*|unhashed_kernel_inputs|quack|torch_cutlass|"
    r"cutedsl_compile_cache|flydsl_compile_cache|bisector?|.*_bisector|inductor_const_spill_.*"
)
UNKNOWN: Final = Place(OTHER)
ROOT: Final = Place(
    OTHER,
    (
        FileRule(r"memoizer_cache\.json", MEMOIZER_DUMP, MEMOIZER_DUMP),
        FileRule(rf"configs_({_HEX8})\.json", CUTLASS_CONFIGS, CUTLASS_CONFIGS),
        _ANY_LOCK,
        # torch 2.7 writes those of a mega-cache here, and looks for them beside their kernels.
        BEST_CONFIG_FILE,
        # CUTLASS's own cache of compiled kernels, and constants that were too big for memory.
        FileRule(r"compiled_cache\.db|inductor_const_spill_.*", OTHER),
    ),
    (
        FolderRule(FXGRAPH, FX_GRAPHS),
        FolderRule(AOTAUTOGRAD, AOT_GRAPHS),
        FolderRule(f"[a-z2-7]{{2}}|c{HASH}", CODE_FOLDER),
        FolderRule("cache", SYSTEM_CACHE),
        FolderRule("triton", TRITON_DEVICES),
        FolderRule("dynamo", DYNAMO),
        FolderRule("precompiled_headers", _all_of(PRECOMPILED_HEADER), False),
        FolderRule("locks", LOCKS),
        FolderRule(_OTHERS, _all_of(OTHER), False),
    ),
)
