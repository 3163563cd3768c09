"""Texts that act where they are shown as they are, and a scope that holds them wherever a log could have put them."""

from dataclasses import replace

import cachescope
from cachescope.frames.directory_rows import EntryRow
from cachescope.frames.recorded_rows import LookupRow, ProblemRow, RunRow
from cachescope.scope import Scope
from cachescope.table import Table

MARK = "<script>alert(1)</script><img src=x onerror=alert(2)></table>'\""
HOSTILE = f"{MARK}\x1b[31m\u202e\x00\u200b\u2066\ufe0f\U000e0041]]>--><!--" + "A" * 1_000_000
# Each is short, so that it is seen whole wherever something is shown of it, and begins a line of its own.
TEXTS = {
    "escape sequences": "\x1b[2J\x1b]0;title\x07\x1b[1;31mred\x1b_bk;t=1\x07",
    "controls": "a\x00b\x07c\x08d\x7fe\x85f\x9b31mg\x0bh\x0ci",
    "direction": "a\u202eb\u2066c\u2069d\u200ee\u200ff\u061cg",
    "no width": "a\u200bb\u200dc\ufeffd\u2060e\u00adf\ufe0fg\u3164h\U000e0041i\U000e0100j",
    "separators": "a\u2028::error::b\u2029::error::c\x1c::error::d",
    "halves": "a\ud800b\udfffc\udc80",
    "GitHub": "\n::set-output name=x::y\n  ::stop-commands::z\r::add-mask::0\r\n::error title=a::b",
    "GitHub, first version": "##[set-env name=PATH]/tmp ##[group]x",
    "Azure": "\n##vso[task.setvariable variable=x]y ##VSO[task.complete]",
    "GitLab": "\x1b[0Ksection_start:1700000000:x[collapsed=true]\r\x1b[0Ky",
    "TeamCity": "\n##teamcity[buildStatus text='x']",
    "Buildkite": "\n--- a\n+++ b\n~~~ c\n^^^ +++\n",
    "Travis": "\ntravis_fold:start:x\r",
    "markup": "]]></script><script>alert(1)</script><img src=x onerror=alert(2)>&<!--'\"`${alert(3)}{{4}}",
    "percent": "100%\n%0A::error::x%0D%25,:;",
    "brackets": "[bold red]x[/] [link=http://a.example/]y[/link] \\[",
    "formulas": "$\\href{javascript:alert(1)}{x}$ <a href='javascript:alert(1)'>y</a> %{x} =cmd()",
    "long": "\n::error::" + "x" * 1_000_000,
}


def hostile_scope() -> Scope:
    """A recorded sample with its texts replaced by hand."""
    tables = cachescope.read(cachescope.sample("entry_truncated")).tables
    lookups, entries, runs, problems = (
        table.frame.copy() for table in (tables.lookups, tables.entries, tables.runs, tables.problems)
    )
    lookups.loc[0, "compile_id"] = HOSTILE
    lookups.loc[5, "load_error"] = HOSTILE
    lookups.loc[6, ["outcome", "bypass_reason"]] = ["bypass", HOSTILE]
    entries.loc[0, ["name", "guards_expr", "detail"]] = HOSTILE
    entries.loc[1, "damage"] = HOSTILE
    runs.loc[:, "torch_version"] = HOSTILE
    problems.loc[0, ["kind", "source", "message"]] = HOSTILE
    return Scope(replace(
        tables, lookups=Table(LookupRow, frame=lookups), entries=Table(EntryRow, frame=entries),
        runs=Table(RunRow, frame=runs), problems=Table(ProblemRow, frame=problems),
    ))  # fmt: skip
