"""What can go is not missed: torch finds in the pruned directory all that it finds in the same one left as it is."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from nobody import as_nobody

import cachescope
from cachescope.analysis.directory.unused import removable_rows
from tests.analysis.plain_rows import seen_at

pytestmark = [pytest.mark.torch, pytest.mark.sweep]

PROGRAM = Path(__file__).with_name("hits_program.py")
# Ages are no protection here: as if everything had been made a week ago.
LATER_NS = 7 * 24 * 3_600_000_000_000


def fx(cache: Path) -> list[Path]:
    return sorted(cache.glob("fxgraph/*/*/*"))


def aot(cache: Path) -> list[Path]:
    return sorted(cache.glob("aotautograd/*/*"))


def wrappers(cache: Path) -> list[Path]:
    return sorted(cache.glob("??/c*.py"))


def shut(*paths: Path) -> None:
    for path in paths:
        path.chmod(0)


def move(path: Path, elsewhere: Path) -> None:
    elsewhere.mkdir(exist_ok=True)
    shutil.move(path, elsewhere / path.name)
    path.symlink_to(elsewhere / path.name)


def move_inner(path: Path, elsewhere: Path) -> None:
    for inner in sorted(path.iterdir()):
        move(inner, elsewhere)


def unmount(cache: Path, elsewhere: Path) -> None:
    move(cache / "fxgraph", elsewhere)
    elsewhere.rename(elsewhere.with_name("unmounted"))


def mount(cache: Path) -> None:
    cache.with_name("unmounted").rename(cache.with_name("elsewhere"))


def append(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"more")


def swap(cache: Path) -> None:
    """Put an entry under another key: torch does not look at the key that is in it."""
    first, second = fx(cache)[:2]
    shutil.copy(first, second.with_name("a-copy-of-another"))


def hide(path: Path) -> None:
    shutil.copy2(path, path.with_name(".1.2.tmp"))


def unused(cache: Path) -> None:
    """Take the entries of one wrapper away: nothing names its code any more."""
    for path in [*fx(cache)[:1], *aot(cache)]:
        path.unlink()


@dataclass(frozen=True)
class Case:
    """One way to break a directory."""

    # What is done to a cache, and where what it is linked to goes.
    spoil: Callable[[Path, Path], object]
    # What of it is read.
    given: str = ""
    # What changes before torch runs; rights come back by themselves.
    mend: Callable[[Path], object] = lambda _: None
    # Whether something has to be named, or else this proves nothing.
    can_go: bool | None = False


CASES = {
    "intact": Case(lambda cache, _: None),
    "an FX entry may not be opened": Case(lambda cache, _: shut(fx(cache)[0])),
    "no FX entry may be opened": Case(lambda cache, _: shut(*fx(cache))),
    "an AOTAutograd entry may not be opened": Case(lambda cache, _: shut(aot(cache)[0])),
    "fxgraph may not be listed": Case(lambda cache, _: shut(cache / "fxgraph")),
    "aotautograd may not be listed": Case(lambda cache, _: shut(cache / "aotautograd")),
    "a folder of fxgraph may not be listed": Case(lambda cache, _: shut(fx(cache)[0].parents[1])),
    "a key may not be listed": Case(lambda cache, _: shut(fx(cache)[0].parent)),
    "fxgraph may be listed, and nothing in it reached": Case(lambda cache, _: (cache / "fxgraph").chmod(0o444)),
    "code may not be listed": Case(lambda cache, _: shut(*(path.parent for path in wrappers(cache)))),
    "a wrapper may not be opened": Case(lambda cache, _: shut(wrappers(cache)[0])),
    "fxgraph is a link": Case(lambda cache, there: move(cache / "fxgraph", there)),
    "aotautograd is a link": Case(lambda cache, there: move(cache / "aotautograd", there)),
    "folders of fxgraph are links": Case(lambda cache, there: move_inner(cache / "fxgraph", there)),
    "keys of aotautograd are links": Case(lambda cache, there: move_inner(cache / "aotautograd", there)),
    "an entry is a link": Case(lambda cache, there: [move(path, there) for path in (*fx(cache), *aot(cache))]),
    "code is a link": Case(lambda cache, there: move(wrappers(cache)[0].parent, there)),
    "the whole cache is a link": Case(move),
    "fxgraph is a link to what is not mounted": Case(unmount, mend=mount),
    "only aotautograd is read": Case(lambda cache, _: None, given="aotautograd"),
    "only a key of aotautograd is read": Case(lambda cache, _: None, given="aotautograd/*"),
    "an FX entry is cut": Case(lambda cache, _: os.truncate(fx(cache)[0], 500), can_go=True),
    "an AOTAutograd entry is cut": Case(lambda cache, _: os.truncate(aot(cache)[0], 500), can_go=True),
    "an FX entry is empty": Case(lambda cache, _: os.truncate(fx(cache)[0], 0), can_go=True),
    "entries are called otherwise": Case(
        lambda cache, _: [path.rename(path.with_name("mine.bin")) for path in (*fx(cache), *aot(cache))]
    ),
    "entries go on behind their end": Case(lambda cache, _: [append(path) for path in (*fx(cache), *aot(cache))]),
    "an entry lies under another key": Case(lambda cache, _: swap(cache)),
    "FX entries are gone": Case(lambda cache, _: [path.unlink() for path in fx(cache)]),
    "one FX entry is gone": Case(lambda cache, _: fx(cache)[0].unlink(), can_go=None),
    "a whole temporary lies beside an entry": Case(lambda cache, _: hide(fx(cache)[0])),
    "a half temporary lies beside an entry": Case(
        lambda cache, _: fx(cache)[0].with_name(".1.2.tmp").write_bytes(b"\x80\x04"), can_go=True
    ),
    "nothing names some code": Case(lambda cache, _: unused(cache), can_go=True),
}  # fmt: skip


def run_torch(folders: list[Path]) -> dict[str, dict[str, dict[str, int]]]:
    command = [sys.executable, str(PROGRAM), *map(str, folders)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    counters: dict[str, dict[str, dict[str, int]]] = json.loads(done.stdout.splitlines()[-1])
    return counters


def named(given: list[Path]) -> list[str]:
    """The paths that can go, as somebody reads them who may not read everything."""
    scope = cachescope.read(*map(str, given))
    late = time.time_ns() + LATER_NS
    return [row.path for row in removable_rows(seen_at(scope.tables.entries.rows, late), scope.orphaned.rows)]


def spoiled(sound: Path, folder: Path, case: Case) -> Path:
    cache = folder / "cache"
    shutil.copytree(sound, cache, symlinks=True)
    case.spoil(cache, folder / "elsewhere")
    return cache


def mended(cache: Path, case: Case) -> Path:
    for folder, folders, files in os.walk(cache, followlinks=True):
        for name in (*folders, *files):
            path = Path(folder, name)
            if path.exists():
                path.chmod(0o755)
    case.mend(cache)
    return cache


def test_what_can_go_is_not_missed_by_torch(tmp_path: Path) -> None:
    sound = tmp_path / "sound"
    (cold,) = run_torch([sound]).values()
    assert all(each["autograd_cache_miss"] == 1 for each in cold.values())
    cachescope.read(sound)._repr_html_()  # whatever is imported later is imported before the user changes
    left: dict[str, Path] = {}
    pruned: dict[str, Path] = {}
    gone: dict[str, list[str]] = {}
    for number, (name, case) in enumerate(CASES.items()):
        left[name] = spoiled(sound, tmp_path / f"left{number}", case)
        pruned[name] = spoiled(sound, tmp_path / f"pruned{number}", case)
        given = sorted(pruned[name].glob(case.given)) if case.given else [pruned[name]]
        gone[name] = as_nobody(lambda given=given: named(given), below=tmp_path)
        for path in gone[name]:
            os.unlink(path)
        mended(left[name], case)
        mended(pruned[name], case)
        print(f"{name}: {len(gone[name])} removed", flush=True)
        assert case.can_go in (None, bool(gone[name])), name
    # Where nothing was named, both are the same directory.
    changed = [name for name in CASES if gone[name] or name == "intact"]
    found = run_torch([*(left[name] for name in changed), *(pruned[name] for name in changed)])
    for name in changed:
        assert found[str(pruned[name])] == found[str(left[name])], name
    assert all(each["autograd_cache_hit"] for each in found[str(left["intact"])].values())
