"""What can go from vLLM's folders: nothing of which it is not proven that no engine uses it."""

import shutil
import time
from pathlib import Path

import pytest

import cachescope
from cachescope.analysis.directory.unused import removable_rows
from cachescope.frames.linked_rows import RemovableRow
from tests.analysis.plain_rows import seen_at
from tests.vllm_recordings import VERSIONS, recorded

pytestmark = pytest.mark.slow

A_MONTH_NS = 30 * 24 * 3_600_000_000_000


def removable_later(cache: Path) -> list[RemovableRow]:
    """What can go a month from now: nothing is kept for being new."""
    scope = cachescope.read(cache)
    later = seen_at(scope.tables.entries.rows, time.time_ns() + A_MONTH_NS)
    return removable_rows(later, scope.orphaned.rows)


@pytest.mark.parametrize("version", VERSIONS)
def test_nothing_can_go_from_a_real_cache(version: str, tmp_path: Path) -> None:
    assert not removable_later(recorded(version, tmp_path).cache)


def test_code_that_a_compiled_model_uses_stays(tmp_path: Path) -> None:
    """The model holds its graphs itself: an FX entry of another graph beside it does not say that its code is not used."""
    cache = recorded("0.33.0", tmp_path).cache
    folders = sorted(cache.rglob("torch_aot_compile/*/inductor_cache"))
    (with_graphs, *_) = (folder for folder in folders if (folder / "fxgraph").exists())
    for folder in folders:
        shutil.rmtree(folder / "aotautograd")
        if folder != with_graphs:
            shutil.copytree(with_graphs, folder, dirs_exist_ok=True)
    before = len(list(cache.rglob("torch_aot_compile/*/inductor_cache/*/*.py")))
    scope = cachescope.read(cache)
    assert before > len(folders)
    assert scope.orphans.empty
    assert not removable_later(cache)
    # Without the models beside them nothing holds graphs that are not listed.
    for model in cache.rglob("model"):
        model.unlink()
    assert {row.cache for row in removable_later(cache)} == {"code"}


def test_a_model_that_was_never_finished_can_go(tmp_path: Path) -> None:
    cache = recorded("0.33.0", tmp_path).cache
    model = next(path for path in cache.rglob("model") if path.is_file())
    unfinished = model.with_name("model.4242.tmp")
    unfinished.write_bytes(b"")
    (found,) = removable_later(cache)
    assert (found.path, found.reason) == (str(unfinished), "left behind by a process that died")
