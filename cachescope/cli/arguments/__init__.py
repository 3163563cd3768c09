"""The arguments of the commands, one module for each. The module's docstring is the command's help.

Printing any help imports all of these modules, so none of them imports a reader. What a command runs is in the module of the
same name one folder up.
"""

from __future__ import annotations

from typing import Final

from cachescope.cli.arguments import (
    audit,
    cache,
    capture,
    check,
    compiles,
    contexts,
    demo,
    devices,
    diff,
    entries,
    explain,
    fix,
    lock,
    preflight,
    record,
    report,
    time,
    verify,
    what_if,
)

# For each command: its arguments, and the name of the module that is loaded when it runs.
COMMANDS: Final = {
    "explain": (explain, "cachescope.cli.explain"),
    "what-if": (what_if, "cachescope.cli.what_if"),
    "time": (time, "cachescope.cli.time"),
    "compiles": (compiles, "cachescope.cli.compiles"),
    "diff": (diff, "cachescope.cli.diff"),
    "entries": (entries, "cachescope.cli.entries"),
    "audit": (audit, "cachescope.cli.audit"),
    "contexts": (contexts, "cachescope.cli.contexts"),
    "devices": (devices, "cachescope.cli.devices"),
    "lock": (lock, "cachescope.cli.lock"),
    "verify": (verify, "cachescope.cli.verify"),
    "check": (check, "cachescope.cli.check"),
    "report": (report, "cachescope.cli.report"),
    "capture": (capture, "cachescope.cli.capture"),
    "record": (record, "cachescope.cli.record"),
    "preflight": (preflight, "cachescope.cli.preflight"),
    "fix": (fix, "cachescope.cli.fix"),
    "cache": (cache, "cachescope.cli.cache"),
    "demo": (demo, "cachescope.cli.demo"),
}
