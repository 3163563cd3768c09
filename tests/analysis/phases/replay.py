"""Chromium events of traces, read and replayed plainly: nothing here is of cachescope."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def traces_of(folder: Path) -> Iterator[tuple[Path, bytes]]:
    for path in sorted(folder.rglob("*torch_trace*")):
        if path.is_file() and b'{"chromium_event"' in (data := path.read_bytes()):
            yield path, data


def events_of(trace: bytes) -> Iterator[dict[str, Any]]:
    """The payloads of the events of a trace, whose last one may be cut."""
    payload: list[str] | None = None
    for line in [*trace.decode().split("\n"), "V"]:
        if line.startswith("\t"):
            if payload is not None:
                payload.append(line[1:])
            continue
        if payload and payload[-1] == "}":
            yield json.loads("\n".join(payload))
        payload = [] if '] {"chromium_event"' in line else None


@dataclass
class Replayed:
    """What a plain replay says, in microseconds: by name how many began, and the time in which one was open; the time of roots."""

    counts: Counter[str] = field(default_factory=Counter)
    open_us: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    roots_us: float = 0.0


def replayed(events: Iterator[dict[str, Any]]) -> Replayed:
    """Push what begins, remove the last one of the name of what ends; what is open at the end ends with the last event."""
    said = Replayed()
    stack: list[tuple[str, float]] = []
    last = 0.0
    for event in events:
        if event["ph"] == "B":
            said.counts[event["name"]] += 1
            stack.append((event["name"], event["ts"]))
        elif event["ph"] == "E":
            at = max(number for number, (name, _) in enumerate(stack) if name == event["name"])
            _take_off(stack, at, event["ts"], said)
        else:
            continue
        last = event["ts"]
    for at in reversed(range(len(stack))):
        _take_off(stack, at, last, said)
    return said


def _take_off(stack: list[tuple[str, float]], at: int, now: float, said: Replayed) -> None:
    name, began = stack.pop(at)
    if name not in [other for other, _ in stack]:
        # One within another of its name is not counted again.
        said.open_us[name] += now - began
    if not stack:
        said.roots_us += now - began
