"""A scope whose texts hold HTML, control characters and a megabyte, wherever a log could have put them."""

from __future__ import annotations

from dataclasses import replace

import cachescope
from cachescope.scope import Scope

MARK = "<script>alert(1)</script><img src=x onerror=alert(2)></table>'\""
HOSTILE = f"{MARK}\x1b[31m\u202e\x00]]>--><!--" + "A" * 1_000_000


def hostile_scope() -> Scope:
    """A recorded sample with its texts replaced by hand."""
    tables = cachescope.read(cachescope.sample("entry_truncated")).tables
    lookups, entries, runs, problems = (
        frame.copy() for frame in (tables.lookups, tables.entries, tables.runs, tables.problems)
    )
    lookups.loc[0, "compile_id"] = HOSTILE
    lookups.loc[5, "load_error"] = HOSTILE
    lookups.loc[6, ["outcome", "bypass_reason"]] = ["bypass", HOSTILE]
    entries.loc[0, ["name", "guards_expr", "detail"]] = HOSTILE
    entries.loc[1, "damage"] = HOSTILE
    runs.loc[:, "torch_version"] = HOSTILE
    problems.loc[0, ["kind", "source", "message"]] = HOSTILE
    return Scope(replace(tables, lookups=lookups, entries=entries, runs=runs, problems=problems))
