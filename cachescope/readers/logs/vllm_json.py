"""Lines of vLLM's logs as JSON: ``--logging-config.formatter json`` (0.32.0 and later).

``python-json-logger`` writes them, with the fields of ``JSON_FORMAT`` (``vllm/logging_utils/formatter.py``) and the name of the process that
``vllm/logger.py`` adds (0.33.0)::

    {"asctime": "2026-11-24 15:00:07,410", "levelname": "INFO", "name": "vllm.compilation.backends", "processName": "MainProcess",
     "process": 42, "message": "[backbone] Compiling a graph ... takes 7.83 s", "vllm_process_name": "EngineCore_DP0"}
"""

from __future__ import annotations

import re
from typing import Final

from cachescope.readers.json_record import load_json

JSON_HEAD: Final = re.compile(
    rb'\{"asctime": "\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^"]{0,8}", "levelname": "[A-Z]{1,10}", "name": "vllm[\w.]{0,200}"'
)
_TIME: Final = re.compile(r"\d{4}-(?P<day>\d\d-\d\d \d\d:\d\d:\d\d)(?:,\d{1,6})?")
_PREFIX: Final = re.compile(r"\[(?P<prefix>[\w.-]{1,100})\] ")
_MOST_DIGITS_OF_A_PID: Final = 9


def read_json_line(line: bytes) -> tuple[dict[str, str | None], str] | None:
    """What stands before a message in other logs (process, pid, time, part of the model), and the message; None if it is no line of vLLM."""
    match = JSON_HEAD.search(line)
    if match is None:
        return None
    try:
        found = load_json(line[match.start() :])
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    time, pid, message = (found.get(name) for name in ("asctime", "process", "message"))
    logged = _TIME.fullmatch(time) if isinstance(time, str) else None
    is_pid = isinstance(pid, int) and not isinstance(pid, bool) and 0 < pid < 10**_MOST_DIGITS_OF_A_PID
    if logged is None or not is_pid or not isinstance(message, str):
        return None
    name = found.get("vllm_process_name") or found.get("processName")
    prefix = _PREFIX.match(message)
    lead = {
        "process": name if isinstance(name, str) else None,
        "pid": str(pid),
        "host": None,
        "logged": logged["day"],
        "prefix": None if prefix is None else prefix["prefix"],
    }
    return lead, message if prefix is None else message[prefix.end() :]
