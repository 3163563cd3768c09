"""Everything that can be asked of a scope: what was read must answer, be saved, and be printed."""

import json
import shutil
from pathlib import Path

import pandas as pd

import cachescope
from cachescope.errors import CachescopeError
from cachescope.readers.assemble import assemble
from cachescope.readers.index.log_tables import LogTables
from cachescope.readers.reading import Reading
from cachescope.report.as_json import entries_object, explain_object
from cachescope.report.json_text import json_text
from cachescope.report.terminal import terminal_lines
from cachescope.report.why_missed import answer_blocks
from cachescope.scope import Scope
from fuzz.outputs import check_outputs

FRAMES = (
    "runs", "lookups", "entries", "contexts", "guards", "kernels", "autotune", "links", "orphans", "duplicates", "removable",
    "past_misses", "evidence", "false_hits", "devices", "problems", "misses", "causes", "rank_differences",
    "phases", "phase_problems", "compiles", "symbols", "recompiles", "compile_problems",
)  # fmt: skip
MOST_PRINTED = 4 << 20
"""Letters of an answer to an input of at most some 200 kB."""


def check_reading(reading: Reading) -> None:
    """What is read of logs fits its columns, and every text can be written."""
    if reading.processes or reading.problems:
        assert LogTables.of("source", reading).to_json() is not None, "a value that no column holds"


def use(scope: Scope, folder: Path | None = None, path: Path | None = None, which: int = 0) -> None:
    """Ask for every frame and every answer; with a folder, save it there and read it again; with a path, ask one of the commands."""
    for name in FRAMES:
        getattr(scope, name)
    for made in (explain_object(scope), entries_object(scope)):
        text = json_text(made)
        json.loads(text.encode())
        assert len(text) < MOST_PRINTED, f"{len(text)} letters of JSON"
    lines = terminal_lines(answer_blocks(scope))
    assert sum(len(str(line)) for line in lines) < MOST_PRINTED, "too long an answer"
    if len(scope.misses):
        repr(scope.explain())
    scope.hit_rates()
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
        scope.save(folder)
        again = cachescope.read(folder)
        for one in ("runs", "lookups", "entries", "contexts", "kernels", "autotune"):
            pd.testing.assert_frame_equal(getattr(again.tables, one).frame, getattr(scope.tables, one).frame)
        for name in ("phases", "compiles", "symbols"):
            pd.testing.assert_frame_equal(getattr(again, name), getattr(scope, name))
        problems = pd.concat(
            [scope.problems, scope.phase_problems, scope.compile_problems], ignore_index=True
        )
        pd.testing.assert_frame_equal(again.problems, problems)
    if path is not None:
        check_outputs(path, path.parent, which)


def scope_of(reading: Reading) -> Scope:
    return Scope(assemble(reading))


def scope_at(path: Path) -> Scope | None:
    """What is read there; None where nothing says any more what it is."""
    try:
        return cachescope.read(path, index=False)
    except CachescopeError:
        return None


def emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder
