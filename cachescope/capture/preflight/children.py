"""Processes that the program starts: each begins as a pre-flight, whatever environment the program gives it.

The program sees its variables as they were before, so that it sets what it would set. Only where ``TORCHINDUCTOR_CACHE_DIR``
was set it sees the own folder: what it removes or writes there is no cache.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from cachescope.capture.preflight.cache_folder import INDUCTOR_DIR, TRITON_DIR, meant, named_in, ours, show
from cachescope.capture.preflight.refusals import UNREACHED, refuse, tell

VARIABLE: Final = "CACHESCOPE_PREFLIGHT"
"""The variable that holds, as JSON, those that a pre-flight sets, and what the program would see of them."""
_PATH: Final = "PYTHONPATH"
_SITE: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "site")

# Their processes run elsewhere, or in an environment of their own.
_ELSEWHERE: Final = ("bsub", "docker", "kubectl", "podman", "qsub", "sbatch", "srun", "ssh", "sudo")
_COMMANDS: Final = re.compile(r"[;&|\n]| -c ")
# In the text of a shell nothing is replaced.
_EMPTIED: Final = re.compile(r"\benv +(-\w*i\b|- |--ignore-environment)")
_MOVED: Final = re.compile(rf"\b{_PATH}=(?!\S*\$\{{?{_PATH})")


def contained(seen: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """The environment of a process that would get `seen`, in which Python begins a pre-flight."""
    told = json.dumps({"ours": {**own}, "seen": {name: seen[name] for name in own if name in seen}})
    return {**with_site(seen), **own, VARIABLE: told}


def with_site(seen: Mapping[str, str]) -> dict[str, str]:
    """An environment in which Python begins with `site/sitecustomize.py`."""
    return {**seen, _PATH: os.pathsep.join(filter(None, (_SITE, seen.get(_PATH))))}


def begin() -> None:
    """Keep what the pre-flight set, show the program what it would see, and contain what it starts."""
    told = json.loads(os.environ[VARIABLE])
    ours.update(told["ours"])
    meant.update({name: value for name, value in told["seen"].items() if name in (INDUCTOR_DIR, TRITON_DIR)})
    for name, value in ours.items():
        if os.environ.get(name) == value and name != TRITON_DIR and name not in meant:
            show(name, told["seen"].get(name))
    path = os.environ.get(_PATH, "").split(os.pathsep)
    show(_PATH, os.pathsep.join(place for place in path if place != _SITE) or None)
    show(VARIABLE, None)
    if os.name == "posix":
        _contain_children()


def _contain_children() -> None:
    posix: Any = importlib.import_module("_posixsubprocess")
    system: Any = os
    forked = posix.fork_exec

    # `subprocess`, and `multiprocessing` where it does not fork.
    def fork_exec(words: Any, names: Any, close: Any, keep: Any, cwd: Any, given: Any, *more: Any) -> Any:
        if given is None:
            _renew(words)
            return forked(words, names, close, keep, cwd, None, *more)
        changed = _contained(words, (one.partition(b"=")[::2] for one in given))
        listed = [os.fsencode(f"{name}={value}") for name, value in changed.items()]
        return forked(words, names, close, keep, cwd, listed, *more)

    def with_own(started: Callable[..., Any]) -> Callable[..., Any]:
        def start(path: Any, words: Any, *given: Any, **more: Any) -> Any:
            if not given or given[0] is None:
                _renew(words)
                return started(path, words, *given, **more)
            return started(path, words, _contained(words, given[0].items()), *given[1:], **more)

        return start

    def in_shell(command: Any) -> int:
        _renew(["sh", "-c", command])
        return shell(command)

    shell, system.system = os.system, in_shell
    for name in ("execv", "execve", "posix_spawn", "posix_spawnp"):
        setattr(os, name, with_own(getattr(os, name)))
    posix.fork_exec = fork_exec
    imported: Any = sys.modules.get("subprocess")
    if hasattr(imported, "_fork_exec"):
        imported._fork_exec = fork_exec


def _renew(words: Iterable[Any]) -> None:
    """Set the variables of the pre-flight again for a process that gets those of this one: the program may have removed them."""
    found = _contained(words, os.environ.items())
    for name in (*ours, _PATH, VARIABLE):
        os.putenv(name, found[name])


def _contained(words: Iterable[Any], given: Iterable[tuple[Any, Any]]) -> dict[str, str]:
    """The environment of a command that the program starts with one of its own."""
    text = [os.fsdecode(word) for word in words]
    command = " ".join(text)
    # Of a shell's text, the first word of each command.
    started = {os.path.basename(one.split()[0]) for one in _COMMANDS.split(command) if one.strip()}
    for name in started.intersection(_ELSEWHERE):
        tell(UNREACHED, name)
    is_moved = _MOVED.search(command) and f"{INDUCTOR_DIR}=" in command
    if "python" in command and (is_moved or _EMPTIED.search(command)):
        refuse(f"a shell starts Python without the variables of the pre-flight: {command}")
    seen = {os.fsdecode(name): os.fsdecode(value) for name, value in given}
    named = named_in(seen)
    if named is not None:
        seen[INDUCTOR_DIR] = named
    else:
        seen.pop(INDUCTOR_DIR, None)
    return contained(seen, ours)
